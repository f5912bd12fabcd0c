"""Integers of two limbs, for sums that one 64-bit lane cannot hold: `high · 2^56 + low`, 0 ≤ low < 2^56.

`high` carries the sign.  112 bits are what the two users need: the fma in fp64 (sfma) 110, the exact sum of fp16
products (efda) 110 for four products, 112 for sixteen.  No intermediate result leaves the signed 64-bit range.
"""

from __future__ import annotations

from typing import NamedTuple

from mmaformal.encodings.executable.blocks import (
    Lane,
    Sum,
    Term,
    bit_length,
    clamp,
    maximum,
    shift_right_sticky,
    where,
)

BITS = 56  #: of the low limb
_MASK = (1 << BITS) - 1


class Wide(NamedTuple):
    high: Lane
    low: Lane


class WideTerm(NamedTuple):
    """A summand: `(-1)^sign · significand · 2^(exponent - f)`, f a constant of the place it stands in."""

    sign: Lane
    exponent: Lane
    significand: Wide


def carry(high: Lane, low: Lane) -> Wide:
    """`high · 2^56 + low` with any |low| < 2^63 brought into 0 … 2^56 - 1."""
    return Wide(high + (low >> BITS), low & _MASK)


def is_zero(x: Wide) -> Lane:
    return (x.high == 0) & (x.low == 0)


def add(x: Wide, y: Wide) -> Wide:
    return carry(x.high + y.high, x.low + y.low)


def signed(sign: Lane, magnitude: Wide) -> Wide:
    negative = carry(-magnitude.high, -magnitude.low)
    return Wide(
        where(sign == 1, negative.high, magnitude.high), where(sign == 1, negative.low, magnitude.low)
    )


def magnitude(x: Wide) -> tuple[Lane, Wide]:
    """The sign and the magnitude of a signed x."""
    negative, negated = x.high < 0, carry(-x.high, -x.low)
    return where(negative, 1, 0), Wide(
        where(negative, negated.high, x.high), where(negative, negated.low, x.low)
    )


def shift_left(x: Lane, n: Lane) -> Wide:
    """x · 2^n, which must be below 2^112, for 0 ≤ x < 2^56 and n ≥ 0."""
    split = clamp(BITS - n, 0, BITS)  # the bits of x from `split` on land in the high limb
    high = x >> split
    low = x - (high << split)
    return Wide(high << clamp(n - BITS, 0, BITS), low << clamp(n, 0, BITS - 1))


def shift_right_sticky_wide(x: Wide, n: Lane) -> Wide:
    """x / 2^n for x, n ≥ 0, the last bit made odd if anything but zeros was shifted out."""
    far = n >= BITS  # a whole limb drops out
    high = where(far, 0, x.high)
    low = where(far, x.high, x.low)
    dropped = where(far, x.low, 0)
    n = clamp(where(far, n - BITS, n), 0, BITS + 1)
    kept_high = high >> n
    moved = high - (kept_high << n)  # n bits, which cross into the low limb
    kept_low = low >> n
    exact = (dropped == 0) & ((kept_low << n) == low)
    low = (moved << clamp(BITS - n, 0, BITS)) + kept_low
    return Wide(kept_high, where(exact, low, low | 1))


class LongProduct(NamedTuple):
    """The interfaces of one product."""

    x: Wide  #: the factors in halves of 27 bits
    y: Wide
    parts: tuple[Lane, Lane, Lane, Lane]  #: high·high, high·low, low·high, low·low
    product: Wide


def multiply(x: Lane, y: Lane, shift: int) -> LongProduct:
    """x · y · 2^shift for 0 ≤ x, y < 2^53 and 2 ≤ shift ≤ 5, from products of parts of 26 and 27 bits."""
    half = 27
    x_high, x_low = x_halves = Wide(x >> half, x & ((1 << half) - 1))
    y_high, y_low = y_halves = Wide(y >> half, y & ((1 << half) - 1))
    top = x_high * y_high  # below 2^52, in units of 2^54
    parts = top, x_high * y_low, x_low * y_high, x_low * y_low
    middle = parts[1] + parts[2]  # below 2^54, in units of 2^27
    split = BITS - half - shift  # the bits of `middle` from here on belong to the high limb
    high = (top << (2 * half + shift - BITS)) + (middle >> split)
    low = ((middle & ((1 << split) - 1)) << (half + shift)) + (parts[3] << shift)
    return LongProduct(x_halves, y_halves, parts, carry(high, low))


def narrow(x: Wide, unit: Lane) -> Sum:
    """A signed x · 2^unit as a `Sum`: its leading 60 bits, the last one sticky."""
    sign, whole = magnitude(x)
    length = where(whole.high == 0, bit_length(whole.low), bit_length(whole.high) + BITS)
    drop = maximum(length - 60, 0)
    kept = shift_right_sticky_wide(whole, drop)
    lane = (kept.high << BITS) + kept.low
    return Sum(where(sign == 1, -lane, lane), unit + drop)


class WideSum(NamedTuple):
    """The interfaces of one addition."""

    e_max: Lane  #: align
    x: Wide  #: signed
    y: Wide
    total: Wide  #: accumulate
    narrowed: Sum  #: its leading bits


def add_term(x: WideTerm, y: Term, y_bits: int, frame: int) -> WideSum:
    """x + y: `blocks.add` where the first term does not fit a lane.

    x has `frame` fractional bits and is below 2^112, y has `y_bits` and its significand is below 2^56.  What
    `blocks.add` says of `frame` and of zeros holds here.
    """
    e_max = maximum(x.exponent, y.exponent)
    x_aligned = signed(x.sign, shift_right_sticky_wide(x.significand, e_max - x.exponent))
    left = frame - y_bits - (e_max - y.exponent)
    y_magnitude = shift_left(shift_right_sticky(y.significand, -left), clamp(left, 0, frame))
    y_aligned = signed(y.sign, y_magnitude)
    total = add(x_aligned, y_aligned)
    return WideSum(e_max, x_aligned, y_aligned, total, narrow(total, e_max - frame))
