"""What doubling does, where it is the same in several algorithms: maxima of exponents, sums with a sticky place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import z3

from mmaformal.cases.interfaces import AddsC, Rounds
from mmaformal.encodings.smt.blocks import StickySum, Term
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import same, together
from mmaformal.proof.scaling import DoubledRuns, halved, is_up, jammed_half, rounded_up, up_or


def by_exponent(products: Sequence[Term], links: Sequence[Link]) -> dict[int, Link]:
    """The products' links, by the ids of their exponents."""
    return {x.exponent.get_id(): link for x, link in zip(products, links, strict=True)}


class AddsSticky(AddsC, Rounds, Protocol):
    """A step that adds c to one term."""

    @property
    def sum(self) -> StickySum: ...


StickyT = TypeVar("StickyT", bound=AddsSticky)


def sticky_sum_doubled(
    two: DoubledRuns[StickyT],
    of: Callable[[StickyT], Term],
    term: Link,
    least: z3.BitVecRef,
    known: Sequence[Link] = (),
) -> Link:
    """The link of the results, where a step rounds the sum of c and one term, which `of` gives and `term` relates.

    The larger exponent goes up by one, or is c's least one in both runs: then c is zero, and the other term, whose
    exponent is below, is cut at one place more in the first run, with a sticky place.  `known`: of what else the
    results are made.
    """
    left, right, pairing = two.left, two.right, two.pairing
    x, y = left.sum, right.sum
    addend, low = two.addend(least)
    at_least = z3.And(x.e_max == least, y.e_max == least)
    e_max = up_or(x.e_max, y.e_max, at_least)
    text = "the larger exponent goes up by one, or is c's least one"
    two.derive("align", text, e_max, [term, addend, low])
    orders = two.ordered(lambda step: (step.sum.e_max, of(step).exponent, step.addend.exponent))
    up, still = is_up(x.e_max, y.e_max), Link(at_least, (x.e_max, y.e_max))
    pairing.split(text, [up, still], [e_max])
    in_range = two.in_range()
    signs = together(same(of(left).sign, of(right).sign), same(left.addend.sign, right.addend.sign))
    two.derive("multiply", "signs are the same", signs, [term, addend])

    text = "where the larger exponent goes up, aligned terms are the same"
    aligned = [
        two.derive("align", text, same(u, v), [link, up, *orders])
        for u, v, link in ((x.x, y.x, term), (x.y, y.y, addend))
    ]
    total = two.derive("accumulate", "equal terms, equal sums", same(x.total, y.total), [*aligned, signs])
    rounded_up(two, total, up, [*in_range, signs, *known])

    text = "where it is c's least one, c is zero"
    nothing = z3.BitVecVal(0, x.y.size())
    none = Link(z3.And(x.y == 0, y.y == 0), (), ((x.y, nothing), (y.y, nothing)))
    two.derive("align", text, none, [addend, low, still, *orders])
    text = "and the other term is cut at one place more in the first run"
    half = Link(x.x == jammed_half(y.x), (y.x,), ((x.x, jammed_half(y.x)),))
    two.derive("align", text, half, [term, still, *orders])
    text = "the first sum is half the second, with a sticky place"
    _, total = halved(x.total, y.total)
    two.derive("accumulate", text, total, [half, none, signs])
    text = "half a sum, with a sticky place, is rounded to half the number"
    two.derive("round", text, two.result, [total, still, *in_range, signs, *known])
    return two.result
