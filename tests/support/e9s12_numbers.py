"""E9S12 numbers and codes of fp32, by their values."""

from __future__ import annotations

from fractions import Fraction

from mmaformal.formats import Format, fp32


def halves(fmt: Format, code: int) -> list[tuple[int, int]]:
    """The factor as (m, e), numbers m · 2^(e - 11), |m| < 2^12; by its digits."""
    digits = abs(fmt.value(code))
    sign = -1 if code >> (fmt.storage_bits - 1) else 1
    e = fmt.min_exponent if digits < Fraction(2) ** fmt.min_exponent else floor_log2(digits)
    m = digits / Fraction(2) ** (e - fmt.fraction_bits)
    assert m.denominator == 1
    if fmt.fraction_bits <= 11:
        return [(sign * m.numerator << (11 - fmt.fraction_bits), e)]
    return [(sign * (m.numerator // 4096), e), (sign * (m.numerator % 4096), e - 12)]


def floor_log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def nearest(x: Fraction) -> int:
    """The code of fp32 nearest to a nonzero number, the even one of two."""
    size = abs(x)
    e = max(floor_log2(size), fp32.min_exponent)
    m = round(size / Fraction(2) ** (e - 23))  # Python rounds halves to even
    code = min(((e - fp32.min_exponent) << 23) + m, 0x7F800000)
    return code | (x < 0) << 31
