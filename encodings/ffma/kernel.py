"""The kernel of ffma on the processor's own fused multiply-add; what is doubtful is as in pfma."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.pfma.executable import fma as staged_fma
from mmaformal.encodings.pfma.executable import gives_first_nan, tiny_before
from mmaformal.kernels.again import FlushedKernel
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import driver, fma, stack, vectorised
from mmaformal.kernels.floats import flush, is_least
from mmaformal.kernels.kernel import CodeArray, Plane, Planes
from mmaformal.spec import DotAdd


@driver
def run_chain(a: Plane, b: Plane, d: Plane, after: Plane, doubtful: Plane, first: int, last: int) -> None:
    """`after` from `d`, by the products first … last - 1; which of them are `doubtful`."""
    vectorised()
    m, n = d.shape
    width = b.shape[2]
    sums, least = stack(np.float32, width), stack(np.int32, width)
    for p in range((n + width - 1) // width):
        begin = p * width
        w = min(width, n - begin)
        for i in range(m):
            for j in range(w):
                sums[j], least[j] = flush(d[i, begin + j]), 0
            k = first
            while k + 4 <= last:
                x0, x1, x2, x3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
                for j in range(w):
                    s = fma(x0, b[p, k, j], sums[j])
                    t = fma(x1, b[p, k + 1, j], flush(s))
                    u = fma(x2, b[p, k + 2, j], flush(t))
                    v = fma(x3, b[p, k + 3, j], flush(u))
                    least[j] |= is_least(s) | is_least(t) | is_least(u) | is_least(v)
                    sums[j] = flush(v)
                k += 4
            while k < last:
                x0 = a[i, k]
                for j in range(w):
                    s = fma(x0, b[p, k, j], sums[j])
                    least[j] |= is_least(s)
                    sums[j] = flush(s)
                k += 1
            for j in range(w):
                result = sums[j]
                after[i, begin + j] = result
                doubtful[i, begin + j] = (least[j] != 0) | (result != result)


@step_of("ffma")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, own = on.of, on.own
    return staged_fma(np.int64(a[0]), np.int64(b[0]), code, of, own[0] != 0, own[1] != 0).result


class FfmaKernel(FlushedKernel):
    """ffma."""

    description = "ffma: the processor's float32 fused multiply-add, subnormals flushed before and after each"

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
        run_chain(a[0], b[0], d.view(np.float32), after.view(np.float32), doubtful, first, last)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        chain("ffma", *FlushedKernel.in_words(spec, rows), None, 1, tiny_before(spec), gives_first_nan(spec))


KERNEL = FfmaKernel
