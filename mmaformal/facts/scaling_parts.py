"""What doubling does, where it is the same in several algorithms: maxima of exponents, sums with a sticky place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import z3

from mmaformal.cases.interfaces import AddsC, Rounds
from mmaformal.encodings.smt.blocks import StickySum, Term
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import magnitude_and_sign, same, together
from mmaformal.proof.scaling import Derive, DoubledRuns, is_up, rounded_up, up_or


def by_exponent(products: Sequence[Term], links: Sequence[Link]) -> dict[int, Link]:
    """The products' links, by the ids of their exponents."""
    return {x.exponent.get_id(): link for x, link in zip(products, links, strict=True)}


def both_summands(
    x: z3.BitVecRef, y: z3.BitVecRef, n: int
) -> tuple[Sequence[z3.BitVecRef], Sequence[z3.BitVecRef]]:
    """The n terms of a sum, in both runs.  Raises ArgumentError if there are not so many."""
    xs, ys = summands(x, n), summands(y, n)
    if len(xs) != n or len(ys) != n:
        raise ArgumentError("the sum is not made of its terms")
    return xs, ys


def largest(
    derive: Derive, left: z3.BitVecRef, right: z3.BitVecRef, zero: z3.BitVecRef, leaves: dict[int, Link]
) -> Link:
    """Node by node: a maximum goes up by one, or is e_zero in both runs."""

    def link(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
        up = z3.And(y == x + 1, z3.ULT(x, y))
        return Link(z3.Or(up, z3.And(x == zero, y == zero)), (x, y))

    done: dict[int, Link] = {}

    def climb(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
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


def jammed_half(x: z3.BitVecRef) -> z3.BitVecRef:
    """x / 2 of an unsigned x, with a sticky last place."""
    return z3.LShR(x, 1) | (x & 1)


def halved(left: z3.BitVecRef, right: z3.BitVecRef) -> tuple[list[z3.BoolRef], Link]:
    """That two sums have one sign, and the magnitude of the first is half that of the second, with a sticky place."""
    (m, s), (n, t) = magnitude_and_sign(left, True), magnitude_and_sign(right, True)
    half = jammed_half(n)
    zero = n == 0
    facts = [z3.ULT(n, 1 << (n.size() - 1)), m == half, s == t, (left == 0) == zero, (right == 0) == zero]
    return facts, Link(z3.And(facts), (n, t), ((m, half), (s, t), (left == 0, zero), (right == 0, zero)))


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
