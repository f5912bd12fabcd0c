"""The sum of three sorted terms is the exact one, or odd with room for rounding and less than one unit off.

`sorted_steps` says what is kept of each term, compared by `at_least`.  Here these are integers of one fixed point
(`SortedSum`):

1. *two*:    the sum of two is exact, or the two are the last ones, and it is odd and less than one unit off;
2. *normal*: normalised, it is the same number;
3. *three*:  with the third one, which is exact and even where the two were not, it is exact, or odd and less than one
             unit off; so is what the sum of two stands for, since what is kept of it covers that;
4. *shift*:  where it is below ρ's least exponent it is shifted to that, exactly, or to an odd integer that covers it,
             else it stays (`ShiftedSum`);
5. *terms*:  the sorted terms are the numbers of the codes, normalised, and in another order (`SortedTerms`).

An odd A in coarser units *covers* P in finer ones where (A ± 1) · 2^u is around (P ± 1) · 2^t: then A stands for all
that is less than one unit from P (`Enclosure`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import z3

from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.smt.blocks import Term
from mmaformal.facts.sorted_steps import Sorted, covers
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import total_of
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import instance
from mmaformal.proof.sticky_sums import is_odd, is_sharp
from mmaformal.theory.fixed_point import Shifted, WideNumbers, near
from mmaformal.theory.numbers import CodeNumbers
from mmaformal.theory.rounded_sums import KeptIntegers, KeptTerm, NearSum, Shown


@dataclass(frozen=True)
class Signed:
    """A number ±m · 2^t as an integer; `by_sign` was proved: that it is that."""

    size: Shifted
    negative: z3.BoolRef
    number: z3.BitVecRef
    in_range: z3.BoolRef  #: t
    by_sign: z3.BoolRef | None  #: None where the integer is so by its form

    def prove_sign(self, w: WideNumbers, negative: bool) -> z3.BoolRef:
        """Prove that with this sign it is the magnitude, or its negative."""
        value = w.value(self.size)
        sign = self.negative if negative else z3.Not(self.negative)
        claim = z3.Implies(sign, self.number == (-value if negative else value))
        known, cut = [], [self.negative, value]
        if self.by_sign is not None:
            known, cut = [self.by_sign], [self.number, *cut]
        return w.theory.claim("with this sign", "the number has this sign", claim, known)


@dataclass(frozen=True)
class Enclosure:
    """A coarse number, a fine one, and an exact one that is near the fine one; `far` was proved of that."""

    w: WideNumbers
    coarse: Signed
    fine: Signed
    exact: z3.BitVecRef
    far: z3.BoolRef

    @property
    def covers(self) -> z3.BoolRef:
        return covers(*self.coarse.size, *self.fine.size)

    @property
    def units(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        return self.w.point.unit(self.coarse.size.t), self.w.point.unit(self.fine.size.t)

    @property
    def gaps(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """Between the lower ends of both, and the upper ones."""
        a, p, (p2, p1) = self.w.value(self.coarse.size), self.w.value(self.fine.size), self.units
        return (p - p1) - (a - p2), (a + p2) - (p + p1)

    @property
    def nonzero(self) -> z3.BoolRef:
        return z3.And(z3.Not(self.coarse.size.m == 0), z3.Not(self.fine.size.m == 0))

    def prove(self) -> z3.BoolRef:
        """Where neither is zero, and the signs are the same, what is near the fine number is near the coarse one."""
        low, high = self.gaps
        ends = self._prove_ends(z3.Implies(z3.And(self.nonzero, self.covers), z3.And(low >= 0, high >= 0)))
        p2, p1 = self.units
        given = [self.nonzero, self.covers, self.coarse.negative == self.fine.negative]
        given.append(near(self.fine.number, self.exact, p1))
        goal = z3.Implies(z3.And(given), near(self.coarse.number, self.exact, p2))
        cases = [self._prove_with_sign(goal, ends, negative) for negative in (False, True)]
        text = "what is near the finer number is near the coarser one"
        return self.w.follows("covered", text, goal, cases)

    def _prove_ends(self, goal: z3.BoolRef) -> z3.BoolRef:
        w, (A, u), (P, t) = self.w, self.coarse.size, self.fine.size
        B, Q = fit(A, A.size() + 1), fit(P, P.size() + 1)
        below, above = (Shifted(Q - 1, t), Shifted(B - 1, u)), (Shifted(B + 1, u), Shifted(Q + 1, t))
        a, p, (p2, p1) = w.value(self.coarse.size), w.value(self.fine.size), self.units
        low, high = self.gaps
        pairs = (
            (
                below,
                low,
                (p - p1, a - p2),
                (w.one_more(P, below[0], self.fine.size), w.one_more(A, below[1], self.coarse.size)),
            ),
            (
                above,
                high,
                (a + p2, p + p1),
                (w.one_more(A, self.coarse.size, above[0]), w.one_more(P, self.fine.size, above[1])),
            ),
        )
        given = []
        for (x, y), gap, sums, steps in pairs:
            u_x, u_y = w.value(x), w.value(y)
            ends = u_x == sums[0], u_y == sums[1]
            for end, step in zip(ends, steps, strict=True):
                claim = z3.Implies(self.nonzero, end)
                given.append(w.theory.claim("end", "an end is the next number", claim, [step]))
            claim = z3.Implies(z3.And(ends), (gap >= 0) == (u_x - u_y >= 0))
            text = "the gap between ends is the difference of those numbers"
            given.append(w.theory.claim("gap", text, claim))
            given.append(w.difference(x, y, [self.coarse.in_range, self.fine.in_range]))
        text = "the ends of the coarser one are around those of the finer one"
        return w.follows("ends of both", text, goal, given)

    def _prove_with_sign(self, goal: z3.BoolRef, ends: z3.BoolRef, negative: bool) -> z3.BoolRef:
        w, exact, (p2, p1) = self.w, self.exact, self.units
        a, p = (-w.value(x.size) if negative else w.value(x.size) for x in (self.coarse, self.fine))
        alone = self._prove_near(a, p, negative)
        text = "equal numbers are as near"
        equal = []
        for x, y, unit in ((self.fine.number, p, p1), (self.coarse.number, a, p2)):
            claim = z3.Implies(x == y, near(x, exact, unit) == near(y, exact, unit))
            equal.append(w.theory.claim("same number", text, claim))
        signs = [each.prove_sign(w, negative) for each in (self.fine, self.coarse)]
        both = [x.negative if negative else z3.Not(x.negative) for x in (self.coarse, self.fine)]
        text = "so what is near the finer one is near the coarser one, with one sign"
        given = [ends, alone, *equal, *signs]
        return w.follows("covered with a sign", text, z3.Implies(z3.And(both), goal), given, self.covers)

    def _prove_near(self, a: z3.BitVecRef, p: z3.BitVecRef, negative: bool) -> z3.BoolRef:
        """Prove of magnitudes with a sign that the coarse number is near the exact one, if the fine one is."""
        w, point, exact, (p2, p1) = self.w, self.w.point, self.exact, self.units
        rooms = [
            room.arg(0)
            for x in (self.coarse, self.fine)
            for room in (w.roomy(x.size, x.in_range), w.unit_room(x.size.t, x.in_range))
        ]
        (low, high), given = self.gaps, []
        ends = (high, low) if not negative else (low, high)
        for off, gap in zip((exact - p - p1, p - exact - p1), ends, strict=True):
            given.append(instance(w.theory, point.gain, [(point.x, off), (point.y, gap)]))
            claim, text = z3.And(point.is_near(off), point.is_near(gap)), "differences are far from the ends"
            given.append(w.theory.claim("ranges", text, claim, [*rooms, self.far]))
        text = "what is between the finer ends is between the coarser ones"
        claim = z3.Implies(z3.And(low >= 0, high >= 0, near(p, exact, p1)), near(a, exact, p2))
        return w.theory.claim("covered without a sign", text, claim, given)


@dataclass(frozen=True)
class SortedSumClaims:
    """Claims about the sums of a step; those of `sorted_steps` by their names."""

    w: WideNumbers
    at: Sorted
    said: Mapping[str, z3.BoolRef]

    @cached_property
    def kept(self) -> KeptIntegers:
        return KeptIntegers(self.w)

    def size(self, x: Term) -> Shifted:
        """The magnitude of one of the three terms, the paired one, or the rest."""
        return Shifted(x.significand, self.at.place(x.exponent, self.at.w - 1))

    def term(self, x: Term) -> z3.BitVecRef:
        return self.w.number(x.sign, self.size(x))

    @cached_property
    def exact(self) -> z3.BitVecRef:
        """The sum of all three, the paired one first."""
        return self.of_two + self.term(self.at.rest)

    @cached_property
    def of_two(self) -> z3.BitVecRef:
        return self.term(self.at.paired) + self.term(self.at.step.sorted[1])

    @cached_property
    def sum_of_two(self) -> z3.BitVecRef:
        """The first sum as an integer."""
        return self.w.point.signed(self.at.step.partial.total, self.at.u1)

    @property
    def is_near_two(self) -> z3.BoolRef:
        return near(self.sum_of_two, self.of_two, self.w.point.unit(self.at.u1))

    # ---- ranges

    @property
    def bound(self) -> z3.BoolRef:
        at = self.at
        high = at.ex.constant(at.ex.high - 1)
        low = z3.And([z3.ULE(x.exponent, high) for x in at.step.sorted])
        text = "exponents are in their range"
        return self.w.theory.claim("exponents", text, low, [self.said["order"]])

    def range_of(self, x: Term) -> z3.BoolRef:
        return self.w.in_range(self.size(x).t, [self.bound])

    @property
    def range_of_two(self) -> z3.BoolRef:
        known = [self.bound, self.said["exponent of two"]]
        return self.w.in_range(self.at.u1, known)

    @property
    def range_of_sum(self) -> z3.BoolRef:
        return self.w.in_range(self.at.u2, [self.said["range of e_max"]])

    # ---- proof

    def prove(self) -> Shown:
        """Raises NotProvedError."""
        two = self._prove_two()
        far = self._prove_far()
        normal = self._prove_normal()
        at, w = self.at, self.w
        sum_ = NearSum(at.step.sum.total, at.u2, at.has_room(at.step.sum.total, at.e2))
        claim = self._prove_three(sum_, [two, *self._prove_near(two), far, *normal])
        rooms = [w.roomy(self.size(at.rest), self.range_of(at.rest)).arg(0), far]
        text = "the sum is far from the ends"
        small = w.theory.claim("range of the sum", text, w.point.is_near(self.exact, 5), rooms)
        return Shown(sum_, self.exact, claim, self.range_of_sum, small)

    def _prove_two(self) -> z3.BoolRef:
        at, w, (_, two, _) = self.at, self.w, self.at.step.sorted
        partial, paired = at.step.partial, at.paired
        first = KeptTerm(paired.sign, Shifted(partial.x, at.u1), self.size(paired))
        second = KeptTerm(two.sign, Shifted(partial.y, at.u1), self.size(two))
        given = [self.said["near"], self.said["far"]]
        for part, x in ((first, paired), (second, two)):
            given.append(self.kept.prove(part, [self.range_of_two, self.range_of(x)]))
        given += self.kept.sum_of_two(partial.total, first, second)
        values = [(self.kept.kept(part), self.kept.number(part)) for part in (first, second)]
        given += self.kept.off_by_one(self.sum_of_two, w.point.unit(at.u1), (values[0], values[1]))
        off = z3.And(z3.Not(at.near), is_odd(partial.total), self.is_near_two)
        text = "the sum of two is exact, or odd and less than one unit off, where they are the last two"
        return w.follows("sum of two terms", text, z3.Or(self.sum_of_two == self.of_two, off), given)

    def _prove_near(self, two: z3.BoolRef) -> list[z3.BoolRef]:
        """Prove that it is less than one unit off, exact or not."""
        w = self.w
        text = "a number is less than one unit from itself"
        claim = z3.Implies(self.sum_of_two == self.of_two, self.is_near_two)
        room = w.unit_room(self.at.u1, self.range_of_two)
        itself = w.theory.claim("near itself", text, claim, [room])
        return [w.follows("near the two", "so it is less than one unit off", self.is_near_two, [two, itself])]

    def _prove_far(self) -> z3.BoolRef:
        w, terms = self.w, (self.at.paired, self.at.step.sorted[1])
        rooms = [w.roomy(self.size(x), self.range_of(x)).arg(0) for x in terms]
        text = "the two are far from the ends"
        return w.of_sums("range of the two", text, w.point.is_near(self.of_two, 6), rooms)

    @property
    def _normal(self) -> Shifted:
        normal = self.at.step.normal
        return Shifted(normal.significand, self.at.place(normal.exponent, self.at.bits - 1))

    @property
    def _normal_number(self) -> z3.BitVecRef:
        return self.w.number(self.at.step.normal.sign, self._normal)

    @property
    def _bound_of_normal(self) -> z3.BoolRef:
        at, w, normal = self.at, self.w, self.at.step.normal
        bounds = z3.And(
            z3.ULE(normal.exponent, at.ex.constant(at.ex.high)),
            z3.ULE(at.e1, at.ex.constant(at.ex.high - 1)),
        )
        known = [self.said["normalised sum"], self.bound, self.said["exponent of two"]]
        return w.theory.claim("exponent of the normalised sum", "it is in its range", bounds, known)

    @property
    def _range_of_normal(self) -> z3.BoolRef:
        return self.w.in_range(self._normal.t, [self._bound_of_normal])

    @property
    def _sign_of_two(self) -> z3.BoolRef:
        at = self.at
        return NearSum(at.step.partial.total, at.u1, z3.BoolVal(False)).prove_sign(self.w)

    def _prove_normal(self) -> list[z3.BoolRef]:
        """Prove that the sum of two, normalised, is the same number, so what is kept of one is what is kept of the
        other."""
        at, w, size = self.at, self.w, self._normal
        P, said = Shifted(at.P, at.u1), self.said["normalised sum"]
        in_range = self._range_of_normal
        sharp, text = is_sharp(*size, *P), "the normalised sum is the same number"
        same = w.theory.claim("normalised", text, sharp, [said, self._bound_of_normal])
        equal = w.equal(size, P, [in_range, self.range_of_two])
        room = w.roomy(P, self.range_of_two)
        number = self._normal_number
        given = [equal, same, self._sign_of_two, room, said.arg(0)]
        return [w.theory.claim("normalised number", text, number == self.sum_of_two, given)]

    def _prove_three(self, sum_: NearSum, known: list[z3.BoolRef]) -> z3.BoolRef:
        at, w, normal, sum_of = self.at, self.w, self.at.step.normal, self.at.step.sum
        x = KeptTerm(normal.sign, Shifted(sum_of.x, at.u2), self._normal)
        y = KeptTerm(at.rest.sign, Shifted(sum_of.y, at.u2), self.size(at.rest))
        p2, kept, exact = w.point.unit(at.u2), self.kept.kept(x), self.of_two
        given = [*known, self._prove_covered(x, known[2])]
        given += [
            self.said[name] for name in ("rest", "sum of two", "odd sum of two", "room", "larger exponent")
        ]
        given.append(self.kept.prove(x, [self.range_of_sum, self._range_of_normal]))
        given.append(self.kept.prove(y, [self.range_of_sum, self.range_of(at.rest)]))
        given += self.kept.sum_of_two(sum_.total, x, y)
        values = (kept, exact), (self.kept.kept(y), self.kept.number(y))
        given += self.kept.off_by_one(w.point.signed(sum_.total, at.u2), p2, values)
        odd = is_odd(at.step.partial.total) == is_odd(at.P)
        text = "a magnitude is odd as the number"
        given.append(w.theory.claim("odd magnitude", text, odd))
        claim = z3.Implies(z3.Not(at.near), at.rest.exponent == at.e2)
        text = "far, the third has e_max"
        given.append(w.theory.claim("rest on top", text, claim, [self.said["far below"]]))
        number = self._normal_number
        claim = z3.Implies(
            z3.And(self.sum_of_two == exact, number == self.sum_of_two),
            z3.And((kept == number) == (kept == exact), near(kept, number, p2) == near(kept, exact, p2)),
        )
        text = "the sum of two is that number"
        given.append(w.theory.claim("sum of two or its number", text, claim))
        text = "the sum is the exact one, or odd with room, and less than one unit off"
        return w.follows("sum of three", text, sum_.claim(w, self.exact), given)

    def _prove_covered(self, x: KeptTerm, far: z3.BoolRef) -> z3.BoolRef:
        """Where the sum of two is odd, what is kept of it is less than one unit from the two, if it covers it."""
        at, w, A = self.at, self.w, x.kept
        coarse = Signed(A, x.sign == 1, self.kept.kept(x), self.range_of_sum, None)
        fine = Signed(
            Shifted(at.P, at.u1), at.P_negative, self.sum_of_two, self.range_of_two, self._sign_of_two
        )
        enclosure = Enclosure(w, coarse, fine, self.of_two, far)
        signs = z3.Implies(z3.Not(at.P == 0), (x.sign == 1) == at.P_negative)
        given = [self.said["normalised sum"].arg(0)]
        signs = w.theory.claim("sign of the sum", "it has that sign", signs, given)
        odd = z3.And(is_odd(A.m), is_odd(at.P), enclosure.covers, self.is_near_two)
        goal = z3.Implies(odd, near(coarse.number, self.of_two, w.point.unit(at.u2)))
        text = "where it is odd, what is kept of the sum of two is less than one unit from the two"
        given = [enclosure.prove(), signs, w.odd(A.m), w.odd(at.P)]
        return w.follows("covered where odd", text, goal, given, enclosure.covers)


@dataclass(frozen=True)
class ShiftedSum:
    """The sum of three, before it is shifted; the claims of `sorted_steps` by their names."""

    w: WideNumbers
    at: Sorted
    said: Mapping[str, z3.BoolRef]
    before: Shown

    @property
    def after(self) -> NearSum:
        e_max, total = self.at.step.sticky
        return NearSum(total, self.at.place(e_max, self.at.bits), self.at.has_room(total, e_max))

    @property
    def stays(self) -> z3.BoolRef:
        return z3.UGE(self.at.e2, self.at.least)

    @property
    def in_range(self) -> z3.BoolRef:
        return self.w.in_range(self.after.u, [self.said["shifted range"]])

    @property
    def integers(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """The sums before and after."""
        first, second = (self.w.point.signed(x.total, x.u) for x in (self.before.sum, self.after))
        return first, second

    @property
    def units(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        return self.w.point.unit(self.before.sum.u), self.w.point.unit(self.after.u)

    def prove(self) -> Shown:
        """Raises NotProvedError."""
        goal = self.after.claim(self.w, self.before.exact)
        given = [self.before.claim, self.said["shifted"], self.said["room after"]]
        text = "the shifted sum is the exact one, or odd with room, and less than one unit off"
        high = z3.Implies(self.stays, goal)
        high = self.w.follows("shifted, high", text, high, [*given, *self._prove_stays()])
        low = z3.Implies(z3.Not(self.stays), goal)
        low = self.w.follows("shifted, low", text, low, [*given, *self._prove_moved()])
        claim = self.w.theory.claim("shifted sum", text, goal, [high, low])
        return Shown(self.after, self.before.exact, claim, self.in_range, self.before.far)

    def _prove_stays(self) -> list[z3.BoolRef]:
        """Prove that an equal sum at an equal exponent is the same number."""
        w, before, after, exact = self.w, self.before.sum, self.after, self.before.exact
        (s, t), (p2, p3), (e_max, total) = self.integers, self.units, self.at.step.sticky
        same, equal = total == before.total, after.u == before.u
        unit = z3.Implies(e_max == self.at.e2, equal)
        unit = w.theory.claim("same unit", "so does its unit", unit)
        alike = z3.Implies(z3.And(equal, same), z3.And(s == t, p2 == p3))
        alike = w.theory.claim("same sum", "and the number", alike)
        both = z3.And((s == exact) == (t == exact), near(s, exact, p2) == near(t, exact, p3))
        moved = z3.Implies(z3.And(s == t, p2 == p3), both)
        moved = w.theory.claim("same distance", "and what it is off", moved)
        odd = z3.Implies(same, is_odd(total) == is_odd(before.total))
        odd = w.theory.claim("same parity", "and its parity", odd)
        return [unit, alike, moved, odd]

    def _prove_moved(self) -> list[z3.BoolRef]:
        """Prove that a shifted sum is the same number, or covers it."""
        w, before, after, exact = self.w, self.before.sum, self.after, self.before.exact
        x, y, (s, t), total = before.magnitude, after.magnitude, self.integers, after.total
        signs = [before.prove_sign(w), after.prove_sign(w)]
        ranges = [self.before.in_range, self.in_range]
        sharp = is_sharp(*y, *x)
        alike = z3.Or(y.m == 0, before.negative == after.negative)
        top = total.size() - 1
        sign_bits = [z3.Extract(top, top, each) for each in (before.total, total)]
        claim = z3.Implies(z3.Or(y.m == 0, sign_bits[1] == sign_bits[0]), alike)
        sign = w.theory.claim("same sign", "the sign stays", claim)
        claim = z3.Implies(z3.And(sharp, alike), s == t)
        zeros = [w.roomy(each, in_range).arg(1) for each, in_range in zip((x, y), ranges, strict=True)]
        given = [w.equal(y, x, ranges), *signs, *zeros]
        same = w.theory.claim("shifted exactly", "then it is the same number", claim, given)
        claim = z3.Implies(s == t, (s == exact) == (t == exact))
        exactly = w.theory.claim("same number", "and is off by the same", claim)
        claim = z3.Implies(s == exact, near(s, exact, self.units[0]))
        room = w.unit_room(before.u, self.before.in_range)
        text = "a number is less than one unit from itself"
        itself = w.theory.claim("near itself", text, claim, [room])
        coarse = Signed(y, after.negative, t, self.in_range, signs[1])
        fine = Signed(x, before.negative, s, self.before.in_range, signs[0])
        covered = Enclosure(w, coarse, fine, exact, self.before.far).prove()
        return [sign, same, exactly, itself, covered, *self._prove_odd()]

    def _prove_odd(self) -> list[z3.BoolRef]:
        """Prove that a shifted sum that is odd is not zero, nor was the sum."""
        w, before, after = self.w, self.before.sum, self.after
        claim = z3.Implies(before.total == 0, after.total == 0)
        zero = w.theory.claim("zero shifted", "zero stays zero", claim)
        claim = z3.Implies(
            is_odd(after.total),
            z3.And(z3.Not(before.magnitude.m == 0), z3.Not(after.magnitude.m == 0)),
        )
        text = "an odd sum is not zero, nor was it before"
        given = [zero, before.prove_least(w), after.prove_least(w)]
        return [w.theory.claim("odd shifted", text, claim, given)]


@dataclass(frozen=True)
class SortedTerms:
    """The sum of sorted terms, and the numbers of the codes."""

    sums: SortedSumClaims
    codes: CodeNumbers

    def prove(self) -> z3.BoolRef:
        """Prove that the sum of the three terms is that of the codes.  Raises NotProvedError."""
        step, w = self.sums.at.step, self.sums.w
        if len(step.products) != len(step.terms) - 1:
            raise NotProvedError("the terms are the products and c", "unknown", "fewer products than terms")
        normalised = [self._prove_normalised(k) for k in range(len(step.terms))]
        terms, ordered = ([self.sums.term(x) for x in each] for each in (step.terms, step.sorted))
        in_order = self._prove_in_order(terms, ordered)
        total, text = total_of(ordered), "the sum is that of the codes' numbers"
        same = total == self.codes.total
        of_codes = w.theory.claim("sum of codes", text, same, [in_order, *normalised])
        paired = self._prove_paired(ordered)
        same = self.sums.exact == self.codes.total
        return w.theory.claim("same sum", "it is one sum", same, [paired, of_codes])

    def _prove_normalised(self, k: int) -> z3.BoolRef:
        """Prove that the k-th normalised term is the number of its codes."""
        at, w, said, spec = self.sums.at, self.sums.w, self.sums.said, self.codes.spec
        step, last = at.step, len(at.step.terms) - 1
        x, t = (step.addend if k == last else step.products[k]), step.terms[k]
        name = "c" if k == last else f"product {k}"
        places = spec.c_format.fraction_bits if k == last else efda.fraction_bits(spec)
        usual, finite = said[f"{name} normalised"], said[f"{name} range"].arg(1)
        model, own = Shifted(x.significand, at.place(x.exponent, places)), self.sums.size(t)
        in_model = w.in_range(model.t, [finite])
        in_own = w.in_range(own.t, [usual.arg(2)])
        sharp, sign = usual.arg(0), usual.arg(1)
        equal, zero = w.equal(own, model, [in_model, in_own]), w.roomy(model, in_model).arg(1)
        mine, other = w.number(t.sign, own), w.number(x.sign, model)
        text = "a normalised term is the number itself"
        one = w.theory.claim("normalised term", text, mine == other, [equal, sharp, sign, zero])
        operands = [step.c] if k == last else [step.a[k], step.b[k]]
        two = self.codes.prove_term(k, x, model.t, operands, finite)
        value = self.codes.integers[k]
        return w.theory.claim("term of codes", text, mine == value, [one, two])

    def _prove_in_order(self, terms: list[z3.BitVecRef], ordered: list[z3.BitVecRef]) -> z3.BoolRef:
        """Prove that the sum of sorted terms is that of the terms."""
        w, step, text = self.sums.w, self.sums.at.step, "the order does not matter"
        goal, ways = total_of(ordered) == total_of(terms), []
        for order in permutations(range(3)):
            pairs = [(i, j) for i, j in enumerate(order)]
            same = [ordered[i] == terms[j] for i, j in pairs]
            equal = [self._equal(step.sorted[i], step.terms[j]) for i, j in pairs]
            numbers = [
                w.theory.claim(
                    "sorted term",
                    "equal terms are equal numbers",
                    z3.Implies(equal[i], same[i]),
                )
                for i, j in pairs
            ]
            claim = z3.Implies(z3.And(same), goal)
            total = w.theory.claim("sum in order", text, claim)
            ways.append(w.follows("sum, sorted", text, z3.Implies(z3.And(equal), goal), [*numbers, total]))
        return w.follows("sum of terms", text, goal, [self.sums.said["sorted"], *ways])

    @staticmethod
    def _equal(x: Term, y: Term) -> z3.BoolRef:
        return z3.And([u == v for u, v in zip(x, y, strict=True)])

    def _prove_paired(self, ordered: list[z3.BitVecRef]) -> z3.BoolRef:
        """Prove that two of the sorted terms and the third are all three."""
        at, w, exact, text = self.sums.at, self.sums.w, self.sums.exact, "the order does not matter"
        paired, rest, goal, cases = self.sums.term(at.paired), self.sums.term(at.rest), None, []
        goal = exact == total_of(ordered)
        one, _, three = ordered
        for where, first, last in ((at.near, one, three), (z3.Not(at.near), three, one)):
            same = z3.And(paired == first, rest == last)
            claim = z3.Implies(where, same)
            pair = "the first two, or the last two"
            known = w.theory.claim("pair", pair, claim)
            total = w.theory.claim("paired sum", text, z3.Implies(same, goal))
            cases.append(w.follows("order of the sum", text, z3.Implies(where, goal), [known, total]))
        return w.theory.claim("exact sum", text, goal, cases)
