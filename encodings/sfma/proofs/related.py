"""Why a step of sfma has related results in two runs on related inputs."""

from __future__ import annotations

from mmaformal.encodings.sfma import smt as sfma
from mmaformal.facts.related_parts import rounded
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import (
    Opposite,
    Step,
    operand_codes,
)


def derive(step: Step[sfma.Step]) -> Link:
    left, right = step.left, step.right
    c = step.operand_c()
    given = []
    if isinstance(step.kind, Opposite):
        codes = operand_codes(left.a, right.a)
        text = "negated codes are decoded to related operands"
        link = step.kind.operand(left.a, right.a)
        given.append(step.derive("decode", text, link, step.number(left.a), codes))
    operands = [left.a, left.b, right.a, right.b]
    product = step.product(left.product, right.product, operands, given)
    special = step.special([c, *given, product], operands)
    return rounded(step, left.sum, right.sum, [product, step.addend(c)], [special])
