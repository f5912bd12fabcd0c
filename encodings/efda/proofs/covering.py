"""What is near a number is near a coarser one that covers it.

P in units of 2^t stands for all that is less than one unit off.  Aligned to a coarser unit, with its sign, it becomes
an odd A with (A ± 1) · 2^u around (P ± 1) · 2^t: then A stands for all of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.facts.sorted_steps import covers
from mmaformal.proof.definitions import fit
from mmaformal.proof.rules import instance
from mmaformal.proof.wide_numbers import Scaled, WideNumbers, near


@dataclass(frozen=True)
class Signed:
    """A number ±m · 2^t as an integer; `by_sign` was proved: that it is that."""

    size: Scaled
    negative: z3.BoolRef
    number: z3.BitVecRef
    in_range: z3.BoolRef  #: t
    by_sign: z3.BoolRef | None  #: None where the integer is so by its form

    def prove_sign(self, w: WideNumbers, negative: bool) -> z3.BoolRef:
        """That with this sign it is the magnitude, or its negative."""
        value = w.value(self.size)
        sign = self.negative if negative else z3.Not(self.negative)
        claim = z3.Implies(sign, self.number == (-value if negative else value))
        known, cut = [], [self.negative, value]
        if self.by_sign is not None:
            known, cut = [self.by_sign], [self.number, *cut]
        return w.theory.claim("with this sign", "the number has this sign", claim, known)


@dataclass(frozen=True)
class Covering:
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
        below, above = (Scaled(Q - 1, t), Scaled(B - 1, u)), (Scaled(B + 1, u), Scaled(Q + 1, t))
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
        """The same of magnitudes with a sign."""
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
