"""gfdrda, grouped fdrda, as bit-vector terms.  Specification: semantics §3; MMA-Sim §IV-H.

As `fdrda`, but the products of even and those of odd index are aligned and summed apart.  Widths of what differs:
a group of n products is |Σ| ≤ n·(2^(F+2) - 1), and the sign; the dot product holds the sum of both bounds, since a
shifted group is no larger (rounding down brings a negative one to -1 at the least).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import z3

from mmaformal.encodings.fdrda.smt import (
    add_c,
    c_at,
    dot_bound,
    exponent_of_dot,
    exponents_of,
    fraction_bits,
    inputs_of,
    result_of,
)
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.encodings.smt.blocks import (
    BitVec,
    Operand,
    Rounded,
    Special,
    Term,
    addend,
    align,
    maximum,
    pad,
    shift_right_signed,
    signed_sum,
    sum_of,
)
from mmaformal.encodings.smt.chain import looped
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class GfdrdaStep:
    """The interfaces between the stages of one step, in order; groups are (even, odd)."""

    a: tuple[Operand, ...]  #: decode
    b: tuple[Operand, ...]
    c: Operand
    special: Special  #: classify
    products: tuple[Term, ...]  #: multiply; exponents in the products' own range
    addend: Term
    e_groups: tuple[BitVec, ...]  #: align: each group's largest exponent, in the products' range
    aligned: tuple[BitVec, ...]  #: magnitudes, each at its group's exponent; the signs are the terms'
    groups: tuple[BitVec, ...]  #: accumulate: each group's sum, two's complement, F fractional bits
    e_products: BitVec  #: the larger of e_groups
    groups_cut: tuple[BitVec, ...]  #: the sums at e_products
    dot: BitVec  #: their sum
    e_dot: BitVec  #: from here on, exponents in the range of both
    e_max: BitVec
    dot_cut: BitVec  #: at e_max, dot_bits fractional bits
    c_cut: BitVec  #: c at e_max, or 0; two's complement, F fractional bits
    total: BitVec  #: two's complement, dot_bits fractional bits
    rounded: Rounded  #: normalise & round
    result: BitVec  #: encode


def step(spec: DotAdd, parameters: Gfdrda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec) -> GfdrdaStep:
    """One step over L products."""
    F, products = parameters.F, len(a)
    x = inputs_of(spec, parameters, a, b, c)
    parities = [range(parity, products, 2) for parity in range(min(2, products))]
    e_groups = tuple(maximum([x.products[k].exponent for k in group]) for group in parities)
    aligned = tuple(align(p, e_groups[k % 2], fraction_bits(spec), F) for k, p in enumerate(x.products))
    groups = tuple(
        signed_sum(
            [(x.products[k].sign, aligned[k]) for k in group],
            dot_bound(parameters, len(group)).bit_length() + 1,
        )
        for group in parities
    )
    e_products = maximum(e_groups)
    groups_cut = tuple(
        shift_right_signed(group, e_products - e, parameters.cut)
        for group, e in zip(groups, e_groups, strict=True)
    )
    bound = dot_bound(parameters, products)
    bits = bound.bit_length() + 1
    dot = sum_of([z3.SignExt(bits - group.size(), group) for group in groups_cut])
    e_dot = exponent_of_dot(spec, parameters, e_products, x.all_zero)

    exponents = exponents_of(spec)
    c_term = addend(x.c, spec.c_format.bias, exponents, e_zero=None)
    e_max = maximum([e_dot, c_term.exponent])
    dot_cut = shift_right_signed(pad(dot, parameters.dot_bits - F), e_max - e_dot, parameters.cut)
    c_cut = c_at(e_max, c_term, spec.c_format.fraction_bits, parameters)
    reach = max(parameters.c_reach + 1, 0)  # the least distance at which c is dropped
    if reach <= exponents.high - exponents.low:
        beyond = z3.UGE(e_max - c_term.exponent, z3.BitVecVal(reach, exponents.bits))
        c_cut = z3.If(beyond, z3.BitVecVal(0, c_cut.size()), c_cut)
    total, rounded = add_c(spec, parameters, dot_cut, c_cut, e_max, bound)
    result = result_of(spec, parameters, x.special, rounded)
    return GfdrdaStep(
        x.a,
        x.b,
        c=x.c,
        special=x.special,
        products=x.products,
        addend=c_term,
        e_groups=e_groups,
        aligned=aligned,
        groups=groups,
        e_products=e_products,
        groups_cut=groups_cut,
        dot=dot,
        e_dot=e_dot,
        e_max=e_max,
        dot_cut=dot_cut,
        c_cut=c_cut,
        total=total,
        rounded=rounded,
        result=result,
    )


dot_add = looped(Gfdrda, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c))
