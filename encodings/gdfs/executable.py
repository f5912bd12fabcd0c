"""gdfs, group dot, fused sum, executable.  Specification: semantics §3; MMA-Sim §IV-E (GDFS).

Inputs are e2m1 with block scales.  One step takes L products, in groups of G, and c:

1. special values: NaN if a scale or c is NaN; else c if c is ±∞;
2. the G products of a group are summed exactly: σ_g;
3. term g is `σ_g·s_α·s_β · 2^(e_α+e_β)`, with the scales' significands and exponents as in their fields; if all its
   products are zero, or a scale is, it takes the exponent e_zero, but not if its products only cancel;
   c = ±0 takes e_zero too;
4. the terms and c are aligned to the largest exponent, F fractional bits kept, toward zero; summed exactly;
5. the sum converted with ρ; zero is +0.

K > L is a chain: one step's result is the next one's c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from mmaformal.encodings.executable.blocks import (
    Flag,
    Lane,
    Operand,
    Rounded,
    Special,
    Term,
    Trace,
    decode,
    is_zero,
    multiply,
    signed,
    where,
)
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.stages import ScaledSum, Stages
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class GdfsStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    scale_a: tuple[Operand, ...]  #: one per group
    scale_b: tuple[Operand, ...]
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    group_sums: tuple[Lane, ...]  #: σ_g, signed, in units of 2^-(fraction bits of a product)
    groups: tuple[Term, ...]  #: the scaled sums
    addend: Term
    e_max: Lane  #: align
    aligned: tuple[Lane, ...]
    aligned_c: Lane
    total: Lane  #: accumulate
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def scaled_group(
    products: Sequence[Term], total: Lane, scale_a: Operand, scale_b: Operand, e_zero: int | None
) -> Term:
    """Term g: the sum of a group's products, scaled."""
    negative = total < 0
    significand = where(negative, -total, total) * scale_a.significand * scale_b.significand
    exponent = scale_a.exponent + scale_b.exponent
    if e_zero is not None:
        empty: Flag = reduce(lambda x, y: x & y, (p.significand == 0 for p in products))
        exponent = where(empty | is_zero(scale_a) | is_zero(scale_b), e_zero, exponent)
    return Term(where(negative, 1, 0), exponent, significand)


def scaled_sum(
    a: Sequence[Operand], b: Sequence[Operand], scales: tuple[Operand, Operand], e_zero: int | None
) -> ScaledSum:
    """A group's products, summed in fixed point and scaled."""
    products = tuple(multiply(x, y) for x, y in zip(a, b, strict=True))
    # e2m1 has no exponent below 0, so every product is an integer in units of its last place at exponent 0.
    total = sum(signed(p.sign, p.significand << p.exponent) for p in products)
    return ScaledSum(products, total, scaled_group(products, total, *scales, e_zero))


def step(
    spec: DotAdd,
    parameters: Gdfs,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Operand],
    scale_b: Sequence[Operand],
    stages: Stages,
) -> GdfsStep:
    """One step: codes of L a, L b and one c; of the scales, decoded, one per group."""
    G = parameters.G
    a_operands = tuple(decode(x, spec.a_format.layout) for x in a)
    b_operands = tuple(decode(x, spec.b_format.layout) for x in b)
    c_operand = stages.decode(c, spec.c_format)
    special = stages.classify([], [c_operand], [*scale_a, *scale_b])

    sums = []
    for g, pair in enumerate(zip(scale_a, scale_b, strict=True)):
        k = slice(g * G, (g + 1) * G)
        made = scaled_sum(a_operands[k], b_operands[k], pair, parameters.e_zero)
        sums.append(stages.scaled_sum([*a[k], *b[k]], pair, made))
    groups = tuple(x.term for x in sums)
    addend = stages.addend(c_operand, parameters.e_zero)

    assert spec.scale_format is not None
    group_fraction_bits = (
        spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2 * spec.scale_format.fraction_bits
    )
    terms = [(addend, spec.c_format.fraction_bits), *((g, group_fraction_bits) for g in groups)]
    end = stages.fused_sum(terms, parameters.F, parameters.rho, special)
    return GdfsStep(
        a_operands,
        b_operands,
        c=c_operand,
        scale_a=tuple(scale_a),
        scale_b=tuple(scale_b),
        special=special,
        products=tuple(x for each in sums for x in each.products),
        group_sums=tuple(x.total for x in sums),
        groups=groups,
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
) -> Trace[GdfsStep]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c, and `spec.scales` scales of each side."""
    parameters = spec.parameters_as(Gdfs)
    assert spec.scale_format is not None
    stages = Stages()
    each_a = [stages.decode(x, spec.scale_format) for x in scale_a]
    each_b = [stages.decode(x, spec.scale_format) for x in scale_b]

    def group_step(k: slice, c: Lane) -> GdfsStep:
        blocks = [first // spec.scale_block for first in range(k.start, k.stop, parameters.G)]
        scales = [each_a[i] for i in blocks], [each_b[i] for i in blocks]
        return step(spec, parameters, a[k], b[k], c, *scales, stages)

    return chain(spec, group_step, c, stages)
