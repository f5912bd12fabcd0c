"""gfda, the grouped fused dot-add, executable.  Specification: semantics §3; TensorGauge §IV-B (GFDA).

One step takes L products, in groups of G, and c:

1. special values as fda;
2. exact products, not renormalised; a term that is exactly zero takes the exponent e_zero;
3. the products of a group are aligned to its largest exponent, W fractional bits kept, and added exactly;
4. these sums, with the exponents of their groups, and c are aligned to the largest exponent, F fractional bits kept,
   and added exactly;
5. the sum converted with ρ; zero is +0.

Magnitudes are cut toward zero in both, or to odd (sticky).  K > L is a chain: one step's result is the next one's c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from mmaformal.algorithms import DotAdd, Gfda, Rounding
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
    decode,
    encode,
    maximum,
    merge_special,
    multiply,
    normalise_and_round,
    resolve_special,
    select_special,
    term,
    where,
    with_zero_exponent,
)


@dataclass(frozen=True)
class Group:
    """The interfaces between the stages of one group, in order."""

    e_max: Lane  #: align
    aligned: tuple[Lane, ...]
    total: Lane  #: accumulate
    term: Term  #: the same, as a term of the step's sum


@dataclass(frozen=True)
class Step:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    groups: tuple[Group, ...]
    addend: Term
    e_max: Lane  #: align
    aligned: tuple[Lane, ...]
    aligned_c: Lane
    total: Lane  #: accumulate
    rounded: Rounded  #: normalise & round
    result: Lane  #: encode


def group(parameters: Gfda, products: Sequence[Term], fraction_bits: int) -> Group:
    """The sum of a group's products at its largest exponent."""
    place = align_sticky if parameters.cut is Rounding.RO else align
    e_max = reduce(maximum, (p.exponent for p in products))
    aligned = tuple(place(p, e_max, fraction_bits, parameters.W) for p in products)
    total = sum(aligned[1:], aligned[0])
    negative = total < 0
    return Group(e_max, aligned, total, Term(where(negative, 1, 0), e_max, where(negative, -total, total)))


def step(spec: DotAdd, parameters: Gfda, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> Step:
    """One step: codes of L a, L b and one c."""
    F, W, G, rho = parameters.F, parameters.W, parameters.G, parameters.rho
    a_operands = tuple(decode(x, spec.a_format.layout) for x in a)
    b_operands = tuple(decode(x, spec.b_format.layout) for x in b)
    c_operand = decode(c, spec.c_format.layout)
    parts = [classify_product(x, y) for x, y in zip(a_operands, b_operands, strict=True)]
    special = resolve_special(reduce(merge_special, parts, classify_addend(c_operand)))

    exact = [multiply(x, y) for x, y in zip(a_operands, b_operands, strict=True)]
    products = tuple(with_zero_exponent(p, parameters.e_zero) for p in exact)
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    groups = tuple(group(parameters, products[g : g + G], bits) for g in range(0, parameters.L, G))
    addend = with_zero_exponent(term(c_operand), parameters.e_zero)

    place = align_sticky if parameters.cut is Rounding.RO else align
    e_max = reduce(maximum, (g.e_max for g in groups), addend.exponent)
    aligned = tuple(place(g.term, e_max, W, F) for g in groups)
    aligned_c = place(addend, e_max, spec.c_format.fraction_bits, F)
    total = sum(aligned, aligned_c)
    rounded = normalise_and_round(total, e_max - F, rho)
    result = select_special(special, encode(rounded, rho), rho, canonical_nan(rho.format))
    return Step(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        products=products,
        groups=groups,
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
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales."""
    parameters = spec.parameters
    assert isinstance(parameters, Gfda)
    steps = []
    for start in range(0, spec.k, parameters.L):
        part = slice(start, start + parameters.L)
        steps.append(step(spec, parameters, a[part], b[part], c))
        c = steps[-1].result
    return Trace(tuple(steps), c)
