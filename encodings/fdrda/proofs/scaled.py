"""What doubling a and c does to a step of fdrda and gfdrda (`proof/scaling`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, TypeGuard

import z3

from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import smt as fdrda
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.smt.blocks import ExponentRange, all_of, product_range
from mmaformal.facts.accumulator import within
from mmaformal.facts.scaling_parts import by_exponent
from mmaformal.proof.lemmas import ArgumentError, Link, at_most
from mmaformal.proof.related_runs import operand_codes, same
from mmaformal.proof.scaling import (
    DoubledRuns,
    both_summands,
    is_up,
    largest,
    rounded_up,
    up_or,
)

AnyFdrda: TypeAlias = fdrda.FdrdaStep | gfdrda.GfdrdaStep


def _has_groups(two: DoubledRuns[AnyFdrda]) -> TypeGuard[DoubledRuns[gfdrda.GfdrdaStep]]:
    return isinstance(two.left, gfdrda.GfdrdaStep) and isinstance(two.right, gfdrda.GfdrdaStep)


def _same_or_zero(x: z3.BitVecRef, y: z3.BitVecRef, e: z3.BitVecRef) -> Link:
    """That both runs' numbers are the same; and zero, if the second run's largest exponent is."""
    return Link(z3.Implies(e == 0, x == 0), (x, e), ((y, x),))


def doubled(two: DoubledRuns[AnyFdrda]) -> Link:
    """The products' largest exponent goes up by one, or is the least there is in both runs: then all are zero.  With
    c, the larger of two exponents goes up by one, or is c's least one in both: then c is zero, and the sum of the
    products, cut where c's exponent holds it up, is cut at one place more in the first run.
    """
    spec, left, right = two.spec, two.left, two.right
    own, wide = product_range(spec.a_format, spec.b_format), fdrda.exponents_of(spec)
    zero, least = z3.BitVecVal(0, own.bits), wide.constant(spec.c_format.min_exponent)
    terms, flags = _doubled_products(two, zero)
    e, dot = _sum_of_groups(two, terms, zero) if _has_groups(two) else _plain_sum(two, terms, zero)
    bound = _bound_of_dot(two)
    e_dot = _exponent_of_dot(two, [e, dot, _told_by_exponent(two, flags)], least)

    addend, low = two.addend(least)
    given = [e_dot, addend, *two.ordered(lambda step: (step.e_max, step.e_dot, step.addend.exponent))]
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


def _doubled_products(two: DoubledRuns[AnyFdrda], zero: z3.BitVecRef) -> tuple[list[Link], list[Link]]:
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


def _plain_sum(two: DoubledRuns[AnyFdrda], terms: Sequence[Link], zero: z3.BitVecRef) -> tuple[Link, Link]:
    """The products' largest exponent, and their sum."""
    left, right, n = two.left, two.right, len(terms)
    e = largest(two.derive, left.e_products, right.e_products, zero, by_exponent(left.products, terms))
    sums, tops = (left.dot, right.dot), (left.e_products, right.e_products)
    return e, _sum_of_products(two, sums, tops, range(n), [*terms], e)


def _sum_of_groups(
    two: DoubledRuns[gfdrda.GfdrdaStep], terms: Sequence[Link], zero: z3.BitVecRef
) -> tuple[Link, Link]:
    """The same, of groups that are cut before they are added."""
    left, right, n = two.left, two.right, len(terms)
    count = len(left.groups)
    leaves = by_exponent(left.products, terms)
    es = [largest(two.derive, x, y, zero, leaves) for x, y in zip(left.e_groups, right.e_groups, strict=True)]
    tops = {x.get_id(): e for x, e in zip(left.e_groups, es, strict=True)}
    e = largest(two.derive, left.e_products, right.e_products, zero, tops)
    below = two.pairing.not_below("align", "exponents", right.e_products, list(right.e_groups))
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
    two: DoubledRuns[AnyFdrda],
    sums: tuple[z3.BitVecRef, z3.BitVecRef],
    tops: tuple[z3.BitVecRef, z3.BitVecRef],
    places: Sequence[int],
    terms: Sequence[Link],
    e: Link,
) -> Link:
    """That the sums of some products, aligned to `tops`, are the same in both runs, and zero if all are."""
    xs, ys = both_summands(*sums, len(places))
    leaves = [two.right.products[k].exponent for k in places]
    below = two.pairing.not_below("align", "exponents", tops[1], leaves)
    links = []
    for term, u, v, order in zip(terms, xs, ys, below, strict=True):
        text = "aligned terms are the same, and zero if all are"
        links.append(two.derive("align", text, _same_or_zero(u, v, tops[1]), [term, e, order]))
    text = "equal terms, equal sums, and zero if all are"
    return two.derive("accumulate", text, _same_or_zero(*sums, tops[1]), links)


def _bound_of_dot(two: DoubledRuns[AnyFdrda]) -> Link:
    """That the sum of products is within its bound."""
    pairing, left, n = two.pairing, two.left, len(two.left.products)
    if not isinstance(left, gfdrda.GfdrdaStep):
        return pairing.bounded(left.dot, n)
    p = two.spec.parameters
    assert isinstance(p, Fdrda)
    count = len(left.groups)
    each = [pairing.bounded(x, len(range(g, n, count))) for g, x in enumerate(left.groups)]
    bound = within(left.dot, fdrda.dot_bound(p, n))
    text = "a sum of groups is within the sum of their bounds"
    return two.derive("accumulate", text, bound, each, [*left.e_groups, left.e_products])


def _told_by_exponent(two: DoubledRuns[AnyFdrda], flags: Sequence[Link]) -> Link:
    """That the products' largest exponent tells whether all are zero."""
    right = two.right
    all_zero = _all_zero(two, right.e_products, by_exponent(right.products, flags))
    (z, y) = (
        all_of([z3.Or(a.significand == 0, b.significand == 0) for a, b in zip(s.a, s.b, strict=True)])
        for s in (two.left, right)
    )
    known = Link(z == (right.e_products == 0), (z, right.e_products), ((y, z),))
    text = "all products are zero if the largest exponent is the least"
    return two.derive("align", text, known, [all_zero, *flags])


def _exponent_of_dot(two: DoubledRuns[AnyFdrda], given: Sequence[Link], least: z3.BitVecRef) -> Link:
    """That the exponent of the sum of products goes up by one, or all are zero."""
    left, right = two.left, two.right
    idle = z3.And(left.dot == 0, right.e_dot == left.e_dot, z3.ULE(left.e_dot, least))
    e_dot = up_or(left.e_dot, right.e_dot, idle, left.dot)
    return two.derive("align", "the exponent of the products goes up by one, or all are zero", e_dot, given)


def _exponent_with_c(
    two: DoubledRuns[AnyFdrda], given: Sequence[Link], least: z3.BitVecRef
) -> tuple[Link, Link]:
    """The two cases: the larger exponent goes up by one, or is c's least one in both runs."""
    left, right, text = two.left, two.right, "the largest exponent goes up by one, or is c's least one"
    at_least = z3.And(left.e_max == least, right.e_max == least)
    e_max = two.derive("align", text, up_or(left.e_max, right.e_max, at_least), given)
    up, still = is_up(left.e_max, right.e_max), Link(at_least, (left.e_max, right.e_max))
    two.pairing.split(text, [up, still], [e_max])
    return up, still


def _all_zero(two: DoubledRuns[AnyFdrda], tree: z3.BitVecRef, leaves: dict[int, Link]) -> Link:
    """Node by node: a maximum is 0 if all its terms are."""
    if tree.get_id() in leaves:
        return leaves[tree.get_id()]
    if tree.num_args() != 3:
        raise ArgumentError("the largest exponent is no maximum of the terms'")
    parts = [_all_zero(two, tree.arg(i), leaves) for i in (1, 2)]
    zs = [z for part in parts for z in part.free if z3.is_bool(z)]
    link = Link(all_of(zs) == (tree == 0), (*zs, tree))
    return two.derive("align", "the larger of two is the least exponent if both are", link, parts)


def _reach(two: DoubledRuns[AnyFdrda], own: ExponentRange, wide: ExponentRange) -> list[Link]:
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
