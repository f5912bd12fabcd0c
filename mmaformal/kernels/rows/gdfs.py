"""Rows of gdfs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Term,
    align,
    canonical_nan,
    classify_addend,
    classify_scale,
    decode,
    encode,
    is_zero,
    maximum,
    merge_special,
    multiply,
    normalise_and_round,
    resolve_special,
    select_special,
    signed,
    where,
)
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.formats import Format
from mmaformal.kernels.compiled import SOURCES, Sources, driver, inlined, vectorised
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.fda import aligned_sum, largest, zero_exponent
from mmaformal.kernels.rows.given import (
    CONVERSION,
    OWN,
    conversion,
    formats,
    numbers,
    scale_block,
    scale_format,
)
from mmaformal.spec import DotAdd


class GroupSum(NamedTuple):
    """The exact sum of a group's products, and whether all of them are zero."""

    total: Lane
    empty: Flag


@inlined
def sum_group(a_format: Format, b_format: Format, a: Plane, b: Plane) -> GroupSum:
    total, some = np.int64(0), False
    for k in range(a.size):
        x, y = decode(np.int64(a[k]), a_format.layout), decode(np.int64(b[k]), b_format.layout)
        product = multiply(x, y)
        total += signed(product.sign, product.significand << product.exponent)
        some |= product.significand != 0
    return GroupSum(total, some ^ True)


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    vectorised()
    of, fmt, block = formats(given), scale_format(given), scale_block(given)
    rho, at = conversion(given, OWN, of.d_format), OWN + CONVERSION
    F, G, L = given[at], given[at + 1], given[at + 2]
    e_zero, by_fields, nan = given[at + 3], given[at + 4] != 0, given[at + 5]
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits + 2 * fmt.fraction_bits
    value, exponent = np.empty(L // G, np.int64), np.empty(L // G, np.int64)
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], L):
            z = decode(code, of.c_format.layout)
            special = classify_addend(z)
            for g in range(L // G):
                k = first + g * G
                s = decode(np.int64(scale_a[i, k // block]), fmt.layout)
                t = decode(np.int64(scale_b[i, k // block]), fmt.layout)
                special = merge_special(special, merge_special(classify_scale(s), classify_scale(t)))
                group = sum_group(of.a_format, of.b_format, a[i, k : k + G], b[i, k : k + G])
                value[g] = group.total * s.significand * t.significand
                empty = (group.empty | is_zero(s) | is_zero(t)) & (by_fields ^ True)
                exponent[g] = where(empty, e_zero, s.exponent + t.exponent)
            e = z.exponent if by_fields else where(z.significand == 0, e_zero, z.exponent)
            e_max = maximum(largest(exponent), e)
            total = aligned_sum(value, exponent, e_max, bits, F, False)
            total += align(Term(z.sign, e, z.significand), e_max, of.c_format.fraction_bits, F)
            number = encode(normalise_and_round(total, e_max - F, rho), rho)
            code = select_special(resolve_special(special), number, rho, nan)
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Gdfs)
    own = p.F, p.G, p.L, *zero_exponent(p.e_zero), canonical_nan(p.rho.format)
    run_rows(SOURCES, numbers(spec, p.rho, *own), *rows)
