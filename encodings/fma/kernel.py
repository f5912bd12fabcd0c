"""Rows of fma of any formats by the executable's stages, where a lane holds the sum."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    add,
    classify_addend,
    classify_product,
    decode,
    encode,
    merge_special,
    multiply,
    resolve_special,
    round_sum,
    select_special,
    sum_sign,
    term,
    where,
    with_zero_exponent,
)
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.fma.executable import default_nan
from mmaformal.formats import Format
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import inlined
from mmaformal.kernels.kernel import OnlyRows, Plane
from mmaformal.spec import DotAdd


@inlined
def operand_of(code: Lane, fmt: Format, flushed: bool) -> Operand:
    """The operand of a code, a subnormal one being zero if it is to be flushed."""
    x = decode(code, fmt.layout)
    subnormal = flushed & (x.significand >> fmt.fraction_bits == 0)
    return Operand(x.sign, x.exponent, where(subnormal, 0, x.significand), x.infinite, x.nan)


@step_of("fma")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own = on.of, on.rho, on.own
    frame, zero, flushed, nan = own[0], own[1], own[2] != 0, own[3]
    x, y = operand_of(np.int64(a[0]), of.a_format, flushed), operand_of(np.int64(b[0]), of.b_format, flushed)
    z = operand_of(code, of.c_format, flushed)
    special = resolve_special(merge_special(classify_product(x, y), classify_addend(z)))
    product, addend = with_zero_exponent(multiply(x, y), zero), with_zero_exponent(term(z), zero)
    bits = of.a_format.fraction_bits + of.b_format.fraction_bits
    total = add(product, bits, addend, of.c_format.fraction_bits, frame)
    rounded = round_sum(total, sum_sign(rho, product.sign, addend.sign), rho)
    return select_special(special, encode(rounded, rho), rho, nan)


class FmaKernel(OnlyRows):
    """The compiled rows of fma, but where results are flushed, or a NaN is the first of the operands'."""

    @classmethod
    def compiles_rows(cls, spec: DotAdd) -> bool:
        p = spec.parameters_as(Fma)
        holds = p.product_bits(spec) + 2 <= 48 and p.frame(spec) + 3 <= 61
        return holds and p.tiny is None and not p.nan.order and p.rho.saturation is None

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Fma)
        own = p.frame(spec), p.zero_exponent(spec), p.flush_inputs, int(default_nan(p))
        chain("fma", spec, rows, p.rho, 1, *own)


KERNEL = FmaKernel
