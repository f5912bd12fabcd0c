"""Rows of pfma."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.pfma.executable import add_codes, fma, tiny_before
from mmaformal.kernels.compiled import SOURCES, Sources, driver
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import OWN, formats, numbers
from mmaformal.spec import DotAdd


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    of, L, before = formats(given), given[OWN], given[OWN + 1] != 0
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], L):
            even, odd = np.int64(0), np.int64(0)
            for k in range(first, first + L):
                t = fma(np.int64(a[i, k]), np.int64(b[i, k]), even, of, before).result
                even, odd = odd, t  # sums take turns, and L is even
            code = add_codes(code, add_codes(even, odd)[1])[1]
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Pfma)
    run_rows(SOURCES, numbers(spec, p.L, tiny_before(spec)), *rows)
