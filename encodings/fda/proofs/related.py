"""Why a step of fda has related results in two runs on related inputs."""

from __future__ import annotations

from mmaformal.encodings.fda import smt as fda
from mmaformal.facts.related_parts import fused
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import (
    Step,
)


def derive(step: Step[fda.Step]) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b, left.scale_a, left.scale_b, right.scale_a, right.scale_b]
    terms = []
    for j, i in enumerate(step.order):
        own = [left.a[i], left.b[i], right.a[j], right.b[j]]
        own += [x for s in (left.scale_a, left.scale_b) for x in s[i : i + 1]]
        own += [x for s in (right.scale_a, right.scale_b) for x in s[j : j + 1]]
        given = [factors[j]] if factors else []
        terms.append(step.product(left.products[i], right.products[j], own, given))
    special = step.special([c, *factors, *terms, *zeros.values()], operands)
    return fused(
        step,
        left.products,
        rights=right.products,
        terms=terms,
        c=c,
        special=special,
        order=step.order,
        zeros=zeros,
    )
