"""Dot products of e2m1 products and an fp16 addend, cut below the largest term and rounded to nearest even."""

PLACES = 13
LEAST = -15  # the exponent of a term that is 0


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


def specials(c):
    """The code of the result where c is an infinity or a NaN; else None."""
    nan, infinite = special(c, 5, 10)
    if nan:
        return 0x7FFF
    return c if infinite else None


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
    code = min((top + 14 << 10) + kept, 0x7C00)
    return code | 0x8000 if total < 0 and code else code


def dot(a, b, c):
    """d = Σ a·b + c, the terms cut where the largest one's places end, and rounded to nearest even."""
    found = specials(c)
    if found is not None:
        return found
    terms = []
    for x, y in zip(a, b, strict=True):
        (sx, ex, mx), (sy, ey, my) = decode(x, 2, 1), decode(y, 2, 1)
        product = mx * my << 11
        terms.append((sx ^ sy, ex + ey if product else LEAST, product))
    s, e, m = decode(c, 5, 10)
    terms.append((s, e if m else LEAST, m << 3))
    largest = max(e for _, e, _ in terms)
    total = 0
    for s, e, m in terms:
        kept = m >> largest - e
        total += -kept if s else kept
    return nearest(total, largest)
