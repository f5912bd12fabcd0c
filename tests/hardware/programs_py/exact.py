"""Exact sums of products of two bfloat16 numbers and of c, by fractions, which no one follows; rounded to float32.

The sum is rounded to odd in float64 first, so that it is rounded once.
"""

from fractions import Fraction

import numpy as np


def numbers(codes):
    """The numbers that bfloat16 codes are."""
    return (codes.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def to_odd(exact):
    """The sum in float64; where it is not exact, the neighbour with an odd last place."""
    near = np.float64(float(exact))
    error = exact - Fraction(float(near))
    if error and not int(near.view(np.int64)) & 1:
        near = np.nextafter(near, np.inf if error > 0 else -np.inf)
    return near


def dot(a: np.ndarray, b: np.ndarray, c: np.ndarray):
    """d = Σ a·b + c, rounded once, to nearest even; a zero is +0, unless every term is −0."""
    terms = [*(numbers(a) * numbers(b)), np.float64(c)]
    total = np.float64(terms[0])
    for term in terms[1:]:
        total = total + term
    if not np.isfinite(terms).all():
        return np.float32(total)
    exact = sum(Fraction(float(term)) for term in terms)
    if not exact:
        return np.float32(total)
    return np.float32(to_odd(exact))
