"""The kernel of pfma on the processor's own fused multiply-add.

A result below 2^-126 is made zero after it was rounded to the processor's format, which has subnormals; pfma looks at
it before, rounded as if exponents had no least.  The two differ only where the processor's result is 2^-126 itself:
those outputs, and NaNs, whose payloads depend on the order of the operands, are computed again by the executable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.pfma.executable import add_codes, gives_first_nan, tiny_before
from mmaformal.encodings.pfma.executable import fma as staged_fma
from mmaformal.kernels.again import FlushedKernel
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import driver, fma, stack, vectorised
from mmaformal.kernels.floats import flush, is_least
from mmaformal.kernels.kernel import CodeArray, Plane, Planes
from mmaformal.spec import DotAdd


@driver
def run_step(a: Plane, b: Plane, d: Plane, after: Plane, doubtful: Plane, first: int, L: int) -> None:
    """One step, of products first … first + L - 1: `after` from `d`, and which elements are `doubtful`."""
    vectorised()
    m, n = d.shape
    width = b.shape[2]
    even, odd = stack(np.float32, width), stack(np.float32, width)
    least = stack(np.int32, width)
    for p in range((n + width - 1) // width):
        w = min(width, n - p * width)
        for i in range(m):
            for j in range(w):
                even[j], odd[j], least[j] = np.float32(0), np.float32(0), 0
            k = 0
            while k + 8 <= L:
                q = first + k
                x0, x1, x2, x3 = a[i, q], a[i, q + 1], a[i, q + 2], a[i, q + 3]
                x4, x5, x6, x7 = a[i, q + 4], a[i, q + 5], a[i, q + 6], a[i, q + 7]
                for j in range(w):
                    s, t, bad = even[j], odd[j], least[j]
                    s, t = fma(x0, b[p, q, j], s), fma(x1, b[p, q + 1, j], t)
                    bad |= is_least(s) | is_least(t)
                    s, t = fma(x2, b[p, q + 2, j], flush(s)), fma(x3, b[p, q + 3, j], flush(t))
                    bad |= is_least(s) | is_least(t)
                    s, t = fma(x4, b[p, q + 4, j], flush(s)), fma(x5, b[p, q + 5, j], flush(t))
                    bad |= is_least(s) | is_least(t)
                    s, t = fma(x6, b[p, q + 6, j], flush(s)), fma(x7, b[p, q + 7, j], flush(t))
                    bad |= is_least(s) | is_least(t)
                    even[j], odd[j], least[j] = flush(s), flush(t), bad
                k += 8
            while k < L:
                q = first + k
                x0, x1 = a[i, q], a[i, q + 1]
                for j in range(w):
                    s, t = fma(x0, b[p, q, j], even[j]), fma(x1, b[p, q + 1, j], odd[j])
                    least[j] |= is_least(s) | is_least(t)
                    even[j], odd[j] = flush(s), flush(t)
                k += 2
            begin = p * width
            for j in range(w):
                result = flush(flush(d[i, begin + j]) + flush(even[j] + odd[j]))
                after[i, begin + j] = result
                doubtful[i, begin + j] = (least[j] != 0) | (result != result)


@step_of("pfma")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, own = on.of, on.own
    even, odd = np.int64(0), np.int64(0)
    for k in range(a.size):
        t = staged_fma(np.int64(a[k]), np.int64(b[k]), even, of, own[0] != 0, own[1] != 0).result
        even, odd = odd, t  # sums take turns, and L is even
    first = own[1] != 0
    return add_codes(code, add_codes(even, odd, first).result, first).result


class PfmaKernel(FlushedKernel):
    """pfma."""

    description = "pfma: the processor's float32 fused multiply-add, subnormals flushed after each"
    products_at_once = 0  #: a step at a time

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
        run_step(a[0], b[0], d.view(np.float32), after.view(np.float32), doubtful, first, last - first)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Pfma)
        chain(
            "pfma", *FlushedKernel.in_words(spec, rows), None, p.L, tiny_before(spec), gives_first_nan(spec)
        )


KERNEL = PfmaKernel
