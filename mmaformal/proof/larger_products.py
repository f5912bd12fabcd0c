"""The statement that d grows with a product: a·b ≤ a'·b' ⇒ d ≤ d', all else the same.

A product of codes is a number, an infinity, or a NaN (one of a NaN, or of zero and an infinity), which is neither above
nor below anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import z3

from mmaformal.cases.codes import exponent_field, fraction_field, is_infinite, is_nan, sign_bit
from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import AnyStep
from mmaformal.cases.out_of_order import not_below
from mmaformal.encodings import smt
from mmaformal.encodings.smt.blocks import Trace
from mmaformal.formats import Format
from mmaformal.proof.definitions import at_least, fit
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Number:
    """What a code stands for: (−1)^sign · significand · 2^exponent, unless it is special."""

    nan: z3.BoolRef
    infinite: z3.BoolRef
    sign: z3.BitVecRef
    significand: z3.BitVecRef
    exponent: z3.BitVecRef  #: two's complement


def number(code: z3.BitVecRef, fmt: Format) -> Number:
    field: z3.BitVecRef = exponent_field(code, fmt)
    fraction = fraction_field(code, fmt)
    M, normal = fmt.fraction_bits, field != 0
    bits = max(fmt.exponent_bits, (fmt.bias + M).bit_length()) + 2
    one = z3.BitVecVal(1, field.size())
    leading = z3.If(normal, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
    exponent = fit(z3.If(normal, field, one), bits) - (fmt.bias + M)
    return Number(
        is_nan(code, fmt),
        is_infinite(code, fmt),
        sign_bit(code, fmt),
        z3.Concat(leading, z3.Extract(M - 1, 0, fraction)),
        exponent,
    )


def product(x: Number, y: Number) -> Number:
    bits = x.significand.size() + y.significand.size()
    wide = max(x.exponent.size(), y.exponent.size()) + 2
    exponents = [z3.SignExt(wide - v.exponent.size(), v.exponent) for v in (x, y)]
    zero_times_infinity = z3.Or(
        z3.And(x.infinite, y.significand == 0), z3.And(x.significand == 0, y.infinite)
    )
    return Number(
        z3.Or(x.nan, y.nan, zero_times_infinity),
        z3.Or(x.infinite, y.infinite),
        x.sign ^ y.sign,
        fit(x.significand, bits) * fit(y.significand, bits),
        exponents[0] + exponents[1],
    )


def at_most(x: Number, y: Number) -> z3.BoolRef:
    """Whether x ≤ y; of NaNs it is not."""

    def below(u: Number, v: Number) -> z3.BoolRef:
        """|u| ≤ |v|."""
        return z3.Or(
            v.infinite,
            z3.And(z3.Not(u.infinite), at_least(v.significand, v.exponent, u.significand, u.exponent)),
        )

    def is_zero(u: Number) -> z3.BoolRef:
        return z3.And(z3.Not(u.infinite), u.significand == 0)

    both_zero = z3.And(is_zero(x), is_zero(y))
    ordered = z3.If(
        x.sign == 1, z3.Or(y.sign == 0, below(y, x)), z3.And(z3.Or(y.sign == 0, both_zero), below(x, y))
    )
    return z3.And(z3.Not(x.nan), z3.Not(y.nan), ordered)


@dataclass(frozen=True)
class LargerProduct:
    """Two runs of a model in the SMT encoding, the second with other factors in one place, or in some."""

    spec: DotAdd
    x: Inputs
    y: Inputs
    places: tuple[int, ...]

    @property
    def traces(self) -> tuple[Trace[AnyStep], Trace[AnyStep]]:
        x, y = (
            smt.dot_add(self.spec, side.a, side.b, side.c, side.scale_a, side.scale_b)
            for side in (self.x, self.y)
        )
        return x, y

    def is_larger(self, k: int) -> z3.BoolRef:
        """a·b ≤ a'·b' in the k-th place."""
        formats = self.spec.a_format, self.spec.b_format
        first, second = (
            product(*(number(code, fmt) for code, fmt in zip((side.a[k], side.b[k]), formats, strict=True)))
            for side in (self.x, self.y)
        )
        return at_most(first, second)

    @property
    def premises(self) -> list[z3.BoolRef]:
        return [self.is_larger(k) for k in self.places]

    @property
    def in_order(self) -> z3.BoolRef:
        x, y = self.traces
        return not_below((x.result, y.result), self.spec.d_format)

    @property
    def statement(self) -> z3.BoolRef:
        return z3.Implies(z3.And(self.premises), self.in_order)


def larger_product(spec: DotAdd, *places: int) -> LargerProduct:
    """The second run has a0', b0', …, in these places."""
    x = symbolic_inputs(spec)

    def renamed(side: tuple[z3.BitVecRef, ...]) -> tuple[z3.BitVecRef, ...]:
        return tuple(z3.BitVec(f"{u}'", u.size()) if k in places else u for k, u in enumerate(side))

    return LargerProduct(spec, x, replace(x, a=renamed(x.a), b=renamed(x.b)), places)
