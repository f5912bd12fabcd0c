"""What doubling a and c does to a step of fda, fdrda and gfdrda (`proof/scaling`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import z3

from mmaformal.algorithms import Fda
from mmaformal.encodings.smt import fdrda
from mmaformal.encodings.smt.blocks import all_of, product_range
from mmaformal.encodings.smt.fda import exponents_of
from mmaformal.facts.accumulator import bound_of_sum, within
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link, at_most
from mmaformal.proof.related_runs import operand_codes, same
from mmaformal.proof.scaling import (
    Two,
    factor_links,
    is_up,
    moved,
    rounded_up,
    up_or,
    well_inside,
)


def _by_exponent(products: Sequence[Any], links: Sequence[Link]) -> dict[int, Link]:
    """The products' links, by the ids of their exponents."""
    return {x.exponent.get_id(): link for x, link in zip(products, links, strict=True)}


def _summands(x: z3.BitVecRef, y: z3.BitVecRef, n: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """The n terms of a sum, in both runs.  Raises ArgumentError if there are not so many."""
    xs, ys = summands(x, n), summands(y, n)
    if len(xs) != n or len(ys) != n:
        raise ArgumentError("the sum is not made of its terms")
    return xs, ys


# ---- fda ----------------------------------------------------------------------------------------------------


def of_fda(two: Two) -> Link:
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
    products = [_fda_product(two, k, zero, highest) for k in range(len(left.products))]
    finite, addend = _fda_addend(two, zero)
    none = _fda_nothing_special(two, [*(flag for each in products for flag in each.finite), finite])
    top = _fda_highest(two, highest, [each.reach for each in products])
    terms = [*(each.term for each in products), addend]
    e_max, up, both_zero = _fda_exponent(two, zero, terms)
    in_range = [
        two.pairing.assume(
            "every step's result is zero or above the least normal number",
            Link(well_inside(x, spec.d_format), ()),
        )
        for x in (left.result, right.result)
    ]
    summed = _summands(left.total, right.total, len(terms))
    _fda_up(two, terms, summed, e_max, up, [top, none, *in_range])
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


def _fda_product(two: Two, k: int, zero: z3.BitVecRef, highest: z3.BitVecRef) -> _Product:
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


def _fda_addend(two: Two, zero: z3.BitVecRef) -> tuple[Link, Link]:
    """That c is finite, and doubled by its exponent."""
    left, right = two.left, two.right
    special = [flag for each in (left.c, right.c) for flag in (each.nan, each.infinite)]
    link = Link(z3.And([z3.Not(flag) for flag in special]), tuple(special))
    finite = two.derive("decode", "c is finite", link, [two.c])
    addend = moved(left.addend, right.addend, zero)
    text = "c's exponent goes up by one, unless it is zero"
    return finite, two.derive("multiply", text, addend, [two.c])


def _fda_nothing_special(two: Two, finite: list[Link]) -> Link:
    """That there is no special value in either run."""
    left, right = two.left, two.right
    nothing = [x for s in (left.special, right.special) for x in s]
    none = Link(z3.And([z3.Not(flag) for flag in nothing]), tuple(nothing))
    signs = [x.sign for each in (left, right) for side in (each.a, each.b) for x in side]
    sizes = [x.significand for each in (left, right) for side in (each.a, each.b) for x in side]
    inputs = [*signs, *sizes, left.c.sign, right.c.sign]
    return two.derive("classify", "there is no special value", none, finite, inputs)


def _fda_highest(two: Two, highest: z3.BitVecRef, reaches: Sequence[Link]) -> Link:
    """That the second run's largest exponent is in range, as those of all terms are."""
    right, text = two.right, "c's exponent is in range"
    c = two.derive("multiply", text, at_most(right.addend.exponent, highest), [two.c])
    below = _by_exponent([*right.products, right.addend], [*reaches, c])
    return two.pairing.at_most_all(right.e_max, highest, below)


def _fda_exponent(two: Two, zero: z3.BitVecRef, terms: Sequence[Link]) -> tuple[Link, Link, Link]:
    """The largest exponent, and its two cases: it goes up by one, or is e_zero in both."""
    left, right = two.left, two.right
    leaves = _by_exponent([*left.products, left.addend], terms)
    e_max = _largest(two.derive, left.e_max, right.e_max, zero, leaves)
    up = Link(right.e_max == left.e_max + 1, (left.e_max,), ((right.e_max, left.e_max + 1),))
    both_zero = Link(z3.And(left.e_max == zero, right.e_max == zero), (left.e_max, right.e_max))
    two.pairing.split("the largest exponent goes up by one, or is e_zero in both", [up, both_zero], [e_max])
    return e_max, up, both_zero


def _fda_up(
    two: Two,
    terms: Sequence[Link],
    summed: tuple[Sequence[Any], Sequence[Any]],
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


def _largest(derive: Any, left: Any, right: Any, zero: Any, leaves: dict[int, Link]) -> Link:
    """Node by node: a maximum goes up by one, or is e_zero in both runs."""

    def link(x: Any, y: Any) -> Link:
        up = z3.And(y == x + 1, z3.ULT(x, y))
        return Link(z3.Or(up, z3.And(x == zero, y == zero)), (x, y))

    done: dict[int, Link] = {}

    def climb(x: Any, y: Any) -> Link:
        if x.get_id() not in done:
            node = link(x, y)
            if x.get_id() in leaves:
                derive("align", "an exponent goes up by one, or is e_zero", node, [leaves[x.get_id()]])
            elif x.num_args() == 3 and y.num_args() == 3:
                parts = [climb(x.arg(i), y.arg(i)) for i in (1, 2)]
                derive("align", "the larger of two goes up by one, or is e_zero", node, parts)
            else:
                raise ArgumentError("the largest exponent is no maximum of the terms'")
            done[x.get_id()] = node
        return done[x.get_id()]

    return climb(left, right)


def _small(two: Two, step: Any, parts: Any, at_zero: Link, zero: z3.BitVecRef) -> Link:
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


# ---- fdrda, gfdrda -----------------------------------------------------------------------------------------------


def _same_or_zero(x: Any, y: Any, e: z3.BitVecRef) -> Link:
    """That both runs' numbers are the same; and zero, if the second run's largest exponent is."""
    return Link(z3.Implies(e == 0, x == 0), (x, e), ((y, x),))


def of_fdrda(two: Two) -> Link:
    """The products' largest exponent goes up by one, or is the least there is in both runs: then all are zero.  With
    c, the larger of two exponents goes up by one, or is c's least one in both: then c is zero, and the sum of the
    products, cut where c's exponent holds it up, is cut at one place more in the first run.
    """
    spec, left, right = two.spec, two.left, two.right
    own, wide = product_range(spec.a_format, spec.b_format), fdrda.exponents_of(spec)
    zero, least = z3.BitVecVal(0, own.bits), wide.constant(spec.c_format.min_exponent)
    terms, flags = _doubled_products(two, zero)
    e, dot = (_sum_of_groups if hasattr(left, "groups") else _plain_sum)(two, terms, zero)
    bound = _bound_of_dot(two)
    e_dot = _exponent_of_dot(two, [e, dot, _told_by_exponent(two, flags)], least)

    addend, low = two.addend(least)
    given = [e_dot, addend, *two.ordered("e_max", "e_dot", "addend.exponent")]
    up, still = _exponent_with_c(two, [e_dot, addend, low], least)
    in_range = two.in_range()
    same_dot = Link(right.dot == left.dot, (left.dot,), ((right.dot, left.dot),))
    two.derive("accumulate", "the sums of products are the same", same_dot, [dot])
    text = "where the largest exponent goes up, the sums with c are the same"
    total = two.derive("accumulate", text, same(left.total, right.total), [same_dot, *given, up])
    rounded_up(two, total, up, [*in_range, *_reach(two, own, wide)])
    half = Link(
        z3.And(right.total != 1 << (right.total.size() - 1), left.total == right.total >> 1),
        (right.total,),
        ((left.total, right.total >> 1),),
    )
    text = "where it is c's least one, the first sum is half the second, rounded down"
    two.derive("accumulate", text, half, [same_dot, bound, *given, low, still])
    text = "half a sum is rounded to half the number"
    return two.derive("round", text, two.result, [half, still, *in_range])


def _doubled_products(two: Two, zero: z3.BitVecRef) -> tuple[list[Link], list[Link]]:
    """That each product is doubled by its exponent; and that those that are zero have the least one, and no others."""
    terms, flags = [], []
    for k, product in enumerate(two.right.products):
        factor, field = two.factors(k)
        terms.append(two.product(k, zero, factor, field))
        (z, y) = (z3.Or(s.a[k].significand == 0, s.b[k].significand == 0) for s in (two.left, two.right))
        e = product.exponent
        link = Link(z == (e == 0), (z, e), ((y, z),))
        text = "of the doubled products, those that are zero have the least exponent, and no others"
        flags.append(two.derive("multiply", text, link, [factor, field], [two.left.b[k].significand]))
    return terms, flags


def _plain_sum(two: Two, terms: Sequence[Link], zero: z3.BitVecRef) -> tuple[Link, Link]:
    """The products' largest exponent, and their sum."""
    left, right, n = two.left, two.right, len(terms)
    e = _largest(two.derive, left.e_products, right.e_products, zero, _by_exponent(left.products, terms))
    sums, tops = (left.dot, right.dot), (left.e_products, right.e_products)
    return e, _sum_of_products(two, sums, tops, range(n), [*terms], e)


def _sum_of_groups(two: Two, terms: Sequence[Link], zero: z3.BitVecRef) -> tuple[Link, Link]:
    """The same, of groups that are cut before they are added."""
    left, right, n = two.left, two.right, len(terms)
    count = len(left.groups)
    leaves = _by_exponent(left.products, terms)
    es = [
        _largest(two.derive, x, y, zero, leaves) for x, y in zip(left.e_groups, right.e_groups, strict=True)
    ]
    tops = {x.get_id(): e for x, e in zip(left.e_groups, es, strict=True)}
    e = _largest(two.derive, left.e_products, right.e_products, zero, tops)
    below = two.pairing._not_below("align", "exponents", right.e_products, list(right.e_groups))
    cuts = []
    for g in range(count):
        sums, places = (left.groups[g], right.groups[g]), range(g, n, count)
        group = _sum_of_products(
            two, sums, (left.e_groups[g], right.e_groups[g]), places, [terms[k] for k in places], es[g]
        )
        link = _same_or_zero(left.groups_cut[g], right.groups_cut[g], right.e_products)
        text = "groups are cut alike, and zero if all are"
        cuts.append(two.derive("align", text, link, [group, es[g], e, below[g]]))
    text = "equal groups, equal sums, and zero if all are"
    return e, two.derive("accumulate", text, _same_or_zero(left.dot, right.dot, right.e_products), cuts)


def _sum_of_products(
    two: Two,
    sums: tuple[z3.BitVecRef, z3.BitVecRef],
    tops: tuple[z3.BitVecRef, z3.BitVecRef],
    places: Sequence[int],
    terms: Sequence[Link],
    e: Link,
) -> Link:
    """That the sums of some products, aligned to `tops`, are the same in both runs, and zero if all are."""
    xs, ys = _summands(*sums, len(places))
    leaves = [two.right.products[k].exponent for k in places]
    below = two.pairing._not_below("align", "exponents", tops[1], leaves)
    links = []
    for term, u, v, order in zip(terms, xs, ys, below, strict=True):
        text = "aligned terms are the same, and zero if all are"
        links.append(two.derive("align", text, _same_or_zero(u, v, tops[1]), [term, e, order]))
    text = "equal terms, equal sums, and zero if all are"
    return two.derive("accumulate", text, _same_or_zero(*sums, tops[1]), links)


def _bound_of_dot(two: Two) -> Link:
    """That the sum of products is within its bound."""
    pairing, left, n = two.pairing, two.left, len(two.left.products)
    if not hasattr(left, "groups"):
        return pairing.bounded(left.dot, n)
    p: Any = two.spec.parameters
    count = len(left.groups)
    each = [pairing.bounded(x, len(range(g, n, count))) for g, x in enumerate(left.groups)]
    bound = within(left.dot, fdrda.dot_bound(p, n))
    text = "a sum of groups is within the sum of their bounds"
    return two.derive("accumulate", text, bound, each, [*left.e_groups, left.e_products])


def _told_by_exponent(two: Two, flags: Sequence[Link]) -> Link:
    """That the products' largest exponent tells whether all are zero."""
    right = two.right
    all_zero = _all_zero(two, right.e_products, _by_exponent(right.products, flags))
    (z, y) = (
        all_of([z3.Or(a.significand == 0, b.significand == 0) for a, b in zip(s.a, s.b, strict=True)])
        for s in (two.left, right)
    )
    known = Link(z == (right.e_products == 0), (z, right.e_products), ((y, z),))
    text = "all products are zero if the largest exponent is the least"
    return two.derive("align", text, known, [all_zero, *flags])


def _exponent_of_dot(two: Two, given: Sequence[Link], least: z3.BitVecRef) -> Link:
    """That the exponent of the sum of products goes up by one, or all are zero."""
    left, right = two.left, two.right
    idle = z3.And(left.dot == 0, right.e_dot == left.e_dot, z3.ULE(left.e_dot, least))
    e_dot = up_or(left.e_dot, right.e_dot, idle, left.dot)
    return two.derive("align", "the exponent of the products goes up by one, or all are zero", e_dot, given)


def _exponent_with_c(two: Two, given: Sequence[Link], least: z3.BitVecRef) -> tuple[Link, Link]:
    """The two cases: the larger exponent goes up by one, or is c's least one in both runs."""
    left, right, text = two.left, two.right, "the largest exponent goes up by one, or is c's least one"
    at_least = z3.And(left.e_max == least, right.e_max == least)
    e_max = two.derive("align", text, up_or(left.e_max, right.e_max, at_least), given)
    up, still = is_up(left.e_max, right.e_max), Link(at_least, (left.e_max, right.e_max))
    two.pairing.split(text, [up, still], [e_max])
    return up, still


def _all_zero(two: Two, tree: z3.BitVecRef, leaves: dict[int, Link]) -> Link:
    """Node by node: a maximum is 0 if all its terms are."""
    if tree.get_id() in leaves:
        return leaves[tree.get_id()]
    if tree.num_args() != 3:
        raise ArgumentError("the largest exponent is no maximum of the terms'")
    parts = [_all_zero(two, tree.arg(i), leaves) for i in (1, 2)]
    zs = [z for part in parts for z in part.free if z3.is_bool(z)]
    link = Link(all_of(zs) == (tree == 0), (*zs, tree))
    return two.derive("align", "the larger of two is the least exponent if both are", link, parts)


def _reach(two: Two, own: Any, wide: Any) -> list[Link]:
    """That the second run's largest exponent is in its range."""
    left, right = two.left, two.right
    highest = z3.BitVecVal(own.high - own.low, own.bits)
    below = {}
    for x, y, product in zip(right.a, right.b, right.products, strict=True):
        link = at_most(product.exponent, highest)
        text = "exponents are in range"
        below[product.exponent.get_id()] = two.derive("multiply", text, link, [], operand_codes(x, y))
    top = two.pairing.at_most_all(right.e_products, highest, below)
    last = z3.BitVecVal(wide.high - wide.low, wide.bits)
    text = "the largest exponents are in range"
    flags = [z3.Or(a.significand == 0, b.significand == 0) for a, b in zip(right.a, right.b, strict=True)]
    dot = two.derive("align", text, at_most(right.e_dot, last), [top], [all_of(flags)])
    c = two.derive("multiply", "c's exponent is in range", at_most(right.addend.exponent, last), [two.c])
    top = two.derive("align", text, at_most(right.e_max, last), [dot, c])
    least = wide.constant(two.spec.c_format.min_exponent)
    low = at_most(least, left.addend.exponent)
    two.derive("multiply", "c's exponent is in range", low, [two.c])
    text = "the largest exponent is not below c's least"
    return [top, two.derive("align", text, at_most(least, left.e_max), [low], [left.e_dot])]
