"""Lemmas of what doubling A and C does to the stages of each algorithm, as far as algorithms have them in common.

Two runs, the second on the doubled a and c.  Terms keep their significands, and their exponents go up by one, zeros
aside; so does the largest exponent.  Then shifts, aligned terms and sums are the same, and the same sum at twice the
unit is rounded to twice the number, unless it is subnormal.  Or the largest exponent is one that zeros have, in both
runs: then the sum is zero, or so small that it is cut at the least exponent, at one place more in the first run.
"""

from __future__ import annotations

import z3

from mmaformal.cases.codes import CodeOrFact, Fact, both, either, is_finite, magnitude, select
from mmaformal.encodings.smt.blocks import Term
from mmaformal.formats import Format
from mmaformal.proof.kernel import demand
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import magnitude_and_sign


def _at_least(x: CodeOrFact, bound: int) -> Fact:
    return z3.UGE(x, bound) if isinstance(x, z3.BitVecRef) else x >= bound


def _one(fmt: Format) -> int:
    """The exponent field's last place."""
    return 1 << (fmt.fraction_bits + fmt.ignored_low_bits)


def double_of(code: CodeOrFact, fmt: Format) -> CodeOrFact:
    """The code of 2x, for a normal x whose double is a number too; zero stays zero."""
    return select(magnitude(code, fmt) == 0, code, code + _one(fmt))


def doubles(code: CodeOrFact, fmt: Format) -> Fact:
    """Whether x is zero, or normal and 2x finite."""
    low = magnitude(code, fmt)
    highest = ((1 << fmt.exponent_bits) - 1) << (fmt.fraction_bits + fmt.ignored_low_bits)
    room = _below(low, highest)  # the exponent field is not all ones, so that adding one stays in it
    return either(
        low == 0,
        both(_at_least(low, _one(fmt)), room, is_finite(code, fmt), is_finite(code + _one(fmt), fmt)),
    )


def _below(x: CodeOrFact, bound: int) -> Fact:
    return z3.ULT(x, bound) if isinstance(x, z3.BitVecRef) else x < bound


def normal_or_zero(code: CodeOrFact, fmt: Format) -> Fact:
    low = magnitude(code, fmt)
    return either(low == 0, both(_at_least(low, _one(fmt)), is_finite(code, fmt)))


def well_inside(code: CodeOrFact, fmt: Format) -> Fact:
    """Whether a result is zero, or finite and above the least normal number."""
    low = magnitude(code, fmt)
    return either(low == 0, both(_at_least(low, _one(fmt) + 1), is_finite(code, fmt)))


def same_double(left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
    """Return the link that says that the second code is the double of the first, and both are zero or normal."""
    claim = z3.And(right == double_of(left, fmt), normal_or_zero(left, fmt), normal_or_zero(right, fmt))
    return Link(claim, (left,), ((right, double_of(left, fmt)),))


def one_up(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """Return the claim that y is x + 1, which does not wrap."""
    return z3.And(y == x + 1, z3.ULT(x, y))


def is_up(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
    """Return a link that says that y is x + 1, and that determines y."""
    return Link(one_up(x, y), (x,), ((y, x + 1),))


def link_at_least(x: z3.BitVecRef, bound: int) -> Link:
    return Link(z3.UGE(x, bound), (x,))


def no_more(x: z3.BitVecRef, bound: int) -> Link:
    return Link(z3.ULE(x, bound), (x,))


def moves(left: Term, right: Term, zero: int | z3.BitVecRef | None = None) -> Link:
    """Return the link that says that a term's exponent goes up by one, or the term is zero (and its exponent is
    `zero` in both runs)."""
    still = left.significand == 0
    if zero is not None:
        still = z3.And(still, left.exponent == zero, right.exponent == zero)
    return Link(
        z3.Or(one_up(left.exponent, right.exponent), still),
        (left.sign, left.exponent, left.significand, right.exponent),
        ((right.significand, left.significand), (right.sign, left.sign)),
    )


def up_or(x: z3.BitVecRef, y: z3.BitVecRef, other: z3.BoolRef, *terms: z3.ExprRef) -> Link:
    """Return the link that says that an exponent goes up by one, or something else is so."""
    return Link(z3.Or(one_up(x, y), other), (x, y, *terms))


# ---- maxima, sums, codes ---------------------------------------------------------------------------------------------


def jammed_half(x: z3.BitVecRef) -> z3.BitVecRef:
    """x / 2 of an unsigned x, with a sticky last place."""
    return z3.LShR(x, 1) | (x & 1)


def halved(left: z3.BitVecRef, right: z3.BitVecRef) -> tuple[list[z3.BoolRef], Link]:
    """Say that two sums have one sign, and the first half the magnitude of the second, with a sticky place."""
    (m, s), (n, t) = magnitude_and_sign(left, True), magnitude_and_sign(right, True)
    half = jammed_half(n)
    zero = n == 0
    facts = [z3.ULT(n, 1 << (n.size() - 1)), m == half, s == t, (left == 0) == zero, (right == 0) == zero]
    return facts, Link(z3.And(facts), (n, t), ((m, half), (s, t), (left == 0, zero), (right == 0, zero)))


def normal(code: z3.BitVecRef, fmt: Format) -> z3.BoolRef:
    """Whether a code is zero, or no subnormal number."""
    return z3.Or(magnitude(code, fmt) == 0, z3.UGE(magnitude(code, fmt), _one(fmt)))


def link_between(x: z3.BitVecRef, low: int, high: int, fmt: Format) -> Link:
    """Return the link that says that x is zero or 2^low ≤ |x| ≤ 2^high.  Raises ArgumentError if these are no normal
    numbers."""
    inside = fmt.min_exponent < low and high < fmt.max_exponent
    demand(inside, "products or their sums may leave the range of normal numbers")
    size, (least, most) = magnitude(x, fmt), ((e + fmt.bias) * _one(fmt) for e in (low, high))
    return Link(z3.Or(size == 0, z3.And(z3.UGE(size, least), z3.ULE(size, most))), (x,))
