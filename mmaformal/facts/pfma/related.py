"""Why a step of pfma has related results in two runs on related inputs: product by product, then two sums."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.encodings.smt import pfma
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.encodings.smt.pfma import Fma, flush
from mmaformal.facts.related_parts import rounded
from mmaformal.formats import Format, fp32
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import Kind, Opposite, Same, Step, operand_codes

Codes = tuple[z3.BitVecRef, z3.BitVecRef]  #: of the two runs


class SameButNans(Same):
    """The same codes, but two NaNs may be any two: which one is the first to be met depends on the order."""

    def code(self, left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
        nans = z3.And(is_nan(left, fmt), is_nan(right, fmt))
        return Link(z3.Or(left == right, nans), (left, right))


def kind_of(kind: Kind) -> Kind:
    return SameButNans() if type(kind) is Same else kind


def derive(step: Step[pfma.Step]) -> Link:
    left, right = step.left, step.right
    swapped = step.order[0] % 2  # whether even products are the odd ones of the other run
    if list(step.order) != [k ^ swapped for k in range(len(right.fmas))] or step.dropped:
        raise ArgumentError(
            "no argument is known where a product of pfma has another place in its partial sum"
        )
    zero = z3.BitVecVal(0, fp32.storage_bits)
    start = step.derive("inputs", "both sums start at +0", step.kind.code(zero, zero, fp32), [])
    sums, codes = [start, start], [(zero, zero)] * 2
    for k, y in enumerate(right.fmas):
        x = left.fmas[step.order[k]]
        inner = Step(step.argument, step.runs, x, y, sums[k % 2], [0])
        sums[k % 2], codes[k % 2] = _fma(inner, codes[k % 2]), (x.result, y.result)
    pair = _addition(step, left.pair, right.pair, sums, (left.sum, right.sum))
    return _addition(step, left.addition, right.addition, [step.c, pair], (left.result, right.result))


def _fma(step: Step[Fma], codes: Codes) -> Link:
    """The link of the results, from that of the codes of the addends, if both are NaNs and if neither is one."""
    left, right = step.left, step.right
    nans = [is_nan(code, fp32) for code in codes]
    some = Link(z3.And(step.c.claim, *nans), codes)
    none = Link(z3.And(step.c.claim, *(z3.Not(nan) for nan in nans)), codes)
    step.argument.split("both addends are NaNs, or neither", [some, none], [step.c])

    operands = [left.a, left.b, right.a, right.b]
    factors = operand_codes(*operands)
    result = step.kind.code(left.result, right.result, fp32)
    text = "a NaN as addend makes related NaNs"
    step.derive("encode", text, result, [some], [*factors, left.number, right.number])

    step = Step(step.argument, step.runs, left, right, none, step.order)
    c, given = step.operand_c(), []
    if isinstance(step.kind, Opposite):
        text = "negated codes are decoded to related operands"
        given.append(step.derive("decode", text, step.kind.operand(left.a, right.a), [], factors))
    product = step.product(left.product, right.product, operands, given)
    special = step.special([c, *given], operands)
    number = rounded(_of_numbers(step), left.sum, right.sum, [product, step.addend(c)], [])
    text = "related numbers, or NaNs as factors, make related results"
    return step.derive("encode", text, result, [number, special, none], factors)


def _of_numbers(step: Step[Fma]) -> Step[Fma]:
    """The same up to the code of a number."""
    x, y = (each._replace(result=each.number) for each in (step.left, step.right))
    assert isinstance(x, Fma)
    return Step(step.argument, step.runs, x, y, step.c, step.order)


def _addition(
    step: Step[pfma.Step], left: Addition, right: Addition, given: list[Link], results: Codes
) -> Link:
    link = step.kind.code(left.result, right.result, fp32)
    step.derive("accumulate", "sums of related numbers are related", link, given)
    flushed = step.kind.code(flush(left.result), flush(right.result), fp32)
    step.derive("encode", "flushed alike", flushed, [link])
    result = step.kind.code(*results, fp32)
    text = "related sums, or related NaNs, make related results"
    return step.derive("encode", text, result, [flushed, *given])
