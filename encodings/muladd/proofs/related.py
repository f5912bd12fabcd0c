"""Why a step of muladd has related results in two runs on related inputs: its product and its sum are functions of
codes."""

from __future__ import annotations

from mmaformal.encodings.muladd import smt as muladd
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Step, _terms


def derive(step: Step[muladd.Step]) -> Link:
    left, right, kind, fmt = step.left, step.right, step.kind, step.runs.left_spec.d_format
    factors = step.factors()
    link = kind.code(left.product.result, right.product.result, fmt)
    operands = _terms(*left.a, *left.b, *right.a, *right.b)
    step.derive("multiply", "products are related", link, factors[:1], operands)
    total = kind.code(left.result, right.result, fmt)
    return step.derive("accumulate", "sums of related numbers are related", total, [step.c, link])
