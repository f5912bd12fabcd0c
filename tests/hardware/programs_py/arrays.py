"""Dot products of fp16 products and an fp16 addend, cut below the largest term's places, in NumPy's numbers."""

import numpy as np

PLACES = 13
LEAST = -29  # the exponent of a term that is 0


def split(x, least):
    """Numbers as s · 2^e with |s| < 2, of subnormal ones at the least exponent."""
    _, e = np.frexp(x)
    e = np.maximum(e - 1, least)
    return np.ldexp(x, -e), e


def dot(a, b, c):
    """d = Σ a·b + c."""
    (sa, ea), (sb, eb) = split(a.astype(np.float64), -14), split(b.astype(np.float64), -14)
    sc, ec = split(c.astype(np.float64), -14)
    s = np.concatenate([sa * sb, np.reshape(sc, (1,))])
    e = np.concatenate([ea + eb, np.reshape(ec, (1,))])
    e = np.where(s == 0, LEAST, e)
    largest = e.max()
    total = np.trunc(np.ldexp(s, e - largest + PLACES)).sum()
    return np.float16(np.ldexp(total, largest - PLACES)) + np.float16(0)
