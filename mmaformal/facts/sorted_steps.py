"""Proof that a step of efda of three sorted terms is its exact sum rounded once.

Two of the terms t1, t2, t3, sorted by exponent, are added to P, and P to the third; the number T·u that is rounded has
been shifted right up to three times, its last place sticky (`encodings/efda/smt.py`).  Say that an integer A *stands
for* x at unit u if A·u = |x|, or A is odd and (A − 1)·u < |x| < (A + 1)·u.  Then

1. *terms*:    normalised terms are the products and c, with their leading bits, and sorting only permutes them;
2. *near*:     if t2 is at most 2 binades below t1, P = t1 + t2 exactly, and it is added to t3 as any two terms are;
3. *far*:      if not, P stands for t2 + t3 at its own unit, P's exponent is at least 2 below that of t1, and where P is
               odd, the last alignment takes at least one place from it: what it gives is odd, and at most one coarser
               unit from all that P stands for;
4. *room*:     where anything was lost, ρ's boundaries are even multiples of the last unit;
5. *shift*:    so is the last shift, to the least exponent at which ρ has places;
6. *rounding*: d is ρ(T·u) by definition; and where T is odd and has room, ρ of all strictly between (T ± 1)·u.

And a step that adds the terms in another order gives the same result (`same_number`): what order-independence needs.
The two runs sort the same terms.  Where exponents differ they find the same order; of equal ones, the second run may
have neighbours exchanged.  That changes which two are added first only if t1, t2 and t3 are so close that all sums are
exact: then both runs round the same number, t1 + t2 + t3, though perhaps in units that differ by up to three places.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import NamedTuple

import z3

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    Operand,
    StickySum,
    Term,
    exponent_range,
    product_range,
    resize,
    signed_sum,
)
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Relating
from mmaformal.proof.sticky_sums import (
    e_max_in_range,
    has_room,
    is_around,
    is_larger,
    is_odd,
    is_sharp,
    is_small,
    magnitude_of,
    prove_parity,
    prove_rounded,
    wide_enough,
)
from mmaformal.spec import DotAdd


class Sorted:
    """The terms of a step by short names, and the exponents of their last places, in two's complement."""

    def __init__(self, spec: DotAdd, step: efda.SortedStep) -> None:
        p, self.spec, self.step = spec.parameters, spec, step
        assert isinstance(p, Efda)
        self.rho, self.ex = p.rho, efda.exponents_of(spec)
        self.w, self.bits = step.sorted[0].significand.size(), step.normal.significand.size()
        self.wide = wide_enough(self.ex, self.bits, self.rho)
        one, two, three = step.sorted
        exponents, signs = [x.exponent for x in step.sorted], [x.sign for x in step.sorted]
        self.parts = [*exponents, *(x.significand for x in step.sorted), *signs]
        self.near = z3.ULE(one.exponent - two.exponent, efda.NEAR)
        self.paired, self.rest = efda.select(self.near, one, three), efda.select(self.near, three, one)
        partial, sum_ = step.partial, step.sum
        self.P_negative, self.P = magnitude_of(partial.total)
        self.e1, self.u1 = partial.e_max, self.place(partial.e_max, self.w - 1 + efda.NEAR)
        self.e2, self.u2 = sum_.e_max, self.place(sum_.e_max, self.bits)
        self.cut = [
            self.e2,
            partial.total,
            self.e1,
            *step.normal,
            *self.parts,
        ]  #: of what the last sum is made
        self.least = self.ex.constant(self.rho.format.min_exponent)  #: at which ρ has places

    def place(self, exponent: z3.BitVecRef, fraction_bits: int) -> z3.BitVecRef:
        """The exponent of the last place."""
        return fit(exponent, self.wide) + (self.ex.low - fraction_bits)

    def has_room(self, total: z3.BitVecRef, e_max: z3.BitVecRef) -> z3.BoolRef:
        """Whether ρ's boundaries are even multiples of a sum's last place."""
        return has_room(total, e_max, self.ex, self.bits, self.rho)


def prove_sorted(proving: Composing, spec: DotAdd, step: efda.SortedStep) -> None:
    """Prove that a step of sorted terms is correctly rounded.  Raises NotProvedError."""
    at = Sorted(spec, step)
    bounds = _prove_terms(proving, at)
    known, P_small = _prove_sum_of_two(proving, at, bounds)
    normalised = _prove_normalised(proving, at, [P_small, *bounds, known[0]])
    invariants, T_small = _prove_sum_of_all(proving, at, [*bounds, *known, normalised])
    small = _prove_shifted(proving, at, invariants, T_small)
    prove_rounded(
        proving,
        sum_=(step.sticky.total, step.sticky.e_max, at.bits),
        exponents=at.ex,
        rho=at.rho,
        outcome=(step.special, step.result),
        premises=[small],
    )


def _usual(at: Sorted, term: Term) -> z3.BoolRef:
    """Normalised, or zero with the least exponent; a number's exponent is in its range."""
    ex, least = at.ex, at.ex.constant(efda.lowest(at.spec))
    own, c = product_range(at.spec.a_format, at.spec.b_format), exponent_range(at.spec.c_format)
    zero = z3.And(term.significand == 0, term.exponent == least)
    high = ex.constant(max(own.high, c.high) + 1)
    in_range = z3.And(z3.UGE(term.exponent, least), z3.ULE(term.exponent, high))
    return z3.And(in_range, z3.Or(zero, z3.UGE(term.significand, 1 << (at.w - 1))))


def _prove_terms(proving: Composing, at: Sorted) -> list[z3.BoolRef]:
    """Prove that normalised terms are the numbers, and are sorted; returns what is known of the sorted ones."""
    spec, step = at.spec, at.step
    a, b, M = spec.a_format, spec.b_format, spec.c_format.fraction_bits
    largest = ((2 << a.fraction_bits) - 1) * ((2 << b.fraction_bits) - 1)
    operands = [*step.a, *step.b, step.c]
    finite = z3.Not(z3.Or([flag for x in operands for flag in (x.infinite, x.nan)]))
    proving.claim("finite", "where nothing is special, the operands are finite", z3.Or(finite, *step.special))
    known, count = [], len(step.products)
    exponents, f = product_range(a, b), efda.fraction_bits(spec)
    for k, (x, t, *pair) in enumerate(zip(step.products, step.terms[:count], step.a, step.b, strict=True)):
        known.append(_prove_normal_term(proving, at, f"product {k}", x, t, pair, exponents, f, largest))
    for t in step.terms[count:-1]:
        known.append(proving.claim("no product", "a missing product is zero", _usual(at, t)))
    x, t, exponents = step.addend, step.terms[-1], exponent_range(spec.c_format)
    known.append(_prove_normal_term(proving, at, "c", x, t, [step.c], exponents, M, (2 << M) - 1))
    permuted = [_equal(step.sorted, order) for order in permutations(step.terms)]
    one, two, three = step.sorted
    ordered = z3.And(z3.UGE(one.exponent, two.exponent), z3.UGE(two.exponent, three.exponent))
    proving.claim("sorted", "sorting permutes the terms", z3.Or(permuted))
    kept = z3.And(ordered, *(_usual(at, term) for term in step.sorted))
    proving.claim("order", "sorted terms are in order, and normalised", kept, known)
    return [kept]


def _prove_normal_term(
    proving: Composing,
    at: Sorted,
    name: str,
    x: Term,
    t: Term,
    operands: Sequence[Operand],
    exponents: ExponentRange,
    places: int,
    largest: int,
) -> z3.BoolRef:
    """Prove that t is x, normalised, of so many places, if the operands are finite; returns that it is as usual."""
    ex, finite = at.ex, z3.Not(z3.Or([flag for y in operands for flag in (y.infinite, y.nan)]))
    low, high = (
        z3.UGE(x.exponent, ex.constant(exponents.low)),
        z3.ULE(x.exponent, ex.constant(exponents.high)),
    )
    text = "the exponent of a finite number is in its range"
    ranges = proving.claim(f"{name} range", text, z3.Implies(finite, z3.And(low, high)))
    text = "a significand is not above the largest"
    reach = proving.claim(f"{name} reach", text, z3.ULE(x.significand, largest))
    sizes = t.significand, at.place(t.exponent, at.w - 1), x.significand, at.place(x.exponent, places)
    text = "a term is the number itself, normalised, or zero with the least exponent"
    claim = z3.And(is_sharp(*sizes), z3.Or(x.significand == 0, t.sign == x.sign), _usual(at, t))
    proving.claim(f"{name} normalised", text, claim, [ranges.arg(1), reach])
    return _usual(at, t)


def _prove_sum_of_two(
    proving: Composing, at: Sorted, bounds: list[z3.BoolRef]
) -> tuple[list[z3.BoolRef], z3.BoolRef]:
    """Prove of the first sum, near or far, what its exponent and places are, and that it does not wrap; return both.

    The paired term is t1 or t3; the other one is t2.
    """
    (one, two, _), partial, x = at.step.sorted, at.step.partial, at.paired
    near, e1, u1, P = at.near, at.e1, at.u1, at.P
    x_place, y_place = at.place(x.exponent, at.w - 1), at.place(two.exponent, at.w - 1)
    top = proving.claim(
        "exponent of two",
        "the sum of two has the exponent of the first, or of the second where it is far below",
        e1 == z3.If(near, one.exponent, two.exponent),
        bounds,
    )
    sharp_x, sharp_y = (
        is_sharp(partial.x, u1, x.significand, x_place),
        is_sharp(partial.y, u1, two.significand, y_place),
    )
    proving.claim(
        "near",
        "the first two are aligned exactly if they are at most 2 binades apart",
        z3.Implies(near, z3.And(sharp_x, sharp_y)),
        [top, *bounds],
    )
    proving.claim(
        "far",
        "if not, the second is aligned exactly and even; the third exactly, or odd and less than one unit off",
        z3.Or(
            near,
            z3.And(
                sharp_y,
                z3.Not(is_odd(partial.y)),
                z3.Or(sharp_x, z3.And(is_odd(partial.x), is_around(partial.x, u1, x.significand, x_place))),
            ),
        ),
        [top, *bounds],
    )
    apart = fit(one.exponent - two.exponent, P.size())
    multiple = proving.claim(
        "near multiples",
        "the sum of the first two is a multiple of the second one's last place",
        z3.Implies(near, ((P >> (efda.NEAR - apart)) << (efda.NEAR - apart)) == P),
        [top, *bounds],
    )
    return [top, multiple], prove_parity(proving, partial)


def _prove_normalised(proving: Composing, at: Sorted, known: list[z3.BoolRef]) -> z3.BoolRef:
    """Prove that the sum of two is normalised exactly."""
    P, e1, bits = at.P, at.e1, at.bits
    normal = at.step.normal
    lost = fit(e1 + 1 - normal.exponent, bits)
    below = at.ex.constant(efda.lowest(at.spec))
    return proving.claim(
        "normalised sum",
        "the sum of two, normalised, is the same number, with its leading bit, or zero with the least exponent",
        z3.And(
            z3.Implies(P != 0, normal.sign == z3.If(at.P_negative, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))),
            z3.If(
                P == 0,
                z3.And(normal.significand == 0, normal.exponent == below),
                z3.And(
                    z3.ULE(normal.exponent, e1 + 1),
                    z3.ULE(e1 + 1 - normal.exponent, bits - 1),
                    normal.significand == P << lost,
                    z3.LShR(normal.significand, lost) == P,
                    z3.UGE(normal.significand, 1 << (bits - 1)),
                ),
            ),
        ),
        known,
    )


def _prove_sum_of_all(
    proving: Composing, at: Sorted, known: list[z3.BoolRef]
) -> tuple[list[z3.BoolRef], z3.BoolRef]:
    """Prove of the last sum what its terms and exponent are, and that it does not wrap; return both."""
    one, sum_, normal, rest = at.step.sorted[0], at.step.sum, at.step.normal, at.rest
    near, P, u1, e2, u2 = at.near, at.P, at.u1, at.e2, at.u2
    larger = proving.claim(
        "larger exponent",
        "e_max is the larger exponent",
        is_larger(sum_, normal, rest),
    )
    n_place, r_place = at.place(normal.exponent, at.bits - 1), at.place(rest.exponent, at.w - 1)
    invariants = [*known, larger]
    far_below = proving.claim(
        "far below",
        "a sum of the last two is zero, or at least two binades below the first term, which e_max is",
        z3.Or(near, z3.And(e2 == one.exponent, z3.Or(P == 0, z3.ULE(normal.exponent, one.exponent - 2)))),
        invariants,
    )
    parts_of_sum = []
    for name, text, aligned, term, its_place in (
        ("rest", "the third term is", sum_.y, rest, r_place),
        ("sum of two", "and so, where it is exact, is the sum of two:", sum_.x, normal, n_place),
    ):
        sharp, odd = is_sharp(aligned, u2, term.significand, its_place), is_odd(aligned)
        around = z3.And(odd, is_around(aligned, u2, term.significand, its_place))
        at_top = z3.Implies(term.exponent == e2, z3.And(sharp, z3.Not(odd)))
        text = f"{text} aligned exactly, or odd and less than one unit off; exactly and even if it has e_max"
        proving.claim(name, text, z3.And(z3.Or(sharp, around), at_top), invariants)
        parts_of_sum.append(sharp)
    proving.claim(
        "odd sum of two",
        "an odd sum of the last two gives an odd number, one coarser unit around all that is one unit around the sum",
        z3.Or(near, z3.Not(is_odd(P)), z3.And(is_odd(sum_.x), covers(sum_.x, u2, P, u1))),
        [*invariants, far_below],
    )
    T_small = prove_parity(proving, sum_)
    kept = z3.And(*parts_of_sum, z3.Or(near, z3.Not(is_odd(P))))
    proving.claim(
        "room",
        "where anything was lost, ρ's boundaries are even multiples of the last place",
        z3.Or(kept, at.has_room(sum_.total, e2)),
        [*invariants, far_below],
    )
    return invariants, T_small


def _prove_shifted(
    proving: Composing, at: Sorted, invariants: list[z3.BoolRef], T_small: z3.BoolRef
) -> z3.BoolRef:
    """Prove of the sum shifted to the least exponent at which ρ has places that it is in its range, and return that."""
    sum_, e2, u2, ex, bits, least = at.step.sum, at.e2, at.u2, at.ex, at.bits, at.least
    e_total, total = at.step.sticky
    u3 = at.place(e_total, bits)
    m, after = (magnitude_of(x)[1] for x in (sum_.total, total))
    in_range = proving.claim(
        "range of e_max", "e_max is in its range", z3.ULE(e2, ex.constant(ex.high)), invariants
    )
    shifted = proving.claim(
        "shifted",
        "below ρ's least exponent the sum is shifted to it, exactly or odd, around what it stands for; else it stays",
        z3.If(
            z3.UGE(e2, least),
            z3.And(e_total == e2, total == sum_.total),
            z3.And(
                e_total == least,
                z3.Or(
                    z3.And(is_sharp(after, u3, m, u2), z3.Not(is_odd(sum_.total))),
                    z3.And(is_odd(total), covers(after, u3, m, u2)),
                ),
                z3.Or(
                    after == 0,
                    z3.Extract(bits + 2, bits + 2, total) == z3.Extract(bits + 2, bits + 2, sum_.total),
                ),
            ),
        ),
        [T_small, in_range],
    )
    proving.claim(
        "room after",
        "the shifted sum has room where the sum has, and where it was shifted",
        z3.Or(
            z3.And(z3.UGE(e2, least), z3.Not(at.has_room(sum_.total, e2))),
            at.has_room(total, e_total),
        ),
        [shifted, T_small, in_range],
    )
    return proving.claim(
        "shifted range",
        "the shifted sum is not beyond its width, nor its exponent beyond the range",
        z3.And(is_small(total), e_max_in_range(e_total, ex, at.rho)),
        [T_small, in_range],
    )


def covers(A: z3.BitVecRef, coarse: z3.BitVecRef, P: z3.BitVecRef, fine: z3.BitVecRef) -> z3.BoolRef:
    """Whether (A ± 1) · 2^coarse is around (P ± 1) · 2^fine; neither A nor P is 0."""
    a, p = fit(A, A.size() + 1), fit(P, P.size() + 1)
    return z3.And(at_least(p - 1, fine, a - 1, coarse), at_least(a + 1, coarse, p + 1, fine))


def _normalised(x: Term, lowest: z3.BitVecRef, highest: z3.BitVecRef) -> Link:
    """Return the link that says that a term has its leading one on top, or is zero and has the lowest exponent; none
    is above the highest."""
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


class SortedRuns(NamedTuple):
    """Sums of sorted terms in two runs, and what links them."""

    run: Relating
    left: efda.SortedSum
    right: efda.SortedSum
    exponents: ExponentRange
    lowest: int  #: the exponent of a zero
    c: Sequence[Link]  #: of c, where it is a term

    def derive(
        self, stage: str, text: str, link: Link, given: Sequence[Link], inputs: Sequence[z3.ExprRef] = ()
    ) -> Link:
        return self.run.derive(stage, text, link, given, inputs)


def link_sorted_runs(step: SortedRuns, links: Sequence[Link], codes: Sequence[Sequence[z3.ExprRef]]) -> Link:
    """Return the link that says that both runs round one number, from the links of the normalised terms.

    `codes` are the inputs that each of the first run's terms is made of; none of c.
    """
    (first, second, third), other = step.left.sorted, step.right.sorted
    highest = _exponents(step)[2]
    sorted_ = _sorted_alike(step, links, codes)
    # Partial sums and sums are the same, unless t3 is as near as t2 and may have taken its place.
    close = z3.And(z3.ULE(first.exponent - second.exponent, efda.NEAR), second.exponent == third.exponent)
    places = tuple(term.exponent for term in (first, second, third, *other))
    parts = tuple(part for term in (first, second, third, *other) for part in term)
    runs, equal = (step.left, step.right), []
    for x, y in ((step.left.partial, step.right.partial), (step.left.sum, step.right.sum)):
        equal.append((z3.And(x.e_max == y.e_max, x.total == y.total), (*_interface(x), *_interface(y))))
    (partial, of_two), (whole, of_all) = equal
    text = "partial sums are equal, or three terms are close"
    link = Link(z3.Or(close, partial), (*of_two, *parts))
    same_partial = step.derive("accumulate", text, link, [sorted_])
    text, link = "sums are equal, or three terms are close", Link(z3.Or(close, whole), (*of_all, *places))
    same_sum = step.derive("accumulate", text, link, [same_partial, sorted_])
    exactly = _close_sums(step, sorted_, close)
    (e, T), (f, U) = (_interface(run.sum) for run in runs)
    above = z3.And(z3.ULE(e - f, 3), _is_shifted(T, U, e - f))
    below = z3.And(z3.ULE(f - e, 3), _is_shifted(U, T, f - e))
    in_range = z3.And([_in_range(*_interface(run.sum), highest) for run in runs])
    one_number = z3.And(z3.If(z3.UGE(e, f), above, below), in_range)
    text = "both sums are one number, in units at most three places apart"
    return step.derive("accumulate", text, Link(one_number, (e, T, f, U)), [same_sum, *exactly])


def _exponents(step: SortedRuns) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]:
    """The lowest exponent of a normalised term, the highest one, and that of sums."""
    exponents, lowest = step.exponents, step.lowest
    low, high = exponents.constant(lowest), exponents.constant(exponents.high - 1)
    return low, high, exponents.constant(exponents.high)


def _sorted_alike(step: SortedRuns, links: Sequence[Link], codes: Sequence[Sequence[z3.ExprRef]]) -> Link:
    """Return the link that says that the second run sorts alike, or has neighbours of one exponent exchanged."""
    low, high, _ = _exponents(step)
    normal = []
    for x, inputs in zip(step.left.terms, codes, strict=True):
        given = [] if inputs else step.c
        normal.append(step.derive("align", "terms are normalised", _normalised(x, low, high), given, inputs))
    mine, other = step.left.sorted, step.right.sorted
    first, second, third = mine
    exchanged = z3.Or(
        _equal(mine, other),
        z3.And(first.exponent == second.exponent, _equal((second, first, third), other)),
        z3.And(second.exponent == third.exponent, _equal((first, third, second), other)),
    )
    in_order = z3.And(z3.UGE(first.exponent, second.exponent), z3.UGE(second.exponent, third.exponent))
    parts = tuple(part for term in (*mine, *other) for part in term)
    claim = z3.And(exchanged, in_order, *(_is_normal(x, low, high) for x in mine))
    text = "the second run sorts alike, or has neighbours of one exponent exchanged"
    return step.derive("align", text, Link(claim, parts), [*links, *normal])


def _close_sums(step: SortedRuns, sorted_: Link, close: z3.BoolRef) -> list[Link]:
    """Prove that where terms are close all is exact: each sum is t1 + t2 + t3 in its own unit, at most three binades
    above that of t2; and that sums are in their range."""
    (mine, other), highest = (step.left.sorted, step.right.sorted), _exponents(step)[2]
    parts = tuple(part for term in (*mine, *other) for part in term)
    places = tuple(term.exponent for term in (*mine, *other))
    spare = step.left.normal.significand.size() - (mine[0].significand.size() - 1)
    bits = step.left.sum.total.size()
    of_mine, of_other = (_sum_of_close(terms, bits) for terms in (mine, other))
    alike = z3.And(of_mine == of_other, mine[1].exponent == other[1].exponent)
    link = Link(z3.Implies(close, alike), (of_mine, of_other, *places))
    exactly = [step.derive("accumulate", "close terms have one sum", link, [sorted_])]
    text = "the sum of close terms is exact"
    for run, terms in ((step.left, mine), (step.right, other)):
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
    return exactly


def _interface(x: StickySum) -> tuple[z3.BitVecRef, z3.BitVecRef]:
    return x.e_max, x.total


def _in_range(e_max: z3.BitVecRef, total: z3.BitVecRef, highest: z3.BitVecRef) -> z3.BoolRef:
    """Return the claim that a sum's exponent is at most the highest, and the sum has a magnitude in its width."""
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
