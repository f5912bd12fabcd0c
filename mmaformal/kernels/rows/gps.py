"""Rows of gps."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import ieee_add
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps.executable import NAN, RHO, flush_input, flush_result, product
from mmaformal.kernels.compiled import SOURCES, Sources, driver
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import OWN, formats, numbers
from mmaformal.spec import DotAdd


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    of, G = formats(given), given[OWN]
    level = np.empty(G, np.int64)
    for i in range(d.size):
        code = flush_input(c[i])
        for first in range(0, a.shape[1], G):
            for k in range(G):
                level[k] = product(of, np.int64(a[i, first + k]), np.int64(b[i, first + k])).result
            n = G
            while n > 1:
                n >>= 1
                for k in range(n):
                    level[k] = flush_result(ieee_add(level[2 * k], level[2 * k + 1], RHO, NAN).result)
            code = flush_result(ieee_add(code, level[0], RHO, NAN).result)
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Gps)
    run_rows(SOURCES, numbers(spec, p.G), *rows)
