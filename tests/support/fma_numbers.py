"""IEEE 754's fused multiply-add in rationals, of any formats: an evaluation of its own, to test the encodings with.

It shares the table of formats with them, and no arithmetic: numbers are searched among the values that a format has.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor

from mmaformal.formats import Format, Specials
from mmaformal.rounding import Conversion, NanRule, Rounding, Saturation, Tininess

NAN = "nan"


def floor_log2(x: Fraction) -> int:
    """Returns e with 2^e ≤ x < 2^(e+1), of a positive number."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    while Fraction(2) ** e > x:
        e -= 1
    while Fraction(2) ** (e + 1) <= x:
        e += 1
    return e


def to_multiple(x: Fraction, unit: Fraction, rounding: Rounding) -> Fraction:
    """Returns x rounded to a multiple of a unit, by the rounding's definition on the real line."""
    q = x / unit
    low, high = floor(q), ceil(q)
    if low == high:
        return x
    toward = low if x > 0 else high
    away = high if x > 0 else low
    middle = abs(q - toward) - Fraction(1, 2)
    chosen = {
        Rounding.RZ: toward,
        Rounding.RD: low,
        Rounding.RU: high,
        Rounding.RNA: away if middle >= 0 else toward,
        Rounding.RNE: away if middle > 0 else toward if middle < 0 else low if low % 2 == 0 else high,
        Rounding.RO: low if low % 2 else high,
    }[rounding]
    return chosen * unit


def code_of(x: Fraction, rho: Conversion, zero_negative: bool) -> int:
    """Returns the code of a number rounded with ρ, overflow included."""
    fmt, p = rho.format, rho.fraction_bits
    sign = fmt.sign_mask if x < 0 or (x == 0 and zero_negative) else 0
    least = fmt.min_exponent
    e = max(floor_log2(abs(x)), least) if x else least
    y = abs(to_multiple(x, Fraction(2) ** (e - p), rho.rounding))
    largest = _largest(rho)
    if y > largest:
        inward = rho.ieee and (rho.rounding is Rounding.RZ or (rho.rounding is Rounding.RD) == (x > 0))
        if fmt.specials is Specials.FN:
            finite = inward or rho.saturation is not Saturation.NONE
            return sign | fmt.largest if finite else fmt.largest + 1
        assert fmt.infinity is not None
        return sign | (_code(largest, fmt) if inward else fmt.infinity)
    code = _code(y, fmt)
    return sign | code if code or rho.signed_zero else 0


def _largest(rho: Conversion) -> Fraction:
    fmt = rho.format
    if fmt.specials is Specials.FN:
        return fmt.value(fmt.largest)
    p = rho.fraction_bits
    return (2 - Fraction(1, 2**p)) * Fraction(2) ** fmt.max_exponent


def _code(y: Fraction, fmt: Format) -> int:
    """Returns the code of a magnitude that is a number of the format."""
    low, high = 0, fmt.largest
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fmt.value(middle) <= y else (low, middle - 1)
    assert fmt.value(low) == y, (y, fmt)
    return low


def flushed(code: int, fmt: Format) -> int:
    """Returns the code, a subnormal's as that of zero of its sign."""
    sign, field, _ = fmt.fields(code)
    return (fmt.sign_mask if sign else 0) if field == 0 else code


def is_tiny(x: Fraction, rho: Conversion, tiny: Tininess) -> bool:
    """Returns whether a number is tiny, before or after it is rounded with exponents that have no least."""
    if not x:
        return False
    bound = Fraction(2) ** rho.format.min_exponent
    if tiny is Tininess.AFTER:
        x = to_multiple(x, Fraction(2) ** (floor_log2(abs(x)) - rho.fraction_bits), rho.rounding)
    return abs(x) < bound


def exact_sum(
    factors: Sequence[tuple[int, int]],
    c: int,
    formats: tuple[Format, Format, Format],
    rho: Conversion,
    flush_inputs: bool = False,
    tiny: Tininess | None = None,
) -> int | str:
    """Returns the code of the exact sum of products and c, rounded once with ρ; NAN where that is a NaN."""
    A, B, C = formats
    if flush_inputs:
        factors = [(flushed(a, A), flushed(b, B)) for a, b in factors]
        c = flushed(c, C)
    infinite: set[bool] = set()
    signs: set[bool] = {_negative(c, C)}
    total = Fraction(0)
    if C.is_nan(c):
        return NAN
    if C.is_infinite(c):
        infinite.add(_negative(c, C))
    else:
        total += C.value(c)
    for a, b in factors:
        if A.is_nan(a) or B.is_nan(b):
            return NAN
        negative = _negative(a, A) != _negative(b, B)
        signs.add(negative)
        if A.is_infinite(a) or B.is_infinite(b):
            if (A.is_finite(a) and A.value(a) == 0) or (B.is_finite(b) and B.value(b) == 0):
                return NAN
            infinite.add(negative)
        else:
            total += A.value(a) * B.value(b)
    if infinite:
        if len(infinite) == 2:
            return NAN
        return _infinity(rho, infinite.pop())
    down = rho.ieee and rho.rounding is Rounding.RD
    zero_negative = signs == {True} or (len(signs) == 2 and down)
    if tiny is not None and is_tiny(total, rho, tiny):
        return rho.format.sign_mask if total < 0 and rho.signed_zero else 0
    code = code_of(total, rho, zero_negative)
    return NAN if rho.format.is_nan(code) else code


def _infinity(rho: Conversion, negative: bool) -> int | str:
    fmt = rho.format
    sign = fmt.sign_mask if negative else 0
    if fmt.specials is Specials.FN:
        return NAN if rho.saturation is Saturation.NONE else sign | fmt.largest
    assert fmt.infinity is not None
    return sign | fmt.infinity


def _negative(code: int, fmt: Format) -> bool:
    return bool(fmt.fields(code)[0])


def nan_of(rule: NanRule, ones: bool, codes: Sequence[tuple[int, Format]], rho: Conversion) -> int | None:
    """Returns the code of the NaN that codes a, b and c give by a rule; None where any is right."""
    d = rho.format
    if rule is NanRule.ANY:
        return None
    if d.specials is Specials.FN:
        return d.largest + 1
    assert d.infinity is not None
    order = {NanRule.FIRST: (0, 1, 2), NanRule.FIRST_ACB: (0, 2, 1), NanRule.DEFAULT: ()}[rule]
    for place in order:
        code, fmt = codes[place]
        if fmt.is_nan(code):
            sign, _, fraction = fmt.fields(code)
            payload = fraction << (d.fraction_bits - fmt.fraction_bits)
            quiet = 1 << (d.fraction_bits - 1)
            return (d.sign_mask if sign else 0) | d.infinity | payload | quiet
    default = d.codes // 2 - 1 if ones else d.infinity | 1 << (d.fraction_bits - 1)
    return default | (d.sign_mask if rule is NanRule.FIRST else 0)
