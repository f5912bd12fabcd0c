"""What doubling a and c does to a step of fda (`proof/scaling`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import z3

from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.fda.smt import exponents_of
from mmaformal.facts.accumulator import bound_of_sum, within
from mmaformal.facts.scaling_parts import both_summands, by_exponent, largest
from mmaformal.proof.lemmas import ArgumentError, Link, at_most
from mmaformal.proof.related_runs import operand_codes, same
from mmaformal.proof.scaling import (
    DoubledRuns,
    factor_links,
    moved,
    well_inside,
)


def doubled(two: DoubledRuns[fda.FdaStep]) -> Link:
    """The largest exponent goes up by one: then the sum is the same, at twice the unit.  Or it is e_zero in both runs:
    then no result is normal.
    """
    spec, p, left, right = two.spec, two.spec.parameters, two.left, two.right
    assert isinstance(p, Fda)
    if p.e_zero is None:
        raise ArgumentError("no argument for zeros that keep the exponents of their fields")
    exponents = exponents_of(spec, p)
    zero = exponents.constant(p.e_zero)
    highest = z3.BitVecVal(exponents.high - exponents.low, exponents.bits)
    products = [_product(two, k, zero, highest) for k in range(len(left.products))]
    finite, addend = _addend(two, zero)
    none = _nothing_special(two, [*(flag for each in products for flag in each.finite), finite])
    top = _highest(two, highest, [each.reach for each in products])
    terms = [*(each.term for each in products), addend]
    e_max, up, both_zero = _exponent(two, zero, terms)
    in_range = [
        two.pairing.assume(
            "every step's result is zero or above the least normal number",
            Link(well_inside(x, spec.d_format), ()),
        )
        for x in (left.result, right.result)
    ]
    summed = both_summands(left.total, right.total, len(terms))
    _up(two, terms, summed, e_max, up, [top, none, *in_range])
    small = [
        _small(two, step, parts, both_zero, zero) for step, parts in zip((left, right), summed, strict=True)
    ]
    text = "so small a sum is no normal number, so both are zero"
    return two.derive("round", text, two.result, [*small, both_zero, none, *in_range])


class _Product(NamedTuple):
    """What is known of one product."""

    term: Link  #: that it is doubled
    reach: Link  #: that its exponent in the second run is in range
    finite: list[Link]  #: that its factors and scales are, where they may be anything else


def _product(two: DoubledRuns[fda.FdaStep], k: int, zero: z3.BitVecRef, highest: z3.BitVecRef) -> _Product:
    """Product k is doubled by its exponent: codes are cut, so that each lemma is about one product."""
    left, right = two.left, two.right
    x, y, a, other, b = left.products[k], right.products[k], left.a[k], right.a[k], left.b[k]
    scales = [s[k] for s in (left.scale_a, left.scale_b) if s]
    operands = [a, other, b, *scales]
    codes = operand_codes(*operands)
    given = [two.assumed[code.get_id()] for code in codes]
    special = [flag for each in operands for flag in (each.nan, each.infinite) if not z3.is_false(flag)]
    finite = []
    if special:
        link = Link(z3.And([z3.Not(flag) for flag in special]), tuple(special))
        finite.append(two.derive("decode", "factors and scales are finite", link, given, codes))
    text = "exponents are in range"
    reach = two.derive("multiply", text, at_most(y.exponent, highest), [], codes)
    factor, field = factor_links(two.derive, a, other, b, given, codes)
    inputs = [b.sign, b.significand, *(part for s in scales for part in (s.field, s.significand))]
    text = "a product's exponent goes up by one, unless it is zero"
    term = two.derive("multiply", text, moved(x, y, zero), [factor, field], inputs)
    return _Product(term, reach, finite)


def _addend(two: DoubledRuns[fda.FdaStep], zero: z3.BitVecRef) -> tuple[Link, Link]:
    """That c is finite, and doubled by its exponent."""
    left, right = two.left, two.right
    special = [flag for each in (left.c, right.c) for flag in (each.nan, each.infinite)]
    link = Link(z3.And([z3.Not(flag) for flag in special]), tuple(special))
    finite = two.derive("decode", "c is finite", link, [two.c])
    addend = moved(left.addend, right.addend, zero)
    text = "c's exponent goes up by one, unless it is zero"
    return finite, two.derive("multiply", text, addend, [two.c])


def _nothing_special(two: DoubledRuns[fda.FdaStep], finite: list[Link]) -> Link:
    """That there is no special value in either run."""
    left, right = two.left, two.right
    nothing = [x for s in (left.special, right.special) for x in s]
    none = Link(z3.And([z3.Not(flag) for flag in nothing]), tuple(nothing))
    signs = [x.sign for each in (left, right) for side in (each.a, each.b) for x in side]
    sizes = [x.significand for each in (left, right) for side in (each.a, each.b) for x in side]
    inputs = [*signs, *sizes, left.c.sign, right.c.sign]
    return two.derive("classify", "there is no special value", none, finite, inputs)


def _highest(two: DoubledRuns[fda.FdaStep], highest: z3.BitVecRef, reaches: Sequence[Link]) -> Link:
    """That the second run's largest exponent is in range, as those of all terms are."""
    right, text = two.right, "c's exponent is in range"
    c = two.derive("multiply", text, at_most(right.addend.exponent, highest), [two.c])
    below = by_exponent([*right.products, right.addend], [*reaches, c])
    return two.pairing.at_most_all(right.e_max, highest, below)


def _exponent(
    two: DoubledRuns[fda.FdaStep], zero: z3.BitVecRef, terms: Sequence[Link]
) -> tuple[Link, Link, Link]:
    """The largest exponent, and its two cases: it goes up by one, or is e_zero in both."""
    left, right = two.left, two.right
    leaves = by_exponent([*left.products, left.addend], terms)
    e_max = largest(two.derive, left.e_max, right.e_max, zero, leaves)
    up = Link(right.e_max == left.e_max + 1, (left.e_max,), ((right.e_max, left.e_max + 1),))
    both_zero = Link(z3.And(left.e_max == zero, right.e_max == zero), (left.e_max, right.e_max))
    two.pairing.split("the largest exponent goes up by one, or is e_zero in both", [up, both_zero], [e_max])
    return e_max, up, both_zero


def _up(
    two: DoubledRuns[fda.FdaStep],
    terms: Sequence[Link],
    summed: tuple[Sequence[z3.BitVecRef], Sequence[z3.BitVecRef]],
    e_max: Link,
    up: Link,
    known: Sequence[Link],
) -> None:
    """The result where the largest exponent goes up: the same sum, a larger exponent."""
    left, right = two.left, two.right
    text = "where the largest exponent goes up, aligned terms are the same"
    equal = [two.derive("align", text, same(x, y), [t, up]) for x, y, t in zip(*summed, terms, strict=True)]
    total = two.derive("accumulate", "equal terms, equal sums", same(left.total, right.total), equal)
    low = Link(z3.ULT(left.e_max, left.e_max + 1), (left.e_max,))
    two.derive("align", "the exponent does not wrap", low, [e_max, up])
    text = "the same sum at twice the unit is twice the number"
    two.derive("round", text, two.result, [total, up, low, *known])


def _small(
    two: DoubledRuns[fda.FdaStep],
    step: fda.FdaStep,
    parts: Sequence[z3.BitVecRef],
    at_zero: Link,
    zero: z3.BitVecRef,
) -> Link:
    """Where the largest exponent is e_zero, c is zero, and the sum is that of products alone."""
    derive, bound = two.derive, bound_of_sum(two.spec)
    running: Link | None = None
    x, most = None, 0
    *products, last = parts
    for term, product, a, b in zip(products, step.products, step.a, step.b, strict=True):
        size = Link(z3.ULE(product.significand, bound.significand), (product.significand,))
        derive("multiply", "no significand is above the largest", size, [], [a.significand, b.significand])
        link = within(term, bound.aligned)
        derive(
            "align",
            "an aligned term is within its bound",
            link,
            [size],
            [product.sign, product.exponent, step.e_max],
        )
        x, most = term if x is None else x + term, most + bound.aligned
        before, running = running, within(x, most)
        text = "a partial sum is within the sum of its terms' bounds"
        derive("accumulate", text, running, [link] if before is None else [before, link])
    below = Link(z3.ULE(step.addend.exponent, step.e_max), (step.addend.exponent, step.e_max))
    leaves = [*(p.exponent for p in step.products), step.addend.exponent]
    two.pairing.under(step.e_max, leaves, below, step.addend.exponent)
    c_low = Link(
        z3.And(
            z3.UGE(step.addend.exponent, zero),
            z3.Implies(step.addend.significand != 0, step.addend.exponent != zero),
        ),
        (step.addend.exponent, step.addend.significand),
    )
    derive("multiply", "a c that is not zero is above e_zero", c_low, [two.c])
    none = Link(last == 0, (), ((last, z3.BitVecVal(0, last.size())),))
    derive(
        "align",
        "c is zero where the largest exponent is e_zero",
        none,
        [below, c_low, at_zero],
        [step.addend.sign],
    )
    total = within(step.total, most)
    assert running is not None
    return derive("accumulate", "the sum is that of the products", total, [running, none])
