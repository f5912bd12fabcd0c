"""Codes of rounded numbers in the formats of P3109 (one NaN, no −0) and in e4m3, by saturation mode, as terms.

Sections are of the interim report of IEEE's working group P3109, version 4.0 of June 2026.
"""

from __future__ import annotations

import z3

from mmaformal.encodings.smt.blocks import BitVec, Rounded, Special
from mmaformal.formats import Format
from mmaformal.rounding import Conversion, Rounding, Saturation


def _minus(fmt: Format, magnitude: int) -> int:
    """The code of the opposite of a magnitude that is not 0."""
    return magnitude | 1 << (fmt.storage_bits - 1)


def _past_largest(rho: Conversion, negative: bool) -> int:
    """The code of what lies, rounded, outside of the numbers on one side: ωSaturate of a finite X (§4.7.5)."""
    fmt = rho.format
    if fmt.one_nan is None:
        inward = {Rounding.RZ: True, Rounding.RD: not negative, Rounding.RU: negative}
        finite = rho.saturation is not Saturation.NONE or (rho.ieee and inward[rho.rounding])
        return _nan(fmt) if not finite else _minus(fmt, fmt.largest) if negative else fmt.largest
    match (rho.saturation, rho.rounding, negative):
        case (Saturation.FINITE | Saturation.PROPAGATE, _, _) | (_, Rounding.RZ, _):
            finite = True
        case (_, Rounding.RD, False) | (_, Rounding.RU, True):
            finite = True
        case (_, Rounding.RO, False):
            finite = not fmt.signed
        case _:
            finite = False
    if negative and not fmt.signed:
        return 0 if finite else _nan(fmt)
    infinity = fmt.infinity
    magnitude = fmt.largest if finite or infinity is None else infinity
    return _minus(fmt, magnitude) if negative else magnitude


def _of_infinity(rho: Conversion, negative: bool) -> int:
    """The code that an infinity becomes: ωSaturate of ±∞ (§4.7.5)."""
    fmt, infinity = rho.format, rho.format.infinity
    if fmt.one_nan is None and rho.saturation is Saturation.NONE:
        return _nan(fmt)
    if negative and not fmt.signed:
        return _nan(fmt) if rho.saturation is Saturation.NONE else 0
    magnitude = fmt.largest if infinity is None or rho.saturation is Saturation.FINITE else infinity
    return _minus(fmt, magnitude) if negative else magnitude


def _nan(fmt: Format) -> int:
    return fmt.largest + 1 if fmt.one_nan is None else fmt.one_nan  # of e4m3 the positive one


def project(x: Rounded, special: Special, rho: Conversion) -> BitVec:
    """The code of a rounded number, or of a special value (§4.7.3, §4.7.6).

    The number's code is wider than the format's by the exponents that overflow, so that comparing it tells.
    """
    fmt = rho.format
    bits = fmt.storage_bits

    def constant(code: int) -> BitVec:
        return z3.BitVecVal(code, bits)

    fields = z3.Extract(bits - 1 - fmt.signed, 0, x.code)
    outside = z3.UGT(x.code, z3.BitVecVal(fmt.largest, x.code.size()))
    plus = z3.If(
        outside, constant(_past_largest(rho, False)), fields if not fmt.signed else z3.ZeroExt(1, fields)
    )
    if fmt.signed:
        signed = z3.Concat(z3.BitVecVal(1, 1), fields)
        minus = z3.If(outside, constant(_past_largest(rho, True)), signed)
    else:
        minus = constant(_past_largest(rho, True))
    number = z3.If(x.sign == 1 if rho.signed_zero else z3.And(x.sign == 1, x.code != 0), minus, plus)
    infinite = z3.If(
        special.positive_infinity,
        constant(_of_infinity(rho, False)),
        z3.If(special.negative_infinity, constant(_of_infinity(rho, True)), number),
    )
    return z3.If(special.nan, constant(_nan(fmt)), infinite)
