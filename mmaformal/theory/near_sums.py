"""Sums that are kept with a sticky last place, as integers of a fixed point.

What is kept of a term is the term, or an odd integer of units that is less than one unit off.  Where one of two is
exact, their sum is off by what the other one is: so it is the exact sum, or odd and less than one unit off.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.proof.composition import wide
from mmaformal.proof.sticky_sums import is_around, is_odd, is_sharp, magnitude_of
from mmaformal.proof.wide_numbers import Scaled, WideNumbers, near


@dataclass(frozen=True)
class Part:
    """A term of a sum: what is kept of its magnitude, in units of 2^u, and the term."""

    sign: z3.BitVecRef
    kept: Scaled
    term: Scaled

    @property
    def sharp(self) -> z3.BoolRef:
        return is_sharp(*self.kept, *self.term)

    @property
    def around(self) -> z3.BoolRef:
        return is_around(*self.kept, *self.term)


@dataclass(frozen=True)
class NearSum:
    """A sum in units of 2^u that is the exact one; or odd, with room for rounding, and less than one unit off."""

    total: z3.BitVecRef  #: two's complement
    u: z3.BitVecRef
    room: z3.BoolRef

    def claim(self, w: WideNumbers, exact: z3.BitVecRef) -> z3.BoolRef:
        value = w.point.signed(self.total, self.u)
        off = z3.And(is_odd(self.total), self.room, near(value, exact, w.point.unit(self.u)))
        return z3.Or(value == exact, off)

    @property
    def negative(self) -> z3.BoolRef:
        return magnitude_of(self.total)[0]

    @property
    def magnitude(self) -> Scaled:
        return Scaled(magnitude_of(self.total)[1], self.u)

    def prove_sign(self, w: WideNumbers) -> z3.BoolRef:
        """That it is its magnitude with its sign, where it does not wrap (`is_small`)."""
        least = self.prove_least(w)
        x, k = w.point.integer(self.magnitude.m), w.point.shift(self.u)
        return w.signed_shift(wide(self.total, w.point.bits), self.negative, x, k, [least])

    def prove_least(self, w: WideNumbers) -> z3.BoolRef:
        text = "a sum is not the least number of its width"
        least = z3.Or(z3.Not(self.negative), z3.Extract(self.total.size() - 2, 0, self.total) != 0)
        return w.theory.claim("not the least", text, least, [is_small(self.total)])


def is_small(total: z3.BitVecRef) -> z3.BoolRef:
    """Whether a sum of two is not beyond its width, as `prove_parity` claims."""
    reach = 2 * ((1 << (total.size() - 2)) - 1)
    return z3.And(total <= reach, total >= -reach)


@dataclass(frozen=True)
class Kept:
    """What is kept of terms, as integers."""

    w: WideNumbers

    def number(self, part: Part) -> z3.BitVecRef:
        return self.w.number(part.sign, part.term)

    def kept(self, part: Part) -> z3.BitVecRef:
        return self.w.number(part.sign, part.kept)

    def prove(self, part: Part, ranges: list[z3.BoolRef]) -> z3.BoolRef:
        """Where a term is sharp, or odd and around, the same of the signed numbers."""
        w, theory = self.w, self.w.theory
        equal, about = (
            w.equal(part.kept, part.term, ranges),
            w.around(part.kept, part.term, ranges),
        )
        a, v, p = w.value(part.kept), w.value(part.term), w.point.unit(part.kept.t)
        kept, number = self.kept(part), self.number(part)
        text = "what is kept of a term is the number, or less than one unit off"
        exact = z3.Implies(part.sharp, kept == number)
        exact = theory.claim("kept exactly", text, exact, [equal])
        goal, cases = z3.Implies(z3.And(is_odd(part.kept.m), part.around), near(kept, number, p)), []
        for s, (b, y) in ((0, (a, v)), (1, (-a, -v))):
            both = z3.And(kept == b, number == y)
            signed = w.of_sums("sign", "with its sign", z3.Implies(part.sign == s, both))
            alike = w.of_sums("either sign", text, z3.Implies(near(a, v, p), near(b, y, p)))
            far = z3.Implies(both, near(b, y, p) == near(kept, number, p))
            moved = theory.claim("equal numbers", text, far)
            given = [about, signed, alike, moved]
            claim = z3.Implies(part.sign == s, goal)
            cases.append(w.follows(f"kept, {s}", text, claim, given, part.around))
        off = theory.claim("kept nearly", text, goal, cases)
        return theory.claim("kept", text, z3.And(exact, off), [exact, off])

    def sum_of_two(self, total: z3.BitVecRef, x: Part, y: Part) -> list[z3.BoolRef]:
        """That a sum of what is kept is one of those numbers, and odd if one of the two is."""
        parts = [(part.sign, part.kept.m) for part in (x, y)]
        added = self.w.signed_sum(total, parts, x.kept.t)
        odd = z3.Extract(0, 0, total) == z3.Extract(0, 0, x.kept.m) ^ z3.Extract(0, 0, y.kept.m)
        text = "a sum is odd if one of the two is"
        parity = self.w.theory.claim("parity", text, odd)
        a, b = x.kept.m, y.kept.m
        text = "that is, it is odd if one of them is and the other one is not"
        odds = z3.And(
            z3.Implies(z3.And(is_odd(a), z3.Not(is_odd(b))), is_odd(total)),
            z3.Implies(z3.And(is_odd(b), z3.Not(is_odd(a))), is_odd(total)),
        )
        return [added, self.w.theory.claim("odd sum", text, odds, [parity])]

    def off_by_one(
        self,
        total: z3.BitVecRef,
        unit: z3.BitVecRef,
        pairs: tuple[tuple[z3.BitVecRef, z3.BitVecRef], tuple[z3.BitVecRef, z3.BitVecRef]],
    ) -> list[z3.BoolRef]:
        """That a sum is off by what one of its terms is, of terms as they are kept and as they are."""
        (x, v), (y, w) = pairs
        claims, text = [], "the sum is off by what the one is that is not exact"
        exact = z3.Implies(z3.And(total == x + y, x == v, y == w), total == v + w)
        claims.append(self.w.theory.claim("exact sum", text, exact))
        for (p, q), (r, s) in (pairs, pairs[::-1]):  # r is exact
            given, goal = z3.And(total == x + y, r == s), near(total, v + w, unit)
            with_both = near(p + r, q + r, unit)
            alike = z3.Implies(given, goal == with_both)
            alike = self.w.theory.claim("equal sums", "equal sums are as near", alike)
            without = with_both == near(p, q, unit)
            without = self.w.theory.claim("both with another", text, without)
            claim = z3.Implies(z3.And(given, near(p, q, unit)), goal)
            claims.append(self.w.follows("off by one", text, claim, [alike, without]))
        return claims


@dataclass(frozen=True)
class Shown:
    """What was shown of a sum, and what is known of it and of the exact one."""

    sum: NearSum
    exact: z3.BitVecRef
    claim: z3.BoolRef  #: `NearSum.claim`
    in_range: z3.BoolRef  #: of the sum's exponent
    far: z3.BoolRef  #: the exact sum is far from the ends
