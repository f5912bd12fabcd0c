"""Exactness of a step of pfma: where every fma, and the sum of both partial sums, is a number of fp32, not subnormal
(`theory/rounded_trees.py`), d is the exact sum, rounded once.

Where the exact sum of an fma is a number of fp32, and not subnormal, the fma is that number.  The exact sum is an
integer m of a fixed point t, the last place of its smaller term.  The unit adds at the larger exponent e_max, with a
sticky last place.

1. *near*:   a sum that is a number has terms that are near each other, or one: with more than 26 places between them it
             would have bits further apart than a significand is long; and one term alone far below 2^-126 is subnormal;
2. *whole*:  so it has few bits; and as it is a number, neither term loses a bit;
3. *number*: so the sum that the unit rounds is that number, and rounding and flushing leave it as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.smt.blocks import Term, negate_if, pad
from mmaformal.facts.exact_terms import prove_addend, prove_flushed, prove_product
from mmaformal.facts.exactness import Exact, claims_of
from mmaformal.formats import fp32
from mmaformal.proof.composition import Composing, wide
from mmaformal.proof.definitions import fit, read
from mmaformal.proof.sticky_sums import is_sharp, magnitude_of
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd
from mmaformal.theory.additions import Addition, finite
from mmaformal.theory.rounded_trees import (
    TOP,
    RoundedSum,
    Shape,
    codes_of,
    index_of,
    is_normal,
    kept,
    ordinary,
    prove_finite,
    prove_sum_of_all,
)

_M = fp32.fraction_bits
_NEAR = _M + 3  #: places between two terms
_BITS = _M + 2  #: of a product, with as many fraction bits as the addend


@dataclass(frozen=True)
class ExactFma:
    """An fma, its exact sum, and z, a code that this is to be."""

    spec: DotAdd
    step: pfma.Fma
    z: z3.BitVecRef

    @property
    def terms(self) -> tuple[Term, Term]:
        return self.step.product, self.step.addend

    @property
    def low(self) -> int:
        return pfma.exponents_of(self.spec).low

    @cached_property
    def smaller(self) -> z3.BitVecRef:
        """The exponent of the smaller term, of those that are not zero."""
        x, y = self.terms
        least = z3.If(z3.ULT(x.exponent, y.exponent), x.exponent, y.exponent)
        return z3.If(y.significand == 0, x.exponent, z3.If(x.significand == 0, y.exponent, least))

    @property
    def t(self) -> z3.BitVecRef:
        """The exponent of the exact sum's last place."""
        return fit(self.smaller, self.smaller.size() + 4) + (self.low - _M)

    def total(self, bits: int) -> z3.BitVecRef:
        """The exact sum in units of 2^t, in so many bits; a term that is zero is nowhere."""
        more = _M - self.spec.a_format.fraction_bits - self.spec.b_format.fraction_bits
        parts = []
        for x, places in zip(self.terms, (more, 0), strict=True):
            up = z3.If(x.significand == 0, z3.BitVecVal(0, x.exponent.size()), x.exponent - self.smaller)
            parts.append(negate_if(x.sign, (fit(x.significand, bits) << places) << fit(up, bits)))
        return parts[0] + parts[1]

    @cached_property
    def exact(self) -> z3.BitVecRef:
        """The exact sum of two finite terms: as many bits as lie between any two."""
        a, b = self.spec.a_format, self.spec.b_format
        reach = max(
            a.max_exponent + b.max_exponent - fp32.min_exponent,
            fp32.max_exponent - a.min_exponent - b.min_exponent,
        )
        return self.total(reach + _BITS + 2)

    @cached_property
    def short(self) -> z3.BitVecRef:
        """The exact sum of two terms that are near."""
        return self.total(_NEAR + _BITS + 2)

    def is_value(self, total: z3.BitVecRef, t: z3.BitVecRef) -> z3.BoolRef:
        """Whether total · 2^t has the magnitude of z."""
        return is_sharp(*read(index_of(self.z), t.size(), IEEE_FP32), magnitude_of(total)[1], t)

    @property
    def is_normal(self) -> z3.BoolRef:
        """Whether z is a number of fp32, and not subnormal."""
        return is_normal(self.z)

    @property
    def is_number(self) -> z3.BoolRef:
        """Whether the exact sum has the magnitude of z, a number of fp32 and not subnormal."""
        return z3.And(self.is_normal, self.is_value(self.exact, self.t))

    def is_it(self, code: z3.BitVecRef, total: z3.BitVecRef | None = None) -> z3.BoolRef:
        """Whether a code has the magnitude of z and, unless that is 0, the sign of the exact sum."""
        total = self.exact if total is None else total
        negative = magnitude_of(total)[0]
        sign = z3.Or(total == 0, (z3.Extract(TOP, TOP, code) == 1) == negative)
        return z3.And(index_of(code) == index_of(self.z), sign)

    @property
    def apart(self) -> z3.BitVecRef:
        """How far e_max is above the exponent of the smaller term."""
        return self.step.sum.e_max - self.smaller

    @property
    def near(self) -> z3.BoolRef:
        return z3.ULE(self.apart, _NEAR)

    @property
    def inside(self) -> list[z3.ExprRef]:
        """What the sum is made of."""
        return [part for x in self.terms for part in x]

    @property
    def invariants(self) -> list[z3.BoolRef]:
        """Of terms of finite operands: a term has its leading bit, or is zero with the least exponent."""
        x, y = self.terms
        a, b, ex = self.spec.a_format, self.spec.b_format, pfma.exponents_of(self.spec)
        least = ex.constant(pfma.LEAST)
        bits = a.fraction_bits + b.fraction_bits
        zeros = [z3.And(v.significand == 0, v.exponent == least) for v in (x, y)]
        return [
            z3.Or(z3.UGE(x.significand, 1 << bits), zeros[0]),
            z3.Or(z3.UGE(y.significand, 1 << _M), zeros[1]),
            z3.ULE(x.exponent, ex.constant(a.max_exponent + b.max_exponent)),
            z3.And(z3.UGE(y.exponent, least), z3.ULE(y.exponent, ex.constant(fp32.max_exponent))),
        ]


# ---- operands --------------------------------------------------------------------------------------------------------


def prove_operands(proving: Composing, x: ExactFma) -> None:
    """That the product and the addend are those of the codes, a subnormal one as zero."""
    each, spec, ex = x.step, x.spec, pfma.exponents_of(x.spec)
    formats = (spec.a_format, spec.b_format, fp32)
    for code, operand, fmt in zip(each.codes, (each.a, each.b, each.c), formats, strict=True):
        prove_flushed(proving, code, operand, fmt)
        proving.claim("field", "an exponent field is not 0", z3.UGE(operand.field, 1))
    bias = spec.a_format.bias + spec.b_format.bias
    prove_product(proving, each.product, (each.a, each.b), (), bias, ex)
    prove_addend(proving, each.addend, each.c, fp32.bias, ex)


def prove_decoded(proving: Composing, x: ExactFma) -> z3.BoolRef:
    """That operands of numbers are numbers, their terms as `invariants` says, and the result is the code of the number;
    returns the first."""
    each, (a, b, c), spec = x.step, x.step.codes, x.spec
    numbers = [is_finite(a, spec.a_format), is_finite(b, spec.b_format), finite(c, fp32)]
    operands = (each.a, each.b, each.c)
    decoded = [z3.Not(z3.Or(y.infinite, y.nan)) for y in operands]
    for number, claim in zip(numbers, decoded, strict=True):
        text = "a number is decoded as a number"
        proving.claim("operand", text, z3.Implies(number, claim))
    for invariant in x.invariants:
        text = (
            "a term of numbers is zero with the least exponent, or has its leading bit; and is in its range"
        )
        proving.claim("term", text, z3.Implies(z3.And(numbers), invariant))
    text, same = "where nothing is special, the result is the number", each.result == each.number
    proving.claim("result", text, z3.Implies(z3.And(decoded), same))
    return z3.And(decoded)


# ---- the exact sum ---------------------------------------------------------------------------------------------------


def prove_number(proving: Composing, x: ExactFma) -> z3.BoolRef:
    """From the invariants: where z is the exact sum's number, so is the fma.  Raises NotProvedError."""
    near = _prove_near(proving, x)
    few = z3.And(x.exact == wide(x.short, x.exact.size()), x.short != _least(x.short))
    short = z3.Implies(x.near, few)
    proving.claim("short sum", "the sum of near terms has few bits", short, x.invariants)
    value = _prove_short_value(proving, x, near, short)
    unit = _prove_unit(proving, x, _prove_whole(proving, x))
    rounded = _prove_rounded(proving, x)
    claim = z3.Implies(x.is_number, x.is_it(x.step.number))
    text = "a sum that is a number of fp32, and not subnormal, is that number"
    return proving.claim("number of an fma", text, claim, [value, short, unit, rounded])


def _least(x: z3.BitVecRef) -> z3.BitVecRef:
    """The least number of a width, whose magnitude that width does not hold."""
    return z3.BitVecVal(1 << (x.size() - 1), x.size())


def _unit(x: ExactFma) -> z3.BitVecRef:
    """The exponent of the last place of the sum that the unit makes."""
    e_max = x.step.sum.e_max
    return fit(e_max, e_max.size() + 4) + (x.low - pfma.FRAME)


def _prove_near(proving: Composing, x: ExactFma) -> z3.BoolRef:
    m, t = magnitude_of(x.exact)[1], x.t
    spread = z3.And(z3.Extract(_BITS - 1, 0, m) != 0, z3.LShR(m, _BITS + _M + 1) != 0)
    tiny = z3.And(m != 0, z3.ULT(m, 1 << _BITS), t <= pfma.LEAST - _M - _NEAR - 1)
    cases = z3.Or(x.near, spread, tiny)
    text = "terms are near, or their sum has bits far apart, or is one term far below the least normal number"
    proving.claim("far terms", text, cases, x.invariants)
    neither = z3.Implies(x.is_number, z3.Not(z3.Or(spread, tiny)))
    text = "neither is a number that is not subnormal"
    proving.claim("far sums", text, neither)
    claim = z3.Implies(x.is_number, x.near)
    return proving.claim("near", "so the terms are near", claim, [cases, neither])


def _prove_short_value(proving: Composing, x: ExactFma, near: z3.BoolRef, short: z3.BoolRef) -> z3.BoolRef:
    longer = wide(x.short, x.exact.size())
    same = z3.Implies(z3.And(x.short != _least(x.short), x.is_value(longer, x.t)), x.is_value(x.short, x.t))
    proving.claim("short value", "the short sum has the same value", same)
    claim = z3.Implies(x.is_number, z3.And(x.near, x.is_value(x.short, x.t)))
    equal = x.exact == longer
    value = z3.Implies(equal, x.is_value(x.exact, x.t) == x.is_value(longer, x.t))
    proving.claim("equal sums", "equal sums have the same value", value)
    text = "so the short sum is z"
    return proving.claim("value of the short sum", text, claim, [near, short, same, value])


def _prove_whole(proving: Composing, x: ExactFma) -> z3.BoolRef:
    """Where the short sum is z, neither term loses a bit."""
    claim = z3.Implies(z3.And(x.near, x.is_normal, x.is_value(x.short, x.t)), _whole(x))
    text = "where near terms add up to a number, neither loses a bit"
    return proving.claim("whole terms", text, claim, x.invariants)


def _whole(x: ExactFma) -> z3.BoolRef:
    a, b = x.spec.a_format, x.spec.b_format
    parts = []
    for term, bits in zip(x.terms, (a.fraction_bits + b.fraction_bits, _M), strict=True):
        padded = pad(term.significand, pfma.FRAME - bits)
        by = x.step.sum.e_max - term.exponent
        mask = ~(z3.BitVecVal(-1, padded.size()) << fit(by, padded.size()))
        parts.append(padded & mask == 0)
    return z3.And(parts)


def _prove_unit(proving: Composing, x: ExactFma, whole: z3.BoolRef) -> z3.BoolRef:
    """So the sum that the unit makes is z, with the sign of the exact sum."""
    total, few = x.step.sum.total, x.short.size() + 4
    same = z3.And(
        wide(total, few) << fit(x.apart, few) == wide(x.short, few) << (pfma.FRAME - _M),
        z3.ULE(x.smaller, x.step.sum.e_max),
        *(y != _least(y) for y in (total, x.short)),
    )
    claim = z3.Implies(z3.And(x.near, _whole(x)), same)
    text = "a sum of near terms that lose no bit is the exact one"
    proving.claim("unit sum", text, claim, x.invariants)
    signs = z3.And((total == 0) == (x.short == 0), magnitude_of(total)[0] == magnitude_of(x.short)[0])
    goal = z3.Implies(
        z3.And(x.near, same, x.is_value(x.short, x.t)), z3.And(x.is_value(total, _unit(x)), signs)
    )
    text = "so it has the same value and sign"
    proving.claim("unit value", text, goal)
    value = x.is_value(x.short, x.t)
    claim = z3.Implies(z3.And(x.near, x.is_normal, value), z3.And(x.is_value(total, _unit(x)), signs))
    text = "so the sum that the unit makes is z"
    return proving.claim("unit is z", text, claim, [whole, z3.Implies(z3.And(x.near, _whole(x)), same), goal])


def _prove_rounded(proving: Composing, x: ExactFma) -> z3.BoolRef:
    total, e_max = x.step.sum.total, x.step.sum.e_max
    ex = pfma.exponents_of(x.spec)
    least = z3.UGE(e_max, ex.constant(pfma.LEAST))
    text = "e_max is at least the addend's exponent"
    proving.claim("least e_max", text, least, x.invariants)
    negative = magnitude_of(total)[0]
    number = x.step.number
    sign = z3.Or(total == 0, (z3.Extract(TOP, TOP, number) == 1) == negative)
    claim = z3.Implies(
        z3.And(x.is_normal, x.is_value(total, _unit(x))), z3.And(index_of(number) == index_of(x.z), sign)
    )
    text = "a sum that is a number, and not subnormal, is rounded to it, and not flushed"
    return proving.claim("rounded number", text, claim, [least])


def shape_of(count: int) -> Shape:
    """Return the shape of two chains of fmas, in turn, whose results are added."""
    chains = [(k, count + k - 2 if k > 1 else None) for k in range(count)]
    return [*chains, (2 * count - 2, 2 * count - 1)]


@dataclass(frozen=True)
class OneStep:
    """One step on symbolic inputs, and the codes that its fmas and sums are to be."""

    spec: DotAdd
    x: Inputs
    step: pfma.PfmaStep

    @cached_property
    def fmas(self) -> list[ExactFma]:
        codes = [z3.BitVec(f"z{k}", fp32.storage_bits) for k in range(self.spec.k)]
        return [ExactFma(self.spec, each, z) for each, z in zip(self.step.fmas, codes, strict=True)]

    @cached_property
    def sums(self) -> tuple[RoundedSum, RoundedSum]:
        """The sum of both partial sums, and of c and that."""
        step, even, odd = self.step, *(each.result for each in self.step.fmas[-2:])
        sides = ((even, odd, step.pair, step.sum), (step.c, step.sum, step.addition, step.result))
        first, last = (
            RoundedSum(
                Addition(pfma.flush(x), pfma.flush(y), added.result, IEEE_FP32),
                pfma.flush(added.result),
                result,
                z3.BitVec(f"s{i}", fp32.storage_bits),
                (x, y),
            )
            for i, (x, y, added, result) in enumerate(sides)
        )
        return first, last

    @cached_property
    def so_far(self) -> z3.BoolRef:
        """Whether of a, b, c none is subnormal, and all fmas and their sum are numbers, and none subnormal."""
        parts = [kept(code, fmt) for code, fmt in codes_of(self.spec, self.x)]
        return z3.And([*parts, *(each.is_number for each in self.fmas), self.sums[0].is_exact])


def prove_step(proving: Composing, spec: DotAdd) -> Exact:
    """Raises NotProvedError."""
    spec = one_step(spec)
    x = symbolic_inputs(spec)
    one = OneStep(spec, x, pfma.step(spec, x.a, x.b, x.c))
    _, terms = claims_of(proving, lambda: _prove_operands(proving, one))
    made = [_prove_fma(proving, one, k) for k in range(spec.k)]
    made.append(prove_sum_of_all(proving, spec.k, shape_of(spec.k)))
    made.append(_prove_c(proving, one.step.c))
    (pair, last), sum_ = one.sums, one.step.sum
    made += [pair.prove(proving), prove_stays(proving, sum_, pair.z, pair.result_is_z, kept(pair.z, fp32))]
    exact = z3.Implies(one.so_far, z3.And(*made, last.prove_last(proving)))
    text = (
        "in each step, where no factor and not c is subnormal, and each fma, and the sum of both partial sums, is a"
        f" number of fp32 and not subnormal, d = {IEEE_FP32}(c + Σ a·b) if that is 0 or not subnormal; and if it is a"
        " number of fp32, d is it"
    )
    return Exact(ordinary(spec, x), z3.And(one.so_far, last.is_whole), z3.And(terms, exact), (), text)


def _prove_operands(proving: Composing, one: OneStep) -> None:
    for each in one.fmas:
        prove_operands(proving, each)


def prove_stays(
    proving: Composing, code: z3.BitVecRef, z: z3.BitVecRef, same: z3.BoolRef, below: z3.BoolRef
) -> z3.BoolRef:
    """Prove that a code of z's magnitude is a number and, z not being subnormal, not flushed; returns that."""
    prove_finite(proving, code, same, z)
    stays = pfma.flush(code) == code
    claim = z3.Implies(z3.And(same, below), stays)
    proving.claim("stays", "a number that is not subnormal is not flushed", claim, (), [code])
    _prove_flushed_number(proving, code)
    return stays


def _prove_flushed_number(proving: Composing, code: z3.BitVecRef) -> None:
    number = z3.Implies(z3.And(pfma.flush(code) == code, finite(code, fp32)), finite(pfma.flush(code), fp32))
    proving.claim("flushed number", "and is a number still", number, (), [code])


def _prove_c(proving: Composing, c: z3.BitVecRef) -> z3.BoolRef:
    """Prove that a c that is not subnormal is not flushed, and a number."""
    proving.claim("c", "c is a number", z3.Implies(is_finite(c, fp32), finite(c, fp32)), (), [c])
    _prove_flushed_number(proving, c)
    unflushed = z3.Implies(kept(c, fp32), pfma.flush(c) == c)
    return proving.claim("kept c", "a c that is not subnormal is not flushed", unflushed, (), [c])


def _prove_fma(proving: Composing, one: OneStep, k: int) -> z3.BoolRef:
    """Prove that where z is the k-th fma's number, the fma is z, with the sign of the exact sum."""
    x, each = one.fmas[k], one.step.fmas[k]
    if k < 2:
        proving.claim("zero", "a partial sum starts at a number", finite(each.codes[2], fp32))
    prove_decoded(proving, x)
    prove_number(proving, x)
    same, is_z = each.result == each.number, x.is_it(each.result)
    claim = z3.Implies(z3.And(same, x.is_it(each.number)), is_z)
    proving.claim("result is z", "so the result is z", claim, (), [each.result, each.number, x.exact])
    return z3.And(is_z, prove_stays(proving, each.result, x.z, is_z.arg(0), kept(x.z, fp32)))
