"""fma, fused multiply-add of any formats, as bit-vector terms.  Specification: semantics §3.

The two terms are aligned to the larger exponent, `Fma.frame` fractional bits are kept, the last one sticky.  Exponents
of products may lie far below those at which ρ still has places: the sum is shifted to the least of these first, so
that what is normalised is no wider than the sum.

Tiny is |sum| < B, or ≤ B, for a bound B next to 2^least: that itself before rounding and toward zero, else what is half
a place, or a whole one, of the binade below it less.  The sum being in units of 2^(e − frame), e ≥ least, B is shifted
right to be compared with.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.encodings.fma import Fma
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Bool,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    StickySum,
    Term,
    canonical_nan,
    encode,
    exponent_range,
    negate_if,
    normalise_and_round,
    product_range,
    quiet_nan,
    resize,
    select_special,
    sign_of_zero,
    sticky_shift_right,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.saturating import project
from mmaformal.encodings.smt.stages import Code, Stages
from mmaformal.rounding import Rounding, Tininess
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class FmaStep:
    """The interfaces between the stages of one fma, in order."""

    codes: tuple[BitVec, BitVec, BitVec]  #: of a, b and c
    a: Operand  #: decode
    b: Operand
    c: Operand
    special: Special  #: classify
    product: Term  #: multiply
    addend: Term
    sum: StickySum  #: align, accumulate
    total: BitVec  #: the same, not below ρ's least exponent
    e_max: BitVec
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def exponents_of(spec: DotAdd) -> ExponentRange:
    """Those of products and of c, and up to ρ's least."""
    c = exponent_range(spec.c_format)
    return product_range(spec.a_format, spec.b_format).union(c.low, c.high, spec.d_format.min_exponent)


def default_nan(p: Fma) -> int:
    """The code that an invalid operation gives."""
    fmt = p.rho.format
    return (canonical_nan(fmt) if p.ones else quiet_nan(fmt)) | (
        fmt.sign_mask if p.nan.default_is_negative else 0
    )


def shifted_to_least(x: StickySum, exponents: ExponentRange, least: int) -> tuple[BitVec, BitVec]:
    """The sum and its exponent, which is not below `least`; the last place stays sticky."""
    if exponents.low >= least:
        return x.total, x.e_max
    floor, bits = exponents.constant(least), x.total.size()
    below = z3.ULT(x.e_max, floor)
    sign = z3.Extract(bits - 1, bits - 1, x.total)
    by = z3.If(below, floor - x.e_max, z3.BitVecVal(0, exponents.bits))
    return negate_if(sign, sticky_shift_right(negate_if(sign, x.total), by)), z3.If(below, floor, x.e_max)


def goes_away(rounding: Rounding, top: BitVec) -> Bool:
    """Whether a mode rounds every inexact number with this sign bit to the larger magnitude.

    Raises KeyError for a mode that is not here: both encodings would take it for another alike.
    """
    no = z3.BoolVal(False)
    modes = dict.fromkeys((Rounding.RNE, Rounding.RNA, Rounding.RZ, Rounding.RO), no)
    return (modes | {Rounding.RD: top == 1, Rounding.RU: top == 0})[rounding]


def is_tiny(p: Fma, total: BitVec, e_max: BitVec, exponents: ExponentRange, frame: int) -> Bool:
    """Whether a sum is tiny; its exponent is not below the least of ρ."""
    rho, bits = p.rho, total.size()
    top = z3.Extract(bits - 1, bits - 1, total)
    magnitude = negate_if(top, total)
    place = frame - rho.fraction_bits - 1  # of the last bit in the binade below 2^least
    rounding = rho.rounding if p.tiny is Tininess.AFTER else Rounding.RZ
    away = goes_away(rounding, top)
    half = 1 << place - 1 if rounding in (Rounding.RNE, Rounding.RNA) else 0
    by = e_max - exponents.constant(rho.format.min_exponent)

    def at(bound: int) -> tuple[BitVec, Bool]:
        wide = max(bits, by.size())
        x, n = z3.BitVecVal(bound, wide), resize(by, wide)
        low = z3.LShR(x, n)
        return resize(low, bits), low << n == x

    (strict, whole), (reached, _) = at((1 << frame) - half), at((1 << frame) - (1 << place))
    below = z3.Or(z3.ULT(magnitude, strict), z3.And(magnitude == strict, z3.Not(whole)))
    return z3.If(away, z3.ULE(magnitude, reached), below)


def step(spec: DotAdd, p: Fma, a: BitVec, b: BitVec, c: BitVec, stages: Stages) -> FmaStep:
    """`ρ(a·b + c)`."""
    rho, frame, zero, exponents = p.rho, p.frame(spec), p.zero_exponent(spec), exponents_of(spec)
    formats, least = (spec.a_format, spec.b_format, spec.c_format), rho.format.min_exponent
    x, y, z = (stages.decode(u, fmt, p.flush_inputs) for u, fmt in zip((a, b, c), formats, strict=True))
    special = stages.classify([(x, y)], [z])
    product = stages.multiply(x, y, spec.a_format.bias + spec.b_format.bias, exponents, zero)
    addend = stages.addend(z, spec.c_format.bias, exponents, zero)
    bits, c_bits = p.product_bits(spec), spec.c_format.fraction_bits
    sum_ = stages.sticky_sum(product, bits, addend, c_bits, frame, exponents)

    total, e_max = shifted_to_least(sum_, exponents, least)
    rounded = normalise_and_round(total, e_max, exponents, frame, rho, max(least, exponents.low))
    sign = sign_of_zero([product.sign, addend.sign], rho)
    rounded = rounded._replace(sign=z3.If(total == 0, sign, rounded.sign))
    if rho.saturation is not None:
        made = Code(total, rounded, project(rounded, special, rho))
        result = stages.round_sum(sum_, (product, addend), special, made, rho).result
    elif p.tiny is None:
        made = Code(total, rounded, select_special(special, encode(rounded, rho), rho.format, default_nan(p)))
        result = stages.round_sum(sum_, (product, addend), special, made, rho).result
    else:
        number, bits = encode(rounded, rho), rho.format.storage_bits
        flushed = z3.Concat(z3.Extract(bits - 1, bits - 1, number), z3.BitVecVal(0, bits - 1))
        if not rho.signed_zero:
            flushed = z3.BitVecVal(0, bits)
        number = z3.If(is_tiny(p, total, e_max, exponents, frame), flushed, number)
        stages.made("round_flushed", [sum_, product, addend], Code(total, rounded, number), rho=rho)
        result = select_special(special, number, rho.format, default_nan(p))
        result = stages.code("special", [number, special], result, rho.format)
    if p.nan.order:
        nans = {"a": (x, a, formats[0]), "b": (y, b, formats[1]), "c": (z, c, formats[2])}
        result = stages.first_nan([nans[name] for name in p.nan.order], result, rho.format)
    return FmaStep((a, b, c), x, y, z, special, product, addend, sum_, total, e_max, rounded, result)


dot_add = looped(Fma, lambda spec, p, a, b, c, stages: step(spec, p, a[0], b[0], c, stages))
