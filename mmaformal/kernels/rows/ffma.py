"""Rows of ffma."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.pfma.executable import fma, tiny_before
from mmaformal.kernels.compiled import SOURCES, Sources, driver
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import OWN, formats, numbers
from mmaformal.spec import DotAdd


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    of, before = formats(given), given[OWN] != 0
    for i in range(d.size):
        code = c[i]
        for k in range(a.shape[1]):
            code = fma(np.int64(a[i, k]), np.int64(b[i, k]), code, of, before).result
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    run_rows(SOURCES, numbers(spec, tiny_before(spec)), *rows)
