"""Rows of fda."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Special,
    Term,
    align,
    align_sticky,
    canonical_nan,
    classify_addend,
    classify_product,
    classify_scale,
    decode,
    encode,
    maximum,
    merge_special,
    multiply,
    normalise_and_round,
    resolve_special,
    select_special,
    signed,
    where,
)
from mmaformal.encodings.fda import Fda
from mmaformal.formats import Format
from mmaformal.kernels.compiled import SOURCES, Sources, driver, inlined, part, vectorised
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import (
    CONVERSION,
    OWN,
    conversion,
    formats,
    numbers,
    scale_block,
    scale_format,
)
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd


@inlined
def multiply_all(
    a_format: Format, b_format: Format, a: Plane, b: Plane, value: Plane, exponent: Plane
) -> Flag:
    """Each product's signed significand and its exponent; whether any factor is a special value."""
    special = False
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), a_format.layout), decode(np.int64(b[k]), b_format.layout)
        special |= x.infinite | x.nan | y.infinite | y.nan
        product = multiply(x, y)
        value[k] = signed(product.sign, product.significand)
        exponent[k] = product.exponent
    return special


@part
def add_scales(
    fmt: Format, scale_a: Plane, scale_b: Plane, first: int, block: int, exponent: Plane
) -> Special:
    """Adds the exponents of the products' block scales; a NaN among these."""
    found, start = Special(False, False, False), 0
    while start < exponent.size:
        each = (first + start) // block
        stop = min((each + 1) * block - first, exponent.size)
        x, y = decode(np.int64(scale_a[each]), fmt.layout), decode(np.int64(scale_b[each]), fmt.layout)
        found = merge_special(found, merge_special(classify_scale(x), classify_scale(y)))
        for k in range(start, stop):
            exponent[k] += x.exponent + y.exponent
        start = stop
    return found


@inlined
def settle_zeros(value: Plane, exponent: Plane, e_zero: int) -> None:
    """Zero products take the exponent e_zero."""
    for k in range(value.size):
        exponent[k] = where(value[k] == 0, e_zero, exponent[k])


@inlined
def largest(exponent: Plane) -> Lane:
    top = exponent[0]
    for k in range(exponent.size):
        top = maximum(top, exponent[k])
    return top


@inlined
def aligned_sum(value: Plane, exponent: Plane, e_max: Lane, fraction_bits: int, F: int, odd: bool) -> Lane:
    """The products aligned to e_max, cut toward zero or to odd, and added."""
    total = np.int64(0)
    if odd:
        for k in range(value.size):
            v = value[k]
            x = Term(where(v < 0, 1, 0), exponent[k], where(v < 0, -v, v))
            total += align_sticky(x, e_max, fraction_bits, F)
        return total
    for k in range(value.size):
        v = value[k]
        total += align(Term(where(v < 0, 1, 0), exponent[k], where(v < 0, -v, v)), e_max, fraction_bits, F)
    return total


@part
def special_products(a_format: Format, b_format: Format, a: Plane, b: Plane, found: Special) -> Special:
    """`found`, and the special values that products are."""
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), a_format.layout), decode(np.int64(b[k]), b_format.layout)
        found = merge_special(found, classify_product(x, y))
    return found


@inlined
def step(
    of: DotAdd,
    rho: Conversion,
    F: int,
    odd: bool,
    e_zero: int,
    by_fields: bool,
    nan: int,
    a: Plane,
    b: Plane,
    c: Lane,
    scales: Special,
    special: Flag,
    value: Plane,
    exponent: Plane,
) -> Lane:
    """One step, after its products: their exponents have those of the scales."""
    if not by_fields:
        settle_zeros(value, exponent, e_zero)
    addend = decode(c, of.c_format.layout)
    own = addend.exponent if by_fields else where(addend.significand == 0, e_zero, addend.exponent)
    e_max = maximum(largest(exponent), own)
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits
    total = aligned_sum(value, exponent, e_max, bits, F, odd)
    x = Term(addend.sign, own, addend.significand)
    if odd:
        total += align_sticky(x, e_max, of.c_format.fraction_bits, F)
    else:
        total += align(x, e_max, of.c_format.fraction_bits, F)
    code = encode(normalise_and_round(total, e_max - F, rho), rho)
    if special | scales.nan | addend.infinite | addend.nan:
        found = merge_special(scales, classify_addend(addend))
        found = resolve_special(special_products(of.a_format, of.b_format, a, b, found))
        return select_special(found, code, rho, nan)
    return code


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    vectorised()
    of, fmt, block = formats(given), scale_format(given), scale_block(given)
    rho, at = conversion(given, OWN, of.d_format), OWN + CONVERSION
    F, L, e_zero, by_fields, nan = given[at], given[at + 1], given[at + 2], given[at + 3] != 0, given[at + 4]
    odd = given[at + 5] != 0
    value, exponent = np.empty(L, np.int64), np.empty(L, np.int64)
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], L):
            x, y = a[i, first : first + L], b[i, first : first + L]
            special = multiply_all(of.a_format, of.b_format, x, y, value, exponent)
            scales = Special(False, False, False)
            if block > 0:
                scales = add_scales(fmt, scale_a[i], scale_b[i], first, block, exponent)
            code = step(of, rho, F, odd, e_zero, by_fields, nan, x, y, code, scales, special, value, exponent)
        d[i] = code


def to_odd(cut: Rounding) -> int:
    """Whether aligned magnitudes are cut to odd, as a number."""
    return int(cut is Rounding.RO)


def zero_exponent(e_zero: int | None) -> tuple[int, int]:
    """As two numbers: the exponent, and whether it is that of the fields."""
    return (0, 1) if e_zero is None else (e_zero, 0)


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Fda)
    own = p.F, p.L, *zero_exponent(p.e_zero), canonical_nan(p.rho.format), to_odd(p.cut)
    given = numbers(spec, p.rho, *own)
    run_rows(SOURCES, given, *rows)
