"""Sums of powers of errors, in twice float64's digits: in one order, with no more than IEEE 754's operations.

So they are the same on every processor, whatever its vectors are.
"""

from __future__ import annotations

import math

import numpy as np

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.kernels.compiled import driver, inlined
from mmaformal.kernels.kernel import Plane

#: What is summed, by its place: e, |e|, e², e⁴, x, x², d, d², u, |u|.
SUMS = 10


@inlined
def two_sum(sums: Plane, place: int, x: Lane) -> None:
    """Add to a sum of two parts; what the addition loses goes to the second (Knuth's TwoSum)."""
    high = sums[place, 0]
    total = high + x
    back = total - high
    sums[place, 0] = total
    sums[place, 1] += (high - (total - back)) + (x - back)


@driver
def ulps_of(errors: Plane, exact: Plane, fraction_bits: int, min_exponent: int, out: Plane) -> None:
    """out = errors in units of the last place that `exact` has in a format."""
    for i in range(errors.size):
        exponent = min_exponent if exact[i] == 0 else max(math.frexp(exact[i])[1] - 1, min_exponent)
        out[i] = math.ldexp(errors[i], fraction_bits - exponent) if np.isfinite(errors[i]) else np.nan


@driver
def add_moments(
    errors: Plane, exact: Plane, results: Plane, ulps: Plane, scale: Plane, sums: Plane
) -> tuple[int, int, float]:
    """Add numbers (n,), each of the four times its power of two in `scale`, to `sums` (SUMS, 2).

    Returns how many are finite, how many of those have no error, and the largest |u|, unscaled.  Squares are rounded
    once, fourth powers twice.
    """
    count, exact_ones, largest = 0, 0, 0.0
    for i in range(errors.size):
        if not np.isfinite(errors[i]):
            continue
        e, x, d, u = errors[i] * scale[0], exact[i] * scale[1], results[i] * scale[2], ulps[i] * scale[3]
        count += 1
        exact_ones += 1 if e == 0 else 0
        largest = max(largest, abs(ulps[i]))
        two_sum(sums, 0, e)
        two_sum(sums, 1, abs(e))
        two_sum(sums, 2, e * e)
        two_sum(sums, 3, (e * e) * (e * e))
        two_sum(sums, 4, x)
        two_sum(sums, 5, x * x)
        two_sum(sums, 6, d)
        two_sum(sums, 7, d * d)
        two_sum(sums, 8, u)
        two_sum(sums, 9, abs(u))
    return count, exact_ones, largest
