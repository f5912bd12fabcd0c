"""Rows of lowered: operands converted by tables, fda's steps from zero, c added last."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import Special, canonical_nan, ieee_add
from mmaformal.encodings.lowered import Lowered
from mmaformal.kernels.compiled import SOURCES, Sources, driver, vectorised
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch, converted
from mmaformal.kernels.rows.fda import multiply_all, step, to_odd, zero_exponent
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers_of
from mmaformal.spec import DotAdd


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    vectorised()
    of = formats(given)
    rho, addition = conversion(given, OWN, of.d_format), conversion(given, OWN + CONVERSION, of.d_format)
    at = OWN + 2 * CONVERSION
    F, L, e_zero, by_fields, nan = given[at], given[at + 1], given[at + 2], given[at + 3] != 0, given[at + 4]
    odd, size, no_scales = given[at + 5] != 0, given[at + 6], Special(False, False, False)
    value, exponent = np.empty(L, np.int64), np.empty(L, np.int64)
    for i in range(d.size):
        code = c[i]
        for start in range(0, a.shape[1], size):
            partial = np.int64(0)
            for first in range(start, start + size, L):
                x, y = a[i, first : first + L], b[i, first : first + L]
                special = multiply_all(of.a_format, of.b_format, x, y, value, exponent)
                partial = step(
                    of,
                    rho,
                    F,
                    odd,
                    e_zero,
                    by_fields,
                    nan,
                    x,
                    y,
                    partial,
                    no_scales,
                    special,
                    value,
                    exponent,
                )
            code = ieee_add(partial, code, addition, nan).result
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Lowered)
    to_a, to_b = p.taken_as(spec.a_format), p.taken_as(spec.b_format)
    taken = list(p.order)
    if spec.k > len(p.order):
        taken = p.taken(spec.k)
    rows = converted(rows, spec, to_a, to_b)
    own = p.F, p.L, *zero_exponent(p.e_zero), canonical_nan(spec.d_format), to_odd(p.cut), len(p.order)
    given = numbers_of((to_a, to_b, spec.c_format, spec.d_format), p.rho, p.addition, *own)
    run_rows(SOURCES, given, *rows._replace(a=rows.a.take(taken, 1), b=rows.b.take(taken, 1)))
