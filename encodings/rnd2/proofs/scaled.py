"""What doubling a and c does to a step of rnd2 whose pairs are never subnormal: the pair doubles, then the sum."""

from __future__ import annotations

import z3

from mmaformal.cases.codes import is_finite
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.encodings.smt.blocks import any_of
from mmaformal.facts.scaling_codes import addition, assumed_results
from mmaformal.proof.lemmas import Link, at_most
from mmaformal.proof.related_runs import operand_codes, same
from mmaformal.proof.scaling import DoubledRuns, factor_links, moves, one_up, same_double


def doubled(two: DoubledRuns[rnd2.Rnd2Step]) -> Link:
    pair = _pair(two)
    left, right, fmt = two.left, two.right, two.spec.d_format
    if not left.summand.eq(left.pair.result):
        summand = same_double(left.summand, right.summand, fmt)
        pair = two.derive("signs", "a double with its sign changed is the double still", summand, [pair])
    return addition(two, left.addition, right.addition, [two.c, pair], assumed_results(two))


def _pair(two: DoubledRuns[rnd2.Rnd2Step]) -> Link:
    """The link of the rounded pairs."""
    left, right, fmt = two.left, two.right, two.spec.d_format
    x, y = left.sum, right.sum
    least = z3.BitVecVal(0, x.e_max.size())
    terms = [_term(two, k, least) for k in range(2)]
    sizes = [term.significand for term in left.products]
    still = z3.And(x.e_max == least, y.e_max == least, *(size == 0 for size in sizes))
    up = one_up(x.e_max, y.e_max)
    orders = []
    for step in (left, right):
        exponents = [term.exponent for term in step.products]
        for each in exponents:
            text = "neither of two exponents is above the larger"
            orders.append(two.derive("align", text, at_most(each, step.sum.e_max), [], exponents))
    text = "the larger exponent goes up by one, or both products are zero"
    e_max = Link(z3.Or(up, still), (x.e_max, y.e_max, *sizes))
    two.derive("align", text, e_max, terms)
    aligned = Link(z3.And(x.x == y.x, x.y == y.y), (x.x, x.y), ((y.x, x.x), (y.y, x.y)))
    two.derive("align", "aligned products are the same", aligned, [*terms, *orders, e_max])
    zero = Link(
        z3.Or(up, z3.And(x.e_max == least, y.e_max == least, x.x == 0, x.y == 0)),
        (x.e_max, y.e_max, x.x, x.y),
    )
    two.derive("align", "aligned zeros are zero", zero, [e_max])
    signs = (
        same(left.products[0].sign, right.products[0].sign),
        same(left.products[1].sign, right.products[1].sign),
    )
    for sign, term in zip(signs, terms, strict=True):
        two.derive("multiply", "signs are the same", sign, [term])
    nothing = z3.Or(up, z3.And(x.e_max == least, y.e_max == least, x.total == 0))
    claim = z3.And(x.total == y.total, nothing)
    total = Link(claim, (x.total, x.e_max, y.e_max), ((y.total, x.total),))
    two.derive("accumulate", "equal terms, equal sums", total, [aligned, zero, *signs])
    none = [_not_special(two, step) for step in (left, right)]
    link = same_double(left.pair.result, right.pair.result, fmt)
    text = "the same sum at twice the unit is twice the number"
    return two.derive("round", text, link, [total, *signs, *none])


def _term(two: DoubledRuns[rnd2.Rnd2Step], k: int, least: z3.BitVecRef) -> Link:
    """That a product is doubled by its exponent, or zero with the least one in both runs."""
    (a, b), (other, _) = two.left.factors[k], two.right.factors[k]
    codes = operand_codes(a, other, b)
    given = [two.assumed[code.get_id()] for code in codes]
    factor, field = factor_links(two.derive, a, other, b, given, codes)
    text = "a product's exponent goes up by one, unless it is zero"
    link = moves(two.left.products[k], two.right.products[k], least)
    return two.derive("multiply", text, link, [factor, field], [b.sign, b.significand])


def _not_special(two: DoubledRuns[rnd2.Rnd2Step], step: rnd2.Rnd2Step) -> Link:
    """That the pair is of no special value, since the step's result is finite."""
    fmt, known = two.spec.d_format, assumed_results(two)
    finite = Link(is_finite(step.summand, fmt), ())
    text = "a finite sum is of finite numbers"
    two.derive("accumulate", text, finite, known, [step.summand])
    none = Link(z3.Not(any_of(list(step.special))), tuple(step.special))
    inputs = [*step.special, *step.pair.rounded]
    return two.derive("classify", "a finite pair comes of no special value", none, [finite], inputs)


__all__ = ["doubled"]
