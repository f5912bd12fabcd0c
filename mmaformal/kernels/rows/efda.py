"""Rows of efda."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda.executable import bits_of_fixed_point, normalise, sorted_sum
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Sum,
    Term,
    classify_addend,
    classify_product,
    decode,
    encode,
    merge_special,
    multiply,
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
def fixed_sum(of: DotAdd, top: int, frame: int, least: int, a: Plane, b: Plane, c: Operand) -> Sum:
    """`efda.fixed_point_sum` of the products and c."""
    lift = frame - top - of.a_format.fraction_bits - of.b_format.fraction_bits
    total = limbs.Wide(np.int64(0), np.int64(0))
    for k in range(a.size):
        x = multiply(decode(np.int64(a[k]), of.a_format.layout), decode(np.int64(b[k]), of.b_format.layout))
        placed = limbs.signed(x.sign, limbs.shift_left(x.significand, x.exponent + lift))
        total = limbs.add(total, placed)
    sign, magnitude = limbs.magnitude(total)
    dot = limbs.WideTerm(sign, where(limbs.is_zero(total), least, top), magnitude)
    return limbs.add_term(dot, term(c), of.c_format.fraction_bits, frame).narrowed


@inlined
def sum_of_three(of: DotAdd, rho: Conversion, lowest: int, a: Plane, b: Plane, c: Operand) -> Sum:
    """`efda.sorted_sum` of one or two products and c."""
    bits, c_bits = of.a_format.fraction_bits + of.b_format.fraction_bits, of.c_format.fraction_bits
    p = max(rho.fraction_bits, c_bits)
    layouts = of.a_format.layout, of.b_format.layout
    first = multiply(decode(np.int64(a[0]), layouts[0]), decode(np.int64(b[0]), layouts[1]))
    last = a.size - 1
    second = multiply(decode(np.int64(a[last]), layouts[0]), decode(np.int64(b[last]), layouts[1]))
    second = Term(second.sign, second.exponent, where(last == 0, 0, second.significand))
    return sorted_sum(
        normalise(first, bits, p, lowest),
        normalise(second, bits, p, lowest),
        normalise(term(c), c_bits, p, lowest),
        p,
        lowest,
    ).total


@inlined
def step(
    of: DotAdd,
    rho: Conversion,
    fixed: bool,
    top: int,
    frame: int,
    lowest: int,
    nan: int,
    a: Plane,
    b: Plane,
    code: Lane,
) -> Lane:
    c = decode(code, of.c_format.layout)
    special = classify_addend(c)
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), of.a_format.layout), decode(np.int64(b[k]), of.b_format.layout)
        special = merge_special(special, classify_product(x, y))
    if fixed:
        total = fixed_sum(of, top, frame, rho.format.min_exponent, a, b, c)
    else:
        total = sum_of_three(of, rho, lowest, a, b, c)
    number = encode(round_sum(total, np.int64(0), rho), rho)
    return select_special(resolve_special(special), number, rho, nan)


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    of, at = formats(given), OWN + CONVERSION
    rho = conversion(given, OWN, of.d_format)
    L, nan, fixed = given[at], given[at + 1], given[at + 2] != 0
    top, frame, lowest = given[at + 3], given[at + 4], given[at + 5]
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], L):
            x, y = a[i, first : first + L], b[i, first : first + L]
            code = step(of, rho, fixed, top, frame, lowest, nan, x, y, code)
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Efda)
    low, top = bits_of_fixed_point(spec, p.L)
    lowest = min(low, spec.c_format.min_exponent - spec.c_format.fraction_bits)
    frame = top - low + max(p.rho.fraction_bits, spec.c_format.fraction_bits) + 3
    fixed = frame + 2 <= 2 * limbs.BITS
    run_rows(SOURCES, numbers(spec, p.rho, p.L, quiet_nan(spec.d_format), fixed, top, frame, lowest), *rows)
