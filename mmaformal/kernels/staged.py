"""Rows of sfma: fused multiply-adds by the executable's stages; in fp64 on two limbs."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Sum,
    add,
    classify_addend,
    classify_product,
    decode,
    encode,
    is_zero,
    merge_special,
    multiply,
    quiet_nan,
    resolve_special,
    round_sum,
    select_special,
    sign_word,
    sum_sign,
    term,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.sfma import Sfma
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import inlined
from mmaformal.kernels.kernel import Plane
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd

#: in which a NaN of the operands is looked for, and none
ORDERS = ((), NanRule.FIRST.order, NanRule.FIRST_ACB.order)


@inlined
def sum_in_a_lane(rho: Conversion, x: Operand, y: Operand, z: Operand) -> Sum:
    """x·y + z."""
    bits = rho.format.fraction_bits
    product = with_zero_exponent(multiply(x, y), rho.format.min_exponent)
    return add(product, 2 * bits, term(z), bits, 2 * bits + 3)


@inlined
def sum_in_limbs(rho: Conversion, x: Operand, y: Operand, z: Operand) -> Sum:
    """x·y + z, where a lane does not hold it."""
    bits = rho.format.fraction_bits
    frame = 2 * bits + 3
    significand = limbs.multiply(x.significand, y.significand, frame - 2 * bits).product
    exponent = where(is_zero(x) | is_zero(y), rho.format.min_exponent, x.exponent + y.exponent)
    product = limbs.WideTerm(x.sign ^ y.sign, exponent, significand)
    return limbs.add_term(product, term(z), bits, frame).narrowed


@inlined
def _rounded(
    rho: Conversion, order: int, a: Lane, b: Lane, c: Lane, x: Operand, y: Operand, z: Operand, total: Sum
) -> Lane:
    """The code of a sum of the operands of three codes; a NaN is the first of them, made quiet, in an order of
    `ORDERS`."""
    fmt = rho.format
    special = resolve_special(merge_special(classify_product(x, y), classify_addend(z)))
    number = encode(round_sum(total, sum_sign(rho, x.sign ^ y.sign, z.sign), rho), rho)
    quiet = np.int64(1) << (fmt.fraction_bits - 1)
    invalid = np.int64(quiet_nan(fmt)) + where(order == 1, np.int64(sign_word(fmt)), np.int64(0))
    last = where(y.nan, b | quiet, invalid)
    of_c = where(z.nan, c | quiet, last if order == 2 else invalid)
    rest = of_c if order == 2 else where(y.nan, b | quiet, of_c)
    nan = where(x.nan, a | quiet, rest)
    return select_special(special, number, rho, where(order > 0, nan, invalid))


@step_of("sfma")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    rho, own = on.rho, on.own
    p, q, layout = np.int64(a[0]), np.int64(b[0]), rho.format.layout
    x, y, z = decode(p, layout), decode(q, layout), decode(code, layout)
    return _rounded(rho, own[0], p, q, code, x, y, z, sum_in_a_lane(rho, x, y, z))


@step_of("sfma in limbs")
def step_in_limbs(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    rho, own = on.rho, on.own
    p, q, layout = np.int64(a[0]), np.int64(b[0]), rho.format.layout
    x, y, z = decode(p, layout), decode(q, layout), decode(code, layout)
    return _rounded(rho, own[0], p, q, code, x, y, z, sum_in_limbs(rho, x, y, z))


def run_rows(spec: DotAdd, rows: Batch) -> None:
    p = spec.parameters_as(Sfma)
    # Two terms below 2^(frame + 2) add up to a `Sum`, as in the executable.
    holds = 2 * p.rho.format.fraction_bits + 3 + 3 <= 61
    chain("sfma" if holds else "sfma in limbs", spec, rows, p.rho, 1, ORDERS.index(p.nan.order))
