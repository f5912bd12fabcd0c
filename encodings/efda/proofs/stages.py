"""Stages that only efda has, sums of products in fixed point and of three sorted terms: in both encodings, and in two
runs on related or on doubled inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import z3

from mmaformal.encodings.efda import LIMB, smt
from mmaformal.encodings.executable import blocks, limbs
from mmaformal.encodings.smt.blocks import ExponentRange, StickySum, Term
from mmaformal.facts.sorted_steps import SortedRuns, link_sorted_runs
from mmaformal.lanes import SymbolicLane, fit
from mmaformal.proof.doubled_runs import DoubledRuns, DoubledSum
from mmaformal.proof.doubled_stages import link_doubled_round_sum
from mmaformal.proof.encoding_links import TermLinks, least_excluded, summands, wide_number
from mmaformal.proof.kernel import demand
from mmaformal.proof.lemmas import Link, number
from mmaformal.proof.related_runs import Same, all_links, operand_codes, same
from mmaformal.proof.related_stages import RelatedRuns
from mmaformal.proof.scaling import halved, is_up, jammed_half, moves, no_more, one_up, up_or
from mmaformal.proof.simulation import Simulation
from mmaformal.solver.asking import conjunction
from mmaformal.stages import Stage

# ---- both encodings


def _fixed_sum(run: Simulation, mine: Stage, other: Stage) -> None:
    """Links the term.  The executable's unit lies below the SMT encoding's by the places that c may need."""
    u, v, below, derive = mine.output, other.output, other.given["below"], run.argument.derive
    bits, terms = v.placed[0].size(), summands(v.dot, len(mine.inputs))

    def links_of(lanes: limbs.Wide, sum_: z3.BitVecRef, count: int) -> list[Link]:
        most = count * ((1 << bits) - 1)
        inside = Link(z3.And(sum_ <= most, sum_ >= -most), (sum_,))
        return [wide_number(lanes, sum_, signed=True, below=below), inside]

    running, so_far = terms[0], list[Link]()
    for count, (product, lanes, summand) in enumerate(zip(mine.inputs, u.placed, terms, strict=True), 1):
        made = links_of(lanes, summand, 1)
        placed = derive("align", "products in fixed point are the same", made, run.of(product))
        if count == 1:
            so_far = [*placed]
            continue
        running = running + summand
        text = "sums of as many products are equal"
        so_far = [
            *derive("accumulate", text, links_of(u.partials[count - 1], running, count), [*so_far, *placed])
        ]
    demand(running.eq(v.dot), "the encodings do not add products in one order")
    dot = wide_number(u.dot, v.dot, signed=True, below=below)
    sums = derive("accumulate", "the sums of products are equal", [dot, least_excluded(v.dot)], so_far)
    x, y = u.term, v.term
    exponent = number(x.exponent, y.exponent, low=other.given["least"])
    significand = wide_number(x.significand, y.significand, below=below)
    links = TermLinks(number(x.sign, y.sign), exponent, significand)
    derive("accumulate", "the sum of products is the same term", links, sums)
    run.add(x, links, y)


def _sorted_sum(run: Simulation, mine: Stage, other: Stage) -> list[Link]:
    """The links of the sum, and of its unit."""
    exponents, frames, derive = other.given["exponents"], other.given["frames"], run.argument.derive
    low, zero = exponents.low, exponents.constant(other.given["zero"])
    u, v = mine.given["sum"], other.given["sum"]

    def link(x: blocks.Term, y: Term) -> list[Link]:
        exponent = number(x.exponent, y.exponent, low=low)
        above = Link(z3.UGE(y.exponent, zero), (y.exponent,))
        return [number(x.sign, y.sign), exponent, number(x.significand, y.significand), above]

    def sum_links(x: blocks.Sum, y: StickySum, frame: int) -> list[Link]:
        total, unit = number(x.total, y.total, signed=True), number(x.unit, y.e_max, low=low - frame)
        return [total, unit, least_excluded(y.total), Link(z3.UGE(y.e_max, zero), (y.e_max,))]

    none = derive("align", "both encodings have the same zero", [Link(z3.BoolVal(True), ())])
    *terms, addend = (run.of(x) for x in mine.inputs)
    normal: list[Link] = []
    for term, x, y in zip([*terms, *[none] * (2 - len(terms)), addend], u.terms, v.terms, strict=True):
        normal += derive("align", "terms are normalised alike", link(x, y), term)
    links = [link(x, y) for x, y in zip(u.sorted, v.sorted, strict=True)]
    first, second, _ = (term.exponent for term in v.sorted)
    in_order = [each for term in links for each in term] + [Link(z3.ULE(second, first), ())]
    derive("align", "terms are sorted alike", in_order, normal)
    partial_sum = sum_links(u.partial, v.partial, frames.first)
    derive("accumulate", "partial sums are equal", partial_sum, in_order)
    carried = link(u.normal, v.normal)[:3]  # far below all terms, if not for what the terms are made of
    derive("accumulate", "partial sums are normalised alike", carried, partial_sum)
    total = sum_links(u.total, v.sum, frames.last)[:3]
    derive("accumulate", "the sums are equal", total, [*carried, *in_order])
    return total


def _row(lanes: Sequence[SymbolicLane], term: z3.BitVecRef, *, signed: bool) -> Link:
    """Return the link that says that a row of limbs is a number, the highest limb with its sign."""
    top, claims, defined = len(lanes) - 1, list[z3.BoolRef](), list[tuple[z3.BitVecRef, z3.BitVecRef]]()
    for i, lane in enumerate(lanes):
        last = term.size() - 1 if i == top else LIMB * (i + 1) - 1
        part, whole = z3.Extract(last, LIMB * i, term), signed and i == top
        bits = max(lane.term.size(), part.size()) + 2
        claims.append(lane.fit(bits) == fit(part, whole, bits))
        defined.append((lane.term, fit(part, whole, lane.term.size())))
    return Link(conjunction(claims), (term,), tuple(defined), tuple(lanes))


def _long_sum(run: Simulation, mine: Stage, other: Stage) -> list[Link]:
    """The links of the sum's leading limbs, and of their exponent."""
    u, v, derive = mine.given["sum"], other.output, run.argument.derive
    terms = [run.of(x) for x in mine.inputs]
    partial: list[Link] = []
    for k, term in enumerate(terms):
        row = _row(u.placed[k], v.placed[k], signed=False)
        derive("align", "terms are placed in limbs alike", [row], [term.exponent, term.significand])
        bits, reach = v.partial[k].size(), (k + 1) << v.placed[k].size()
        inside = Link(
            z3.And(v.partial[k] <= reach, v.partial[k] >= z3.BitVecVal(-reach, bits)), (v.partial[k],)
        )
        links = [_row(u.partial[k], v.partial[k], signed=True), inside]
        text, given = "sums in limbs are equal", [*partial, row, term.sign]
        derive("accumulate", text, links, given, each_value_of=term.sign.term)
        partial = links
    magnitude = [number(u.sign, v.sign), _row(u.magnitude, v.magnitude, signed=False)]
    derive("accumulate", "the sum in limbs has the same sign and magnitude", magnitude, partial)
    low, rounded = other.given["low"], mine.output
    wide = [wide_number(u.leading, v.window), number(u.unit, v.unit, low=low)]
    derive("accumulate", "the leading limbs are the same", wide, magnitude)
    bits = [number(u.narrowed.total, v.bits), number(u.narrowed.unit, v.e_max, low=low)]
    derive("accumulate", "their leading bits are the same", bits, wide)
    links = [number(rounded.total, v.total, signed=True), bits[1], least_excluded(v.total)]
    derive("accumulate", "so they are with the sign", [links[0], links[2]], [magnitude[0], bits[0]])
    return links


# ---- two runs on related inputs


def _related_fixed_sum(run: RelatedRuns, other: Stage, mine: Stage) -> None:
    """Links the term."""
    x, y, nothing = other.output, mine.output, {}
    for i, (stage, zero) in run.dropped(other.inputs, mine.inputs).items():
        u, v = stage.inputs
        nothing[i] = partial(run.adds_nothing, u, v, e_max=None, zero=run.zero_factors(u, v, zero))
    order, links = run.order(other.inputs, mine.inputs), [[run.of(term)] for term in mine.inputs]
    dot = run.sum_of(x.dot, y.dot, order, links, nothing=nothing)
    term = run.kind.term(x.term, y.term)
    run.add(y.term, run.derive("multiply", "sums are related terms", term, [dot]))


def _related_sorted_sum(run: RelatedRuns, other: Stage, mine: Stage) -> None:
    """Links the sum and its exponent: where products changed places, in one link that both are one number."""
    left: smt.SortedSum = other.given["sum"]
    right: smt.SortedSum = mine.given["sum"]
    x, y, links = left.sum, right.sum, []
    order = run.order(other.inputs, mine.inputs)
    places = [
        *zip(order[:-1], range(len(order) - 1), strict=True),
        (-1, -1),
    ]  # c is the last of three in both runs
    for (i, j), term in zip(places, mine.inputs, strict=True):
        link = run.kind.term(left.terms[i], right.terms[j])
        links.append(run.derive("align", "normalised terms are related", link, [run.of(term)]))
    for i, (stage, zero) in run.dropped(other.inputs, mine.inputs).items():
        u, v = stage.inputs  # the second run has a constant zero in its place
        given, link = [run.zero_factors(u, v, zero)], run.kind.term(left.terms[i], right.terms[i])
        links.append(run.derive("align", "a dropped product is zero", link, given, [u.field, v.field]))
    if isinstance(run.kind, Same) and order != sorted(order):
        _, c = run.code_of_addend(other.inputs)
        factors = [run.makes(term).inputs for term in other.inputs[:-1]]
        codes = [*(operand_codes(*each) for each in factors), []]
        range_ = mine.given["exponents"], mine.given["zero"]
        one = link_sorted_runs(SortedRuns(run, left, right, *range_, c), links, codes)
        run.add(y.e_max, one)
        run.add(y.total, one)
        return
    sorted_ = []
    for first, second in zip(left.sorted, right.sorted, strict=True):
        link = run.kind.term(first, second)
        sorted_.append(run.derive("align", "terms are sorted alike", link, links))
    two, others = left.partial, right.partial
    partial_sum, e_partial = run.kind.summand(two.total, others.total), same(two.e_max, others.e_max)
    run.derive("accumulate", "partial sums are related", partial_sum, sorted_)
    run.derive("accumulate", "partial sums are at the same exponent", e_partial, sorted_)
    sizes, normal = run.sizes(two.total, others.total, partial_sum), run.kind.term(left.normal, right.normal)
    run.derive("accumulate", "partial sums are normalised alike", normal, [sizes, e_partial])
    e_max, total = same(x.e_max, y.e_max), run.kind.summand(x.total, y.total, x.total.size() - 1)
    run.add(y.e_max, run.derive("accumulate", "sums are at the same exponent", e_max, [normal, *sorted_]))
    run.derive("accumulate", "sums are related", total, [normal, *sorted_])
    run.add(y.total, run.sizes(x.total, y.total, total, whole=True))


EQUAL = {"fixed_sum": _fixed_sum, "sorted_sum": _sorted_sum, "long_sum": _long_sum}
RELATED = {"fixed_sum": _related_fixed_sum, "sorted_sum": _related_sorted_sum}


# ---- what doubling a and c does ------------------------------------------------------------------------------------

# ---- fixed point ----------------------------------------------------------------------------------------------------


def _twice(x: z3.BitVecRef, y: z3.BitVecRef, bound: int) -> Link:
    """Return the link that says that y = 2x in two's complement, and x is within ±bound."""
    return Link(z3.And(y == x + x, x <= bound, x >= -bound), (x,), ((y, x + x),))


class _FixedTerm(NamedTuple):
    """A sum of products that is doubled, at the same exponent."""

    link: Link
    top: z3.BitVecRef  #: the exponent, where it is not zero
    places: int  #: zeros that it has below when it is not cut


def _doubled_fixed_sum(run: DoubledRuns, left: Stage, right: Stage) -> None:
    """Links the term: the sum of products is doubled, its exponent stays, that of zeros or one above all bits of it."""
    s, t, dot = left.output.term, right.output.term, _fixed_dot(run, left, right)
    zero, top = (
        z3.simplify(z3.substitute(s.exponent, (left.output.dot == 0, z3.BoolVal(x)))) for x in (True, False)
    )
    twice = s.significand << 1
    pairs = ((t.sign, s.sign), (t.exponent, s.exponent), (t.significand, twice))
    claim = z3.And(
        *(x == y for x, y in pairs),
        z3.ULT(s.significand, 1 << (s.significand.size() - 1)),
        z3.If(s.significand == 0, s.exponent == zero, s.exponent == top),
    )
    text = "the sum of products is doubled, at the same exponent"
    link = run.derive("align", text, Link(claim, tuple(s), pairs), [dot])
    run.add(s, _FixedTerm(link, top, left.given["below"]))


def _sum_with_c(run: DoubledRuns, left: Stage, right: Stage) -> DoubledSum:
    """c's exponent goes up by one.  If the larger exponent is c's, it is as elsewhere.  If it is that of the sum of
    products, c is cut at one place more in the first run, with a sticky place, far below the sum's leading bit.
    """
    (s, u), (t, v), f, g = left.inputs, right.inputs, left.output, right.output
    term, addend = run.of(s), run.of(u)
    orders = run.orders((f.e_max, left.inputs), (g.e_max, right.inputs))
    zero, top = addend.zero, term.top
    same_top = z3.And(g.e_max == f.e_max, z3.If(s.significand == 0, f.e_max == zero, f.e_max == top))
    text = "the larger exponent goes up by one, or is that of the sum of products, or all is zero"
    e_max = up_or(f.e_max, g.e_max, same_top, s.significand)
    run.derive("align", text, e_max, [term.link, addend.link, addend.above])
    up = is_up(f.e_max, g.e_max)
    still = Link(same_top, (f.e_max, s.significand), ((g.e_max, f.e_max),))
    run.argument.split(text, [up, still], [e_max])
    demand(z3.is_bv_value(top), "the sum of products has an exponent that varies")
    below = no_more(g.e_max, max(addend.high, addend.zero, top.as_long()))
    run.derive("align", "exponents are in range", below, [term.link, addend.below])
    signs = all_links(same(s.sign, t.sign), same(u.sign, v.sign))
    run.derive("multiply", "signs are the same", signs, [term.link, addend.link])

    text = "where the larger exponent goes up, aligned terms are the same"
    aligned = [
        run.derive("align", text, same(x, y), [each.link, up, *orders])
        for x, y, each in ((f.x, g.x, term), (f.y, g.y, addend))
    ]
    total = run.derive("accumulate", "equal terms, equal sums", same(f.total, g.total), [*aligned, signs])

    nothing, low = s.significand == 0, 1 << u.significand.size()
    uncut = z3.And(
        g.x == f.x << 1,
        z3.ULT(f.x, 1 << (f.x.size() - 1)),
        z3.Extract(term.places - 1, 0, f.x) == 0,
        (f.x == 0) == nothing,
    )
    x_link = Link(uncut, (f.x, s.significand), ((g.x, f.x << 1),))
    text = "where it is that of the sum of products, this is not cut"
    run.derive("align", text, x_link, [term.link, still, *orders])
    cut, half = z3.And(z3.ULT(g.y, low), z3.Not(nothing)), jammed_half(g.y)
    claim = z3.And(f.y == half, z3.Or(z3.Extract(0, 0, g.y) == 0, cut), z3.Implies(nothing, g.y == 0))
    y_link = Link(claim, (g.y, s.significand), ((f.y, half),))
    text = "and c is cut at one place more in the first run; if it loses bits, it is far below"
    run.derive("align", text, y_link, [term.link, addend.link, addend.above, still, *orders])
    text = "the first sum is half the second, with a sticky place that is far below"
    _, link = halved(f.total, g.total)
    room = z3.Or(z3.Extract(0, 0, link.free[0]) == 0, z3.UGE(link.free[0], 4 * low))
    claim = z3.And(link.claim, room, z3.Implies(nothing, link.free[0] == 0))
    small = run.derive("accumulate", text, Link(claim, link.free, link.defined), [x_link, y_link, signs])
    return DoubledSum(up, still, below=[below], where_up=[total], where_still=[small])


def _fixed_dot(run: DoubledRuns, left: Stage, right: Stage) -> Link:
    """The sum of products is doubled, term by term."""
    n = len(left.inputs)
    xs, ys = summands(left.output.dot, n), summands(right.output.dot, n)
    demand(len(xs) == len(ys) == n, "the sum is not made of its products")
    most = (1 << (left.output.placed[0].size() - 1)) - 1
    running: Link | None = None
    x = y = None
    for k, (u, v) in enumerate(zip(left.output.placed, right.output.placed, strict=True)):
        product = run.of(left.inputs[k])
        place = Link(z3.And(v == u << 1, z3.ULE(u, most)), (u,), ((v, u << 1),))
        run.derive("align", "a doubled product is placed one higher", place, [product.link, product.below])
        signs = same(left.inputs[k].sign, right.inputs[k].sign)
        run.derive("multiply", "signs are the same", signs, [product.link])
        link = _twice(xs[k], ys[k], most)
        run.derive("align", "terms are doubled", link, [place, signs])
        x, y = (xs[k], ys[k]) if x is None or y is None else (x + xs[k], y + ys[k])
        before, running = running, _twice(x, y, (k + 1) * most)
        text = "the sum of doubled terms is doubled"
        run.derive("accumulate", text, running, [link] if before is None else [before, link])
    assert running is not None
    return running


# ---- three terms ----------------------------------------------------------------------------------------------------

_CLEAR = 4  #: how far above the exponent of a zero that of every other term is


def _moved(x: Term, y: Term, exponents: ExponentRange, zero: int) -> Link:
    """Return the link that says that a normalised term's exponent goes up by one, or it is zero."""
    nothing = z3.And(x.exponent == zero, y.exponent == zero)
    some = z3.And(one_up(x.exponent, y.exponent), _clear(x.exponent, y.exponent, exponents, zero))
    link = moves(x, y)
    return Link(z3.And(link.claim, z3.If(x.significand == 0, nothing, some)), link.free, link.defined)


def _clear(x: z3.BitVecRef, y: z3.BitVecRef, exponents: ExponentRange, zero: int) -> z3.BoolRef:
    """Return the claim that the exponents of both runs are well above that of zeros, and below the last one."""
    return z3.And(z3.UGE(x, zero + _CLEAR), z3.ULE(y, exponents.high - 1 - exponents.low))


class _DoubledSorted(NamedTuple):
    """The links of a sum of sorted terms, and the range of its exponents."""

    links: Sequence[Link]
    exponents: ExponentRange


def _doubled_sorted_sum(run: DoubledRuns, mine: Stage, other: Stage) -> _DoubledSorted:
    """Normalised, sorted, added: the exponents of what is not zero go up by one, at every stage, and the exponent
    that zeros have is well below.
    """
    left, right, exponents = mine.given["sum"], other.given["sum"], mine.given["exponents"]
    zero = mine.given["zero"] - exponents.low
    text = "a normalised term's exponent goes up by one, unless it is zero"
    *products, c = mine.inputs
    made: list[Term | None] = [*products, *[None] * (2 - len(products)), c]
    links = [
        run.derive("align", text, _moved(x, y, exponents, zero), [] if term is None else _normal(run, term))
        for x, y, term in zip(left.terms, right.terms, made, strict=True)
    ]
    pairs, text = zip(left.sorted, right.sorted, strict=True), "terms are sorted alike"
    terms = [run.derive("align", text, _moved(x, y, exponents, zero), links) for x, y in pairs]
    for each in (left, right):
        one, two, three = (x.exponent for x in each.sorted)
        link = Link(z3.And(z3.UGE(one, two), z3.UGE(two, three)), (one, two, three))
        parts = [part for x in each.terms for part in x]
        terms.append(run.derive("align", "terms are sorted by their exponents", link, [], parts))

    f, g = left.partial, right.partial
    partial = run.derive("accumulate", "partial sums are the same", same(f.total, g.total), terms)
    none = z3.And(f.e_max == zero, g.e_max == zero, f.total == 0)
    clear = z3.Or(f.total == 0, _clear(f.e_max, g.e_max, exponents, zero))
    e_partial = Link(z3.And(z3.Or(one_up(f.e_max, g.e_max), none), clear), (f.e_max, g.e_max, f.total))
    text = "the exponent of the partial sum goes up by one, unless that is zero"
    run.derive("accumulate", text, e_partial, terms)
    text = "normalised, the partial sum's exponent goes up by one, unless it is zero"
    given = [partial, e_partial, _fits(run, left, f)]
    normal = run.derive("accumulate", text, moves(left.normal, right.normal, zero), given)

    f, g = left.sum, right.sum
    s, t = (z3.Extract(x.size() - 1, x.size() - 1, x) for x in (f.total, g.total))
    stuck = z3.And(f.e_max == zero, g.e_max == zero, s == t, (f.total == 0) == (g.total == 0))
    both_up = z3.And(one_up(f.e_max, g.e_max), g.total == f.total)
    fits = [_fits(run, each, each.sum) for each in (left, right)]
    sums = Link(z3.Or(both_up, stuck), (f.e_max, g.e_max, f.total, g.total))
    text = "the sum is the same, its exponent one higher; or it is far below all numbers of d"
    run.derive("accumulate", text, sums, [normal, *terms])
    return _DoubledSorted([sums, *fits], exponents)


def _normal(run: DoubledRuns, x: Term) -> list[Link]:
    """Derive of a term that is to be normalised that its significand is zero, or not below that of its first
    operand, which is a normal number."""
    term, operands = run.of(x), run.operands[id(x)]
    places = operands[0].fmt.fraction_bits
    size = Link(z3.Or(x.significand == 0, z3.UGE(x.significand, 1 << places)), (x.significand,))
    run.derive(
        "multiply", "a term is zero or not below its first factor", size, [each.link for each in operands]
    )
    return [term.link, term.above, term.below, size]


def _round_shifted(run: DoubledRuns, left: Stage, right: Stage) -> None:
    """Links the codes.  A sum below d's least exponent is shifted to it, sticky: at one place more in the first run."""
    if isinstance(known := run.of(left.inputs[0]), _DoubledSorted):
        least = known.exponents.constant(left.given["rho"].format.min_exponent)
        e, f = (x.inputs[0].e_max for x in (left, right))
        e, f = (z3.If(z3.ULT(x, least), least, x) for x in (e, f))
        run.add(
            left.inputs[0], _shifted(run, (e, left.output.total), (f, right.output.total), least, known.links)
        )
    link_doubled_round_sum(run, left, right)


def _shifted(
    run: DoubledRuns,
    left: tuple[z3.BitVecRef, z3.BitVecRef],
    right: tuple[z3.BitVecRef, z3.BitVecRef],
    least: z3.BitVecRef,
    sums: Sequence[Link],
) -> DoubledSum:
    """Return the links of two shifted sums, each an exponent and a total."""
    (e, x), (f, y) = left, right
    equal, other = Link(e == f, (e, f)), Link(e != f, (e, f))
    run.argument.split("exponents are equal, or not", [equal, other], terms=[e, f])
    apart = Link(z3.Or(equal.claim, z3.And(one_up(e, f), y == x)), (e, f, x, y))
    text = "at d's least exponent or above, the sum is the same, its exponent one higher"
    run.derive("round", text, apart, sums)
    facts, half = halved(x, y)
    low = z3.And(e == least, f == least)
    free = (e, f, *half.free, *(term for term, _ in half.defined))
    cut = Link(z3.Or(other.claim, z3.And(low, *facts)), free)
    text = "below it, the sum is cut at one place more in the first run"
    run.derive("round", text, cut, sums)
    up, total, still = is_up(e, f), same(x, y), Link(low, (e, f))
    run.derive("cases", "the exponent goes up by one", up, [apart, other])
    run.derive("cases", "the sum is the same", total, [apart, other])
    run.derive("cases", "the exponent is d's least", still, [cut, equal])
    run.derive("cases", "the first sum is half the second, with a sticky place", half, [cut, equal])
    return DoubledSum(up, still, where_up=[total], where_still=[half])


def _fits(run: DoubledRuns, sums: smt.SortedSum, each: StickySum) -> Link:
    """Return the link that says that a sum of two aligned terms is not the least number of its width, whose magnitude
    has one more bit."""
    link = Link(each.total != 1 << (each.total.size() - 1), (each.total,))
    inputs = [each.x, each.y, sums.normal.sign, *(x for y in sums.sorted for x in y[:2])]
    return run.derive("accumulate", "a sum is not the least number of its width", link, [], inputs)


DOUBLED = {
    "fixed_sum": _doubled_fixed_sum,
    "sticky_sum": _sum_with_c,
    "sorted_sum": _doubled_sorted_sum,
    "round_sum": _round_shifted,
}
