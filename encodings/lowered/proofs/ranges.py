"""Which codes lowered instructions can give."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.encodings.lowered import smt as smt_lowered
from mmaformal.facts.ranges import no_nan
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.spec import DotAdd


def no_nan_of_inner(pairing: Pairing, spec: DotAdd, step: smt_lowered.Step, assumed: dict[int, Link]) -> Link:
    inner = spec.parameters.inner_dot_add(spec)  # type: ignore[attr-defined]
    zero = z3.BitVecVal(0, spec.d_format.storage_bits)
    c = Link(z3.Not(is_nan(zero, spec.d_format)), ())
    pairing.derive("inputs", "the inner steps start from +0", [c])
    for each in step.inner:
        c = no_nan(pairing, inner, each, assumed, c)
    return c
