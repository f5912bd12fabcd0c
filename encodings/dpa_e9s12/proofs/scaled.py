"""What doubling a and c does to a step of dpa_e9s12 (`proof/scaling`).

The exponents of E9S12 products go up by one, but of those told to be zero, which have 0; so does the largest, unless it
is 0 in both runs.  So products are shifted by as many places, their sum S is the same, and its exponent goes up by one.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import smt as dpa_e9s12
from mmaformal.facts.scaling_parts import by_exponent, sticky_sum_doubled
from mmaformal.proof.lemmas import ArgumentError, Link, at_most
from mmaformal.proof.related_runs import operand_codes, same
from mmaformal.proof.scaling import DoubledRuns, largest, moved, moves, one_up


def doubled(two: DoubledRuns[dpa_e9s12.DpaE9s12Step]) -> Link:
    p, left, right = two.spec.parameters, two.left, two.right
    assert isinstance(p, DpaE9s12)
    if not p.detects_zeros:
        raise ArgumentError("no argument for zeros that keep the exponents of their fields")
    products = _products(two)
    dot, signs = _dot(two, products), _zero_sign(two, products)
    exponents = dpa_e9s12.exponents_of(two.spec, p.L, len(left.products))
    least = exponents.constant(two.spec.c_format.min_exponent)
    text = "the exponent of the sum of products goes up by one, unless that is zero"
    term = two.derive("accumulate", text, moves(left.term, right.term, least), [dot])
    return sticky_sum_doubled(two, lambda step: step.term, term, least, [signs])


def _products(two: DoubledRuns[dpa_e9s12.DpaE9s12Step]) -> list[Link]:
    """Each E9S12 product is doubled by its exponent, or zero with the exponent 0."""
    left, right = two.left, two.right
    each = len(left.products) // len(left.a)
    links, zero = [], z3.BitVecVal(0, left.e_max.size())
    for k in range(len(left.a)):
        factor, field = two.factors(k)
        a, b = left.a[k], left.b[k]
        codes = operand_codes(a)
        normal = Link(
            z3.Or(a.significand == 0, z3.UGE(a.significand, 1 << two.spec.a_format.fraction_bits)),
            (a.significand,),
        )
        two.derive("decode", "a is zero or normal", normal, [two.assumed[x.get_id()] for x in codes], codes)
        for i in range(k * each, (k + 1) * each):
            text = "an E9S12 product's exponent goes up by one, or it is zero, and so its exponent"
            term = moved(left.products[i], right.products[i], zero)
            links.append(two.derive("multiply", text, term, [factor, field, normal], [b.sign, b.significand]))
    return links


def _dot(two: DoubledRuns[dpa_e9s12.DpaE9s12Step], products: Sequence[Link]) -> Link:
    """The sum of products is the same; and it is zero, or the largest exponent goes up."""
    left, right = two.left, two.right
    zero = z3.BitVecVal(0, left.e_max.size())
    e_max = largest(two.derive, left.e_max, right.e_max, zero, by_exponent(left.products, products))
    up = one_up(left.e_max, right.e_max)

    def alike(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
        return Link(z3.And(y == x, z3.Or(up, x == 0)), (x, left.e_max, right.e_max), ((y, x),))

    running: Link | None = None
    leaves = [product.exponent for product in right.products]
    for k, (x, y, link) in enumerate(zip(left.placed, right.placed, products, strict=True)):
        below = at_most(leaves[k], right.e_max)
        two.pairing.under(right.e_max, leaves, below, leaves[k])
        text = "a placed product is the same; and it is zero, or the largest exponent goes up"
        placed = two.derive("align", text, alike(x, y), [link, e_max, below])
        before, running = running, alike(left.partials[k], right.partials[k])
        text = "and so is a partial sum"
        running = two.derive("accumulate", text, running, [placed] if before is None else [before, placed])
    assert running is not None
    return running


def _zero_sign(two: DoubledRuns[dpa_e9s12.DpaE9s12Step], products: Sequence[Link]) -> Link:
    left, right = two.left, two.right
    c = two.derive("multiply", "c keeps its sign", same(left.addend.sign, right.addend.sign), [two.c])
    text = "a sum of exactly zero has the same sign"
    return two.derive("multiply", text, same(left.zero_sign, right.zero_sign), [*products, c])
