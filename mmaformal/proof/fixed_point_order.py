"""That `at_least` is the order of the integers of a fixed point.

1. *step*:   shifted by one place more, both of two integers are doubled, which keeps their order;
2. *ascent*: so they are in the same order shifted by any number of places (the rule `ascent`);
3. *pair*:   m · 2^t and n · 2^q are compared as integers in units of 2^(the smaller exponent), by `at_least`, and are
             the same two integers shifted by as many places in the fixed point.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.encodings.smt.blocks import bit
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.fixed_point import FixedPoint
from mmaformal.proof.rules import Ascent, Theory, instance


@dataclass(frozen=True)
class FixedPointOrder:
    """Two integers x and y < 2^size, both shifted by so many places, and y by `amount` more."""

    point: FixedPoint
    exponent_bits: int  #: in two's complement

    @property
    def statement(self) -> z3.BoolRef:
        """`at_least` is the order of integers."""
        (m, t), (n, q) = self.numbers
        return z3.Implies(self._inside, at_least(m, t, n, q) == self._integers_in_order)

    @property
    def numbers(self) -> tuple[tuple[z3.BitVecRef, z3.BitVecRef], tuple[z3.BitVecRef, z3.BitVecRef]]:
        """What the statement is about: (m, t), (n, q)."""
        (m, n), (t, q) = z3.BitVecs("m n", self.point.size), z3.BitVecs("t q", self.exponent_bits)
        return (m, t), (n, q)

    @property
    def _inside(self) -> z3.BoolRef:
        (_, t), (_, q) = self.numbers
        return z3.And(self.point.in_range(t), self.point.in_range(q))

    @property
    def _integers_in_order(self) -> z3.BoolRef:
        x, y = self.numbers
        return z3.UGE(self.point.value(*x), self.point.value(*y))

    def prove(self, theory: Theory) -> None:
        """After `FixedPoint.prove`.  Raises NotProvedError."""
        up, down = self._prove_step(theory), self._prove_no_step(theory)
        rule = self.ascent

        theory.claim("one place or none", "either", rule.neighbours, [up, down])
        theory.theorem("one place more keeps the order", rule.neighbours)
        theory.holds("same of three", "that is transitive", rule.transitive)
        theory.holds("same of one", "and reflexive", rule.reflexive)
        rule.conclude(theory)
        cases = [self._prove_pair(theory, up=True), self._prove_pair(theory, up=False)]
        theory.claim("either way", "whichever exponent is larger", self.statement, cases)
        theory.theorem("at_least is the order of integers", self.statement)

    # ---- by the same number of places

    @property
    def places(self) -> z3.BitVecRef:
        return z3.BitVec("places", self.point.shift_bits + 1)

    def _shifts(self, places: z3.BitVecRef) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """By how much x and y are shifted; fewer places than none are none."""
        bits = self.point.shift_bits
        k = z3.If(places > 0, z3.Extract(bits - 1, 0, places), z3.BitVecVal(0, bits))
        return k, k + self.point.amount

    def _shifted(self, places: z3.BitVecRef) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        k, farther = self._shifts(places)
        return self.point.shifted(self.point.x, k), self.point.shifted(self.point.y, farther)

    def _valid(self, places: z3.BitVecRef) -> z3.BitVecRef:
        """Whether both are shifted within the fixed point."""
        k, farther = self._shifts(places)
        return bit(z3.And(z3.ULE(farther, self.point.last), z3.ULE(k, self.point.last)))

    @property
    def ascent(self) -> Ascent:
        point, p = self.point, self.places
        x, y = self._shifted(p)

        def same(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
            return z3.Implies(z3.Extract(2, 2, y) == 1, x == y)

        given = z3.And(point.small(point.x), point.small(point.y), z3.ULE(point.amount, point.last))
        result = z3.Concat(self._valid(p), bit(z3.UGE(x, y)), bit(z3.UGE(y, x)))
        return Ascent(p, result, same, point.last, given)

    def _prove_step(self, theory: Theory) -> z3.BoolRef:
        point, rule, p = self.point, self.ascent, self.places
        inside, goal = rule.neighbours.arg(0), rule.neighbours.arg(1)
        next_ = self._shifted(p + 1)
        (k, farther), next_shifts = self._shifts(p), self._shifts(p + 1)
        valid, next_valid = self._valid(p), self._valid(p + 1)
        said = [
            instance(theory, theorem, [(point.x, each), (point.amount, by)])
            for each, by in ((point.x, k), (point.y, farther))
            for theorem in (point.doubling, point.room)
        ]
        more = [a == b + 1 for a, b in zip(next_shifts, (k, farther), strict=True)]
        below = [z3.ULT(by, point.last) for by in (k, farther)]
        step = z3.Implies(z3.And(inside, p >= 0, next_valid == 1), z3.And(valid == 1, *more, *below))
        one = theory.claim("places", "both are shifted by one place more", step)
        moved = [point.shifted(point.x, k + 1), point.shifted(point.y, farther + 1)]
        pairs = zip(next_, moved, next_shifts, (k + 1, farther + 1), strict=True)
        same = [equal_shifts(theory, *pair) for pair in pairs]
        text = "both are doubled, which keeps their order"
        claim = z3.Implies(z3.And(inside, p >= 0), goal)
        return theory.claim("order of doubles", text, claim, [one, *said, *same])

    def _prove_no_step(self, theory: Theory) -> z3.BoolRef:
        p, goal = self.places, self.ascent.neighbours.arg(1)
        here, there = self._shifted(p), self._shifted(p + 1)
        shifts, next_shifts = self._shifts(p), self._shifts(p + 1)
        valid = self._valid(p), self._valid(p + 1)
        equal = [a == b for a, b in zip(shifts, next_shifts, strict=True)]
        still = z3.Implies(p < 0, z3.And(*equal, valid[0] == valid[1]))
        stays = theory.claim("no place", "below no place nothing changes", still)
        pairs = zip(here, there, shifts, next_shifts, strict=True)
        alike = [equal_shifts(theory, *pair) for pair in pairs]
        text = "so the order is kept"
        return theory.claim("order kept", text, z3.Implies(p < 0, goal), [stays, *alike])

    # ---- of two numbers

    def _prove_pair(self, theory: Theory, up: bool) -> z3.BoolRef:
        """The statement where q ≥ t, or else where t > q."""
        point, rule, ((m, t), (n, q)) = self.point, self.ascent, self.numbers
        x, y = fit(m, point.bits), fit(n, point.bits)
        (u, low), (v, high) = ((x, t), (y, q)) if up else ((y, q), (x, t))
        where = z3.And(self._inside, q >= t if up else t > q)
        apart, s = point.shift(high) - point.shift(low), point.shift(low)
        none = z3.BitVecVal(0, point.shift_bits)
        ends = z3.BitVecVal(0, self.places.size()), fit(s, self.places.size())
        own = [(point.x, u), (point.y, v), (point.amount, apart), *zip(rule.numbers, ends, strict=True)]
        said = instance(theory, rule.conclusion, own)
        far = point.shifted(v, apart)
        is_at_least = at_least(m, t, n, q)
        base = z3.Implies(where, is_at_least == (z3.UGE(u, far) if up else z3.UGE(far, u)))
        text = "with exponents as far apart, the lower one the last place"
        first = theory.claim("last place", text, base)
        shifted = [z3.substitute(each, *own) for end in rule.numbers for each in self._shifted(end)]
        shifts = [z3.substitute(each, *own) for end in rule.numbers for each in self._shifts(end)]
        valid = [z3.substitute(self._valid(end), *own) for end in rule.numbers]
        amounts = none, apart, s, point.shift(high)
        known = [a == b for a, b in zip(shifts, amounts, strict=True)]
        claim = z3.Implies(where, z3.And(*known, valid[1] == 1, *said.arg(0).children()))
        one = theory.claim("places of a pair", "the shifts are those", claim)
        plain = [point.shifted(each, amount) for each, amount in zip((u, v, u, v), amounts, strict=True)]
        pairs = zip(shifted, plain, shifts, amounts, strict=True)
        alike = [equal_shifts(theory, *pair) for pair in pairs]
        text = "so any pair is compared as integers"
        goal = z3.Implies(where, is_at_least == self._integers_in_order)
        return theory.claim("pair", text, goal, [said, first, one, *alike])


def equal_shifts(
    theory: Theory, x: z3.BitVecRef, y: z3.BitVecRef, k: z3.BitVecRef, n: z3.BitVecRef
) -> z3.BoolRef:
    """That x and y, one integer shifted by k and by n, are equal if k and n are."""
    text = "equal shifts give the same"
    return theory.claim("same shift", text, z3.Implies(k == n, x == y))
