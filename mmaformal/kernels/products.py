"""Products of one output and their sum with c in integers: what steps of fda and its like are made of."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Special,
    Term,
    align,
    align_sticky,
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
    term,
    where,
    with_zero_exponent,
)
from mmaformal.formats import Format
from mmaformal.kernels.chain import Scales
from mmaformal.kernels.compiled import inlined, part, vectorised
from mmaformal.kernels.given import is_special_code
from mmaformal.kernels.kernel import Plane
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


@inlined
def multiply_all(
    a_format: Format, b_format: Format, a: Plane, b: Plane, value: Plane, exponent: Plane
) -> Flag:
    """Each product's signed significand and its exponent; whether any factor is a special value."""
    special = False
    for k in range(a.size):
        i, j = np.int64(a[k]), np.int64(b[k])
        special |= is_special_code(i, a_format) | is_special_code(j, b_format)
        product = multiply(decode(i, a_format.layout), decode(j, b_format.layout))
        value[k] = signed(product.sign, product.significand)
        exponent[k] = product.exponent
    return special


@part
def multiply_flat(
    a_format: Format, b_format: Format, a: Plane, b: Plane, value: Plane, exponent: Plane, special: Plane
) -> None:
    """`multiply_all` of the products of some rows, one after the other; special[k]: whether a factor is one."""
    vectorised()
    for k in range(a.size):
        i, j = np.int64(a[k]), np.int64(b[k])
        product = multiply(decode(i, a_format.layout), decode(j, b_format.layout))
        value[k] = signed(product.sign, product.significand)
        exponent[k] = product.exponent
        special[k] = where(is_special_code(i, a_format) | is_special_code(j, b_format), 1, 0)


@part
def add_scales(scales: Scales, scale_a: Plane, scale_b: Plane, exponent: Plane) -> Special:
    """Add the exponents of the products' block scales; a NaN among these."""
    found, start = Special(False, False, False), 0
    layout, first, block = scales.format.layout, scales.first, scales.block
    while start < exponent.size:
        each = (first + start) // block
        stop = min((each + 1) * block - first, exponent.size)
        x = decode(np.int64(scale_a[scales.row, each]), layout)
        y = decode(np.int64(scale_b[scales.row, each]), layout)
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


@inlined
def rounded_code(
    rho: Conversion, c_format: Format, F: int, e_zero: int, odd: bool, e_max: Lane, total: Lane, x: Operand
) -> Lane:
    """The code of the products' sum and c."""
    addend, bits = with_zero_exponent(term(x), e_zero), c_format.fraction_bits
    if odd:
        total += align_sticky(addend, e_max, bits, F)
    else:
        total += align(addend, e_max, bits, F)
    return encode(normalise_and_round(total, e_max - F, rho), rho)


@inlined
def sum_with_c(
    of: DotAdd,
    rho: Conversion,
    F: int,
    e_zero: int,
    odd: bool,
    value: Plane,
    exponent: Plane,
    bits: int,
    c: Operand,
) -> Lane:
    """The code of the sum of terms of so many fraction bits and c."""
    e_max = maximum(largest(exponent), with_zero_exponent(term(c), e_zero).exponent)
    total = aligned_sum(value, exponent, e_max, bits, F, odd)
    return rounded_code(rho, of.c_format, F, e_zero, odd, e_max, total, c)


@part
def _special_products(a_format: Format, b_format: Format, a: Plane, b: Plane, found: Special) -> Special:
    """`found`, and the special values that products are."""
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), a_format.layout), decode(np.int64(b[k]), b_format.layout)
        found = merge_special(found, classify_product(x, y))
    return found


@inlined
def or_special(
    of: DotAdd,
    rho: Conversion,
    nan: int,
    special: Flag,
    found: Special,
    a: Plane,
    b: Plane,
    c: Operand,
    number: Lane,
) -> Lane:
    """`number`, or the special value that `found`, c and, if `special`, the products are.

    c is decoded by the caller: decoded here, loops over the products of a row take 1.4 times as long.
    """
    if special | found.nan | c.infinite | c.nan:
        found = merge_special(found, classify_addend(c))
        found = resolve_special(_special_products(of.a_format, of.b_format, a, b, found))
        return select_special(found, number, rho, nan)
    return number
