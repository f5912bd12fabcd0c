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
from functools import reduce

from mmaformal.algorithms import DotAdd, Fda, Rounding
from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Term,
    Trace,
    align,
    align_sticky,
    canonical_nan,
    classify_addend,
    classify_product,
    classify_scale,
    decode,
    encode,
    maximum,
    merge_special,
    multiply,
    normalise_and_round,
    resolve_special,
    select_special,
    term,
    with_scales,
    with_zero_exponent,
)


@dataclass(frozen=True)
class Step:
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
) -> Step:
    """One step: codes of L a, L b and one c; of the scales, decoded, one per product or none."""
    F, rho = parameters.F, parameters.rho
    a_operands = tuple(decode(x, spec.a_format.layout) for x in a)
    b_operands = tuple(decode(x, spec.b_format.layout) for x in b)
    c_operand = decode(c, spec.c_format.layout)

    parts = [classify_product(x, y) for x, y in zip(a_operands, b_operands, strict=True)]
    parts += [classify_scale(x) for x in (*scale_a, *scale_b)]
    special = resolve_special(reduce(merge_special, parts, classify_addend(c_operand)))

    products = [multiply(x, y) for x, y in zip(a_operands, b_operands, strict=True)]
    if scale_a:
        products = [with_scales(*each) for each in zip(products, scale_a, scale_b, strict=True)]
    products = [with_zero_exponent(p, parameters.e_zero) for p in products]
    addend = with_zero_exponent(term(c_operand), parameters.e_zero)

    e_max = reduce(maximum, (p.exponent for p in products), addend.exponent)
    product_fraction_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    place = align_sticky if parameters.cut is Rounding.RO else align
    aligned = tuple(place(p, e_max, product_fraction_bits, F) for p in products)
    aligned_c = place(addend, e_max, spec.c_format.fraction_bits, F)

    total = sum(aligned, aligned_c)
    rounded = normalise_and_round(total, e_max - F, rho)
    result = select_special(special, encode(rounded, rho), rho, canonical_nan(rho.format))
    return Step(
        a_operands,
        b_operands,
        c=c_operand,
        scale_a=tuple(scale_a),
        scale_b=tuple(scale_b),
        special=special,
        products=tuple(products),
        addend=addend,
        e_max=e_max,
        aligned=aligned,
        aligned_c=aligned_c,
        total=total,
        rounded=rounded,
        result=result,
    )


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[Step]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c, and `spec.scales` scales of each side."""
    parameters = spec.parameters
    assert isinstance(parameters, Fda)
    scales_a: list[Operand] = []
    scales_b: list[Operand] = []
    if spec.scale_format is not None:
        each_a = [decode(x, spec.scale_format.layout) for x in scale_a]
        each_b = [decode(x, spec.scale_format.layout) for x in scale_b]
        scales_a = [each_a[k // spec.scale_block] for k in range(spec.k)]
        scales_b = [each_b[k // spec.scale_block] for k in range(spec.k)]
    steps = []
    for start in range(0, spec.k, parameters.L):
        part = slice(start, start + parameters.L)
        steps.append(step(spec, parameters, a[part], b[part], c, scales_a[part], scales_b[part]))
        c = steps[-1].result
    return Trace(tuple(steps), c)
