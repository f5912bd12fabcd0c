"""What doubling a and c does to a step of efda: sums with a sticky last place (`proof/scaling`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeGuard

import z3

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt.blocks import StickySum, Term, exponent_range, product_range
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link, at_most
from mmaformal.proof.related_runs import operand_codes, same, together
from mmaformal.proof.scaling import DoubledRuns, halved, is_up, jammed_half, moves, one_up, rounded_up, up_or
from mmaformal.spec import DotAdd

AnyEfda: TypeAlias = efda.FixedStep | efda.SortedStep


def _twice(x: z3.BitVecRef, y: z3.BitVecRef, bound: int) -> Link:
    """That y = 2x in two's complement, and x is within ±bound."""
    return Link(z3.And(y == x + x, x <= bound, x >= -bound), (x,), ((y, x + x),))


@dataclass(frozen=True)
class _Aligned:
    """What is known where the sum of products and c are added."""

    term: Link  #: of the sum of products
    addend: Link  #: of c
    low: Link  #: that no exponent of c is below its format's least
    orders: Sequence[Link]  #: that no exponent is above the larger
    in_range: Sequence[Link]  #: of the results
    signs: Link


def _fixed_point(two: DoubledRuns[efda.FixedStep]) -> Link:
    """The sum of products doubles, at the same exponent `top`; c's exponent goes up by one.  If the larger exponent is
    c's, it is as elsewhere.  If it is `top`, c is cut at one place more in the first run, with a sticky place, far
    below the sum's leading bit.
    """
    spec, left, right = two.spec, two.left, two.right
    p = spec.parameters
    assert isinstance(p, Efda)
    frame = left.sum.y.size() - 1  # c has one integer bit
    bits = frame - efda.places_below(efda.precision(spec, p))
    highest = product_range(spec.a_format, spec.b_format).low - efda.fraction_bits(spec) + bits
    exponents = exponent_range(spec.c_format).union(highest)
    least, top = exponents.constant(spec.c_format.min_exponent), exponents.constant(highest)
    dot = _fixed_dot(two)
    term = _fixed_term(two, dot, least, top)
    addend, low = two.addend(least)
    orders = two.ordered(lambda step: (step.sum.e_max, step.term.exponent, step.addend.exponent))
    up, still = _fixed_exponent(two, [term, addend, low], least, top)
    in_range = two.in_range()
    signs = together(same(left.term.sign, right.term.sign), same(left.addend.sign, right.addend.sign))
    two.derive("multiply", "signs are the same", signs, [term, addend])
    known = _Aligned(term, addend, low, orders, in_range, signs)
    _fixed_up(two, known, up)
    _fixed_still(two, known, still, frame - bits)
    return two.result


def _fixed_dot(two: DoubledRuns[efda.FixedStep]) -> Link:
    """The sum of products is doubled, term by term."""
    spec, left, right = two.spec, two.left, two.right
    own, n = product_range(spec.a_format, spec.b_format), len(left.products)
    xs, ys = summands(left.dot, n), summands(right.dot, n)
    if len(xs) != n or len(ys) != n:
        raise ArgumentError("the sum is not made of its products")
    most = (1 << (left.placed[0].size() - 1)) - 1
    last = z3.BitVecVal(own.high - own.low, own.bits)
    running: Link | None = None
    x = y = None
    for k in range(n):
        product = two.product(k, None, *two.factors(k))
        e = right.products[k].exponent
        codes = operand_codes(right.a[k], right.b[k])
        reach = two.derive("multiply", "exponents are in range", at_most(e, last), [], codes)
        u, v = left.placed[k], right.placed[k]
        place = Link(z3.And(v == u << 1, z3.ULE(u, most)), (u,), ((v, u << 1),))
        two.derive("align", "a doubled product is placed one higher", place, [product, reach])
        signs = same(left.products[k].sign, right.products[k].sign)
        two.derive("multiply", "signs are the same", signs, [product])
        link = _twice(xs[k], ys[k], most)
        two.derive("align", "terms are doubled", link, [place, signs])
        x, y = (xs[k], ys[k]) if x is None or y is None else (x + xs[k], y + ys[k])
        before, running = running, _twice(x, y, (k + 1) * most)
        text = "the sum of doubled terms is doubled"
        two.derive("accumulate", text, running, [link] if before is None else [before, link])
    assert running is not None
    return running


def _fixed_term(two: DoubledRuns[efda.FixedStep], dot: Link, least: z3.BitVecRef, top: z3.BitVecRef) -> Link:
    """So is it as a term, whose exponent stays."""
    s, t = two.left.term, two.right.term
    doubled_term = z3.And(
        t.sign == s.sign,
        t.exponent == s.exponent,
        t.significand == s.significand << 1,
        z3.ULT(s.significand, 1 << (s.significand.size() - 1)),
        z3.If(s.significand == 0, s.exponent == least, s.exponent == top),
    )
    term = Link(
        doubled_term,
        tuple(s),
        ((t.sign, s.sign), (t.exponent, s.exponent), (t.significand, s.significand << 1)),
    )
    return two.derive("align", "the sum of products is doubled, at the same exponent", term, [dot])


def _fixed_exponent(
    two: DoubledRuns[efda.FixedStep], given: Sequence[Link], least: z3.BitVecRef, top: z3.BitVecRef
) -> tuple[Link, Link]:
    """The two cases: the larger exponent is c's, and goes up; or it is that of the products, and stays."""
    s, f, g = two.left.term, two.left.sum, two.right.sum
    same_top = z3.And(g.e_max == f.e_max, z3.If(s.significand == 0, f.e_max == least, f.e_max == top))
    text = "the larger exponent goes up by one, or is that of the sum of products, or all is zero"
    e_max = two.derive("align", text, up_or(f.e_max, g.e_max, same_top, s.significand), given)
    up = is_up(f.e_max, g.e_max)
    still = Link(same_top, (f.e_max, s.significand), ((g.e_max, f.e_max),))
    two.pairing.split(text, [up, still], [e_max])
    return up, still


def _fixed_up(two: DoubledRuns[efda.FixedStep], known: _Aligned, up: Link) -> None:
    """The result where the larger exponent goes up."""
    f, g = two.left.sum, two.right.sum
    text = "where the larger exponent goes up, aligned terms are the same"
    aligned = [
        two.derive("align", text, same(u, v), [link, up, *known.orders])
        for u, v, link in ((f.x, g.x, known.term), (f.y, g.y, known.addend))
    ]
    total = two.derive(
        "accumulate", "equal terms, equal sums", same(f.total, g.total), [*aligned, known.signs]
    )
    rounded_up(two, total, up, known.in_range)


def _fixed_still(two: DoubledRuns[efda.FixedStep], known: _Aligned, still: Link, places: int) -> None:
    """The result where it stays; the sum of products has so many places of zeros."""
    s, f, g, c_bits = two.left.term, two.left.sum, two.right.sum, two.spec.c_format.fraction_bits
    nothing = s.significand == 0
    x_twice = z3.And(
        g.x == f.x << 1,
        z3.ULT(f.x, 1 << (f.x.size() - 1)),
        z3.Extract(places - 1, 0, f.x) == 0,
        (f.x == 0) == nothing,
    )
    x_link = Link(x_twice, (f.x, s.significand), ((g.x, f.x << 1),))
    text = "where it is that of the sum of products, this is not cut"
    two.derive("align", text, x_link, [known.term, still, *known.orders])
    cut = z3.And(z3.ULT(g.y, 2 << c_bits), z3.Not(nothing))
    y_half = z3.And(
        f.y == jammed_half(g.y), z3.Or(z3.Extract(0, 0, g.y) == 0, cut), z3.Implies(nothing, g.y == 0)
    )
    y_link = Link(y_half, (g.y, s.significand), ((f.y, jammed_half(g.y)),))
    text = "and c is cut at one place more in the first run; if it loses bits, it is far below"
    two.derive("align", text, y_link, [known.term, known.addend, known.low, still, *known.orders])
    text = "the first sum is half the second, with a sticky place that is far below"
    _, half = halved(f.total, g.total)
    magnitude_, _ = half.free
    room = z3.Or(z3.Extract(0, 0, magnitude_) == 0, z3.UGE(magnitude_, 8 << c_bits))
    total = Link(z3.And(half.claim, room, z3.Implies(nothing, magnitude_ == 0)), half.free, half.defined)
    two.derive("accumulate", text, total, [x_link, y_link, known.signs])
    text = "half a sum, with a sticky place, is rounded to half the number"
    two.derive("round", text, two.result, [total, still, *known.in_range])


_CLEAR = 4  #: how far above the exponent of a zero that of every other term is


class _Exponents:
    """The exponents that a step's terms may have."""

    def __init__(self, spec: DotAdd) -> None:
        exponents = efda.exponents_of(spec)
        own = product_range(spec.a_format, spec.b_format)
        self.zero = exponents.constant(efda.lowest(spec))  #: of zeros
        self.clear = exponents.constant(efda.lowest(spec) + _CLEAR)  #: the least of all others
        self.first, self.highest = exponents.constant(own.low), exponents.constant(own.high)  #: of products
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


def _sorted(two: DoubledRuns[efda.SortedStep]) -> Link:
    """Normalised, sorted, added: the exponents of what is not zero go up by one, at every stage, and the exponent
    that zeros have is well below.  Last, the sum is jammed to d's least exponent: at one place more in the first run.
    """
    at = _Exponents(two.spec)
    terms = _sorted_terms(two, at, _normalised_terms(two, at))
    normal = _sorted_partial(two, at, terms)
    sums = _sorted_sums(two, at, [normal, *terms])
    fits = [_fits(two, step, step.sum) for step in (two.left, two.right)]
    _sorted_jammed(two, at, [sums, *fits])
    return two.result


def _normalised_terms(two: DoubledRuns[efda.SortedStep], at: _Exponents) -> list[Link]:
    """Each term, normalised, is doubled by its exponent."""
    left, right, n = two.left, two.right, len(two.left.products)
    text = "a normalised term's exponent goes up by one, unless it is zero"
    links = []
    for k in range(n):
        given = _normal_product(two, at, k)
        links.append(two.derive("align", text, at.moved(left.terms[k], right.terms[k]), given))
    for k in range(n, 2):
        links.append(two.derive("align", text, at.moved(left.terms[k], right.terms[k])))
    given = _normal_addend(two, at)
    links.append(two.derive("align", text, at.moved(left.terms[-1], right.terms[-1]), given))
    return links


def _normal_product(two: DoubledRuns[efda.SortedStep], at: _Exponents, k: int) -> list[Link]:
    """Product k is doubled by its exponent, which is in range, and its significand is not below a's."""
    spec, left, right = two.spec, two.left, two.right
    product = two.product(k, None, *two.factors(k))
    x = left.products[k]
    codes = operand_codes(left.a[k], left.b[k])
    low = two.derive("multiply", "exponents are in range", at_most(at.first, x.exponent), [], codes)
    codes_ = operand_codes(right.a[k], right.b[k])
    high = at_most(right.products[k].exponent, at.highest)
    two.derive("multiply", "exponents are in range", high, [], codes_)
    a, b, M = left.a[k], left.b[k], spec.a_format.fraction_bits
    normal = Link(z3.Or(a.significand == 0, z3.UGE(a.significand, 1 << M)), (a.significand,))
    given = [two.assumed[code.get_id()] for code in codes]
    two.derive("decode", "a is zero or normal", normal, given, codes)
    size = Link(z3.Or(x.significand == 0, z3.UGE(x.significand, 1 << M)), (x.significand,))
    two.derive("multiply", "a product is zero or not below a", size, [normal], [b.significand])
    return [product, low, high, size]


def _normal_addend(two: DoubledRuns[efda.SortedStep], at: _Exponents) -> list[Link]:
    """c is doubled by its exponent, which is in range, and is zero or normal."""
    addend, low = two.addend(at.least)
    c = two.left.addend.significand
    normal = Link(z3.Or(c == 0, z3.UGE(c, 1 << two.spec.c_format.fraction_bits)), (c,))
    two.derive("decode", "c is zero or normal", normal, [two.c])
    high = at_most(two.right.addend.exponent, at.last)
    two.derive("multiply", "c's exponent is in range", high, [two.c])
    return [addend, low, normal, high]


def _sorted_terms(two: DoubledRuns[efda.SortedStep], at: _Exponents, links: Sequence[Link]) -> list[Link]:
    """So is each sorted term; and they are in order in both runs."""
    pairs = zip(two.left.sorted, two.right.sorted, strict=True)
    terms = [two.derive("align", "terms are sorted alike", at.moved(x, y), links) for x, y in pairs]
    order = []
    for step in (two.left, two.right):
        one, two_, three = (x.exponent for x in step.sorted)
        link = Link(z3.And(z3.UGE(one, two_), z3.UGE(two_, three)), (one, two_, three))
        exps = [x.exponent for x in step.terms]
        others = [y for x in step.terms for y in (x.sign, x.significand)]
        order.append(two.derive("align", "terms are sorted by their exponents", link, [], [*exps, *others]))
    return [*terms, *order]


def _sorted_partial(two: DoubledRuns[efda.SortedStep], at: _Exponents, terms: Sequence[Link]) -> Link:
    """So is the partial sum, normalised."""
    left, right, f, g = two.left, two.right, two.left.partial, two.right.partial
    partial = two.derive("accumulate", "partial sums are the same", same(f.total, g.total), terms)
    none = z3.And(f.e_max == at.zero, g.e_max == at.zero, f.total == 0)
    clear = z3.Or(f.total == 0, z3.And(z3.UGE(f.e_max, at.clear), z3.ULE(g.e_max, at.last)))
    e_partial = Link(z3.And(z3.Or(one_up(f.e_max, g.e_max), none), clear), (f.e_max, g.e_max, f.total))
    text = "the exponent of the partial sum goes up by one, unless that is zero"
    two.derive("accumulate", text, e_partial, terms)
    normal = moves(left.normal, right.normal, at.zero)
    text = "normalised, the partial sum's exponent goes up by one, unless it is zero"
    return two.derive("accumulate", text, normal, [partial, e_partial, _fits(two, left, left.partial)])


def _sorted_sums(two: DoubledRuns[efda.SortedStep], at: _Exponents, given: Sequence[Link]) -> Link:
    """So is the sum; but where the third term is zero, the larger exponent may be its."""
    f, g = two.left.sum, two.right.sum
    s, t = (z3.Extract(x.size() - 1, x.size() - 1, x) for x in (f.total, g.total))
    stuck = z3.And(f.e_max == at.zero, g.e_max == at.zero, s == t, (f.total == 0) == (g.total == 0))
    both_up = z3.And(one_up(f.e_max, g.e_max), g.total == f.total)
    sums = Link(z3.Or(both_up, stuck), (f.e_max, g.e_max, f.total, g.total))
    text = "the sum is the same, its exponent one higher; or it is far below all numbers of d"
    return two.derive("accumulate", text, sums, given)


def _sorted_jammed(two: DoubledRuns[efda.SortedStep], at: _Exponents, sums: Sequence[Link]) -> None:
    """The results, of sums jammed to d's least exponent."""
    f, g = two.left.jammed, two.right.jammed
    equal = Link(f.e_max == g.e_max, (f.e_max, g.e_max))
    other = Link(f.e_max != g.e_max, (f.e_max, g.e_max))
    two.pairing.split("exponents are equal, or not", [equal, other], terms=[f.e_max, g.e_max])
    one_higher = z3.And(one_up(f.e_max, g.e_max), g.total == f.total)
    apart = Link(z3.Or(equal.claim, one_higher), (f.e_max, g.e_max, f.total, g.total))
    text = "at d's least exponent or above, the sum is the same, its exponent one higher"
    two.derive("round", text, apart, sums)
    at_least = z3.And(f.e_max == at.least, g.e_max == at.least)
    facts, half = halved(f.total, g.total)
    together_ = Link(
        z3.Or(other.claim, z3.And(at_least, *facts)),
        (f.e_max, g.e_max, *half.free, *(x for x, _ in half.defined)),
    )
    text = "below it, the sum is cut at one place more in the first run"
    two.derive("round", text, together_, sums)
    in_range = two.in_range()
    up, total = is_up(f.e_max, g.e_max), same(f.total, g.total)
    two.derive("cases", "the exponent goes up by one", up, [apart, other])
    two.derive("cases", "the sum is the same", total, [apart, other])
    rounded_up(two, total, up, in_range)
    still = Link(at_least, (f.e_max, g.e_max))
    two.derive("cases", "the exponent is d's least", still, [together_, equal])
    two.derive("cases", "the first sum is half the second, with a sticky place", half, [together_, equal])
    text = "half a sum, with a sticky place, is rounded to half the number"
    two.derive("round", text, two.result, [half, still, *in_range])


def _fits(two: DoubledRuns[efda.SortedStep], step: efda.SortedStep, sum_: StickySum) -> Link:
    """That a sum of two aligned terms is not the least number of its width, whose magnitude has one more bit."""
    link = Link(sum_.total != 1 << (sum_.total.size() - 1), (sum_.total,))
    inputs = [sum_.x, sum_.y, step.normal.sign, *(x for y in step.sorted for x in y[:2])]
    text = "a sum is not the least number of its width"
    return two.derive("accumulate", text, link, [], inputs)


def _in_fixed_point(two: DoubledRuns[AnyEfda]) -> TypeGuard[DoubledRuns[efda.FixedStep]]:
    return isinstance(two.left, efda.FixedStep) and isinstance(two.right, efda.FixedStep)


def _sorts(two: DoubledRuns[AnyEfda]) -> TypeGuard[DoubledRuns[efda.SortedStep]]:
    return isinstance(two.left, efda.SortedStep) and isinstance(two.right, efda.SortedStep)


def doubled(two: DoubledRuns[AnyEfda]) -> Link:
    if _in_fixed_point(two):
        return _fixed_point(two)
    if not _sorts(two):
        raise ArgumentError("terms are not sorted")
    return _sorted(two)
