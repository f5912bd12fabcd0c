"""A dot product of four fp16 products and an fp32 addend in integers: the largest exponent, then truncation."""

PLACES = 23  # kept behind the point of the largest term
LEAST = -131  # below every exponent that a term other than 0 may have


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
    nan, infinite_c = special(c, 8, 23)
    plus = infinite_c and c >> 31 == 0
    minus = infinite_c and c >> 31 == 1
    for x, y in zip(a, b, strict=True):
        (nan_x, infinite_x), (nan_y, infinite_y) = special(x, 5, 10), special(y, 5, 10)
        zero = x & 0x7FFF == 0 or y & 0x7FFF == 0
        infinite = infinite_x or infinite_y
        nan = nan or nan_x or nan_y or (infinite and zero)
        plus = plus or (infinite and (x ^ y) >> 15 == 0)
        minus = minus or (infinite and (x ^ y) >> 15 == 1)
    if nan or (plus and minus):
        return 0x7FFFFFFF
    if plus:
        return 0x7F800000
    return 0xFF800000 if minus else None


def truncated(total, exponent):
    """The code of total · 2^(exponent − PLACES), cut toward zero."""
    size = abs(total)
    if size == 0:
        return 0
    sign = 0x80000000 if total < 0 else 0
    top = exponent - PLACES + size.bit_length() - 1
    place = max(top, -126) - 23
    shift = exponent - PLACES - place
    kept = size << shift if shift >= 0 else size >> -shift
    return sign | min((max(top, -126) + 126 << 23) + kept, 0x7F800000)


def dot(a, b, c):
    """d = Σ a·b + c as Volta adds."""
    found = specials(a, b, c)
    if found is not None:
        return found
    terms = []
    for x, y in zip(a, b, strict=True):
        (sx, ex, mx), (sy, ey, my) = decode(x, 5, 10), decode(y, 5, 10)
        product = mx * my << 3
        terms.append((sx ^ sy, ex + ey if product else LEAST, product))
    s, e, m = decode(c, 8, 23)
    terms.append((s, e if m else LEAST, m))
    largest = max(e for _, e, _ in terms)
    total = 0
    for s, e, m in terms:
        kept = m >> largest - e
        total += -kept if s else kept
    return truncated(total, largest)
