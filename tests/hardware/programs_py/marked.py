"""Four products of fp16 and c as cdna3 adds them, in NumPy; a zero product is marked by an exponent of its own."""

import numpy as np

#: Below the exponent of any product.
MARK = -999


def parts(x, least):
    """s and e of numbers s · 2^e, with 1 ≤ |s| < 2, but for those below 2^least, of which e is that."""
    s, e = np.frexp(x)
    s, e = 2 * s, e - 1
    small = (e < least) | (s == 0)
    return np.where(small, s * power(e - least), s), np.where(small, least, e)


def power(e):
    """2^e."""
    return np.exp2(e.astype(np.float64))


def dot(a, b, c):
    """d = a·b + c: products at their largest exponent, then their sum and c at the larger of theirs."""
    (s_a, e_a), (s_b, e_b) = (parts(x.astype(np.float64), -14) for x in (a, b))
    s, e = s_a * s_b, e_a + e_b
    e = np.where(s == 0, MARK, e)
    largest = e.max()
    total = (np.trunc(s * power(e - largest + 24)).sum() + 0.0) * 2.0**-24
    s_c, e_c = parts(c.astype(np.float64), -126)
    top = np.maximum(largest, e_c)
    total = np.floor(total * power(largest - top + 32)) * 2.0**-32
    s_c = np.floor(s_c * power(e_c - top + 24)) * 2.0**-24
    s, e = parts((total + s_c) * power(top), -126)
    return (np.floor(s * 2.0**31) * 2.0**-31 * power(e)).astype(np.float32)


def steps(a, b, c):
    """Add the products of the second half to what those of the first give."""
    return dot(a[4:], b[4:], dot(a[:4], b[:4], c))
