"""fda, the fused dot-add, executable.  Specification: semantics §3; MMA-Sim §IV-C (FDA) and §IV-D (chains).

One step takes L products and c:

1. special values: NaN if any input or block scale is NaN, for 0·∞, or if products and c hold infinities of
   both signs; else an infinity if there is one;
2. exact products, not renormalised; the exponents of a product's block scales are added to its own; a term
   that is exactly zero takes the exponent e_zero;
3. all terms aligned to the largest exponent, F fractional bits kept, toward zero, or to odd (sticky); summed exactly;
4. the sum converted with ρ; zero is +0.

K > L is a chain: one step's result is the next one's c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Term,
    Trace,
)
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.fda import Fda
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class FdaStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    scale_a: tuple[Operand, ...]  #: one per product; empty without block scales
    scale_b: tuple[Operand, ...]
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    addend: Term
    e_max: Lane  #: align
    aligned: tuple[Lane, ...]
    aligned_c: Lane
    total: Lane  #: accumulate
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def step(
    spec: DotAdd,
    parameters: Fda,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Operand] = (),
    scale_b: Sequence[Operand] = (),
    stages: Stages | None = None,
) -> FdaStep:
    """One step: codes of L a, L b and one c; of the scales, decoded, one per product or none."""
    stages = Stages() if stages is None else stages
    a_operands = tuple(stages.decode(x, spec.a_format) for x in a)
    b_operands = tuple(stages.decode(x, spec.b_format) for x in b)
    c_operand = stages.decode(c, spec.c_format)
    factors = list(zip(a_operands, b_operands, strict=True))
    special = stages.classify(factors, [c_operand], [*scale_a, *scale_b])

    scales: list[tuple[Operand, ...]] = list(zip(scale_a, scale_b, strict=True)) or [()] * len(factors)
    products = tuple(
        stages.multiply(x, y, parameters.e_zero, pair) for (x, y), pair in zip(factors, scales, strict=True)
    )
    addend = stages.addend(c_operand, parameters.e_zero)
    fraction_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    terms = [(addend, spec.c_format.fraction_bits), *((x, fraction_bits) for x in products)]
    end = stages.fused_sum(terms, parameters.F, parameters.rho, special, parameters.cut)
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
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
    stages: Stages | None = None,
) -> Trace[FdaStep]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c, and `spec.scales` scales of each side."""
    parameters = spec.parameters_as(Fda)
    stages = Stages() if stages is None else stages
    scales: list[list[Operand]] = [[], []]
    if spec.scale_format is not None:
        decoded = [[stages.decode(x, spec.scale_format) for x in side] for side in (scale_a, scale_b)]
        scales = [[side[k // spec.scale_block] for k in range(spec.k)] for side in decoded]
    return chain(
        spec,
        lambda k, c: step(spec, parameters, a[k], b[k], c, scales[0][k], scales[1][k], stages),
        c,
        stages,
    )
