"""The sum of three sorted terms is the exact one, or odd with room for rounding and less than one unit off.

`sorted_steps` says what is kept of each term, compared by `at_least`.  Here these are integers of one fixed point:

1. *two*:    the sum of two is exact, or the two are the last ones, and it is odd and less than one unit off;
2. *normal*: normalised, it is the same number;
3. *three*:  with the third one, which is exact and even where the two were not, it is exact, or odd and less than one
             unit off; so is what the sum of two stands for, since what is kept of it covers that (`covering`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.encodings.efda.proofs.covering import Covering, Signed
from mmaformal.encodings.smt.blocks import Term
from mmaformal.facts.sorted_steps import Sorted
from mmaformal.proof.sticky_sums import is_odd, is_sharp
from mmaformal.proof.wide_numbers import Scaled, WideNumbers, near
from mmaformal.theory.near_sums import Kept, NearSum, Part, Shown


@dataclass(frozen=True)
class SortedSum:
    """Claims about the sums of a step; those of `sorted_steps` by their names."""

    w: WideNumbers
    at: Sorted
    said: Mapping[str, z3.BoolRef]

    @cached_property
    def kept(self) -> Kept:
        return Kept(self.w)

    def size(self, x: Term) -> Scaled:
        """The magnitude of one of the three terms, the paired one, or the rest."""
        return Scaled(x.significand, self.at.place(x.exponent, self.at.w - 1))

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
        first = Part(paired.sign, Scaled(partial.x, at.u1), self.size(paired))
        second = Part(two.sign, Scaled(partial.y, at.u1), self.size(two))
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
        """That it is less than one unit off, exact or not."""
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
    def _normal(self) -> Scaled:
        normal = self.at.step.normal
        return Scaled(normal.significand, self.at.place(normal.exponent, self.at.bits - 1))

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
        """That the sum of two, normalised, is the same number, so what is kept of one is what is kept of the other."""
        at, w, size = self.at, self.w, self._normal
        P, said = Scaled(at.P, at.u1), self.said["normalised sum"]
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
        x = Part(normal.sign, Scaled(sum_of.x, at.u2), self._normal)
        y = Part(at.rest.sign, Scaled(sum_of.y, at.u2), self.size(at.rest))
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

    def _prove_covered(self, x: Part, far: z3.BoolRef) -> z3.BoolRef:
        """Where the sum of two is odd, what is kept of it is less than one unit from the two, if it covers it."""
        at, w, A = self.at, self.w, x.kept
        coarse = Signed(A, x.sign == 1, self.kept.kept(x), self.range_of_sum, None)
        fine = Signed(
            Scaled(at.P, at.u1), at.P_negative, self.sum_of_two, self.range_of_two, self._sign_of_two
        )
        covering = Covering(w, coarse, fine, self.of_two, far)
        signs = z3.Implies(z3.Not(at.P == 0), (x.sign == 1) == at.P_negative)
        given = [self.said["normalised sum"].arg(0)]
        signs = w.theory.claim("sign of the sum", "it has that sign", signs, given)
        odd = z3.And(is_odd(A.m), is_odd(at.P), covering.covers, self.is_near_two)
        goal = z3.Implies(odd, near(coarse.number, self.of_two, w.point.unit(at.u2)))
        text = "where it is odd, what is kept of the sum of two is less than one unit from the two"
        given = [covering.prove(), signs, w.odd(A.m), w.odd(at.P)]
        return w.follows("covered where odd", text, goal, given, covering.covers)
