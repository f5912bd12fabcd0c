"""Which codes gps can give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import z3

from mmaformal.cases.codes import magnitude
from mmaformal.encodings.gps import smt as smt_gps
from mmaformal.encodings.gps.smt import flush
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.facts import ranges
from mmaformal.facts.ranges import not_nan
from mmaformal.formats import fp32
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import Pairing, operand_codes
from mmaformal.solver.asking import constants_of
from mmaformal.spec import DotAdd


def no_nan_of(
    pairing: Pairing, spec: DotAdd, step: smt_gps.GpsStep, assumed: dict[int, Link], c: Link
) -> Link:
    """Products are below a power of two, sums below twice their terms' bound."""
    top = spec.a_format.max_exponent + spec.b_format.max_exponent + 2 + fp32.bias

    def below(code: z3.BitVecRef, exponent: int) -> Link:
        if exponent >= (1 << fp32.exponent_bits) - 1:
            raise ArgumentError("products may overflow")
        return Link(z3.ULE(magnitude(code, fp32), exponent << fp32.fraction_bits), (code,))

    level: list[Link] = []
    for x, y, product in zip(step.a, step.b, step.products, strict=True):
        codes = [*operand_codes(x), *operand_codes(y)]
        given = [assumed[code.get_id()] for code in codes]
        text = "products of finite factors are within a power of two"
        level += pairing.derive("multiply", text, [below(product, top)], given, codes)
    sums = list(step.sums)
    while len(level) > 1:
        top += 1
        level = [
            _flushed(pairing, sums.pop(0), below, top, [level[i], level[i + 1]])
            for i in range(0, len(level), 2)
        ]
    text = "a number that may be infinite and a finite one add up to no NaN"
    last = not_nan(pairing, step.addition.result, spec, [c, level[0]], text)
    return not_nan(pairing, step.result, spec, [last], "flushed, it is no NaN")


def _flushed(
    pairing: Pairing,
    addition: Addition,
    below: Callable[[z3.BitVecRef, int], Link],
    top: int,
    given: Sequence[Link],
) -> Link:
    text = "a sum is within twice the bound of its terms"
    (link,) = pairing.derive("accumulate", text, [below(addition.result, top)], given)
    flushed = flush(addition.result, keep_sign=True)
    return pairing.derive("encode", "flushed, it is within the same bound", [below(flushed, top)], [link])[0]


def _of_addition(step: smt_gps.GpsStep) -> list[z3.BitVecRef]:
    return [step.addition.result]


no_subnormals = ranges.no_subnormals(_of_addition)


def normal_or_plus_zero(pairing: Pairing, spec: DotAdd, steps: Sequence[smt_gps.GpsStep]) -> Link:
    """gps: products are zero or at least 2^m, so they are multiples of 2^(m - 23), and a sum of two that does not
    vanish is at least that; and so on.  Nothing but zeros of c and a group could then add up to −0 or be flushed."""
    one = 1 << fp32.fraction_bits

    def at_least(code: z3.BitVecRef, exponent: int) -> Link:
        """Zero, or not below 2^exponent."""
        field = exponent + fp32.bias
        if field < 1:
            raise ArgumentError("products may underflow")
        low = magnitude(code, fp32)
        return Link(z3.Or(low == 0, z3.UGE(low, field * one)), (code,))

    def usable(code: z3.BitVecRef) -> Link:
        low = magnitude(code, fp32)
        return Link(z3.And(z3.Or(low == 0, z3.UGE(low, one)), code != fp32.sign_mask), (code,))

    c = usable(steps[0].c)
    pairing.derive("decode", "c is flushed to +0 or a normal number", [c], [], constants_of(steps[0].c))
    for step in steps:
        least = spec.a_format.min_exponent + spec.b_format.min_exponent
        level: list[Link] = []
        for x, y, product in zip(step.a, step.b, step.products, strict=True):
            text = "a product is zero, or not below that of the least normal factors"
            level += pairing.derive("multiply", text, [at_least(product, least)], [], operand_codes(x, y))
        sums = list(step.sums)
        while len(level) > 1:
            least -= fp32.fraction_bits
            pairs: list[Link] = []
            for i in range(0, len(level), 2):
                result = sums.pop(0).result
                text = "a sum is zero, or not below the last place of the least term"
                (link,) = pairing.derive("accumulate", text, [at_least(result, least)], level[i : i + 2])
                flushed = at_least(flush(result, keep_sign=True), least)
                pairs += pairing.derive("encode", "flushed, it is the same", [flushed], [link])
            level = pairs
        sum_ = usable(step.addition.result)
        text = "the sum of +0 or a normal number and such a group is no subnormal and not −0"
        at_least(step.addition.result, least - fp32.fraction_bits - 1)  # where c and the group nearly cancel
        pairing.derive("accumulate", text, [sum_], [c, *level])
        c = usable(step.result)
        pairing.derive("encode", "flushed, it is the same", [c], [sum_])
    return c
