"""What doubling does, where it is the same in several algorithms: maxima of exponents, sums with a sticky place."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.smt.blocks import Term
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import magnitude_and_sign
from mmaformal.proof.scaling import Derive


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
