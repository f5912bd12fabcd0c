"""The kernel of oddsum on the processor's own additions.

A sum rounded to nearest, and its error, which is a number of fp32 too (Knuth's 2Sum): if the error is not zero, two
neighbours enclose the exact sum, one of them odd; that is the sum rounded to odd.  Products are exact.  What is tiny is
exact, so that it does not matter when one looks.  Where a sum overflows, or its error does, it is computed again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.executable.ieee import ieee_add
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.encodings.oddsum.executable import NAN, product
from mmaformal.encodings.pfma.executable import without_subnormal
from mmaformal.kernels.again import FlushedKernel
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import driver, inlined, stack, vectorised
from mmaformal.kernels.floats import flush, single_bits, single_of
from mmaformal.kernels.kernel import CodeArray, Plane, Planes
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd


@inlined
def error_of(x: Lane, y: Lane, s: Lane) -> Lane:
    """x + y − s, exactly, for s the sum rounded to nearest, unless something overflows."""
    y_part = s - x
    return (x - (s - y_part)) + (y - y_part)


@inlined
def to_odd(s: Lane, error: Lane) -> Lane:
    """The odd neighbour of s + error, for |error| at most half a last place; s itself if it is exact."""
    bits, way = single_bits(s), single_bits(s) ^ single_bits(error)
    odd = np.int32(bits + 1) if way >= 0 else np.int32(bits - 1)
    return s if (error == 0) | (bits & 1 == 1) else single_of(odd)


@driver
def run_pairs(a: Plane, b: Plane, d: Plane, after: Plane, doubtful: Plane, first: int, last: int) -> None:
    """`after` from `d`, by the pairs of products first … last - 1; which of them are `doubtful`."""
    vectorised()
    m, n = d.shape
    width = b.shape[2]
    sums, lost = stack(np.float32, width), stack(np.float32, width)
    for p in range((n + width - 1) // width):
        begin = p * width
        w = min(width, n - begin)
        for i in range(m):
            for j in range(w):
                sums[j], lost[j] = flush(d[i, begin + j]), np.float32(0)
            for k in range(first, last, 2):
                x0, x1 = a[i, k], a[i, k + 1]
                for j in range(w):
                    u, v = flush(x0 * b[p, k, j]), flush(x1 * b[p, k + 1, j])
                    s = u + v
                    error = error_of(u, v, s)
                    pair = flush(to_odd(s, error))
                    t = sums[j] + pair
                    other = error_of(sums[j], pair, t)
                    sums[j] = flush(to_odd(t, other))
                    lost[j] += (error - error) + (other - other)  # 0, or a NaN where one is not finite
            for j in range(w):
                after[i, begin + j] = sums[j]
                doubtful[i, begin + j] = lost[j] != 0


@step_of("oddsum")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho = on.of, on.rho
    x = product(of, rho, np.int64(a[0]), np.int64(b[0])).result
    y = product(of, rho, np.int64(a[1]), np.int64(b[1])).result
    group = without_subnormal(ieee_add(x, y, rho, NAN).result)
    return without_subnormal(ieee_add(without_subnormal(code), group, rho, NAN).result)


class OddsumKernel(FlushedKernel):
    """oddsum."""

    description = "oddsum: the processor's float32 sums and their errors, subnormals flushed after each"

    @classmethod
    def of(cls, spec: DotAdd) -> OddsumKernel | None:
        """None where ρ only cuts."""
        return cls(spec) if spec.parameters.last_rounding.rounding is Rounding.RO else None

    def steps(
        self,
        a: Planes,
        b: Planes,
        d: CodeArray,
        after: CodeArray,
        doubtful: NDArray[np.bool_],
        first: int,
        last: int,
    ) -> None:
        run_pairs(a[0], b[0], d.view(np.float32), after.view(np.float32), doubtful, first, last)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Oddsum)
        chain("oddsum", spec, rows, p.rho, 2)


KERNEL = OddsumKernel
