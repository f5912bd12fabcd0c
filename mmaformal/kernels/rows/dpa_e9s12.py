"""Rows of dpa_e9s12."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.dpa_e9s12 import DpaE9s12
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
    term,
    where,
)
from mmaformal.kernels.compiled import SOURCES, Sources, driver, inlined
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


@inlined
def half(x: Operand, fraction_bits: int, bias: int, low: bool) -> E9S12:
    """`unpack`: an operand's E9S12 number, or one of its two: the lower half, or the other."""
    long = fraction_bits > FRACTION
    short = x.significand << max(FRACTION - fraction_bits, 0)
    significand = where(long, where(low, x.significand & 0xFFF, x.significand >> 12), short)
    exponent = x.exponent + where(long, bias + where(low, 0, 12), BIAS)
    return E9S12(x.sign, exponent, significand, significand == 0)


@inlined
def product(of: DotAdd, bias: int, detects_zeros: bool, a: Plane, b: Plane, i: int, halves: int) -> Term:
    """The i-th product of E9S12 numbers."""
    k, which, bits = i // (halves * halves), i % (halves * halves), of.a_format.fraction_bits
    x, y = decode(np.int64(a[k]), of.a_format.layout), decode(np.int64(b[k]), of.b_format.layout)
    u = half(x, bits, bias, which // halves == 1)
    v = half(y, bits, bias, which % halves == 1)
    return multiply(u, v, detects_zeros)


@inlined
def step(
    of: DotAdd,
    rho: Conversion,
    F: int,
    above: int,
    bias: int,
    halves: int,
    detects_zeros: bool,
    nan: int,
    a: Plane,
    b: Plane,
    code: Lane,
) -> Lane:
    """One step; the sum of products is below 2^above in units of the largest exponent."""
    c = decode(code, of.c_format.layout)
    special, zero_sign = classify_addend(c), c.sign
    n, e_max = a.size * halves * halves, np.int64(0)
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), of.a_format.layout), decode(np.int64(b[k]), of.b_format.layout)
        special = merge_special(special, classify_product(x, y))
        zero_sign = zero_sign & (x.sign ^ y.sign)
    for i in range(n):
        e_max = maximum(e_max, product(of, bias, detects_zeros, a, b, i, halves).exponent)
    total = limbs.Wide(np.int64(0), np.int64(0))
    for i in range(n):
        total = limbs.add(total, place(product(of, bias, detects_zeros, a, b, i, halves), e_max, F))
    sign, magnitude = limbs.magnitude(total)
    top = where(limbs.is_zero(total), of.c_format.min_exponent, e_max - 2 * BIAS + above)
    dot = limbs.WideTerm(sign, top, magnitude)
    sum_ = limbs.add_term(dot, term(c), of.c_format.fraction_bits, F + above + BELOW).narrowed
    number = encode(round_sum(sum_, zero_sign, rho), rho)
    return select_special(resolve_special(special), number, rho, nan)


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    of, at = formats(given), OWN + CONVERSION
    rho = conversion(given, OWN, of.d_format)
    N, F, above, bias = given[at], given[at + 1], given[at + 2], given[at + 3]
    halves, detects_zeros, nan = given[at + 4], given[at + 5] != 0, given[at + 6]
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], N):
            x, y = a[i, first : first + N], b[i, first : first + N]
            code = step(of, rho, F, above, bias, halves, detects_zeros, nan, x, y, code)
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, DpaE9s12)
    above = p.carries(spec) + 2
    halves = 2 if spec.a_format.fraction_bits > FRACTION else 1
    own = p.N, p.L - 1 - above, above, spec.a_format.bias, halves, int(p.detects_zeros)
    run_rows(SOURCES, numbers(spec, p.rho, *own, quiet_nan(spec.d_format)), *rows)
