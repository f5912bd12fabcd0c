"""A step rounds the exact sum of its codes' numbers once: as a theorem, of whichever algorithm.

The sum T · 2^u that is rounded is the exact one, or odd, with room for rounding, and less than one unit off
(`NearSum`): what is kept of a term is the term, or odd and less than one unit off, and where one of two is exact, their
sum is off by what the other one is (`KeptIntegers`).  `Shown` is what an algorithm shows of its sum.

d is ρ of the exact sum (`RoundedOnce`).  Let x be that with the sign of T, and M the magnitude of the sum.  By
definition M lies between its midpoints; where T is odd and has room, so does all within one unit (`prove_rounded`).

1. *distance*: x is M, or less than one unit off, with any sign;
2. *exactly*:  if x = M, the differences to the midpoints are those;
3. *off*:      if not, M ± one unit are between the midpoints, and x is between those;
4. *sign*:     d has the sign of T, but a zero may have either.

It has the sign of the exact sum, or is a zero of a known sign (`SignOfSum`): both have one sign, or M is zero where the
exact sum is.  `conclude` makes the theorem of all that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.interfaces import Rounds
from mmaformal.encodings.smt.blocks import Operand, Special
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import wide
from mmaformal.proof.kernel import demand
from mmaformal.proof.rules import Theory, instance
from mmaformal.proof.sticky_sums import is_around, is_odd, is_sharp, is_small, magnitude_of
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd
from mmaformal.theory.fixed_point import FixedPoint, Shifted, WideNumbers, near
from mmaformal.theory.rounding import RoundingGrid, prove_to_odd


@dataclass(frozen=True)
class KeptTerm:
    """A term of a sum: what is kept of its magnitude, in units of 2^u, and the term."""

    sign: z3.BitVecRef
    kept: Shifted
    term: Shifted

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
    def magnitude(self) -> Shifted:
        return Shifted(magnitude_of(self.total)[1], self.u)

    def prove_sign(self, w: WideNumbers) -> z3.BoolRef:
        """Prove that it is its magnitude with its sign, where it does not wrap (`is_small`)."""
        least = self.prove_least(w)
        x, k = w.point.integer(self.magnitude.m), w.point.shift(self.u)
        return w.signed_shift(wide(self.total, w.point.bits), self.negative, x, k, [least])

    def prove_least(self, w: WideNumbers) -> z3.BoolRef:
        text = "a sum is not the least number of its width"
        least = z3.Or(z3.Not(self.negative), z3.Extract(self.total.size() - 2, 0, self.total) != 0)
        return w.theory.claim("not the least", text, least, [is_small(self.total)])


@dataclass(frozen=True)
class KeptIntegers:
    """Claims about what is kept of terms, as integers."""

    w: WideNumbers

    def number(self, part: KeptTerm) -> z3.BitVecRef:
        return self.w.number(part.sign, part.term)

    def kept(self, part: KeptTerm) -> z3.BitVecRef:
        return self.w.number(part.sign, part.kept)

    def prove(self, part: KeptTerm, ranges: list[z3.BoolRef]) -> z3.BoolRef:
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

    def sum_of_two(self, total: z3.BitVecRef, x: KeptTerm, y: KeptTerm) -> list[z3.BoolRef]:
        """Prove that a sum of what is kept is one of those numbers, and odd if one of the two is."""
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
        """Prove that a sum is off by what one of its terms is, of terms as they are kept and as they are."""
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
    """A sum with the claim that was proved of it, and what is known of it and of the exact one."""

    sum: NearSum
    exact: z3.BitVecRef
    claim: z3.BoolRef  #: `NearSum.claim`
    in_range: z3.BoolRef  #: of the sum's exponent
    far: z3.BoolRef  #: the exact sum is far from the ends


@dataclass(frozen=True)
class RoundedOnce:
    """A step's last sum, and the code of d; `exact` is the exact sum."""

    grid: RoundingGrid
    sum: NearSum
    exact: z3.BitVecRef
    special: Special
    code: z3.BitVecRef

    @property
    def w(self) -> WideNumbers:
        return self.grid.numbers

    @property
    def x(self) -> z3.BitVecRef:
        """The exact sum, with the sign of the sum."""
        return z3.If(self.sum.negative, -self.exact, self.exact)

    @property
    def size(self) -> z3.BitVecRef:
        """The sum's magnitude."""
        return self.w.value(self.sum.magnitude)

    @property
    def whole(self) -> z3.BitVecRef:
        return self.w.point.signed(self.sum.total, self.sum.u)

    @property
    def unit(self) -> z3.BitVecRef:
        return self.w.point.unit(self.sum.u)

    @property
    def index(self) -> z3.BitVecRef:
        return self.grid.index(self.code)

    @property
    def nothing_special(self) -> z3.BoolRef:
        return z3.Not(z3.Or(*self.special))

    def prove(self, known: z3.BoolRef, in_u: z3.BoolRef, far: z3.BoolRef) -> z3.BoolRef:
        """Prove that if nothing is special, d is the exact sum rounded.

        Known are what the sum is (`NearSum.claim`), that u is in its range, and the exact sum far from the ends.
        """
        w, grid, index = self.w, self.grid, self.index
        text = "midpoints are in their range"
        in_q = w.theory.claim("midpoints", text, w.point.in_range(grid.midpoints(index)[0].t))
        distance = self.prove_distance(self.sum.prove_sign(w))
        ranges = [in_u, in_q]
        given = [*self._definition, known, distance, *self._prove_exactly(in_q)]
        given += [self._prove_off(ranges, far), *self._prove_next(ranges), *self._comparisons(ranges)]
        text = "the exact sum lies between the midpoints of d"
        between = z3.Implies(self.nothing_special, grid.between(self.x, index))
        between = w.follows("between midpoints", text, between, [*given, *self._prove_odd()])
        return self._prove_sign([between, known, distance], in_u)

    @property
    def _definition(self) -> list[z3.BoolRef]:
        """The claims of `prove_rounded` about d, in terms of midpoints, or of what is in their place."""
        name, named = f"rounded by {self.grid.rho}", self.w.theory.named
        own = named[name], named[f"{name} around"]
        sizes = self.sum.magnitude, self._above, self._below
        hint = [self.code, self.sum.room, is_odd(self.sum.total), *self.special]
        to_odd = self.grid.rho.rounding is Rounding.RO
        return prove_to_odd(self.grid, self.index, sizes, own, hint) if to_odd else list(own)

    def _prove_odd(self) -> list[z3.BoolRef]:
        total, m = self.sum.total, self.sum.magnitude.m
        claim = z3.Implies(is_odd(total), z3.Not(m == 0))
        return [self.w.theory.claim("odd sum", "an odd sum is not zero", claim)]

    def prove_distance(self, by_sign: z3.BoolRef) -> z3.BoolRef:
        """Prove that x is as far from the magnitude as the exact sum from the sum."""
        w, exact, whole, size, p, x = self.w, self.exact, self.whole, self.size, self.unit, self.x
        goal = z3.And((whole == exact) == (size == x), near(whole, exact, p) == near(size, x, p))
        text, cases = "magnitudes are as far apart as the numbers", []
        for where, y, signed in (
            (self.sum.negative, -exact, -size),
            (z3.Not(self.sum.negative), exact, size),
        ):
            claim = z3.Implies(where, z3.And(x == y, signed == whole))
            both = w.theory.claim("sign of a sum", "a sum with its sign", claim, [by_sign])
            claim = z3.Implies(
                signed == whole,
                z3.And((whole == exact) == (size == y), near(whole, exact, p) == near(size, y, p)),
            )
            moved = w.theory.claim("sum with a sign", text, claim)
            claim = z3.Implies(
                x == y, z3.And((size == y) == (size == x), near(size, y, p) == near(size, x, p))
            )
            back = w.theory.claim("sum with its sign", text, claim)
            cases.append(w.follows("distance", text, z3.Implies(where, goal), [both, moved, back]))
        return w.follows("distance with the sign", text, goal, cases)

    def _prove_exactly(self, in_q: z3.BoolRef) -> list[z3.BoolRef]:
        """Prove that x is between midpoints as the magnitude is, if it is the magnitude."""
        w, x, size, (lo, up) = self.w, self.x, self.size, self.grid.ends(self.index)
        text = "if it is exact, the sum is between the midpoints as its magnitude is"
        same = z3.And(
            (x - up < 0) == z3.Not(size - up >= 0),
            (up - x >= 0) == (up - size >= 0),
            (lo - x < 0) == z3.Not(lo - size >= 0),
            (x - lo >= 0) == (size - lo >= 0),
        )
        exactly = w.theory.claim("exactly", text, z3.Implies(size == x, same))
        in_u = w.point.in_range(self.sum.u)
        rooms = [w.roomy(self.sum.magnitude, in_u), w.roomy(self.grid.midpoints(self.index)[1], in_q)]
        text = "and not below the other side"
        positive = z3.Implies(size == x, up + x >= 0)
        above = w.theory.claim("other side", text, positive, [room.arg(0) for room in rooms])
        return [exactly, above]

    def _comparisons(self, ranges: list[z3.BoolRef]) -> list[z3.BoolRef]:
        """Prove that what the definition compares are differences of integers."""
        m, (lower, upper) = self.sum.magnitude, self.grid.midpoints(self.index)
        pairs = [(upper, m), (m, upper), (m, lower), (lower, m), (upper, self._above), (self._below, lower)]
        return [self.w.difference(*pair, ranges) for pair in pairs]

    @property
    def _above(self) -> Shifted:
        m, u = self.sum.magnitude
        return Shifted(fit(m, m.size() + 1) + 1, u)

    @property
    def _below(self) -> Shifted:
        return Shifted(self.sum.magnitude.m - 1, self.sum.u)

    def _prove_off(self, ranges: list[z3.BoolRef], far: z3.BoolRef) -> z3.BoolRef:
        """Prove that x less than one unit from the magnitude is between what all around that is between."""
        w, point, x, size, p = self.w, self.w.point, self.x, self.size, self.unit
        (in_u, in_q), m = ranges, self.sum.magnitude
        (lower, upper), (lo, up) = self.grid.midpoints(self.index), self.grid.ends(self.index)
        rooms = [w.roomy(m, in_u), w.roomy(upper, in_q), w.roomy(lower, in_q), w.unit_room(self.sum.u, in_u)]
        rooms = [room.arg(0) for room in rooms]
        small = w.theory.claim("range of x", "with its sign, too", point.is_near(x, 4), [far])
        given = []
        for off, gap in (
            (x - size - p, up - (size + p)),
            (size - x - p, (size - p) - lo),
            (size - x - p, (size - p) + up),
        ):
            given.append(instance(w.theory, point.gain, [(point.x, off), (point.y, gap)]))
            claim, text = z3.And(point.is_near(off), point.is_near(gap)), "differences are far from the ends"
            given.append(w.theory.claim("ranges", text, claim, [*rooms, small]))
        text = "if it is less than one unit off, the sum is between what all around the magnitude is between"
        ends = z3.And(
            z3.Implies(up - (size + p) >= 0, x - up < 0),
            z3.Implies((size - p) - lo >= 0, lo - x < 0),
            z3.Implies((size - p) + up >= 0, -x - up < 0),
        )
        return w.theory.claim("off", text, z3.Implies(near(size, x, p), ends), given)

    def _prove_next(self, ranges: list[z3.BoolRef]) -> list[z3.BoolRef]:
        """Prove that one unit from the magnitude are the next values, of which the definition speaks."""
        w, size, p, m, (in_u, in_q) = self.w, self.size, self.unit, self.sum.magnitude, ranges
        lo, up = self.grid.ends(self.index)
        above, below, nonzero = w.value(self._above), w.value(self._below), z3.Not(m.m == 0)
        steps = [w.one_more(m.m, m, self._above), w.one_more(m.m, self._below, m)]
        higher = (up - above >= 0) == (up - (size + p) >= 0)
        lower = (below - lo >= 0) == ((size - p) - lo >= 0)
        text = "one unit off is the next value"
        claim = z3.Implies(nonzero, z3.And(higher, lower))
        moved = w.theory.claim("next values", text, claim, steps)
        upper = self.grid.midpoints(self.index)[1]
        rooms = [w.roomy(self._below, in_u).arg(0), w.roomy(upper, in_q).arg(0)]
        claim, cut = z3.Implies(nonzero, (size - p) + up >= 0), [below, size, p, up, m.m == 0]
        text = "one unit below is not below the other side"
        return [moved, w.theory.claim("last unit", text, claim, [steps[1], *rooms], cut)]

    def _prove_sign(self, known: list[z3.BoolRef], in_u: z3.BoolRef) -> z3.BoolRef:
        """Prove that x may be taken with the sign of d."""
        w, grid, x, exact, index, m = self.w, self.grid, self.x, self.exact, self.index, self.sum.magnitude
        along, zero = grid.along(exact, self.code), index == 0
        cases = []
        for y in (x, -x):
            text = "equal numbers are alike between midpoints"
            claim = z3.Implies(along == y, grid.between(along, index) == grid.between(y, index))
            cases.append(w.theory.claim("between alike", text, claim))
        text = "around zero either sign is"
        mirrored = z3.Implies(z3.And(grid.between(x, index), zero), grid.between(-x, index))
        mirrored = w.theory.claim("between, mirrored", text, mirrored)
        same = self._prove_same_sign(along)
        claim = z3.Implies(x == 0, along == x)
        no_sum = w.theory.claim("no sum", "zero has any sign", claim)
        claim = z3.Implies(z3.And(m.m == 0, self.size == x), x == 0)
        text = "no magnitude is zero"
        nothing = w.theory.claim("no magnitude", text, claim, [w.roomy(m, in_u)])
        given = [*known, *self._definition, *cases, mirrored, same, no_sum, nothing, *self._prove_odd()]
        text = "d is the exact sum, rounded"
        return w.follows(
            "rounded", text, z3.Implies(self.nothing_special, grid.rounds(exact, self.code)), given
        )

    def _prove_same_sign(self, along: z3.BitVecRef) -> z3.BoolRef:
        """Prove that the exact sum with the sign of d is x if d has the sign of the sum, and else x or −x."""
        x, sign, negative, text = self.x, self.grid.sign(self.code), self.sum.negative, "with the sign of d"
        cases = []
        for minus in (sign, z3.Not(sign)):
            for below in (negative, z3.Not(negative)):
                other = (minus is sign) != (below is negative)
                claim = z3.Implies(z3.And(minus, below), along == (-x if other else x))
                cases.append(self.w.theory.claim("sign", text, claim, (), [self.exact, sign, negative]))
        claim = z3.And(z3.Implies(sign == negative, along == x), z3.Or(along == x, along == -x))
        return self.w.follows("same sign", text, claim, cases)


@dataclass(frozen=True)
class SignOfSum:
    """A step's last sum and d; `zero` is the sign of an exact zero."""

    once: RoundedOnce
    zero: z3.BitVecRef

    @property
    def w(self) -> WideNumbers:
        return self.once.w

    def signed(self, zero: z3.BoolRef, negative: z3.BoolRef) -> z3.BoolRef:
        """Whether d is the zero of its sign where the sum is, and else has the sum's sign."""
        code = self.once.code
        own = z3.Concat(self.zero, z3.BitVecVal(0, code.size() - 1))
        return z3.And(
            z3.Implies(zero, code == own), z3.Implies(z3.Not(zero), self.once.grid.sign(code) == negative)
        )

    @property
    def statement(self) -> z3.BoolRef:
        exact = self.once.exact
        return z3.Implies(self.once.nothing_special, self.signed(exact == 0, exact < 0))

    def prove(self, known: z3.BoolRef, in_u: z3.BoolRef, far: z3.BoolRef) -> z3.BoolRef:
        """`statement`; what is known is as for `RoundedOnce.prove`.  Raises NotProvedError."""
        once, w, total = self.once, self.w, self.once.sum.total
        own = self.signed(total == 0, once.sum.negative)
        text = "d has the sign of the sum, and of a sum of zero the sign that zeros have"
        said = w.theory.claim("sign of d", text, z3.Implies(once.nothing_special, own))
        exact, negative, m = once.exact, once.sum.negative, once.sum.magnitude.m
        same = self._prove_same(known, in_u, far)
        none = z3.And((total == 0) == (exact == 0), z3.Or(exact == 0, negative == (exact < 0)))
        least = once.sum.prove_least(w)
        claim = z3.And((total == 0) == (m == 0), z3.Implies(m == 0, z3.Not(is_odd(total))))
        text = "a sum is zero as its magnitude is"
        zero = w.theory.claim("zero sum", text, claim, [least])
        text = "the sum is zero where the exact one is, and has its sign"
        signs = w.follows("signs of both", text, none, [same, zero])
        goal, text = self.statement, "d has the sign of the exact sum"
        return w.follows("sign of the exact sum", text, goal, [said, signs])

    def _prove_same(self, known: z3.BoolRef, in_u: z3.BoolRef, far: z3.BoolRef) -> z3.BoolRef:
        """Prove that the exact sum is zero where the magnitude is, and else has its sign."""
        once, w, u = self.once, self.w, self.once.sum.u
        x, size, p, m, exact = once.x, once.size, once.unit, once.sum.magnitude, once.exact
        below = Shifted(m.m - 1, u)
        distance = once.prove_distance(once.sum.prove_sign(w))
        rooms = [w.roomy(each, in_u) for each in (m, below)]
        next_ = w.one_more(m.m, below, m)
        small = w.theory.claim("range with a sign", "with its sign, too", w.point.is_near(x, 4), [far])
        off, some = z3.Or(size == x, near(size, x, p)), z3.Not(m.m == 0)
        under, value = w.value(below) - x < 0, w.value(below)
        claim = z3.Implies(size == value + p, (size - x - p < 0) == under)
        text = "one unit less is the number below"
        moved = w.theory.claim("number below", text, claim)
        text = "what is above a number that is not negative is positive"
        above = z3.Implies(under, x > 0)
        above = w.theory.claim("above", text, above, [rooms[1].arg(0), small])
        itself = z3.Implies(z3.And(some, size == x), x > 0)
        itself = w.theory.claim("positive", "so is a magnitude", itself, [rooms[0]])
        text = "what is less than one unit from a number of units that is not zero is on its side of zero"
        given = [next_, moved, above, itself]
        side = w.follows("side of zero", text, z3.Implies(z3.And(some, off), x > 0), given)
        text = "and zero is zero"
        nothing = z3.Implies(z3.And(z3.Not(some), size == x), x == 0)
        nothing = w.theory.claim("no sum, no number", text, nothing, [rooms[0]])
        claim = z3.And(
            z3.Implies(x > 0, z3.And(z3.Not(exact == 0), once.sum.negative == (exact < 0))),
            z3.Implies(x == 0, exact == 0),
        )
        signs = w.theory.claim("sign", "with the sign of the sum", claim, [far])
        total = once.sum.total
        odd = w.theory.claim("odd magnitude", "an odd sum is not zero", z3.Implies(is_odd(total), some))
        goal = z3.And(
            z3.Implies(some, z3.And(z3.Not(exact == 0), once.sum.negative == (exact < 0))),
            z3.Implies(z3.Not(some), exact == 0),
        )
        text = "the exact sum has the sign of the sum, and is zero where that is"
        return w.follows("same side", text, goal, [known, distance, side, nothing, signs, odd])


SPARE = 8  #: bits of the fixed point above the highest number
MARGIN = 4  #: exponents below and above those of a step, for midpoints


class Span(NamedTuple):
    """The range that a fixed point has to hold: numbers between two exponents, of magnitudes no wider than a sum's."""

    low: int
    high: int
    size: int
    exponent_bits: int  #: of exponents in two's complement, as a step's claims have them

    def with_(self, other: Span) -> Span:
        """Return the span that holds both; their exponents have as many bits."""
        demand(self.exponent_bits == other.exponent_bits, "exponents of one width")
        return Span(
            min(self.low, other.low),
            max(self.high, other.high),
            max(self.size, other.size),
            self.exponent_bits,
        )


def grid_of(theory: Theory, rho: Conversion, span: Span) -> RoundingGrid:
    """The codes of ρ in a fixed point; its theorems are proved.  That the grid keeps the order is not yet."""
    point = FixedPoint(span.low - MARGIN, span.high + MARGIN, span.size + 1, SPARE)
    numbers = WideNumbers(theory, point, span.exponent_bits)
    numbers.prove()
    return RoundingGrid(numbers, rho)


@dataclass(frozen=True)
class SumTheorem:
    """A step, and its theorem: if nothing is special, and `given` holds, d is `total` rounded, and has its sign."""

    grid: RoundingGrid
    step: Rounds
    given: z3.BoolRef
    total: z3.BitVecRef  #: the exact sum, by the codes alone
    zero: z3.BitVecRef  #: the sign of an exact zero
    theorem: z3.BoolRef  #: that d is the sum rounded
    signed: z3.BoolRef  #: and has its sign

    @property
    def w(self) -> WideNumbers:
        return self.grid.numbers


def prove_finite(proving: Composing, step: Rounds, operands: Sequence[Operand]) -> z3.BoolRef:
    """Prove that where nothing is special, the operands are numbers."""
    finite = z3.Not(z3.Or([flag for x in operands for flag in (x.infinite, x.nan)]))
    text = "where nothing is special, the operands are finite"
    return proving.claim("finite", text, z3.Or(finite, *step.special))


def conclude(
    grid: RoundingGrid,
    shown: Shown,
    step: Rounds,
    zero: z3.BitVecRef,
    same: z3.BoolRef,
    total: z3.BitVecRef,
    given: z3.BoolRef | None = None,
) -> SumTheorem:
    """The theorem of a step, from what was shown of its sum.  Raises NotProvedError.

    `same`: that the exact sum is `total`, where nothing is special and `given` holds.
    """
    theory, exact, code = grid.numbers.theory, shown.exact, step.result
    once = RoundedOnce(grid, shown.sum, exact, step.special, code)
    rounded = once.prove(shown.claim, shown.in_range, shown.far)
    signs = SignOfSum(once, zero)
    signed = signs.prove(shown.claim, shown.in_range, shown.far)
    alike = z3.And(
        grid.rounds(exact, code) == grid.rounds(total, code),
        grid.is_far(exact) == grid.is_far(total),
        (exact == 0) == (total == 0),
        (exact < 0) == (total < 0),
    )
    text = "equal numbers are rounded alike"
    alike = theory.claim("rounded alike", text, z3.Implies(exact == total, alike))
    none = once.nothing_special if given is None else z3.And(once.nothing_special, given)
    goal = z3.Implies(none, z3.And(grid.rounds(total, code), grid.is_far(total)))
    of_sign = z3.Implies(none, signs.signed(total == 0, total < 0))
    known = [rounded, signed, shown.far, alike, same]
    text = "d is the exact sum of the codes' numbers, rounded once"
    both = z3.And(goal, of_sign)
    grid.numbers.follows("rounded sum of codes", text, both, known)
    theory.theorem(text, both)
    return SumTheorem(
        grid,
        step,
        z3.BoolVal(True) if given is None else given,
        total,
        zero,
        theorem=theory.theorem(text, goal),
        signed=theory.theorem("d has the sign of the exact sum", of_sign),
    )


class RoundsExactly(Protocol):
    """A model of one step that rounds the exact sum of its codes' numbers once, wherever `given` holds."""

    @property
    def spec(self) -> DotAdd: ...
    @property
    def inputs(self) -> Inputs:
        """The codes whose numbers it adds up."""
        ...

    @property
    def step(self) -> Rounds: ...
    @property
    def given(self) -> z3.BoolRef: ...
    @property
    def zero(self) -> z3.BitVecRef:
        """The sign of an exact zero."""
        ...

    @property
    def span(self) -> Span: ...
    def run(self, x: Inputs) -> Rounds:
        """The step on other codes."""
        ...

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        """Raises NotProvedError."""
        ...
