"""fda, the fused dot-add, as bit-vector terms.  Specification: semantics §3; MMA-Sim §IV-C and §IV-D.

Widths of one step of L products with p fractional bits (two integer bits) and a c (one integer bit):

- exponents: the range that contains every product's (with its scales'), every c's, and e_zero;
- aligned magnitudes: 2 + F bits for a product, 1 + F bits for c;
- the sum: |Σ| ≤ L·(2^(F+2) - 1) + 2^(F+1) - 1, and one bit for the sign;
- rounding: e_max is at least c's exponent, so at least c's least one or e_zero (`lowest_e_max`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.encodings.fda import Fda
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    Trace,
    exponent_range,
    product_range,
)
from mmaformal.encodings.smt.chain import chained
from mmaformal.encodings.smt.stages import Stages
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class FdaStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    scale_a: tuple[Operand, ...]  #: one for each product, or none
    scale_b: tuple[Operand, ...]
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    addend: Term
    e_max: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the terms'
    aligned_c: BitVec
    total: BitVec  #: accumulate, two's complement
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def exponents_of(spec: DotAdd, parameters: Fda) -> ExponentRange:
    products, c = product_range(spec.a_format, spec.b_format), exponent_range(spec.c_format)
    if spec.scale_format is not None:
        scale = exponent_range(spec.scale_format)
        products = ExponentRange(products.low + 2 * scale.low, products.high + 2 * scale.high)
    both = products.union(c.low, c.high)
    return both if parameters.e_zero is None else both.union(parameters.e_zero)


def lowest_e_max(spec: DotAdd, e_zero: int | None) -> int:
    """A lower bound of the largest exponent: that of c, which is e_zero or at least its format's least."""
    low = exponent_range(spec.c_format).low
    return low if e_zero is None else min(low, e_zero)


def sum_bits(parameters: Fda) -> int:
    """Bits of the accumulator, sign included: provably enough for any partial sum."""
    F, L = parameters.F, parameters.L
    return (L * ((1 << (F + 2)) - 1) + (1 << (F + 1)) - 1).bit_length() + 1


def step(
    spec: DotAdd,
    parameters: Fda,
    a: Sequence[BitVec],
    b: Sequence[BitVec],
    c: BitVec,
    scale_a: Sequence[Operand] = (),
    scale_b: Sequence[Operand] = (),
    stages: Stages | None = None,
) -> FdaStep:
    """One step over L products; `scale_a` and `scale_b` are one operand for each product, or empty."""
    stages = Stages() if stages is None else stages
    exponents = exponents_of(spec, parameters)
    a_operands = tuple(stages.decode(x, spec.a_format) for x in a)
    b_operands = tuple(stages.decode(x, spec.b_format) for x in b)
    c_operand = stages.decode(c, spec.c_format)
    bias = spec.a_format.bias + spec.b_format.bias
    scales: list[tuple[Operand, ...]] = [()] * len(a_operands)
    if spec.scale_format is not None:
        scales = list(zip(scale_a, scale_b, strict=True))
        bias += 2 * spec.scale_format.bias
    factors = list(zip(a_operands, b_operands, strict=True))
    special = stages.classify(factors, [c_operand], [*scale_a, *scale_b])

    products = tuple(
        stages.multiply(x, y, bias, exponents, parameters.e_zero, pair)
        for (x, y), pair in zip(factors, scales, strict=True)
    )
    addend = stages.addend(c_operand, spec.c_format.bias, exponents, parameters.e_zero)
    fraction_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    terms = [*((x, fraction_bits) for x in products), (addend, spec.c_format.fraction_bits)]
    bits, lowest = sum_bits(parameters), lowest_e_max(spec, parameters.e_zero)
    end = stages.fused_sum(
        terms, exponents, parameters.F, bits, parameters.rho, lowest, special, parameters.cut
    )
    return FdaStep(
        a_operands,
        b_operands,
        c=c_operand,
        scale_a=tuple(scale_a),
        scale_b=tuple(scale_b),
        special=special,
        products=products,
        addend=addend,
        **end._asdict(),
    )


def dot_add(
    spec: DotAdd,
    a: Sequence[BitVec],
    b: Sequence[BitVec],
    c: BitVec,
    scale_a: Sequence[BitVec] = (),
    scale_b: Sequence[BitVec] = (),
    stages: Stages | None = None,
) -> Trace[FdaStep]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K terms each, of their formats' storage bits, c one; with
    block scales, K / scale_block of each side."""
    parameters = spec.parameters_as(Fda)
    stages = Stages() if stages is None else stages
    scales = [scales_per_product(spec, side, stages) for side in (scale_a, scale_b)]
    return chained(
        spec,
        lambda k, c: step(spec, parameters, a[k], b[k], c, scales[0][k], scales[1][k], stages),
        c,
        stages,
    )


def scales_per_product(spec: DotAdd, scales: Sequence[BitVec], stages: Stages) -> list[Operand]:
    """The block scale of each of the K products; empty without block scales."""
    if spec.scale_format is None:
        return []
    decoded = [stages.decode(x, spec.scale_format) for x in scales]
    return [decoded[k // spec.scale_block] for k in range(spec.k)]
