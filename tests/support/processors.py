"""Units of processors in exact rational arithmetic: to test the encodings against (semantics §10)."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

from mmaformal.formats import Format, bf16, fp16, fp32


def place(x: Fraction, least: int | None, bits: int) -> Fraction:
    """The last place of x where it has so many bits, or of the least exponent, if there is one."""
    e = abs(x).numerator.bit_length() - abs(x).denominator.bit_length()
    e = e - 1 if abs(x) < Fraction(2) ** e else e
    return Fraction(2) ** ((e if least is None else max(e, least)) + 1 - bits)


def to_nearest(x: Fraction) -> Fraction:
    """To 24 bits, to nearest even, whatever the exponent."""
    return round(x / place(x, None, 24)) * place(x, None, 24) if x else x


def to_odd(x: Fraction) -> Fraction:
    """To 24 bits: cut toward zero, the last bit set if anything was lost."""
    if not x:
        return x
    unit = place(x, None, 24)
    kept = abs(x) // unit
    kept = kept if kept * unit == abs(x) else kept | 1
    return kept * unit * (1 if x > 0 else -1)


def code_of(
    x: Fraction, zero: int, rounded: Callable[[Fraction], Fraction] = to_nearest, before: bool = False
) -> int:
    """The fp32 code of an exact sum; `zero` is that of an exact zero.  Tiny is told `before` rounding, or after."""
    sign, tiny = (0x80000000 if x < 0 else 0), abs(x) < Fraction(2) ** -126
    x = rounded(x)
    if x == 0:
        return zero
    if tiny if before else abs(x) < Fraction(2) ** -126:
        return sign
    if abs(x) >= Fraction(2) ** 128:
        return sign | 0x7F800000
    unit = place(x, None, 24)
    return sign | (unit.numerator.bit_length() - unit.denominator.bit_length() + 149 << 23) + int(
        abs(x) / unit
    )


def flushed(code: int, fmt: Format) -> int:
    """A subnormal's code as that of a zero of its sign."""
    return code if fmt.fields(code)[1] else code & fmt.sign_mask


def fma(a: int, b: int, c: int, fmt: Format = bf16, before: bool = False) -> int:
    """`a·b + c` of Intel's units, subnormals zero: codes of a format with an fp32's exponents, and of fp32.

    before: tiny is told before rounding, which Intel's do not.
    """
    for code, of in ((a, fmt), (b, fmt), (c, fp32)):
        if of.is_nan(code):
            return code << (32 - of.storage_bits) | 0x00400000
    special = special_of(flushed(a, fmt), flushed(b, fmt), c, fmt)
    if special is not None:
        return 0xFFC00000 if special == 0x7FC00000 else special
    return _finite(flushed(a, fmt), flushed(b, fmt), flushed(c, fp32), fmt, to_nearest, before)


def special_of(a: int, b: int, c: int, fmt: Format) -> int | None:
    """Return what an infinity or a NaN among a, b, c makes of `a·b + c`, 0x7FC00000 for a NaN; None without one."""
    negative = bool(a & fmt.sign_mask) != bool(b & fmt.sign_mask)
    if fmt.is_nan(a) or fmt.is_nan(b) or fp32.is_nan(c):
        return 0x7FC00000
    infinite, zero = [not fmt.is_finite(x) for x in (a, b)], [not x & ~fmt.sign_mask for x in (a, b)]
    if any(infinite):
        opposite = not fp32.is_finite(c) and bool(c >> 31) != negative
        return 0x7FC00000 if any(zero) or opposite else 0x7F800000 | negative << 31
    return None if fp32.is_finite(c) else c


def _finite(
    a: int, b: int, c: int, fmt: Format, rounded: Callable[[Fraction], Fraction], before: bool
) -> int:
    negative, zero = (
        bool(a & fmt.sign_mask) != bool(b & fmt.sign_mask),
        not a & ~fmt.sign_mask or not b & ~fmt.sign_mask,
    )
    exact = fmt.value(a) * fmt.value(b) + fp32.value(c)
    minus = negative and zero and c == 0x80000000
    return code_of(exact, 0x80000000 if minus else 0, rounded, before)


def add(x: int, y: int) -> int:
    return fma(x, 0x3F800000, y, fp32)  # 1·x + y: the first NaN is x


def odd_fma(a: int, b: int, c: int, fmt: Format = bf16) -> int:
    """`a·b + c` of Arm's, rounded to odd once; −0 as c leaves a product alone, 1 as b a sum."""
    a, b, c = flushed(a, fmt), flushed(b, fmt), flushed(c, fp32)
    special = special_of(a, b, c, fmt)
    return _finite(a, b, c, fmt, to_odd, True) if special is None else special


def odd_pair(a: list[int], b: list[int], c: int) -> int:
    """`c ⊕ (a_0·b_0 ⊕ a_1·b_1)`."""
    minus_zero, one = 0x80000000, 0x3F800000
    products = [odd_fma(x, y, minus_zero) for x, y in zip(a, b, strict=True)]
    return odd_fma(odd_fma(products[0], one, products[1], fp32), one, c, fp32)


def half_fma(a: int, b: int, c: int) -> int:
    """`a·b + c` in fp16 by IEEE 754, and Intel's NaNs."""
    for code in (a, b, c):
        if fp16.is_nan(code):
            return code | 0x0200
    negative = bool((a ^ b) & 0x8000)
    infinite, zero = [fp16.is_infinite(x) for x in (a, b)], [not x & 0x7FFF for x in (a, b)]
    if any(infinite):
        opposite = fp16.is_infinite(c) and bool(c >> 15) != negative
        return 0xFE00 if any(zero) or opposite else 0x7C00 | negative << 15
    if fp16.is_infinite(c):
        return c
    x = fp16.value(a) * fp16.value(b) + fp16.value(c)
    if x == 0:
        return 0x8000 if negative and any(zero) and c == 0x8000 else 0
    unit = place(x, -14, 11)
    kept = round(abs(x) / unit) * unit
    if kept >= 2**16:
        return 0x7C00 | (x < 0) << 15
    field = unit.numerator.bit_length() - unit.denominator.bit_length() + 24  # less one, of a normal number
    return (x < 0) << 15 | (field << 10) + int(kept / unit)


def some_code(rng: random.Random, fmt: Format, exponent: int) -> int:
    if rng.random() < 0.06:
        return rng.choice((0, fmt.sign_mask, 1, fmt.infinity, fmt.infinity + 1, rng.randrange(fmt.codes)))  # type: ignore[operator]
    field = min(max(exponent + fmt.bias + rng.randint(-2, 2), 0), 2 * fmt.bias)
    ones = (1 << fmt.fraction_bits) - 1
    fraction = rng.choice((0, 1, ones, ones ^ 1, rng.randint(0, ones)))
    return field << fmt.fraction_bits | fraction | rng.choice((0, fmt.sign_mask))
