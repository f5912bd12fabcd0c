"""Why a step of a lowered instruction has related results in two runs on related inputs."""

from __future__ import annotations

import z3

from mmaformal.encodings.lowered import smt as lowered
from mmaformal.facts.related import chain
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import (
    Runs,
    Step,
)


def derive(step: Step[lowered.Step]) -> Link:
    left, right, runs = step.left, step.right, step.runs
    specs = runs.left_spec, runs.right_spec
    (inner, other), (order, other_order) = (
        [spec.parameters.inner_dot_add(spec) for spec in specs],  # type: ignore[attr-defined]
        [spec.parameters.order for spec in specs],  # type: ignore[attr-defined]
    )
    zero = z3.BitVecVal(0, runs.left_spec.d_format.storage_bits)
    # order[t] is the place of the t-th product taken; the second run's t-th is the first's at[t]-th.
    at = [order.index(step.order[k]) for k in other_order]
    dropped = {order.index(k): link for k, link in step.dropped.items()}
    dot = step.kind.code(zero, zero, runs.left_spec.d_format)
    step.derive("inputs", "the inner steps start from +0", dot, [])
    dot = chain(
        step.argument,
        Runs(
            step.kind,
            inner,
            right_spec=other,
            left=left.inner,
            right=right.inner,
            match=at,
            dropped=dropped,
            nans_keep_sign=True,
        ),
        dot,
    )
    link = step.kind.code(left.result, right.result, runs.left_spec.d_format)
    return step.derive("accumulate", "sums of related numbers are related", link, [dot, step.c])
