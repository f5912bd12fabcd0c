"""A product of two e2m1 numbers and an fp16 addend in NumPy's numbers, exact in float64 and rounded once."""

import numpy as np

_MAGNITUDES = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def value(codes):
    """The numbers that e2m1 codes are."""
    size = _MAGNITUDES[codes & 7]
    return np.where(codes >> 3 == 1, -size, size)


def dot(a, b, c):
    """d = a·b + c, to nearest even; a zero is +0."""
    total = (value(a) * value(b)).sum() + c.astype(np.float64)
    return total.astype(np.float16) + np.float16(0)


def steps(a, b, c):
    """Two products, one after the other: what the first gives is the addend of the second."""
    return dot(a[1:], b[1:], dot(a[:1], b[:1], c))
