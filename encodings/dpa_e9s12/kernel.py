"""dpa_e9s12 by the executable's stages."""

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
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import inlined
from mmaformal.kernels.kernel import OnlyRows, Plane
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


@step_of("dpa_e9s12")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    """One step; the sum of products is below 2^above in units of the largest exponent."""
    of, rho, own = on.of, on.rho, on.own
    F, above, bias, halves, detects_zeros, nan = own[0], own[1], own[2], own[3], own[4] != 0, own[5]
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


class DpaE9s12Kernel(OnlyRows):
    """dpa_e9s12."""

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(DpaE9s12)
        above = p.carries(spec) + 2
        halves = 2 if spec.a_format.fraction_bits > FRACTION else 1
        own = (
            p.accumulator_bits - 1 - above,
            above,
            spec.a_format.bias,
            halves,
            p.detects_zeros,
            quiet_nan(spec.d_format),
        )
        chain("dpa_e9s12", spec, rows, p.rho, p.N, *own)


KERNEL = DpaE9s12Kernel
