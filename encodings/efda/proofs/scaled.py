"""The stages of efda, and what doubling a and c does to its sums (`proof/doubled_stages`)."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt.blocks import StickySum, Term, Trace, exponent_range, product_range
from mmaformal.encodings.smt.stages import Code
from mmaformal.facts.scaling import begun
from mmaformal.proof.doubled_stages import DoubledRuns, DoubledSum
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import same, together
from mmaformal.proof.scaling import halved, is_up, jammed_half, moves, one_up, up_or
from mmaformal.spec import DotAdd
from mmaformal.stages import Recorded, Stage


def stages_of(spec: DotAdd, trace: Trace[efda.Step], c: z3.BitVecRef) -> Sequence[Stage]:
    """The stages of a run."""
    record, p = Recorded(), spec.parameters
    assert isinstance(p, Efda)
    for step in trace.steps:
        begun(record, spec, step, c)
        for x, y, product in zip(step.a, step.b, step.products, strict=True):
            record.made("multiply", [x, y], product)
        record.made("addend", [step.c], step.addend)
        terms = [*step.products, step.addend]
        if isinstance(step, efda.FixedStep):
            record.made("fixed_point", terms, step.sum, spec=spec, step=step)
            total: StickySum | efda.Jammed = step.sum
        else:
            total = record.made("sorted", terms, step.jammed, spec=spec, step=step)
        code = Code(total.total, step.rounded, step.result)
        record.made("round", [total, total.e_max, step.special], code, rho=p.rho)
        c = step.result
    return record


# ---- fixed point ----------------------------------------------------------------------------------------------------


def _twice(x: z3.BitVecRef, y: z3.BitVecRef, bound: int) -> Link:
    """That y = 2x in two's complement, and x is within ±bound."""
    return Link(z3.And(y == x + x, x <= bound, x >= -bound), (x,), ((y, x + x),))


def fixed_point(run: DoubledRuns, mine: Stage, other: Stage) -> DoubledSum:
    """The sum of products doubles, at the same exponent `top`; c's exponent goes up by one.  If the larger exponent is
    c's, it is as elsewhere.  If it is `top`, c is cut at one place more in the first run, with a sticky place, far
    below the sum's leading bit.
    """
    spec, left, right = mine.given["spec"], mine.given["step"], other.given["step"]
    frame = left.sum.y.size() - 1  # c has one integer bit
    bits = frame - efda.places_below(efda.precision(spec, spec.parameters))
    highest = product_range(spec.a_format, spec.b_format).low - efda.fraction_bits(spec) + bits
    exponents = exponent_range(spec.c_format).union(highest)
    least, top = exponents.constant(spec.c_format.min_exponent), exponents.constant(highest)
    term = _fixed_term(run, left.term, right.term, _fixed_dot(run, left, right), (least, top))
    addend = run.of(left.addend)
    f, g, s = left.sum, right.sum, left.term
    orders = [
        link
        for x in (left, right)
        for link in run.argument.not_below(
            "align", "exponents", x.sum.e_max, [x.term.exponent, x.addend.exponent]
        )
    ]
    same_top = z3.And(g.e_max == f.e_max, z3.If(s.significand == 0, f.e_max == least, f.e_max == top))
    text = "the larger exponent goes up by one, or is that of the sum of products, or all is zero"
    e_max = run.derive(
        "align", text, up_or(f.e_max, g.e_max, same_top, s.significand), [term, addend.link, addend.above]
    )
    up = is_up(f.e_max, g.e_max)
    still = Link(same_top, (f.e_max, s.significand), ((g.e_max, f.e_max),))
    run.argument.split(text, [up, still], [e_max])
    signs = together(same(s.sign, right.term.sign), same(left.addend.sign, right.addend.sign))
    run.derive("multiply", "signs are the same", signs, [term, addend.link])

    text = "where the larger exponent goes up, aligned terms are the same"
    aligned = [
        run.derive("align", text, same(u, v), [link, up, *orders])
        for u, v, link in ((f.x, g.x, term), (f.y, g.y, addend.link))
    ]
    total = run.derive("accumulate", "equal terms, equal sums", same(f.total, g.total), [*aligned, signs])

    nothing, low = s.significand == 0, 2 << spec.c_format.fraction_bits
    uncut = z3.And(
        g.x == f.x << 1,
        z3.ULT(f.x, 1 << (f.x.size() - 1)),
        z3.Extract(frame - bits - 1, 0, f.x) == 0,
        (f.x == 0) == nothing,
    )
    x_link = Link(uncut, (f.x, s.significand), ((g.x, f.x << 1),))
    text = "where it is that of the sum of products, this is not cut"
    run.derive("align", text, x_link, [term, still, *orders])
    cut = z3.And(z3.ULT(g.y, low), z3.Not(nothing))
    half = jammed_half(g.y)
    claim = z3.And(f.y == half, z3.Or(z3.Extract(0, 0, g.y) == 0, cut), z3.Implies(nothing, g.y == 0))
    y_link = Link(claim, (g.y, s.significand), ((f.y, half),))
    text = "and c is cut at one place more in the first run; if it loses bits, it is far below"
    run.derive("align", text, y_link, [term, addend.link, addend.above, still, *orders])
    text = "the first sum is half the second, with a sticky place that is far below"
    _, link = halved(f.total, g.total)
    room = z3.Or(z3.Extract(0, 0, link.free[0]) == 0, z3.UGE(link.free[0], 4 * low))
    claim = z3.And(link.claim, room, z3.Implies(nothing, link.free[0] == 0))
    small = run.derive("accumulate", text, Link(claim, link.free, link.defined), [x_link, y_link, signs])
    return DoubledSum(up, still, where_up=[total], where_still=[small])


def _fixed_dot(run: DoubledRuns, left: efda.FixedStep, right: efda.FixedStep) -> Link:
    """The sum of products is doubled, term by term."""
    n = len(left.products)
    xs, ys = summands(left.dot, n), summands(right.dot, n)
    if len(xs) != n or len(ys) != n:
        raise ArgumentError("the sum is not made of its products")
    most = (1 << (left.placed[0].size() - 1)) - 1
    running: Link | None = None
    x = y = None
    for k, (u, v) in enumerate(zip(left.placed, right.placed, strict=True)):
        product = run.of(left.products[k])
        place = Link(z3.And(v == u << 1, z3.ULE(u, most)), (u,), ((v, u << 1),))
        run.derive("align", "a doubled product is placed one higher", place, [product.link, product.below])
        signs = same(left.products[k].sign, right.products[k].sign)
        run.derive("multiply", "signs are the same", signs, [product.link])
        link = _twice(xs[k], ys[k], most)
        run.derive("align", "terms are doubled", link, [place, signs])
        x, y = (xs[k], ys[k]) if x is None or y is None else (x + xs[k], y + ys[k])
        before, running = running, _twice(x, y, (k + 1) * most)
        text = "the sum of doubled terms is doubled"
        run.derive("accumulate", text, running, [link] if before is None else [before, link])
    assert running is not None
    return running


def _fixed_term(
    run: DoubledRuns, s: Term, t: Term, dot: Link, exponents: tuple[z3.BitVecRef, z3.BitVecRef]
) -> Link:
    """So is it as a term, whose exponent stays: the least of c, or `top`."""
    least, top = exponents
    twice = s.significand << 1
    pairs = ((t.sign, s.sign), (t.exponent, s.exponent), (t.significand, twice))
    claim = z3.And(
        *(x == y for x, y in pairs),
        z3.ULT(s.significand, 1 << (s.significand.size() - 1)),
        z3.If(s.significand == 0, s.exponent == least, s.exponent == top),
    )
    text = "the sum of products is doubled, at the same exponent"
    return run.derive("align", text, Link(claim, tuple(s), pairs), [dot])


# ---- three terms ----------------------------------------------------------------------------------------------------

_CLEAR = 4  #: how far above the exponent of a zero that of every other term is


class _Exponents:
    """The exponents that a step's terms may have."""

    def __init__(self, spec: DotAdd) -> None:
        exponents = efda.exponents_of(spec)
        self.zero = exponents.constant(efda.lowest(spec))  #: of zeros
        self.clear = exponents.constant(efda.lowest(spec) + _CLEAR)  #: the least of all others
        self.last = exponents.constant(exponents.high - 1)  #: which can go up
        self.least = exponents.constant(spec.c_format.min_exponent)

    def moved(self, x: Term, y: Term) -> Link:
        """That a normalised term's exponent goes up by one, or it is zero."""
        nothing = z3.And(x.exponent == self.zero, y.exponent == self.zero)
        some = z3.And(
            one_up(x.exponent, y.exponent), z3.UGE(x.exponent, self.clear), z3.ULE(y.exponent, self.last)
        )
        claim = z3.If(x.significand == 0, nothing, some)
        link = moves(x, y)
        return Link(z3.And(link.claim, claim), link.free, link.defined)


def sorted_sum(run: DoubledRuns, mine: Stage, other: Stage) -> DoubledSum:
    """Normalised, sorted, added: the exponents of what is not zero go up by one, at every stage, and the exponent
    that zeros have is well below.  Last, the sum is jammed to d's least exponent: at one place more in the first run.
    """
    left, right, at = mine.given["step"], other.given["step"], _Exponents(mine.given["spec"])
    text = "a normalised term's exponent goes up by one, unless it is zero"
    made: list[Term | None] = [*left.products, *[None] * (2 - len(left.products)), left.addend]
    links = [
        run.derive("align", text, at.moved(x, y), [] if term is None else _normal(run, term))
        for x, y, term in zip(left.terms, right.terms, made, strict=True)
    ]
    pairs = list(zip(left.sorted, right.sorted, strict=True))
    terms = [run.derive("align", "terms are sorted alike", at.moved(x, y), links) for x, y in pairs]
    for step in (left, right):
        one, two, three = (x.exponent for x in step.sorted)
        link = Link(z3.And(z3.UGE(one, two), z3.UGE(two, three)), (one, two, three))
        parts = [part for x in step.terms for part in x]
        terms.append(run.derive("align", "terms are sorted by their exponents", link, [], parts))

    f, g = left.partial, right.partial
    partial = run.derive("accumulate", "partial sums are the same", same(f.total, g.total), terms)
    none = z3.And(f.e_max == at.zero, g.e_max == at.zero, f.total == 0)
    clear = z3.Or(f.total == 0, z3.And(z3.UGE(f.e_max, at.clear), z3.ULE(g.e_max, at.last)))
    e_partial = Link(z3.And(z3.Or(one_up(f.e_max, g.e_max), none), clear), (f.e_max, g.e_max, f.total))
    text = "the exponent of the partial sum goes up by one, unless that is zero"
    run.derive("accumulate", text, e_partial, terms)
    normal = moves(left.normal, right.normal, at.zero)
    text = "normalised, the partial sum's exponent goes up by one, unless it is zero"
    run.derive("accumulate", text, normal, [partial, e_partial, _fits(run, left, f)])

    f, g = left.sum, right.sum
    s, t = (z3.Extract(x.size() - 1, x.size() - 1, x) for x in (f.total, g.total))
    stuck = z3.And(f.e_max == at.zero, g.e_max == at.zero, s == t, (f.total == 0) == (g.total == 0))
    both_up = z3.And(one_up(f.e_max, g.e_max), g.total == f.total)
    sums = Link(z3.Or(both_up, stuck), (f.e_max, g.e_max, f.total, g.total))
    text = "the sum is the same, its exponent one higher; or it is far below all numbers of d"
    run.derive("accumulate", text, sums, [normal, *terms])
    fits = [_fits(run, step, step.sum) for step in (left, right)]
    return _jammed(run, left.jammed, right.jammed, at.least, [sums, *fits])


def _normal(run: DoubledRuns, x: Term) -> list[Link]:
    """What is known of a term that is to be normalised; its significand is zero, or not below that of its first
    operand, which is a normal number."""
    term, operands = run.of(x), run.operands[id(x)]
    places = operands[0].fmt.fraction_bits
    size = Link(z3.Or(x.significand == 0, z3.UGE(x.significand, 1 << places)), (x.significand,))
    run.derive(
        "multiply", "a term is zero or not below its first factor", size, [each.link for each in operands]
    )
    return [term.link, term.above, term.below, size]


def _jammed(
    run: DoubledRuns, f: efda.Jammed, g: efda.Jammed, least: z3.BitVecRef, sums: Sequence[Link]
) -> DoubledSum:
    """The sums, jammed to d's least exponent."""
    equal, other = (Link(x, (f.e_max, g.e_max)) for x in (f.e_max == g.e_max, f.e_max != g.e_max))
    run.argument.split("exponents are equal, or not", [equal, other], terms=[f.e_max, g.e_max])
    both_up = z3.And(one_up(f.e_max, g.e_max), g.total == f.total)
    apart = Link(z3.Or(equal.claim, both_up), (f.e_max, g.e_max, f.total, g.total))
    text = "at d's least exponent or above, the sum is the same, its exponent one higher"
    run.derive("round", text, apart, sums)
    at_least = z3.And(f.e_max == least, g.e_max == least)
    facts, half = halved(f.total, g.total)
    free = (f.e_max, g.e_max, *half.free, *(x for x, _ in half.defined))
    still = Link(z3.Or(other.claim, z3.And(at_least, *facts)), free)
    text = "below it, the sum is cut at one place more in the first run"
    run.derive("round", text, still, sums)
    up, total, low = is_up(f.e_max, g.e_max), same(f.total, g.total), Link(at_least, (f.e_max, g.e_max))
    run.derive("cases", "the exponent goes up by one", up, [apart, other])
    run.derive("cases", "the sum is the same", total, [apart, other])
    run.derive("cases", "the exponent is d's least", low, [still, equal])
    run.derive("cases", "the first sum is half the second, with a sticky place", half, [still, equal])
    return DoubledSum(up, low, where_up=[total], where_still=[half])


def _fits(run: DoubledRuns, step: efda.SortedStep, sum_: StickySum) -> Link:
    """That a sum of two aligned terms is not the least number of its width, whose magnitude has one more bit."""
    link = Link(sum_.total != 1 << (sum_.total.size() - 1), (sum_.total,))
    inputs = [sum_.x, sum_.y, step.normal.sign, *(x for y in step.sorted for x in y[:2])]
    text = "a sum is not the least number of its width"
    return run.derive("accumulate", text, link, [], inputs)


LINKS = {"fixed_point": fixed_point, "sorted": sorted_sum}
