"""Single lanes of Apple AMX's instructions, executable.  Source: corsix/amx.

Codes of floating-point numbers are in the format of the result; those of integers are not negative, whatever they mean.
An fma is a parameter, `amx.alu` where nothing else is said: other operations are made of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mmaformal.encodings.amx import executable as amx
from mmaformal.encodings.amx_lanes import SKIPS, Accumulation, FloatKind, Reduction
from mmaformal.encodings.executable.blocks import Flag, Lane, invert, maximum, minimum, quiet_nan, where
from mmaformal.formats import Format, fp64
from mmaformal.rounding import Conversion

#: x·y + z without what is skipped (x, y, z), of codes of ρ's format.
LaneFma = Callable[[Conversion, tuple[Flag, Flag, Flag], Lane, Lane, Lane], Lane]


def _fma(rho: Conversion, skip: tuple[Flag, Flag, Flag], x: Lane, y: Lane, z: Lane) -> Lane:
    """Returns an element of fma16, fma32 or fma64, by `amx.alu`."""
    return amx.alu(x, y, z, amx.Skips(*skip), rho).result


def without_all(
    rho: Conversion, skip: tuple[Flag, Flag, Flag], x: Lane, y: Lane, z: Lane, unit: LaneFma = _fma
) -> Lane:
    """Returns an element of fms, of factors whose signs are changed: that of fma, but −0 if all is skipped."""
    fmt = rho.format
    code = unit(rho, skip, x, y, z)
    return where(skip[0] & skip[1] & skip[2], _sign_bit(fmt), code)


def subtracted(
    rho: Conversion, skip: tuple[Flag, Flag, Flag], x: Lane, y: Lane, z: Lane, unit: LaneFma = _fma
) -> Lane:
    """z − x·y without what is skipped: fma of −x, or of −y if x is skipped.

    A NaN that is passed through has its sign changed, too.
    """
    fmt = rho.format
    u, v = negated(x, fmt), where(skip[0], negated(y, fmt), y)
    return without_all(rho, skip, u, v, z, unit)


# ---- floating point --------------------------------------------------------------------------------------------------


def _sign_bit(fmt: Format) -> int:
    return -(1 << 63) if fmt is fp64 else fmt.sign_mask


def negated(code: Lane, fmt: Format) -> Lane:
    """The sign changed, whatever it is of: zeros, infinities and NaNs too."""
    return code ^ _sign_bit(fmt)


def _magnitude(code: Lane, fmt: Format) -> Lane:
    return code & (fmt.sign_mask - 1)


def _is_negative(code: Lane, fmt: Format) -> Flag:
    return (code & _sign_bit(fmt)) != 0


def _is_nan(code: Lane, fmt: Format) -> Flag:
    return _magnitude(code, fmt) > (fmt.sign_mask - (1 << fmt.fraction_bits))


def value_order(code: Lane, fmt: Format) -> Lane:
    """A number that is as large as the code's value is, both zeros the same."""
    size = _magnitude(code, fmt)
    return where(_is_negative(code, fmt), -size, size)


def exceeds(x: Lane, y: Lane, fmt: Format) -> Flag:
    """x > y, false if one of them is a NaN."""
    return invert(_is_nan(x, fmt) | _is_nan(y, fmt)) & (value_order(x, fmt) > value_order(y, fmt))


def extreme(x: Lane, z: Lane, fmt: Format, largest: bool) -> Lane:
    """The smaller or the larger one, −0 below +0; the default NaN if one of them is a NaN."""
    u, v = (where(_is_negative(c, fmt), -1 - _magnitude(c, fmt), _magnitude(c, fmt)) for c in (x, z))
    chosen = where(u > v if largest else u < v, x, z)
    return where(_is_nan(x, fmt) | _is_nan(z, fmt), quiet_nan(fmt), chosen)


def rectified(x: Lane, y: Lane, fmt: Format) -> Lane:
    """+0 where x ≤ 0, else y: where x is a NaN, too."""
    return where(invert(_is_nan(x, fmt)) & (value_order(x, fmt) <= 0), y * 0, y)


def floating(kind: FloatKind, x: Lane, y: Lane, z: Lane, rho: Conversion, unit: LaneFma = _fma) -> Lane:
    """Returns what vecfp and matfp make of codes of ρ's format."""
    fmt = rho.format
    if kind == "min" or kind == "max":
        return extreme(x, z, fmt, largest=kind == "max")
    if kind == "x<=0?0:y":
        return rectified(x, y, fmt)
    return unit(rho, SKIPS[kind], negated(x, fmt) if kind == "z-xy" else x, y, z)


# ---- integers --------------------------------------------------------------------------------------------------------


def integer(code: Lane, bits: int, signed: bool) -> Lane:
    """The number of a code."""
    return code - ((code >> (bits - 1)) << bits) if signed else code


def equal_bits(x: Lane, y: Lane, bits: int) -> Lane:
    """How many of so many bits, at most 32, are the same."""
    count = x ^ y
    for step, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF), (16, 0xFFFF)):
        count = (count & mask) + ((count >> step) & mask)
    return bits - count


class LaneSum(NamedTuple):
    """The interfaces of an accumulation, in order."""

    x: Lane  #: magnitudes
    y: Lane
    product: Lane  #: of the magnitudes
    result: Lane


def _size_of(code: Lane, bits: int, signed: bool) -> tuple[Lane, Lane]:
    """The magnitude of a code's number, and 1 if it is negative, else 0."""
    sign = code >> (bits - 1) if signed else code * 0
    return (code ^ (sign * ((1 << bits) - 1))) + sign, sign


def accumulated(on: Accumulation, x: Lane, y: Lane, z: Lane, shift: Lane) -> LaneSum:
    """z ± (term >> s), its result a code, s of 0 to 31."""
    u, v = integer(x, on.x_bits, on.x_signed), integer(y, on.y_bits, on.y_signed)
    (p, p_sign), (q, q_sign) = _size_of(x, on.x_bits, on.x_signed), _size_of(y, on.y_bits, on.y_signed)
    product, term = p * q if on.term == "xy" else x * 0, x * 0
    if on.term == "equal bits":
        term = equal_bits(x, y, on.x_bits)
    elif on.term != "0":
        term = {"xy": where((p_sign ^ q_sign) == 1, -product, product), "x+y": u + v, "x": u, "y": v}[on.term]
        term = (term + (1 << 14)) >> 15 if on.high_half else term >> shift
    term = -term if on.negative else term
    total = term + integer(z, on.z_bits, signed=True) if on.with_z else term
    if on.high_half:
        total = maximum(minimum(total, 0x7FFF), -0x8000)
    return LaneSum(p, q, product, total & ((1 << on.z_bits) - 1))


def reduced(on: Reduction, code: Lane, shift: Lane) -> Lane:
    """The code of an integer that is shifted right by 0 to 31, rounded and saturated as `on` says."""
    value = integer(code, on.bits, on.signed)
    if on.rounding:
        value = value + ((1 << shift) >> 1)
    value = value >> shift
    if on.saturate:
        high = 1 << (on.saturated_bits - on.signed_range)
        value = minimum(value, high - 1)
        if on.signed:
            value = maximum(value, -high if on.signed_range else 0)
    return value & ((1 << on.out_bits) - 1)
