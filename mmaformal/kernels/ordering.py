"""Products of each output in an order of their own, and totals that keep or feed back what additions lose.

The functions that `mmaformal.accumulation` puts together; its docstring says what they are for.
"""

from __future__ import annotations

import numpy as np

from mmaformal.kernels.compiled import driver
from mmaformal.kernels.kernel import Plane


@driver
def by_magnitude(
    a: Plane,
    b: Plane,
    va: Plane,
    vb: Plane,
    first: int,
    shift: int,
    falling: bool,
    x: Plane,
    y: Plane,
    keys: Plane,
    size: Plane,
    own: Plane,
    start: Plane,
) -> None:
    """The products of the outputs first … first + len(x) - 1, counted row by row, in the order of their magnitudes.

    a (m, K) and b (n, K) are codes, va and vb their magnitudes; x and y (outputs, K) become the codes in order, `keys`
    the magnitudes as bits of a float64 without its last `shift`, counted from the first of an output.  Equal keys stay
    in the order of K: they are counted, and not compared.  `size` and `own` (K) and `start` (2^(63 - shift) + 1) are
    room for the products of one output.
    """
    n, k = b.shape
    bits = size.view(np.int64)
    for e in range(len(x)):
        i, j = (first + e) // n, (first + e) % n
        low, high = np.int64(1 << 62), np.int64(0)
        for q in range(k):
            product = va[i, q] * vb[j, q]
            size[q] = product if product == product else np.inf
        for q in range(k):
            key = bits[q] >> shift
            own[q] = key
            if key != 0:
                low, high = min(low, key), max(high, key)
        # Place 0 is of zeros, which come first, or last; the others from the least key on, or from the largest.
        span = high - low + 1 if high else 0
        start[: span + 2] = 0
        for q in range(k):
            place = 0 if own[q] == 0 else (high - own[q] if falling else own[q] - low + 1)
            own[q] = span if falling and own[q] == 0 else place
            start[own[q] + 1] += 1
        for place in range(span + 1):
            start[place + 1] += start[place]
        for q in range(k):
            at = start[own[q]]
            start[own[q]] = at + 1
            x[e, at], y[e, at], keys[e, at] = a[i, q], b[j, q], own[q]


@driver
def bins_of(keys: Plane, output: Plane, begin: Plane, length: Plane) -> int:
    """The runs of equal keys of each output, in order: where each begins, and how many there are in all."""
    count = 0
    for e in range(keys.shape[0]):
        for q in range(keys.shape[1]):
            if q == 0 or keys[e, q] != keys[e, q - 1]:
                output[count], begin[count], length[count] = e, q, 0
                count += 1
            length[count - 1] += 1
    return count


@driver
def part_of_bins(
    x: Plane, output: Plane, begin: Plane, length: Plane, rows: Plane, step: int, out: Plane
) -> None:
    """The step-th codes of the bins `rows`, as many as `out` has columns; 0 after the end of a bin."""
    k = out.shape[1]
    for r in range(rows.size):
        each = rows[r]
        for q in range(k):
            at = step * k + q
            out[r, q] = x[output[each], begin[each] + at] if at < length[each] else 0


@driver
def add_bins(output: Plane, sums: Plane, total: Plane) -> None:
    """total[output] += sum, one after the other."""
    for each in range(sums.size):
        total[output[each]] += sums[each]


@driver
def compensate(part: Plane, total: Plane, lost: Plane) -> None:
    """Kahan: `total` and `part` minus what was gained before; `lost` becomes what this addition gains."""
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            y = part[i, j] - lost[i, j]
            t = total[i, j] + y
            lost[i, j] = (t - total[i, j]) - y
            total[i, j] = t


@driver
def feed_back(part: Plane, total: Plane, lost: Plane) -> None:
    """The opposite: what all additions before gained is added again, and stays in `lost`."""
    for i in range(total.shape[0]):
        for j in range(total.shape[1]):
            y = part[i, j] + lost[i, j]
            t = total[i, j] + y
            lost[i, j] += (t - total[i, j]) - y
            total[i, j] = t
