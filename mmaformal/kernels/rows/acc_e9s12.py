"""Rows of acc_e9s12."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.acc_e9s12.executable import shift_down
from mmaformal.encodings.dpa_e9s12.executable import BELOW, BIAS, E9S12, FRACTION, multiply, place
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Term,
    classify_addend,
    classify_product,
    decode,
    encode,
    maximum,
    merge_special,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    where,
)
from mmaformal.formats import fp32
from mmaformal.kernels.compiled import SOURCES, Sources, driver, inlined
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.dpa_e9s12 import half, product
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd

_C_BITS, _C_BIAS = fp32.fraction_bits, fp32.bias


@inlined
def c_times_one(c: Operand, low: bool) -> Term:
    """One of the two products that c is."""
    one = E9S12(np.int64(0), np.int64(BIAS), np.int64(1 << FRACTION), False)
    return multiply(half(c, _C_BITS, _C_BIAS, low), one, True)


@inlined
def step(
    of: DotAdd,
    rho: Conversion,
    N: int,
    F: int,
    bias: int,
    halves: int,
    nan: int,
    a: Plane,
    b: Plane,
    code: Lane,
) -> Lane:
    """All passes."""
    c = decode(code, of.c_format.layout)
    special, zero = classify_addend(c), np.int64(0)
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), of.a_format.layout), decode(np.int64(b[k]), of.b_format.layout)
        special = merge_special(special, classify_product(x, y))
    total, exponent, e_max, n = limbs.Wide(zero, zero), zero, zero, N * halves * halves
    for first in range(0, a.size, N):
        u, v = a[first : first + N], b[first : first + N]
        e_max = exponent
        if first == 0:
            e_max = maximum(c_times_one(c, False).exponent, c_times_one(c, True).exponent)
        for i in range(n):
            e_max = maximum(e_max, product(of, bias, True, u, v, i, halves).exponent)
        shifted = shift_down(total, e_max - exponent)
        total = limbs.Wide(shifted.high, (shifted.low >> BELOW) << BELOW)
        if first == 0:
            total = limbs.add(total, place(c_times_one(c, False), e_max, F))
            total = limbs.add(total, place(c_times_one(c, True), e_max, F))
        for i in range(n):
            total = limbs.add(total, place(product(of, bias, True, u, v, i, halves), e_max, F))
        exponent = where(limbs.is_zero(total), zero, e_max)
    narrowed = limbs.narrow(total, e_max - 2 * BIAS - F - BELOW)
    number = encode(round_sum(narrowed, zero, rho), rho)
    return select_special(resolve_special(special), number, rho, nan)


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    of, at = formats(given), OWN + CONVERSION
    rho = conversion(given, OWN, of.d_format)
    D, N, F, bias = given[at], given[at + 1], given[at + 2], given[at + 3]
    halves, nan = given[at + 4], given[at + 5]
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], D):
            x, y = a[i, first : first + D], b[i, first : first + D]
            code = step(of, rho, N, F, bias, halves, nan, x, y, code)
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, AccE9s12)
    halves = 2 if spec.a_format.fraction_bits > FRACTION else 1
    own = p.D, p.N, p.L - 3 - p.carries(spec), spec.a_format.bias, halves
    run_rows(SOURCES, numbers(spec, p.rho, *own, quiet_nan(spec.d_format)), *rows)
