"""Codes of rounded numbers in the formats of P3109, which have one NaN and no −0, and in OCP's e4m3, in lanes.

What is said of the interim report of IEEE's working group P3109 is said of version 4.0 (June 2026).
"""

from __future__ import annotations

from dataclasses import replace

from mmaformal.encodings.executable.blocks import Lane, Rounded, Special, minimum, where
from mmaformal.formats import Format
from mmaformal.rounding import Conversion, Rounding, Saturation


def overflowed(rho: Conversion) -> tuple[int, int]:
    """The codes of what is rounded beyond the largest number, and beyond the least (§4.7.5).

    Without saturation it is an infinity; the largest number, where there is no infinity or the rounding does not go
    there: RZ, RD from above zero, RU from below, and RO in unsigned formats, whose largest code is odd.  Below zero an
    unsigned format has 0 or, without saturation, a NaN, except with RZ and RU.
    """
    target, rounding = rho.format, rho.rounding
    if target.one_nan is None:
        return _overflowed_fn(rho)
    stays = rho.saturation is not Saturation.NONE
    inward = stays or rounding is Rounding.RZ
    high = low = target.largest if target.infinity is None else target.infinity
    if inward or rounding is Rounding.RD or (rounding is Rounding.RO and not target.signed):
        high = target.largest
    if inward or rounding is Rounding.RU:
        low = target.largest
    if not target.signed:
        return high, 0 if inward or rounding is Rounding.RU else target.codes - 1
    return high, low + target.sign_mask


def _overflowed_fn(rho: Conversion) -> tuple[int, int]:
    """Returns them of OCP's e4m3: the NaN, or the largest number with saturation or where IEEE's rounding stays."""
    nan, largest = rho.format.largest + 1, rho.format.largest
    finite = rho.saturation is not Saturation.NONE
    down = finite or (rho.ieee and rho.rounding in (Rounding.RZ, Rounding.RD))
    up = finite or (rho.ieee and rho.rounding in (Rounding.RZ, Rounding.RU))
    return largest if down else nan, largest + rho.format.sign_mask if up else nan


def infinities(rho: Conversion) -> tuple[int, int]:
    """The codes that +∞ and −∞ become (§4.7.5): themselves, the largest and the least number, or a NaN."""
    target, mode = rho.format, rho.saturation
    if target.one_nan is None:
        return _overflowed_fn(replace(rho, ieee=False))
    keeps = target.infinity is not None and mode is not Saturation.FINITE
    top = target.largest + 1 if keeps else target.largest
    if target.signed:
        return top, top + target.sign_mask
    return top, target.codes - 1 if mode is Saturation.NONE else 0


def saturated(x: Rounded, special: Special, rho: Conversion) -> Lane:
    """The code of a rounded number, or of the special value that there is; a zero has no sign."""
    target = rho.format
    high, low = overflowed(rho)
    place = minimum(x.exponent, target.max_exponent + 1) - target.min_exponent
    magnitude = (place << rho.fraction_bits) + x.significand
    beyond = magnitude > target.largest
    below = where(beyond, low, magnitude + target.sign_mask) if target.signed else low
    minus = (x.sign == 1) if rho.signed_zero else (x.sign == 1) & (magnitude > 0)
    code = where(minus, below, where(beyond, high, magnitude))
    plus_infinity, minus_infinity = infinities(rho)
    code = where(special.negative_infinity, minus_infinity, code)
    code = where(special.positive_infinity, plus_infinity, code)
    return where(special.nan, the_nan(target), code)


def the_nan(target: Format) -> int:
    """The code of the NaN; of e4m3, the positive one."""
    if target.one_nan is None:
        return target.largest + 1
    return target.sign_mask if target.signed else target.codes - 1
