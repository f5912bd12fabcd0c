"""Two products of bf16 and c, added in float32 one after the other, with subnormals flushed: cdna2's sum in NumPy."""

import numpy as np

_LEAST = np.float32(2.0**-126)


def value(codes):
    """The numbers that bf16 codes are, of subnormal ones +0."""
    numbers = (codes.astype(np.uint32) << 16).view(np.float32)
    return np.where(np.abs(numbers) < _LEAST, np.float32(0), numbers)


def flushed(x):
    """A number, or a zero of its sign where it is subnormal."""
    return np.where(np.abs(x) < _LEAST, x * np.float32(0), x)


def dot(a, b, c):
    """d = c + (a0·b0 + a1·b1)."""
    products = flushed(value(a) * value(b))
    c = np.where(np.abs(c) < _LEAST, np.float32(0), c)
    return flushed(c + flushed(products[0] + products[1]))
