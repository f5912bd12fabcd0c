"""IEEE 754 addition and exact conversion as bit-vector terms; no floating-point theory.

Widths of an addition in a format of p significand bits: p for the larger operand, 3 below it (two exact ones and
the sticky bit), one above for the carry.  Two exact bits are enough.  If the exponents differ by two or more, the
smaller operand is less than half the larger one, so the sum has its leading bit at most one place below, and what
decides the rounding is whether the sum is above, on or below a multiple of half its last place, 2^-2 of the larger
operand's last place.  If they differ by less, nothing is shifted further than one place, and the sum is exact.
"""

from __future__ import annotations

from typing import NamedTuple

import z3

from mmaformal.encodings.smt.blocks import (
    BitVec,
    Operand,
    Rounded,
    Special,
    classify,
    decode,
    encode,
    normalise,
    pad,
    quiet_nan,
    resize,
    round_magnitude,
    select_special,
    sign_of_zero,
    sticky_shift_right,
)
from mmaformal.formats import Format
from mmaformal.rounding import Conversion


class Addition(NamedTuple):
    """The interfaces of one addition, in order."""

    big: Operand  #: decode: the operand of larger magnitude
    small: Operand
    special: Special  #: classify
    total: BitVec  #: align, accumulate: a magnitude; its sign is that of `big`
    zero_sign: BitVec  #: of a sum that is exactly zero
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def add(x: BitVec, y: BitVec, rho: Conversion, nan: int) -> Addition:
    """`x + y`, two codes of ρ's format, rounded once with ρ; subnormals are kept.

    An exact zero is +0 unless both are −0, or one with IEEE 754's RD; a NaN is the code `nan`.
    """
    fmt = rho.format
    magnitude_bits = fmt.storage_bits - 1
    swap = z3.ULT(resize(x, magnitude_bits), resize(y, magnitude_bits))
    big, small = decode(z3.If(swap, y, x), fmt), decode(z3.If(swap, x, y), fmt)

    width = fmt.fraction_bits + 5
    shifted = sticky_shift_right(pad(small.significand, 3), big.field - small.field)
    high, low = resize(pad(big.significand, 3), width), resize(shifted, width)
    total = z3.If(big.sign == small.sign, high + low, high - low)

    # The field of the least normal exponent is 1; the carry is one place above the larger operand's leading bit.
    top = z3.ZeroExt(1, big.field)
    rounded = round_magnitude(big.sign, total, top, rho)
    zero_sign = sign_of_zero([big.sign, small.sign], rho)
    rounded = rounded._replace(sign=z3.If(total == 0, zero_sign, rounded.sign))
    special = classify([], [big, small])
    result = select_special(special, encode(rounded, rho), fmt, nan)
    return Addition(
        big, small, special=special, total=total, zero_sign=zero_sign, rounded=rounded, result=result
    )


def convert(code: BitVec, source: Format, target: Format) -> BitVec:
    """The code of the same value in a format that holds every value of `source`; a NaN is `quiet_nan`."""
    M, last_place = target.fraction_bits, source.min_exponent - source.fraction_bits
    holds = source.fraction_bits <= M and source.max_exponent <= target.max_exponent
    if not holds:
        raise ValueError(f"{target} holds no {source}")
    if target.min_exponent - M > last_place:
        raise ValueError(f"{target} does not hold the least {source}")
    if source == target:
        return code
    x = decode(code, source)
    # How far the exponent lies above the least normal one of the target, with zeros above the significand where
    # the source reaches below that, so that it cannot be negative.
    above = max(0, target.min_exponent - source.min_exponent)
    offset = above + source.min_exponent - target.min_exponent - 1
    bits = max(1, (offset + (1 << source.exponent_bits)).bit_length())
    top = resize(x.field, bits) + offset
    significand = resize(x.significand, source.fraction_bits + 1 + above)
    normal, left = normalise(significand, top)
    width = significand.size()
    leading = z3.Extract(width - 1, width - 1, normal) == 1
    field_bits = target.exponent_bits
    field = z3.If(leading, resize(left + 1, field_bits), z3.BitVecVal(0, field_bits))
    fraction = pad(z3.Extract(width - 2, 0, normal), M - (width - 1))
    fraction = z3.Extract(fraction.size() - 1, fraction.size() - M, fraction)
    value = pad(z3.Concat(x.sign, field, fraction), target.ignored_low_bits)
    special = classify([], [x])
    return select_special(special, value, target, quiet_nan(target))


class Amount(NamedTuple):
    """An exponent that is computed: the number `low + term`, the term being unsigned."""

    term: BitVec
    low: int


def rescale(code: BitVec, source: Format, rho: Conversion, shift: int | Amount = 0) -> BitVec:
    """The code of 2^shift times the number of a code of `source`, rounded once with ρ; a NaN is `quiet_nan`.

    Two places are kept below the significand, the last one sticky.  What is below the least normal number is shifted
    right by as much first, so that the place of ρ's last bit is a fixed one; a significand of more places than ρ's and
    two keeps the sticky place below the one that decides.
    """
    x, least = decode(code, source), rho.format.min_exponent
    # How far the leading place lies above the least normal exponent, in two's complement.
    given, low = ([shift.term], shift.low) if isinstance(shift, Amount) else ([], shift)
    lowest = source.min_exponent + low - least
    highest = source.max_exponent + 1 + low - least + sum((1 << each.size()) - 1 for each in given)
    bits = max(abs(lowest), abs(highest)).bit_length() + 1
    above = resize(x.field, bits) + z3.BitVecVal((lowest - 1) % (1 << bits), bits)
    for each in given:
        above = above + resize(each, bits)
    negative = z3.Extract(bits - 1, bits - 1, above) == 1
    zero = z3.BitVecVal(0, bits)
    width = max(source.fraction_bits, rho.fraction_bits) + 3
    significand = pad(x.significand, width - x.significand.size())
    shifted = sticky_shift_right(significand, z3.If(negative, -above, zero))
    rounded = round_magnitude(x.sign, shifted, z3.If(negative, zero, above), rho)
    return select_special(classify([], [x]), encode(rounded, rho), rho.format, quiet_nan(rho.format))
