"""Single lanes of Apple AMX's instructions, as bit-vector terms.  Source: corsix/amx.

Integers are extended to 40 bits, in which nothing wraps; an fma is a parameter, `amx.alu` where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import z3

from mmaformal.encodings.amx import smt as amx
from mmaformal.encodings.amx_lanes import SKIPS, Accumulation, FloatKind, Reduction
from mmaformal.encodings.smt.blocks import BitVec, Bool, quiet_nan, resize
from mmaformal.formats import Format
from mmaformal.rounding import Conversion

#: x·y + z without what is skipped (3 bits: x, y, z), of codes of ρ's format.
LaneFma = Callable[[Conversion, BitVec, BitVec, BitVec, BitVec], BitVec]

WIDE = 40  #: bits


def _fma(rho: Conversion, skip: BitVec, x: BitVec, y: BitVec, z: BitVec) -> BitVec:
    """Returns an element of fma16, fma32 or fma64, by `amx.alu`."""
    return amx.alu(rho, skip, x, y, z).result


def without_all(
    rho: Conversion, skip: BitVec, x: BitVec, y: BitVec, z: BitVec, unit: LaneFma = _fma
) -> BitVec:
    """Returns an element of fms, of factors whose signs are changed: that of fma, but −0 if all is skipped."""
    return z3.If(skip == 7, z3.BitVecVal(rho.format.sign_mask, z.size()), unit(rho, skip, x, y, z))


def subtracted(
    rho: Conversion, skip: BitVec, x: BitVec, y: BitVec, z: BitVec, unit: LaneFma = _fma
) -> BitVec:
    """z − x·y without what is skipped: fma of −x, or of −y if x is skipped.

    A NaN that is passed through has its sign changed, too.
    """
    v = z3.If(amx.flag(skip, 2), negated(y), y)
    return without_all(rho, skip, negated(x), v, z, unit)


# ---- floating point --------------------------------------------------------------------------------------------------


def sign(code: BitVec) -> BitVec:
    return z3.Extract(code.size() - 1, code.size() - 1, code)


def _magnitude(code: BitVec) -> BitVec:
    return z3.Extract(code.size() - 2, 0, code)


def negated(code: BitVec) -> BitVec:
    """The sign changed, whatever it is of: zeros, infinities and NaNs too."""
    return z3.Concat(~sign(code), _magnitude(code))


def _is_nan(code: BitVec, fmt: Format) -> Bool:
    M = fmt.fraction_bits
    field, fraction = z3.Extract(M + fmt.exponent_bits - 1, M, code), z3.Extract(M - 1, 0, code)
    return z3.And(field == -1, fraction != 0)


def below(x: BitVec, y: BitVec) -> Bool:
    """x < y as codes of a sign and a magnitude, −0 below +0."""
    lower, higher = z3.ULT(_magnitude(x), _magnitude(y)), z3.UGT(_magnitude(x), _magnitude(y))
    return z3.If(sign(x) == sign(y), z3.If(sign(x) == 1, higher, lower), sign(x) == 1)


def exceeds(x: BitVec, y: BitVec, fmt: Format) -> Bool:
    """x > y, false if one of them is a NaN."""
    zeros = z3.And(_magnitude(x) == 0, _magnitude(y) == 0)
    return z3.And(z3.Not(z3.Or(_is_nan(x, fmt), _is_nan(y, fmt), zeros)), below(y, x))


def extreme(x: BitVec, z: BitVec, fmt: Format, largest: bool) -> BitVec:
    """The smaller or the larger one, −0 below +0; the default NaN if one of them is a NaN."""
    chosen = z3.If(below(z, x) if largest else below(x, z), x, z)
    return z3.If(z3.Or(_is_nan(x, fmt), _is_nan(z, fmt)), z3.BitVecVal(quiet_nan(fmt), x.size()), chosen)


def rectified(x: BitVec, y: BitVec, fmt: Format) -> BitVec:
    """+0 where x ≤ 0, else y: where x is a NaN, too."""
    zero = z3.BitVecVal(0, x.size())
    return z3.If(z3.Or(_is_nan(x, fmt), z3.And(sign(x) == 0, _magnitude(x) != 0)), y, zero)


def floating(
    kind: FloatKind, x: BitVec, y: BitVec, z: BitVec, rho: Conversion, unit: LaneFma = _fma
) -> BitVec:
    """Returns what vecfp and matfp make of codes of ρ's format."""
    fmt = rho.format
    if kind == "min" or kind == "max":
        return extreme(x, z, fmt, largest=kind == "max")
    if kind == "x<=0?0:y":
        return rectified(x, y, fmt)
    skip = z3.BitVecVal(
        sum(skipped << place for skipped, place in zip(SKIPS[kind], (2, 1, 0), strict=True)), 3
    )
    return unit(rho, skip, negated(x) if kind == "z-xy" else x, y, z)


# ---- integers --------------------------------------------------------------------------------------------------------


def extended(code: BitVec, signed: bool, bits: int = WIDE) -> BitVec:
    more = bits - code.size()
    return z3.SignExt(more, code) if signed else z3.ZeroExt(more, code)


def equal_bits(x: BitVec, y: BitVec) -> BitVec:
    """How many bits are the same."""
    same = ~(x ^ y)
    ones = [resize(z3.Extract(i, i, same), WIDE) for i in range(same.size())]
    while len(ones) > 1:
        ones = [sum(ones[i + 1 : i + 2], ones[i]) for i in range(0, len(ones), 2)]
    return ones[0]


class LaneSum(NamedTuple):
    """The interfaces of an accumulation, in order."""

    x: BitVec  #: magnitudes
    y: BitVec
    product: BitVec  #: of the magnitudes, as many bits as both lanes have
    result: BitVec


def _size_of(code: BitVec, signed: bool) -> BitVec:
    """The magnitude of a code's number."""
    return z3.If(sign(code) == 1, -code, code) if signed else code


def accumulated(on: Accumulation, x: BitVec, y: BitVec, z: BitVec, shift: BitVec) -> LaneSum:
    """z ± (term >> s), its result a code; codes of the bits that `on` says, s of 5 bits."""
    bits = on.x_bits + on.y_bits
    p, q = _size_of(x, on.x_signed), _size_of(y, on.y_signed)
    product = resize(p, bits) * resize(q, bits)
    signs = [sign(code) == 1 for code, signed in ((x, on.x_signed), (y, on.y_signed)) if signed]
    negative = z3.Xor(*signs) if len(signs) == 2 else z3.Or(signs)
    whole = resize(product, WIDE)
    u, v = extended(x, on.x_signed), extended(y, on.y_signed)
    w = extended(z, signed=True)
    if on.term == "equal bits":
        term = equal_bits(x, y)
    else:
        term = {
            "xy": z3.If(negative, -whole, whole),
            "x+y": u + v,
            "x": u,
            "y": v,
            "0": z3.BitVecVal(0, WIDE),
        }[on.term]
        term = (term + 0x4000) >> 15 if on.high_half else term >> resize(shift, WIDE)
    total = (w if on.with_z else z3.BitVecVal(0, WIDE)) + (-term if on.negative else term)
    if on.high_half:
        total = z3.If(total > 0x7FFF, z3.BitVecVal(0x7FFF, WIDE), z3.If(total < -0x8000, -0x8000, total))
    return LaneSum(p, q, product, resize(total, on.z_bits))


def reduced(on: Reduction, code: BitVec, shift: BitVec) -> BitVec:
    """The code of an integer that is shifted right, rounded and saturated as `on` says."""
    value, by = extended(code, on.signed), resize(shift, WIDE)
    half = z3.If(by == 0, z3.BitVecVal(0, WIDE), z3.BitVecVal(1, WIDE) << (by - 1))
    value = (value + half if on.rounding else value) >> by
    if on.saturate:
        high = 1 << (on.saturated_bits - 1 if on.signed_range else on.saturated_bits)
        low = -high if on.signed_range else 0
        value = z3.If(value >= high, z3.BitVecVal(high - 1, WIDE), z3.If(value < low, low, value))
    return resize(value, on.out_bits)
