"""What doubling a and c does to a step of fda, fdrda and gfdrda (`proof/scaling`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import z3

from mmaformal.algorithms import DotAdd, Fda
from mmaformal.encodings.smt import fdrda
from mmaformal.encodings.smt.blocks import all_of, product_range
from mmaformal.encodings.smt.fda import exponents_of
from mmaformal.facts.accumulator import bound_of_sum, within
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link, at_most
from mmaformal.proof.related_runs import Pairing, operand_codes, same
from mmaformal.proof.scaling import (
    Two,
    factor_links,
    is_up,
    moved,
    rounded_up,
    same_double,
    up_or,
    well_inside,
)

# ---- fda ----------------------------------------------------------------------------------------------------


def of_fda(two: Two) -> Link:
    pairing, spec, p = two.pairing, two.spec, two.spec.parameters
    left, right, c, assumed = two.left, two.right, two.c, two.assumed
    assert isinstance(p, Fda)
    if p.e_zero is None:
        raise ArgumentError("no argument for zeros that keep the exponents of their fields")
    exponents = exponents_of(spec, p)
    zero = exponents.constant(p.e_zero)

    def derive(stage: str, text: str, link: Link, given: Sequence[Link], inputs: Sequence[Any] = ()) -> Link:
        return pairing.derive(stage, text, [link], given, inputs)[0]

    # Operands, terms: codes are cut, so that each lemma is about one product.
    terms, flags = [], []
    highest = z3.BitVecVal(exponents.high - exponents.low, exponents.bits)
    in_reach = {}
    for k, (x, y) in enumerate(zip(left.products, right.products, strict=True)):
        scales = [s[k] for s in (left.scale_a, left.scale_b) if s]
        operands = [left.a[k], right.a[k], left.b[k], *scales]
        codes = operand_codes(*operands)
        given = [assumed[code.get_id()] for code in codes]
        special = [flag for each in operands for flag in (each.nan, each.infinite) if not z3.is_false(flag)]
        if special:
            link = Link(z3.And([z3.Not(flag) for flag in special]), tuple(special))
            flags.append(derive("decode", "factors and scales are finite", link, given, codes))
        reach = Link(z3.ULE(y.exponent, highest), (y.exponent,))
        in_reach[y.exponent.get_id()] = derive("multiply", "exponents are in range", reach, [], codes)
        terms.append(_term(derive, x, y, zero, given, codes, left.a[k], right.a[k], left.b[k], scales))
    special_c = [flag for each in (left.c, right.c) for flag in (each.nan, each.infinite)]
    link = Link(z3.And([z3.Not(flag) for flag in special_c]), tuple(special_c))
    flags.append(derive("decode", "c is finite", link, [c]))
    addend = moved(left.addend, right.addend, zero)
    derive("multiply", "c's exponent goes up by one, unless it is zero", addend, [c])
    nothing = [x for s in (left.special, right.special) for x in s]
    none = Link(z3.And([z3.Not(flag) for flag in nothing]), tuple(nothing))
    signs = [x.sign for each in (left, right) for side in (each.a, each.b) for x in side]
    sizes = [x.significand for each in (left, right) for side in (each.a, each.b) for x in side]
    derive("classify", "there is no special value", none, flags, [*signs, *sizes, left.c.sign, right.c.sign])

    reach = Link(z3.ULE(right.addend.exponent, highest), (right.addend.exponent,))
    in_reach[right.addend.exponent.get_id()] = derive("multiply", "c's exponent is in range", reach, [c])
    top = pairing.at_most_all(right.e_max, highest, in_reach)

    # The largest exponent goes up by one, or is e_zero in both.
    everything = [*terms, addend]
    pairs = {x.exponent.get_id(): t for x, t in zip((*left.products, left.addend), everything, strict=True)}
    e_max = _largest(derive, left.e_max, right.e_max, zero, pairs)
    up = Link(right.e_max == left.e_max + 1, (left.e_max,), ((right.e_max, left.e_max + 1),))
    both_zero = Link(z3.And(left.e_max == zero, right.e_max == zero), (left.e_max, right.e_max))
    text = "the largest exponent goes up by one, or is e_zero in both"
    pairing.split(text, [up, both_zero], [e_max])

    result = same_double(left.result, right.result, spec.d_format)
    in_range = [
        pairing.assume(
            "every step's result is zero or above the least normal number",
            Link(well_inside(x, spec.d_format), ()),
        )
        for x in (left.result, right.result)
    ]

    # If it goes up: the same sum, a larger exponent.
    n = len(everything)
    xs, ys = summands(left.total, n), summands(right.total, n)
    if len(xs) != n or len(ys) != n:
        raise ArgumentError("the sum is not made of its terms")
    equal = [
        derive("align", "where the largest exponent goes up, aligned terms are the same", same(x, y), [t, up])
        for x, y, t in zip(xs, ys, everything, strict=True)
    ]
    total = derive("accumulate", "equal terms, equal sums", same(left.total, right.total), equal)
    low = Link(z3.ULT(left.e_max, left.e_max + 1), (left.e_max,))
    derive("align", "the exponent does not wrap", low, [e_max, up])
    derive(
        "round",
        "the same sum at twice the unit is twice the number",
        result,
        [total, up, low, top, none, *in_range],
    )

    # If it is e_zero: nothing that is normal.
    bound = bound_of_sum(spec)
    small = []
    for step, parts in ((left, xs), (right, ys)):
        small.append(_small(pairing, derive, spec, step, parts, both_zero, c, bound, zero))
    derive(
        "round",
        "so small a sum is no normal number, so both are zero",
        result,
        [*small, both_zero, none, *in_range],
    )
    return result


def _term(
    derive: Any, x: Any, y: Any, zero: Any, given: Any, codes: Any, a: Any, other: Any, b: Any, scales: Any
) -> Link:
    """The product's link, from that of its factor."""
    factor, field = factor_links(derive, a, other, b, given, codes)
    inputs = [b.sign, b.significand, *(part for s in scales for part in (s.field, s.significand))]
    text = "a product's exponent goes up by one, unless it is zero"
    link: Link = derive("multiply", text, moved(x, y, zero), [factor, field], inputs)
    return link


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


def _small(
    pairing: Pairing,
    derive: Any,
    spec: DotAdd,
    step: Any,
    parts: Any,
    at_zero: Link,
    c: Link,
    bound: Any,
    zero: Any,
) -> Link:
    """Where the largest exponent is e_zero, c is zero, and the sum is that of products alone."""
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
    pairing.under(step.e_max, leaves, below, step.addend.exponent)
    c_low = Link(
        z3.And(
            z3.UGE(step.addend.exponent, zero),
            z3.Implies(step.addend.significand != 0, step.addend.exponent != zero),
        ),
        (step.addend.exponent, step.addend.significand),
    )
    derive("multiply", "a c that is not zero is above e_zero", c_low, [c])
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
    link2: Link = derive("accumulate", "the sum is that of the products", total, [running, none])
    return link2


# ---- fdrda, gfdrda -----------------------------------------------------------------------------------------------


def _same_or_zero(x: Any, y: Any, e: z3.BitVecRef) -> Link:
    """That both runs' numbers are the same; and zero, if the second run's largest exponent is."""
    return Link(z3.Implies(e == 0, x == 0), (x, e), ((y, x),))


def of_fdrda(two: Two) -> Link:
    """The products' largest exponent goes up by one, or is the least there is in both runs: then all are zero.  With
    c, the larger of two exponents goes up by one, or is c's least one in both: then c is zero, and the sum of the
    products, cut where c's exponent holds it up, is cut at one place more in the first run.
    """
    pairing, spec, left, right = two.pairing, two.spec, two.left, two.right
    p: Any = spec.parameters
    own, wide = product_range(spec.a_format, spec.b_format), fdrda.exponents_of(spec)
    zero = z3.BitVecVal(0, own.bits)
    least = wide.constant(spec.c_format.min_exponent)
    n = len(left.products)
    terms, flags, pairs = [], [], {}
    for k in range(n):
        factor, field = two.factors(k)
        terms.append(two.product(k, zero, factor, field))
        pairs[left.products[k].exponent.get_id()] = terms[k]
        (z, y) = (z3.Or(s.a[k].significand == 0, s.b[k].significand == 0) for s in (left, right))
        e = right.products[k].exponent
        link = Link(z == (e == 0), (z, e), ((y, z),))
        text = "of the doubled products, those that are zero have the least exponent, and no others"
        flags.append(two.derive("multiply", text, link, [factor, field], [left.b[k].significand]))

    def add_up(x: Any, y: Any, tops: tuple[Any, Any], places: Sequence[int], e: Link) -> Link:
        xs, ys = summands(x, len(places)), summands(y, len(places))
        if len(xs) != len(places) or len(ys) != len(places):
            raise ArgumentError("the sum is not made of its terms")
        leaves = [right.products[k].exponent for k in places]
        below = pairing._not_below("align", "exponents", tops[1], leaves)
        links = []
        for k, u, v, order in zip(places, xs, ys, below, strict=True):
            text = "aligned terms are the same, and zero if all are"
            links.append(two.derive("align", text, _same_or_zero(u, v, tops[1]), [terms[k], e, order]))
        text = "equal terms, equal sums, and zero if all are"
        return two.derive("accumulate", text, _same_or_zero(x, y, tops[1]), links)

    def up_or_least(x: Any, y: Any, leaves: dict[int, Link]) -> Link:
        return _largest(two.derive, x, y, zero, leaves)

    if hasattr(left, "groups"):
        count = len(left.groups)
        tops, cuts = {}, []
        es = []
        for g in range(count):
            es.append(up_or_least(left.e_groups[g], right.e_groups[g], pairs))
            tops[left.e_groups[g].get_id()] = es[g]
        e = up_or_least(left.e_products, right.e_products, tops)
        below = pairing._not_below("align", "exponents", right.e_products, list(right.e_groups))
        for g in range(count):
            group = add_up(
                left.groups[g],
                right.groups[g],
                (left.e_groups[g], right.e_groups[g]),
                range(g, n, count),
                es[g],
            )
            link = _same_or_zero(left.groups_cut[g], right.groups_cut[g], right.e_products)
            text = "groups are cut alike, and zero if all are"
            cuts.append(two.derive("align", text, link, [group, es[g], e, below[g]]))
        text = "equal groups, equal sums, and zero if all are"
        dot = two.derive("accumulate", text, _same_or_zero(left.dot, right.dot, right.e_products), cuts)
    else:
        e = up_or_least(left.e_products, right.e_products, pairs)
        dot = add_up(left.dot, right.dot, (left.e_products, right.e_products), range(n), e)
    bound = _bound_of_dot(two, p, n)

    # Whether all products are zero is told by their largest exponent.
    zeros = {right.products[k].exponent.get_id(): flags[k] for k in range(n)}
    all_zero = _all_zero(two, right.e_products, zeros)
    (z, y) = (
        all_of([z3.Or(a.significand == 0, b.significand == 0) for a, b in zip(s.a, s.b, strict=True)])
        for s in (left, right)
    )
    known = Link(z == (right.e_products == 0), (z, right.e_products), ((y, z),))
    two.derive(
        "align", "all products are zero if the largest exponent is the least", known, [all_zero, *flags]
    )
    idle = z3.And(left.dot == 0, right.e_dot == left.e_dot, z3.ULE(left.e_dot, least))
    e_dot = up_or(left.e_dot, right.e_dot, idle, left.dot)
    text = "the exponent of the products goes up by one, or all are zero"
    two.derive("align", text, e_dot, [e, dot, known])

    # With c.
    addend, low = two.addend(least)
    orders = two.ordered("e_max", "e_dot", "addend.exponent")
    at_least = z3.And(left.e_max == least, right.e_max == least)
    e_max = up_or(left.e_max, right.e_max, at_least)
    two.derive(
        "align", "the largest exponent goes up by one, or is c's least one", e_max, [e_dot, addend, low]
    )
    up, still = is_up(left.e_max, right.e_max), Link(at_least, (left.e_max, right.e_max))
    pairing.split("the largest exponent goes up by one, or is c's least one", [up, still], [e_max])
    given = [e_dot, addend, *orders]
    in_range = two.in_range()
    same_dot = Link(right.dot == left.dot, (left.dot,), ((right.dot, left.dot),))
    two.derive("accumulate", "the sums of products are the same", same_dot, [dot])
    total = two.derive(
        "accumulate",
        "where the largest exponent goes up, the sums with c are the same",
        same(left.total, right.total),
        [same_dot, *given, up],
    )
    reach = _reach(two, own, wide)
    rounded_up(two, total, up, [*in_range, *reach])
    half = Link(
        z3.And(right.total != 1 << (right.total.size() - 1), left.total == right.total >> 1),
        (right.total,),
        ((left.total, right.total >> 1),),
    )
    text = "where it is c's least one, the first sum is half the second, rounded down"
    two.derive("accumulate", text, half, [same_dot, bound, *given, low, still])
    text = "half a sum is rounded to half the number"
    two.derive("round", text, two.result, [half, still, *in_range])
    return two.result


def _bound_of_dot(two: Two, p: Any, n: int) -> Link:
    pairing, left = two.pairing, two.left
    if not hasattr(left, "groups"):
        return pairing.bounded(left.dot, n)
    count = len(left.groups)
    each = [pairing.bounded(x, len(range(g, n, count))) for g, x in enumerate(left.groups)]
    bound = within(left.dot, fdrda.dot_bound(p, n))
    text = "a sum of groups is within the sum of their bounds"
    return two.derive("accumulate", text, bound, each, [*left.e_groups, left.e_products])


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
