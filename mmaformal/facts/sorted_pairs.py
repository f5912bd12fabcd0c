"""A step of three sorted terms adds them in another order, and gives the same result: what order-independence needs.

The two runs sort the same terms.  Where exponents differ they find the same order; of equal ones, the second run may
have neighbours exchanged.  That changes which two are added first only if t1, t2 and t3 are so close that all sums are
exact: then both runs round the same number, t1 + t2 + t3, though perhaps in units that differ by up to three places.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt.blocks import ExponentRange, StickySum, Term, resize, signed_sum
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Relating


def normalised(x: Term, lowest: z3.BitVecRef, highest: z3.BitVecRef) -> Link:
    """That a term has its leading one on top, or is zero and has the lowest exponent; none is above the highest."""
    return Link(_is_normal(x, lowest, highest), (x.exponent, x.significand))


def _is_normal(x: Term, lowest: z3.BitVecRef, highest: z3.BitVecRef) -> z3.BoolRef:
    top = x.significand.size() - 1
    leading = z3.Extract(top, top, x.significand) == 1
    normal = z3.Or(
        z3.And(leading, z3.UGE(x.exponent, lowest)), z3.And(x.significand == 0, x.exponent == lowest)
    )
    return z3.And(normal, z3.ULE(x.exponent, highest))


def _equal(xs: Sequence[Term], ys: Sequence[Term]) -> z3.BoolRef:
    return z3.And([u == v for x, y in zip(xs, ys, strict=True) for u, v in zip(x, y, strict=True)])


def same_number(
    step: Relating,
    runs: tuple[efda.SortedSum, efda.SortedSum],
    range_: tuple[ExponentRange, int],
    links: Sequence[Link],
    codes: Sequence[Sequence[z3.ExprRef]],
    c: Sequence[Link],
) -> Link:
    """That both runs round one number, from the links of the normalised terms.

    `range_`: exponents, and that of a zero.  `codes` are the inputs that each of the first run's terms is made of; none
    of c, whose link is given.
    """
    (left, right), (exponents, lowest) = runs, range_
    low, high = exponents.constant(lowest), exponents.constant(exponents.high - 1)
    highest = exponents.constant(exponents.high)
    normal = []
    for x, inputs in zip(left.terms, codes, strict=True):
        given = [] if inputs else c
        normal.append(step.derive("align", "terms are normalised", normalised(x, low, high), given, inputs))

    # Sorted: alike, or neighbours of one exponent exchanged.
    mine, other = left.sorted, right.sorted
    first, second, third = mine
    exchanged = z3.Or(
        _equal(mine, other),
        z3.And(first.exponent == second.exponent, _equal((second, first, third), other)),
        z3.And(second.exponent == third.exponent, _equal((first, third, second), other)),
    )
    in_order = z3.And(z3.UGE(first.exponent, second.exponent), z3.UGE(second.exponent, third.exponent))
    parts = tuple(part for term in (*mine, *other) for part in term)
    places = tuple(term.exponent for term in (*mine, *other))
    sorted_ = step.derive(
        "align",
        "the second run sorts alike, or has neighbours of one exponent exchanged",
        Link(z3.And(exchanged, in_order, *(_is_normal(x, low, high) for x in mine)), parts),
        [*links, *normal],
    )

    # The sum of two of them, and of all: the same, unless t3 is as near as t2 and may have taken its place.
    close = z3.And(z3.ULE(first.exponent - second.exponent, efda.NEAR), second.exponent == third.exponent)
    sums = left.sum, right.sum
    partial = z3.And(
        [u == v for u, v in zip(_interface(left.partial), _interface(right.partial), strict=True)]
    )
    free = (*_interface(left.partial), *_interface(right.partial), *parts)
    text = "partial sums are equal, or three terms are close"
    same_partial = step.derive("accumulate", text, Link(z3.Or(close, partial), free), [sorted_])
    (e, T), (f, U) = (_interface(x) for x in sums)
    equal = z3.And(e == f, T == U)
    text = "sums are equal, or three terms are close"
    same_sum = step.derive(
        "accumulate", text, Link(z3.Or(close, equal), (e, T, f, U, *places)), [same_partial, sorted_]
    )

    # Where they are close all is exact: each sum is t1 + t2 + t3 in its own unit, at most three binades above t2.
    spare = left.normal.significand.size() - (first.significand.size() - 1)
    bits = left.sum.total.size()
    of_mine, of_other = (_sum_of_close(terms, bits) for terms in (mine, other))
    alike = z3.And(of_mine == of_other, second.exponent == other[1].exponent)
    text, link = "close terms have one sum", Link(z3.Implies(close, alike), (of_mine, of_other, *places))
    exactly = [step.derive("accumulate", text, link, [sorted_])]
    text = "the sum of close terms is exact"
    for run, terms in ((left, mine), (right, other)):
        (e_two, P), (e_max, total) = _interface(run.partial), _interface(run.sum)
        lower = efda.NEAR - (terms[0].exponent - terms[1].exponent)
        claim = z3.And(e_two == terms[0].exponent, _is_shifted(_sum_of_close(terms[:2], P.size()), P, lower))
        two = step.derive("accumulate", text, Link(z3.Implies(close, claim), (e_two, P, *parts)), [sorted_])
        up = e_max - terms[1].exponent
        claim = z3.And(z3.ULE(up, 3), _is_shifted(_sum_of_close(terms, bits), total, spare - up))
        link = Link(z3.Implies(close, claim), (e_max, total, _sum_of_close(terms, bits), *places))
        exactly.append(step.derive("accumulate", text, link, [two, sorted_]))
        within = Link(_in_range(e_max, total, highest), (e_max, total))
        exactly.append(step.derive("accumulate", "a sum is in its range", within, [sorted_]))

    above = z3.And(z3.ULE(e - f, 3), _is_shifted(T, U, e - f))
    below = z3.And(z3.ULE(f - e, 3), _is_shifted(U, T, f - e))
    in_range = z3.And([_in_range(*_interface(x), highest) for x in sums])
    one_number = z3.And(z3.If(z3.UGE(e, f), above, below), in_range)
    text = "both sums are one number, in units at most three places apart"
    return step.derive("accumulate", text, Link(one_number, (e, T, f, U)), [same_sum, *exactly])


def _interface(x: StickySum) -> tuple[z3.BitVecRef, z3.BitVecRef]:
    return x.e_max, x.total


def _in_range(e_max: z3.BitVecRef, total: z3.BitVecRef, highest: z3.BitVecRef) -> z3.BoolRef:
    """That a sum's exponent is at most the highest, and the sum has a magnitude in its width."""
    return z3.And(z3.ULE(e_max, highest), total != 1 << (total.size() - 1))


def _sum_of_close(terms: Sequence[Term], bits: int) -> z3.BitVecRef:
    """t1 + t2, or t1 + t2 + t3, in units of the last place of t2 and t3, which have one exponent."""
    shift = resize(terms[0].exponent - terms[1].exponent, bits)
    highest, *rest = (resize(x.significand, bits) for x in terms)
    return signed_sum([(x.sign, m) for x, m in zip(terms, (highest << shift, *rest), strict=True)], bits)


def _is_shifted(x: z3.BitVecRef, y: z3.BitVecRef, places: z3.BitVecRef) -> z3.BoolRef:
    """Whether y is x · 2^places, both in two's complement."""
    shift = resize(places, x.size())
    return z3.And(x << shift == y, y >> shift == x)
