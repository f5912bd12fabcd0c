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

import z3

from mmaformal.algorithms import DotAdd, Gfda, Rounding
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    Term,
    Trace,
    addend,
    align,
    align_sticky,
    canonical_nan,
    classify,
    decode,
    encode,
    exponent_range,
    maximum,
    multiply,
    negate_if,
    normalise_and_round,
    product_range,
    resize,
    select_special,
    signed_sum,
)
from mmaformal.encodings.smt.fda import lowest_e_max


@dataclass(frozen=True)
class Group:
    """The interfaces between the stages of one group, in order."""

    e_max: BitVec  #: align
    aligned: tuple[BitVec, ...]  #: magnitudes; the signs are the products'
    total: BitVec  #: accumulate, two's complement
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


def group(parameters: Gfda, products: Sequence[Term], fraction_bits: int) -> Group:
    """The sum of a group's products at its largest exponent."""
    place = align_sticky if parameters.cut is Rounding.RO else align
    e_max = maximum([p.exponent for p in products])
    aligned = tuple(place(p, e_max, fraction_bits, parameters.W) for p in products)
    bits = group_bound(parameters).bit_length()
    total = signed_sum([(p.sign, x) for p, x in zip(products, aligned, strict=True)], bits + 1)
    sign = z3.Extract(bits, bits, total)
    return Group(e_max, aligned, total, Term(sign, e_max, resize(negate_if(sign, total), bits)))


def step(spec: DotAdd, parameters: Gfda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Step:
    """One step over L products."""
    F, W, G, rho = parameters.F, parameters.W, parameters.G, parameters.rho
    exponents = exponents_of(spec, parameters)
    a_operands = tuple(decode(x, spec.a_format) for x in a)
    b_operands = tuple(decode(x, spec.b_format) for x in b)
    c_operand = decode(c, spec.c_format)
    factors = list(zip(a_operands, b_operands, strict=True))
    special = classify(factors, [c_operand])

    bias = spec.a_format.bias + spec.b_format.bias
    products = tuple(multiply(x, y, bias, exponents, parameters.e_zero) for x, y in factors)
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    groups = tuple(group(parameters, products[g : g + G], bits) for g in range(0, parameters.L, G))
    c_term = addend(c_operand, spec.c_format.bias, exponents, parameters.e_zero)

    place = align_sticky if parameters.cut is Rounding.RO else align
    e_max = maximum([*(g.e_max for g in groups), c_term.exponent])
    aligned = tuple(place(g.term, e_max, W, F) for g in groups)
    aligned_c = place(c_term, e_max, spec.c_format.fraction_bits, F)
    bound = sum((1 << x.size()) - 1 for x in (*aligned, aligned_c))
    terms = [(g.term.sign, magnitude) for g, magnitude in zip(groups, aligned, strict=True)]
    total = signed_sum([*terms, (c_term.sign, aligned_c)], bound.bit_length() + 1)
    rounded = normalise_and_round(total, e_max, exponents, F, rho, lowest_e_max(spec, parameters.e_zero))
    result = select_special(special, encode(rounded, rho), rho.format, canonical_nan(rho.format))
    return Step(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        products=products,
        groups=groups,
        addend=c_term,
        e_max=e_max,
        aligned=aligned,
        aligned_c=aligned_c,
        total=total,
        rounded=rounded,
        result=result,
    )


def dot_add(spec: DotAdd, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> Trace[Step]:
    """The trace of `c + Σ a_k·b_k`: `a` and `b` are K codes each, c one."""
    parameters = spec.parameters
    assert isinstance(parameters, Gfda)
    steps = []
    for start in range(0, spec.k, parameters.L):
        k = slice(start, start + parameters.L)
        steps.append(step(spec, parameters, a[k], b[k], c))
        c = steps[-1].result
    return Trace(tuple(steps), c)


__all__ = ["Step", "Trace", "dot_add", "step"]
