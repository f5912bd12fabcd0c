"""Rows of sfma; in fp64 on two limbs."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Lane,
    classify_addend,
    classify_product,
    decode,
    encode,
    is_zero,
    merge_special,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    sign_word,
    term,
    where,
)
from mmaformal.encodings.sfma import Sfma
from mmaformal.kernels.compiled import SOURCES, Sources, driver, inlined
from mmaformal.kernels.kernel import Plane
from mmaformal.kernels.rows.batch import Batch
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers
from mmaformal.kernels.staged import fused
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd


@driver
def run_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    rho, first = conversion(given, OWN, formats(given).d_format), given[OWN + CONVERSION] != 0
    for i in range(d.size):
        code = c[i]
        for k in range(a.shape[1]):
            code = fused(rho, first, np.int64(a[i, k]), np.int64(b[i, k]), code)
        d[i] = code


@inlined
def fused_wide(rho: Conversion, first: bool, a: Lane, b: Lane, c: Lane) -> Lane:
    """`staged.fused` where a lane does not hold the sum."""
    fmt = rho.format
    bits = fmt.fraction_bits
    frame = 2 * bits + 3
    x, y, z = decode(a, fmt.layout), decode(b, fmt.layout), decode(c, fmt.layout)
    special = resolve_special(merge_special(classify_product(x, y), classify_addend(z)))
    significand = limbs.multiply(x.significand, y.significand, frame - 2 * bits).product
    exponent = where(is_zero(x) | is_zero(y), fmt.min_exponent, x.exponent + y.exponent)
    product = limbs.WideTerm(x.sign ^ y.sign, exponent, significand)
    total = limbs.add_term(product, term(z), bits, frame).narrowed
    number = encode(round_sum(total, product.sign & z.sign, rho), rho)
    quiet = np.int64(1) << (bits - 1)
    invalid = np.int64(quiet_nan(fmt)) + where(first, sign_word(fmt), np.int64(0))
    nan = where(x.nan, a | quiet, where(y.nan, b | quiet, where(z.nan, c | quiet, invalid)))
    return select_special(special, number, rho, where(first, nan, invalid))


@driver
def run_wide_rows(
    sources: Sources, given: Plane, a: Plane, b: Plane, c: Plane, scale_a: Plane, scale_b: Plane, d: Plane
) -> None:
    rho, first = conversion(given, OWN, formats(given).d_format), given[OWN + CONVERSION] != 0
    for i in range(d.size):
        code = c[i]
        for k in range(a.shape[1]):
            code = fused_wide(rho, first, np.int64(a[i, k]), np.int64(b[i, k]), code)
        d[i] = code


def run(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters
    assert isinstance(p, Sfma)
    given = numbers(spec, p.rho, p.nan is NanRule.FIRST)
    # Two terms below 2^(frame + 2) add up to a `Sum`, as in the executable.
    holds = 2 * p.rho.format.fraction_bits + 3 + 3 <= 61
    (run_rows if holds else run_wide_rows)(SOURCES, given, *rows)
