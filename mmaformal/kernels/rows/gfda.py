"""Rows of gfda: groups as fda's products, then their sums as one more step of it."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Special,
    Term,
    align,
    align_sticky,
    canonical_nan,
    classify_addend,
    decode,
    encode,
    maximum,
    merge_special,
    normalise_and_round,
    resolve_special,
    select_special,
    where,
)
from mmaformal.encodings.gfda import Gfda
from mmaformal.kernels.compiled import SOURCES, Sources, driver, vectorised
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.fda import (
    aligned_sum,
    largest,
    multiply_all,
    settle_zeros,
    special_products,
    to_odd,
    zero_exponent,
)
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers
from mmaformal.spec import DotAdd


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    vectorised()
    of = formats(given)
    rho, at = conversion(given, OWN, of.d_format), OWN + CONVERSION
    F, L, e_zero, by_fields, nan = given[at], given[at + 1], given[at + 2], given[at + 3] != 0, given[at + 4]
    odd, G, W = given[at + 5] != 0, given[at + 6], given[at + 7]
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits
    value, exponent = np.empty(L, np.int64), np.empty(L, np.int64)
    sums, tops = np.empty(L // G, np.int64), np.empty(L // G, np.int64)
    for i in range(d.size):
        code = c[i]
        for first in range(0, a.shape[1], L):
            x, y = a[i, first : first + L], b[i, first : first + L]
            special = multiply_all(of.a_format, of.b_format, x, y, value, exponent)
            if not by_fields:
                settle_zeros(value, exponent, e_zero)
            for g in range(L // G):
                own, places = value[g * G : (g + 1) * G], exponent[g * G : (g + 1) * G]
                tops[g] = largest(places)
                sums[g] = aligned_sum(own, places, tops[g], bits, W, odd)
            z = decode(code, of.c_format.layout)
            e_c = z.exponent if by_fields else where(z.significand == 0, e_zero, z.exponent)
            e_max = maximum(largest(tops), e_c)
            total = aligned_sum(sums, tops, e_max, W, F, odd)
            addend = Term(z.sign, e_c, z.significand)
            if odd:
                total += align_sticky(addend, e_max, of.c_format.fraction_bits, F)
            else:
                total += align(addend, e_max, of.c_format.fraction_bits, F)
            number = encode(normalise_and_round(total, e_max - F, rho), rho)
            if special | z.infinite | z.nan:
                found = merge_special(Special(False, False, False), classify_addend(z))
                found = resolve_special(special_products(of.a_format, of.b_format, x, y, found))
                number = select_special(found, number, rho, nan)
            code = number
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Gfda)
    own = p.F, p.L, *zero_exponent(p.e_zero), canonical_nan(p.rho.format), to_odd(p.cut), p.G, p.W
    run_rows(SOURCES, numbers(spec, p.rho, *own), *rows)
