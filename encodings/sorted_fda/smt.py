"""sorted_fda, fused dot-add of three sorted terms, as bit-vector terms.  Specification: semantics §3.

The terms are normalised and sorted as efda's are.  The first two are added in a frame of F places; that sum, normalised
or as it is, and the third one in a frame of G.  What lies below ρ's least exponent is shifted to it, sticky.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.efda.smt import (
    Frames,
    SortedSum,
    StickyTotal,
    normal_sum,
    normalised_terms,
    shift_to_least,
    sorted_terms,
    with_zero_sign,
)
from mmaformal.encodings.smt.blocks import (
    BitVec,
    ExponentRange,
    Operand,
    Rounded,
    Special,
    StickySum,
    Term,
    encode,
    exponent_range,
    negate_if,
    normalise_and_round,
    product_range,
    quiet_nan,
    resize,
    select_special,
    sticky_sum,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Code, Stages
from mmaformal.encodings.sorted_fda import SortedFda
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class SortedFdaStep:
    """The interfaces between the stages of one step, in order."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply
    addend: Term
    sorted: SortedSum  #: align, accumulate
    sum: StickySum  #: of all
    sticky: StickyTotal  #: the same, not below ρ's least exponent
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def _exponents_of(spec: DotAdd, p: SortedFda) -> ExponentRange:
    """Those of all terms, with room above for carries and below to normalise, and ρ's least."""
    own, c = product_range(spec.a_format, spec.b_format), exponent_range(spec.c_format)
    reach = ExponentRange(p.lowest(spec) - p.G - 6, max(own.high, c.high) + 3)
    return reach.union(spec.d_format.min_exponent)


def _as_term(x: StickySum) -> Term:
    """A sum as a term at its exponent."""
    bits = x.total.size() - 1
    sign = z3.Extract(bits, bits, x.total)
    return Term(sign, x.e_max, resize(negate_if(sign, x.total), bits))


def _sum_of(
    terms: tuple[Term, Term, Term], places: int, p: SortedFda, exponents: ExponentRange, zero: int
) -> SortedSum:
    """The sums of the two largest of three normalised terms, and of all."""
    one, two, three = sorted_terms(*terms)
    partial = sticky_sum(one, places, two, places, p.F)
    first = normal_sum(partial, exponents, zero) if p.between else _as_term(partial)
    total = sticky_sum(first, p.F + 1 if p.between else p.F, three, places, p.G)
    return SortedSum(terms, (one, two, three), partial, first, total)


def step(
    spec: DotAdd, p: SortedFda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> SortedFdaStep:
    """One step of three terms."""
    exponents, zero, places, rho = _exponents_of(spec, p), p.lowest(spec), p.places(spec), p.rho
    x = tuple(stages.decode(code, spec.a_format) for code in a)
    y = tuple(stages.decode(code, spec.b_format) for code in b)
    z = stages.decode(c, spec.c_format)
    special = stages.classify(list(zip(x, y, strict=True)), [z])
    bias = spec.a_format.bias + spec.b_format.bias
    products = tuple(stages.multiply(u, v, bias, exponents) for u, v in zip(x, y, strict=True))
    addend = stages.addend(z, spec.c_format.bias, exponents)
    terms = normalised_terms(products, addend, places + 1, exponents, zero)
    made = _sum_of(terms, places, p, exponents, zero)
    sum_, inputs = made.sum, [*products, addend]
    frames = Frames(p.F, p.G)
    stages.made("sorted_sum", inputs, sum_, sum=made, exponents=exponents, zero=zero, frames=frames)
    sticky = shift_to_least(sum_, exponents, rho)
    rounded = normalise_and_round(sticky.total, sticky.e_max, exponents, p.G, rho, spec.d_format.min_exponent)
    rounded = with_zero_sign(rounded, sticky.total, inputs, rho)
    result = select_special(special, encode(rounded, rho), rho.format, quiet_nan(rho.format))
    stages.round_sum(sum_, inputs, special, Code(sticky.total, rounded, result), rho)
    return SortedFdaStep(x, y, z, special, products, addend, made, sum_, sticky, rounded, result)


dot_add = looped(SortedFda, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
