"""The scaling of A's rows and B's columns by powers of two: Λ, M and θ (§3), and a θ with which nothing overflows.

(3.2) is θ = min(f_max, √(F_max / n)), "which prevents overflow from occurring both in the input and in the intermediate
computations".  It does not always.  What is at most θ is rounded to the input format, and may then be more: with e5m2,
binary16 and n = 12, θ is 73.9, and 12 products of 73.5 · 73.5 are added as 12 · 80 · 80 > 65504.  And each sum is
rounded, perhaps up each time: 3970 products of 16.5 in binary16 are at most 65504 together, but above 32768, where
numbers are 32 apart, each adds 32.

`safe_theta` is a θ with which no result overflows, whatever the matrices:

- it is a number of the input format, so that |λx| ≤ θ is rounded to at most θ, as all words (4.3) are if θ ≥ g_min/u;
- let P = FL(θ²), and v ≥ 0 a product, rounded and scaled (u^(i+j) ≤ 1), so that v ≤ P, and s ≥ 0 a sum.  Then
  FL(s + v) ≤ s + 2v: s is a number, so where v is less than half the distance to the next one, s remains; else what
  is added by rounding, half that distance at most, is at most v.  Rounding keeps the order, so the magnitude of a sum
  with signs is at most that of the sum without;
- hence no sum exceeds 2·n·p(p + 1)/2·P, which is at most F_max.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

from mmaformal.analysis.arithmetic import PRECISION, FloatArithmetic
from mmaformal.analysis.rounding import Floats


def pairs_of_words(p: int) -> list[tuple[int, int]]:
    """Which words of a and b are multiplied: those with i + j < p, in the order in which they are added."""
    return [(i, j) for i in range(p) for j in range(p - i)]


def theta(input_: FloatArithmetic, accumulation: FloatArithmetic, n: int) -> Fraction:
    """(3.2), rounded down to binary64."""
    return min(input_.f_max, root_below(accumulation.f_max / n))


def safe_theta(input_: FloatArithmetic, accumulation: FloatArithmetic, n: int, p: int = 1) -> Fraction:
    """The largest number θ of the input format with which no result overflows by the argument above.

    Raises ValueError if there is none: n is too large for these formats.
    """
    many = 2 * n * len(pairs_of_words(p))
    least = Fraction(0) if p == 1 else input_.g_min / input_.u
    found = input_.below(min(input_.f_max, root_below(accumulation.f_max / many)))
    while True:
        product = accumulation.fl(found * found)
        if found < least:
            raise ValueError(
                f"no θ keeps {p} words of {input_} from overflowing in {accumulation} for n = {n}"
            )
        if product is not None and many * product <= accumulation.f_max:
            return found
        found = input_.below(found * (1 - input_.u / 2))


def root_below(x: Fraction) -> Fraction:
    """The largest number of binary64 whose square is at most x > 0."""
    places = PRECISION - (x.numerator.bit_length() - x.denominator.bit_length()) // 2 + 2
    root = isqrt(int(x * Fraction(4) ** places))
    drop = max(root.bit_length() - PRECISION, 0)
    return Fraction(root >> drop << drop) / Fraction(2) ** places


def powers(largest: Floats, limit: Fraction) -> Floats:
    """(3.4): for each x the power of two λ with θ/2 < λx ≤ θ; 1 where x is 0."""
    theta_m, theta_e = np.frexp(float(limit))
    m, e = np.frexp(largest)
    exponents = np.where(m <= theta_m, theta_e - e, theta_e - e - 1)
    found: Floats = np.where(largest == 0, 1.0, np.ldexp(1.0, exponents))
    return found
