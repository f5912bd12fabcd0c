"""gfda by the executable's stages: groups as fda's products, then their sums as one more step of it."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Lane, Special, decode
from mmaformal.encodings.gfda import Gfda
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.fused import fda_numbers
from mmaformal.kernels.kernel import OnlyRows, Plane
from mmaformal.kernels.products import (
    aligned_sum,
    largest,
    multiply_all,
    or_special,
    settle_zeros,
    sum_with_c,
)
from mmaformal.spec import DotAdd


@step_of("gfda")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own, room = on.of, on.rho, on.own, on.room
    F, e_zero, by_fields, nan, odd, G, W = own[0], own[1], own[2] != 0, own[3], own[4] != 0, own[5], own[6]
    bits, L = of.a_format.fraction_bits + of.b_format.fraction_bits, a.size
    value, exponent, sums, tops = room[0, :L], room[1, :L], room[2, : L // G], room[3, : L // G]
    special = multiply_all(of.a_format, of.b_format, a, b, value, exponent)
    if not by_fields:
        settle_zeros(value, exponent, e_zero)
    for g in range(L // G):
        terms, places = value[g * G : (g + 1) * G], exponent[g * G : (g + 1) * G]
        tops[g] = largest(places)
        sums[g] = aligned_sum(terms, places, tops[g], bits, W, odd)
    c = decode(code, of.c_format.layout)
    number = sum_with_c(of, rho, F, e_zero, odd, sums, tops, W, c)
    return or_special(of, rho, nan, special, Special(False, False, False), a, b, c, number)


class GfdaKernel(OnlyRows):
    """gfda."""

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Gfda)
        chain("gfda", spec, rows, p.rho, p.L, *fda_numbers(spec, p), p.G, p.W)


KERNEL = GfdaKernel
