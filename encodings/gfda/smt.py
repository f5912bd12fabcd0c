"""gfda, the grouped fused dot-add, as bit-vector terms.  Specification: semantics §3; TensorGauge §IV-B (GFDA).

Widths of one step of L/G groups of G products:

- exponents: the range that contains every product's, every c's, and e_zero;
- a group: aligned magnitudes of 2 + W bits, |Σ| ≤ G·(2^(W+2) - 1), and one bit for the sign;
- aligned groups: the integer bits of that bound and F fractional bits; c: 1 + F bits;
- the sum: that of all bounds, and one bit for the sign;
- rounding: e_max is at least c's exponent, as in fda.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.encodings.fda.smt import lowest_e_max
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    exponent_range,
    product_range,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Stages
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class Group:
    """The interfaces between the stages of one group, in order."""

    e_max: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the products'
    total: BitVec  #: accumulate, two's complement
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
    e_max: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the groups'
    aligned_c: BitVec
    total: BitVec  #: accumulate, two's complement
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def exponents_of(spec: DotAdd, parameters: Gfda) -> ExponentRange:
    c = exponent_range(spec.c_format)
    both = product_range(spec.a_format, spec.b_format).union(c.low, c.high)
    return both if parameters.e_zero is None else both.union(parameters.e_zero)


def group_bound(parameters: Gfda) -> int:
    """The largest |Σ| of a group, in units of its last place."""
    return int(parameters.G * ((1 << (parameters.W + 2)) - 1))


def group(
    parameters: Gfda, products: Sequence[Term], fraction_bits: int, exponents: ExponentRange, stages: Stages
) -> Group:
    """The sum of a group's products at its largest exponent."""
    e_max = stages.largest(products, exponents)
    bits = group_bound(parameters).bit_length()
    terms = [(x, fraction_bits) for x in products]
    total = stages.accumulate(terms, e_max, parameters.W, bits + 1, parameters.cut)
    return Group(e_max, total.terms, total.total, stages.as_term(total, e_max))


def step(
    spec: DotAdd, parameters: Gfda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> GfdaStep:
    """One step over L products."""
    W, G = parameters.W, parameters.G
    exponents = exponents_of(spec, parameters)
    a_operands = tuple(stages.decode(x, spec.a_format) for x in a)
    b_operands = tuple(stages.decode(x, spec.b_format) for x in b)
    c_operand = stages.decode(c, spec.c_format)
    factors = list(zip(a_operands, b_operands, strict=True))
    special = stages.classify(factors, [c_operand])

    bias = spec.a_format.bias + spec.b_format.bias
    products = tuple(stages.multiply(x, y, bias, exponents, parameters.e_zero) for x, y in factors)
    addend = stages.addend(c_operand, spec.c_format.bias, exponents, parameters.e_zero)
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    groups = tuple(
        group(parameters, products[g : g + G], bits, exponents, stages) for g in range(0, parameters.L, G)
    )
    terms = [*((g.term, W) for g in groups), (addend, spec.c_format.fraction_bits)]
    lowest = lowest_e_max(spec, parameters.e_zero)
    end = stages.fused_sum(
        terms, exponents, parameters.F, None, parameters.rho, lowest, special, parameters.cut
    )
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


dot_add = looped(Gfda, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
