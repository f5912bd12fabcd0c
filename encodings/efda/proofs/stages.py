"""Stages that only efda has: sums of products in fixed point, and of three sorted terms."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import z3

from mmaformal.encodings.efda import LIMB, executable, smt
from mmaformal.encodings.executable import blocks, limbs
from mmaformal.encodings.smt.blocks import StickySum, Term
from mmaformal.facts.sorted_steps import SortedRuns, same_number
from mmaformal.lanes import Lane, fit
from mmaformal.proof.encoding_links import TermLinks, least_excluded, summands, wide_number
from mmaformal.proof.kernel import demand
from mmaformal.proof.lemmas import Link, number
from mmaformal.proof.related_runs import Same, operand_codes, same
from mmaformal.proof.related_stages import RelatedRuns
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
    exponents, places, derive = other.given["exponents"], other.given["places"], run.argument.derive
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
    partial_sum = sum_links(u.partial, v.partial, places + executable.NEAR)
    derive("accumulate", "partial sums are equal", partial_sum, in_order)
    carried = link(u.normal, v.normal)[:3]  # far below all terms, if not for what the terms are made of
    derive("accumulate", "partial sums are normalised alike", carried, partial_sum)
    total = sum_links(u.total, v.sum, places + executable.NEAR + 2)[:3]
    derive("accumulate", "the sums are equal", total, [*carried, *in_order])
    return total


def _row(lanes: Sequence[Lane], term: z3.BitVecRef, *, signed: bool) -> Link:
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
        one = same_number(SortedRuns(run, left, right, *range_, c), links, codes)
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
