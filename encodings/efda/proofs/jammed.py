"""The jammed sum is the exact one, or odd with room and less than one unit off, if the sum of three is.

Where the sum is below ρ's least exponent it is jammed to that, exactly, or to an odd integer that covers it
(`sorted_steps`, `covering`); else it stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import z3

from mmaformal.encodings.efda.proofs.covering import Covering, Signed
from mmaformal.facts.sorted_steps import Sorted
from mmaformal.proof.sticky_sums import is_odd, is_sharp
from mmaformal.proof.wide_numbers import WideNumbers, near
from mmaformal.theory.near_sums import NearSum, Shown


@dataclass(frozen=True)
class JammedSum:
    """The sum of three, before it is jammed; the claims of `sorted_steps` by their names."""

    w: WideNumbers
    at: Sorted
    said: Mapping[str, z3.BoolRef]
    before: Shown

    @property
    def after(self) -> NearSum:
        e_max, total = self.at.step.jammed
        return NearSum(total, self.at.place(e_max, self.at.bits), self.at.has_room(total, e_max))

    @property
    def stays(self) -> z3.BoolRef:
        return z3.UGE(self.at.e2, self.at.least)

    @property
    def in_range(self) -> z3.BoolRef:
        return self.w.in_range(self.after.u, [self.said["jammed range"]])

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
        given = [self.before.claim, self.said["jammed"], self.said["room after"]]
        text = "the jammed sum is the exact one, or odd with room, and less than one unit off"
        high = z3.Implies(self.stays, goal)
        high = self.w.follows("jammed, high", text, high, [*given, *self._prove_stays()])
        low = z3.Implies(z3.Not(self.stays), goal)
        low = self.w.follows("jammed, low", text, low, [*given, *self._prove_moved()])
        claim = self.w.theory.claim("jammed sum", text, goal, [high, low])
        return Shown(self.after, self.before.exact, claim, self.in_range, self.before.far)

    def _prove_stays(self) -> list[z3.BoolRef]:
        """That an equal sum at an equal exponent is the same number."""
        w, before, after, exact = self.w, self.before.sum, self.after, self.before.exact
        (s, t), (p2, p3), (e_max, total) = self.integers, self.units, self.at.step.jammed
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
        """That a jammed sum is the same number, or covers it."""
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
        same = w.theory.claim("jammed exactly", "then it is the same number", claim, given)
        claim = z3.Implies(s == t, (s == exact) == (t == exact))
        exactly = w.theory.claim("same number", "and is off by the same", claim)
        claim = z3.Implies(s == exact, near(s, exact, self.units[0]))
        room = w.unit_room(before.u, self.before.in_range)
        text = "a number is less than one unit from itself"
        itself = w.theory.claim("near itself", text, claim, [room])
        coarse = Signed(y, after.negative, t, self.in_range, signs[1])
        fine = Signed(x, before.negative, s, self.before.in_range, signs[0])
        covered = Covering(w, coarse, fine, exact, self.before.far).prove()
        return [sign, same, exactly, itself, covered, *self._prove_odd()]

    def _prove_odd(self) -> list[z3.BoolRef]:
        """That a jammed sum that is odd is not zero, nor was the sum."""
        w, before, after = self.w, self.before.sum, self.after
        claim = z3.Implies(before.total == 0, after.total == 0)
        zero = w.theory.claim("zero jammed", "zero stays zero", claim)
        claim = z3.Implies(
            is_odd(after.total),
            z3.And(z3.Not(before.magnitude.m == 0), z3.Not(after.magnitude.m == 0)),
        )
        text = "an odd sum is not zero, nor was it before"
        given = [zero, before.prove_least(w), after.prove_least(w)]
        return [w.theory.claim("odd jammed", text, claim, given)]
