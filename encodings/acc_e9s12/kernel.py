"""acc_e9s12, dpa_e9s12 with a looped accumulator, by the executable's stages."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.acc_e9s12.executable import shift_down
from mmaformal.encodings.dpa_e9s12.executable import BELOW, BIAS, E9S12, FRACTION, multiply, place
from mmaformal.encodings.dpa_e9s12.kernel import half, product
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
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import inlined
from mmaformal.kernels.kernel import OnlyRows, Plane
from mmaformal.spec import DotAdd

_C_BITS, _C_BIAS = fp32.fraction_bits, fp32.bias


@inlined
def c_times_one(c: Operand, low: bool) -> Term:
    """One of the two products that c is."""
    one = E9S12(np.int64(0), np.int64(BIAS), np.int64(1 << FRACTION), False)
    return multiply(half(c, _C_BITS, _C_BIAS, low), one, True)


@step_of("acc_e9s12")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    """All passes."""
    of, rho, own = on.of, on.rho, on.own
    N, F, bias, halves, nan = own[0], own[1], own[2], own[3], own[4]
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


class AccE9s12Kernel(OnlyRows):
    """acc_e9s12."""

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(AccE9s12)
        halves = 2 if spec.a_format.fraction_bits > FRACTION else 1
        own = (
            p.N,
            p.accumulator_bits - 3 - p.carries(spec),
            spec.a_format.bias,
            halves,
            quiet_nan(spec.d_format),
        )
        chain("acc_e9s12", spec, rows, p.rho, p.D, *own)


KERNEL = AccE9s12Kernel
