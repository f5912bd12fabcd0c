"""Dot products of two e5m2 products and an fp16 addend, exact and rounded to nearest even, in integers."""

PLACES = 13
LEAST = -40  # below every exponent that a term other than 0 may have


def decode(code, exponent_bits, fraction_bits):
    """The sign, exponent and significand of a code."""
    fraction = code & ((1 << fraction_bits) - 1)
    field = code >> fraction_bits & ((1 << exponent_bits) - 1)
    sign = code >> (exponent_bits + fraction_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    if field == 0:
        return sign, 1 - bias, fraction
    return sign, field - bias, fraction | 1 << fraction_bits


def special(code, exponent_bits, fraction_bits):
    """Whether a code is a NaN, and whether it is an infinity."""
    fraction = code & ((1 << fraction_bits) - 1)
    largest = code >> fraction_bits & ((1 << exponent_bits) - 1) == (1 << exponent_bits) - 1
    return largest and fraction != 0, largest and fraction == 0


def specials(a, b, c):
    """The code of the result where an operand is an infinity or a NaN; else None."""
    nan, infinite_c = special(c, 5, 10)
    plus = infinite_c and c >> 15 == 0
    minus = infinite_c and c >> 15 == 1
    for x, y in zip(a, b):
        (nan_x, infinite_x), (nan_y, infinite_y) = special(x, 5, 2), special(y, 5, 2)
        zero = x & 0x7F == 0 or y & 0x7F == 0
        infinite = infinite_x or infinite_y
        nan = nan or nan_x or nan_y or (infinite and zero)
        plus = plus or (infinite and (x ^ y) >> 7 == 0)
        minus = minus or (infinite and (x ^ y) >> 7 == 1)
    if nan or (plus and minus):
        return 0x7FFF
    if plus:
        return 0x7C00
    return 0xFC00 if minus else None


def nearest(total, exponent):
    """The code of total · 2^(exponent − PLACES), to nearest even."""
    size = abs(total)
    if size == 0:
        return 0
    top = max(exponent - PLACES + size.bit_length() - 1, -14)
    shift = exponent - PLACES - (top - 10)
    if shift >= 0:
        kept = size << shift
    else:
        kept = size >> -shift
        rest = size - (kept << -shift)
        half = 1 << -shift - 1
        if rest > half or (rest == half and kept & 1):
            kept += 1
    return (0x8000 if total < 0 else 0) | min((top + 14 << 10) + kept, 0x7C00)


def dot(a, b, c):
    """d = Σ a·b + c, the terms cut where the largest one's places end, and rounded to nearest even."""
    found = specials(a, b, c)
    if found is not None:
        return found
    terms = []
    for x, y in zip(a, b):
        (sx, ex, mx), (sy, ey, my) = decode(x, 5, 2), decode(y, 5, 2)
        product = mx * my << 9
        terms.append((-product if sx ^ sy else product, ex + ey if product else LEAST))
    s, e, m = decode(c, 5, 10)
    terms.append((-m << 3 if s else m << 3, e if m else LEAST))
    largest = max(e for _, e in terms)
    total = 0
    for m, e in terms:
        size = abs(m) >> largest - e
        total += -size if m < 0 else size
    return nearest(total, largest)
