"""Rows of muladd."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Lane,
    classify_product,
    decode,
    ieee_add,
    multiply,
    quiet_nan,
    resolve_special,
)
from mmaformal.encodings.executable.stages import code_of_product
from mmaformal.encodings.muladd import Muladd
from mmaformal.kernels.compiled import SOURCES, Sources, driver, part
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


@part
def rounded_product(of: DotAdd, pi: Conversion, a: Lane, b: Lane) -> Lane:
    """The code of φ(a·b)."""
    x, y = decode(a, of.a_format.layout), decode(b, of.b_format.layout)
    places = of.a_format.fraction_bits + of.b_format.fraction_bits
    special = resolve_special(classify_product(x, y))
    return code_of_product(multiply(x, y), places, pi, special, quiet_nan(pi.format)).result


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
            product = rounded_product(of, pi, np.int64(a[i, k]), np.int64(b[i, k]))
            code = ieee_add(code, product, rho, nan).result
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Muladd)
    run_rows(SOURCES, numbers(spec, p.product, p.rho, quiet_nan(spec.d_format)), *rows)
