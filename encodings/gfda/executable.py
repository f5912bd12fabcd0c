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

from mmaformal.encodings.executable.blocks import (
    Lane,
    Operand,
    Rounded,
    Special,
    Term,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.gfda import Gfda
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Group:
    """The interfaces between the stages of one group, in order."""

    e_max: Lane  #: align
    aligned: tuple[Lane, ...]
    total: Lane  #: accumulate
    term: Term  #: the same, as a term of the step's sum


@dataclass(frozen=True)
class GfdaStep:
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


def group(parameters: Gfda, products: Sequence[Term], fraction_bits: int, stages: Stages) -> Group:
    """The sum of a group's products at its largest exponent."""
    e_max = stages.largest(products)
    total = stages.accumulate([(x, fraction_bits) for x in products], e_max, parameters.W, parameters.cut)
    return Group(e_max, total.terms, total.total, stages.as_term(total, e_max))


def step(
    spec: DotAdd, parameters: Gfda, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> GfdaStep:
    """One step: codes of L a, L b and one c."""
    W, G = parameters.W, parameters.G
    a_operands = tuple(stages.decode(x, spec.a_format) for x in a)
    b_operands = tuple(stages.decode(x, spec.b_format) for x in b)
    c_operand = stages.decode(c, spec.c_format)
    factors = list(zip(a_operands, b_operands, strict=True))
    special = stages.classify(factors, [c_operand])

    products = tuple(stages.multiply(x, y, parameters.e_zero) for x, y in factors)
    addend = stages.addend(c_operand, parameters.e_zero)
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    groups = tuple(group(parameters, products[g : g + G], bits, stages) for g in range(0, parameters.L, G))
    terms = [(addend, spec.c_format.fraction_bits), *((g.term, W) for g in groups)]
    end = stages.fused_sum(terms, parameters.F, parameters.rho, special, parameters.cut)
    return GfdaStep(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        products=products,
        groups=groups,
        addend=addend,
        **end._asdict(),
    )


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Gfda), a, b, c, stages))
