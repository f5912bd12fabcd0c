"""Rows of joined_fda: terms aligned and added as those of fda, and the bit for all that was cut off."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import (
    Lane,
    Special,
    align,
    canonical_nan,
    clamp,
    decode,
    encode,
    maximum,
    normalise_and_round,
    term,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.joined_fda import JoinedFda
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import inlined
from mmaformal.kernels.fused import zero_exponent
from mmaformal.kernels.kernel import OnlyRows, Plane
from mmaformal.kernels.products import aligned_sum, largest, multiply_all, or_special, settle_zeros
from mmaformal.spec import DotAdd


@inlined
def loses(significand: Lane, exponent: Lane, e_max: Lane, places: int, F: int) -> Lane:
    """1 where a term of so many fraction bits, F of which are kept at e_max, has bits that are cut off, else 0."""
    value, n = significand << max(F - places, 0), clamp(e_max - exponent + max(places - F, 0), 0, 62)
    return where((value >> n) << n != value, 1, 0)


@step_of("joined_fda")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own, room = on.of, on.rho, on.own, on.room
    F, e_zero, by_fields, nan = own[0], own[1], own[2] != 0, own[3]
    value, exponent = room[0, : a.size], room[1, : a.size]
    special = multiply_all(of.a_format, of.b_format, a, b, value, exponent)
    if not by_fields:
        settle_zeros(value, exponent, e_zero)
    z = decode(code, of.c_format.layout)
    addend = with_zero_exponent(term(z), e_zero)
    e_max = maximum(largest(exponent), addend.exponent)
    places, of_c = of.a_format.fraction_bits + of.b_format.fraction_bits, of.c_format.fraction_bits
    total = aligned_sum(value, exponent, e_max, places, F, False) + align(addend, e_max, of_c, F)
    lost = loses(addend.significand, addend.exponent, e_max, of_c, F)
    for k in range(a.size):
        lost |= loses(abs(value[k]), exponent[k], e_max, places, F)
    total = where(total < 0, total * 2 - lost, total * 2 + lost)
    number = encode(normalise_and_round(total, e_max - F - 1, rho), rho)
    return or_special(of, rho, nan, special, Special(False, False, False), a, b, z, number)


class JoinedFdaKernel(OnlyRows):
    """The compiled rows of joined_fda."""

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(JoinedFda)
        own = p.F, zero_exponent(p.e_zero, spec.c_format), p.e_zero is None, canonical_nan(p.rho.format)
        chain("joined_fda", spec, rows, p.rho, p.L, *own)


KERNEL = JoinedFdaKernel
