"""Rows of muladd."""

from __future__ import annotations

import numpy as np

from mmaformal.algorithms import DotAdd, Muladd
from mmaformal.encodings.executable.blocks import ieee_add, quiet_nan
from mmaformal.encodings.executable.muladd import rounded_product
from mmaformal.kernels.compiled import SOURCES, Sources, driver
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    of = formats(given)
    pi, rho = conversion(given, OWN, of.d_format), conversion(given, OWN + CONVERSION, of.d_format)
    nan = given[OWN + 2 * CONVERSION]
    for i in range(d.size):
        code = c[i]
        for k in range(a.shape[1]):
            product = rounded_product(of, pi, np.int64(a[i, k]), np.int64(b[i, k])).result
            code = ieee_add(code, product, rho, nan).result
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Muladd)
    run_rows(SOURCES, numbers(spec, p.product, p.rho, quiet_nan(spec.d_format)), *rows)
