"""Rows of oddsum."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import ieee_add
from mmaformal.encodings.oddsum import Oddsum
from mmaformal.encodings.oddsum.executable import NAN, product
from mmaformal.encodings.pfma.executable import without_subnormal
from mmaformal.kernels.compiled import SOURCES, Sources, driver
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import OWN, conversion, formats, numbers
from mmaformal.spec import DotAdd


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    of = formats(given)
    rho = conversion(given, OWN, of.d_format)
    for i in range(d.size):
        code = c[i]
        for k in range(0, a.shape[1], 2):
            x = product(of, rho, np.int64(a[i, k]), np.int64(b[i, k])).result
            y = product(of, rho, np.int64(a[i, k + 1]), np.int64(b[i, k + 1])).result
            group = without_subnormal(ieee_add(x, y, rho, NAN).result)
            code = without_subnormal(ieee_add(without_subnormal(code), group, rho, NAN).result)
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Oddsum)
    run_rows(SOURCES, numbers(spec, p.rho), *rows)
