"""Why a step of pfma has related results in two runs on related inputs: product by product, then two sums.

An fma that gives a NaN of its operands (of pfma, ffma, sfma with `NanRule.FIRST`) is argued in two cases: both addends
are NaNs, or neither is.
"""

from __future__ import annotations

from typing import TypeAlias

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.pfma.smt import Fma, flush
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.facts.related_parts import rounded
from mmaformal.formats import fp32
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import Opposite, RelatedStep, operand_codes

Codes = tuple[z3.BitVecRef, z3.BitVecRef]  #: of the two runs
AnyFma: TypeAlias = Fma | sfma.SfmaStep


def derive(step: RelatedStep[pfma.PfmaStep]) -> Link:
    left, right = step.left, step.right
    swapped = step.order[0] % 2  # whether even products are the odd ones of the other run
    if list(step.order) != [k ^ swapped for k in range(len(right.fmas))] or step.dropped:
        raise ArgumentError(
            "no argument is known where a product of pfma has another place in its partial sum"
        )
    zero = z3.BitVecVal(0, fp32.storage_bits)
    start = step.derive("inputs", "both sums start at +0", step.kind.code(zero, zero, fp32), [])
    sums = [start, start]
    for k, y in enumerate(right.fmas):
        x = left.fmas[step.order[k]]
        inner = RelatedStep(step.argument, step.runs, x, y, sums[k % 2], [0])
        sums[k % 2] = fma(inner)
    pair = _addition(step, left.pair, right.pair, sums, (left.sum, right.sum))
    return _addition(step, left.addition, right.addition, [step.c, pair], (left.result, right.result))


def fma(step: RelatedStep[AnyFma]) -> Link:
    """The link of the results, from that of the codes of the addends, if both are NaNs and if neither is one."""
    left, right, fmt = step.left, step.right, step.runs.left_spec.d_format
    codes = left.codes[2], right.codes[2]
    nans = [is_nan(code, fmt) for code in codes]
    some = Link(z3.And(step.c.claim, *nans), codes)
    none = Link(z3.And(step.c.claim, *(z3.Not(nan) for nan in nans)), codes)
    step.argument.split("both addends are NaNs, or neither", [some, none], [step.c])

    operands = [left.a, left.b, right.a, right.b]
    factors = operand_codes(*operands)
    result = step.kind.code(left.result, right.result, fmt)
    text = "a NaN as addend makes related NaNs"
    step.derive("encode", text, result, [some], [*factors, left.number, right.number])

    step = RelatedStep(step.argument, step.runs, left, right, none, step.order)
    c, given = step.operand_c(), []
    if isinstance(step.kind, Opposite):
        text = "negated codes are decoded to related operands"
        given.append(step.derive("decode", text, step.kind.operand(left.a, right.a), [], factors))
    product = step.product(left.product, right.product, operands, given)
    special = step.special([c, *given], operands)
    number = rounded(_of_numbers(step), left.sum, right.sum, [product, step.addend(c)], [])
    text = "related numbers, or NaNs as factors, make related results"
    return step.derive("encode", text, result, [number, special, none], factors)


def _of_numbers(step: RelatedStep[AnyFma]) -> RelatedStep[AnyFma]:
    """The same up to the code of a number."""
    x, y = (each._replace(result=each.number) for each in (step.left, step.right))
    return RelatedStep(step.argument, step.runs, x, y, step.c, step.order)


def _addition(
    step: RelatedStep[pfma.PfmaStep], left: Addition, right: Addition, given: list[Link], results: Codes
) -> Link:
    link = step.kind.code(left.result, right.result, fp32)
    step.derive("accumulate", "sums of related numbers are related", link, given)
    flushed = step.kind.code(flush(left.result), flush(right.result), fp32)
    step.derive("encode", "flushed alike", flushed, [link])
    result = step.kind.code(*results, fp32)
    text = "related sums, or related NaNs, make related results"
    return step.derive("encode", text, result, [flushed, *given])
