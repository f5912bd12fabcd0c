"""Numbers of a proof as integers of a fixed point, and what claims about bit-vectors say of those integers.

Claims of a step compare magnitudes m · 2^t by `at_least`.  Of the integers that these are in one fixed point it is a
comparison of integers (`fixed_point_order`), and a statement about their difference, since none is near the ends; so
sums of them can be spoken of, which `at_least` cannot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import z3

from mmaformal.encodings.smt.blocks import negate_if
from mmaformal.proof.composition import wide
from mmaformal.proof.cuts import follows, of_sums
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.fixed_point import FixedPoint
from mmaformal.proof.fixed_point_order import FixedPointOrder
from mmaformal.proof.rules import Theory, instance
from mmaformal.proof.sticky_sums import is_around, is_odd, is_sharp


class Scaled(NamedTuple):
    """m · 2^t."""

    m: z3.BitVecRef  #: unsigned
    t: z3.BitVecRef  #: two's complement


def near(x: z3.BitVecRef, y: z3.BitVecRef, unit: z3.BitVecRef) -> z3.BoolRef:
    """Whether x and y are less than one unit apart."""
    return z3.And(x - y - unit < 0, y - x - unit < 0)


@dataclass(frozen=True)
class WideNumbers:
    """Claims about numbers as integers of a fixed point; `ranges` says of their exponents that they are in range."""

    theory: Theory
    point: FixedPoint
    exponent_bits: int  #: of exponents in two's complement

    @property
    def in_order(self) -> FixedPointOrder:
        return FixedPointOrder(self.point, self.exponent_bits)

    def prove(self) -> None:
        """What the claims rest on.  Raises NotProvedError."""
        self.point.prove(self.theory)
        self.in_order.prove(self.theory)

    def value(self, x: Scaled) -> z3.BitVecRef:
        return self.point.value(x.m, x.t)

    def number(self, sign: z3.BitVecRef, x: Scaled) -> z3.BitVecRef:
        return negate_if(sign, self.value(x))

    def follows(
        self, name: str, text: str, claim: z3.BoolRef, using: Sequence[z3.BoolRef], *whole: z3.BoolRef
    ) -> z3.BoolRef:
        return follows(self.theory, name, text, claim, using, whole)

    def of_sums(
        self, name: str, text: str, claim: z3.BoolRef, using: Sequence[z3.BoolRef] = ()
    ) -> z3.BoolRef:
        return of_sums(self.theory, name, text, claim, using, self.point.bits)

    # ---- comparisons

    def compare(self, x: Scaled, y: Scaled, ranges: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """That `at_least` is the order of two integers."""
        point, ((m, t), (n, q)) = self.point, self.in_order.numbers
        x_fit, y_fit = (Scaled(fit(each.m, point.size), each.t) for each in (x, y))
        own = list(zip((m, t, n, q), (*x_fit, *y_fit), strict=True))
        said = instance(self.theory, self.in_order.statement, own)
        mine, other = at_least(*x, *y), at_least(*x_fit, *y_fit)
        same = self.theory.claim("at least", "widths do not matter", mine == other)
        goal = mine == z3.UGE(self.value(x), self.value(y))
        return self.theory.claim("integers", "that is the order of integers", goal, [said, same, *ranges])

    def difference(self, x: Scaled, y: Scaled, ranges: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """That `at_least` says that a difference is not negative."""
        point, (v, w) = self.point, (self.value(x), self.value(y))
        order = self.compare(x, y, ranges)
        said = instance(self.theory, point.order, [(point.x, v), (point.y, w)])
        rooms = [self.roomy(each, point.in_range(each.t)) for each in (x, y)]
        is_larger = at_least(*x, *y)
        text = "the order is that of the difference"
        return self.theory.claim(
            "difference", text, is_larger == (v - w >= 0), [order, said, *rooms, *ranges]
        )

    def equal(self, x: Scaled, y: Scaled, ranges: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Where `is_sharp` holds, both are one number."""
        order = [self.compare(x, y, ranges), self.compare(y, x, ranges)]
        goal = z3.Implies(is_sharp(*x, *y), self.value(x) == self.value(y))
        return self.theory.claim("one number", "both are one number", goal, order)

    def around(self, x: Scaled, y: Scaled, ranges: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Where `is_around` holds and x.m is odd, the two are less than one unit 2^x.t apart."""
        B, u = fit(x.m, x.m.size() + 1), x.t
        below, above = Scaled(B - 1, u), Scaled(B + 1, u)
        a, v, p = self.value(x), self.value(y), self.point.unit(u)
        low, high = self.value(below), self.value(above)
        given = [self.difference(below, y, ranges), self.difference(y, above, ranges), self.odd(x.m)]
        for end, at, step, apart, gap in (
            (low, a - p, self.one_more(x.m, below, x), low - v, a - v - p),
            (high, a + p, self.one_more(x.m, x, above), v - high, v - a - p),
        ):
            claim = z3.Implies(z3.Not(x.m == 0), end == at)
            given.append(self.theory.claim("end", "an end is the next number", claim, [step]))
            claim = z3.Implies(end == at, (apart >= 0) == z3.Not(gap < 0))
            text = "the gap is the difference to that number"
            given.append(self.theory.claim("gap", text, claim))
        goal = z3.Implies(z3.And(is_odd(x.m), is_around(*x, *y)), near(a, v, p))
        return self.follows("less than one unit", "it is less than one unit off", goal, given)

    def odd(self, m: z3.BitVecRef) -> z3.BoolRef:
        claim = z3.Implies(is_odd(m), z3.Not(m == 0))
        return self.theory.claim("odd", "an odd number is not zero", claim)

    # ---- ranges

    def in_range(self, t: z3.BitVecRef, known: Sequence[z3.BoolRef]) -> z3.BoolRef:
        text = "the exponent is in its range"
        return self.theory.claim("exponent", text, self.point.in_range(t), known)

    def roomy(self, x: Scaled, in_range: z3.BoolRef) -> z3.BoolRef:
        """That m · 2^t is far from the end of the fixed point, and zero if m is."""
        theory, point, m = self.theory, self.point, x.m
        integer, k, value = point.integer(m), point.shift(x.t), self.value(x)
        said = instance(theory, point.room, [(point.x, integer), (point.amount, k)])
        small = theory.claim("integer", "an integer is small", point.small(integer))
        claim = z3.Implies(point.in_range(x.t), z3.ULE(k, point.last))
        inside = theory.claim("shift in range", "the shift is in its range", claim)
        zero = theory.claim("zero", "and zero as it is", (integer == 0) == (m == 0))
        goal = z3.And(point.has_room(value), (value == 0) == (m == 0))
        text = "a number is far from the end of the fixed point"
        return theory.claim("room of a number", text, goal, [said, small, inside, zero, in_range])

    def unit_room(self, t: z3.BitVecRef, in_range: z3.BoolRef) -> z3.BoolRef:
        """That 2^t is, too, and not zero."""
        point, one = self.point, Scaled(z3.BitVecVal(1, 1), t)
        roomy, unit = self.roomy(one, in_range), point.unit(t)
        same = self.theory.claim("unit", "2^t is one, shifted", unit == self.value(one))
        goal = z3.And(point.has_room(unit), unit != 0)
        return self.theory.claim("room of a unit", "so is 2^t", goal, [roomy, same])

    # ---- sums

    def one_more(self, m: z3.BitVecRef, small: Scaled, large: Scaled) -> z3.BoolRef:
        """That (n + 1) · 2^t = n · 2^t + 2^t; both are m, or next to it, which is not 0."""
        theory, point, t = self.theory, self.point, small.t
        one, k = z3.BitVecVal(1, point.bits), point.shift(t)
        x, y = point.integer(small.m), point.integer(large.m)
        more = z3.Implies(z3.Not(m == 0), y == x + one)
        whole = theory.claim("one more", "one more", more)
        said = instance(theory, point.addition, [(point.x, x), (point.y, one), (point.amount, k)])
        alike = self.same_shift(y, x + one, k)
        goal = z3.Implies(z3.Not(m == 0), self.value(large) == self.value(small) + point.unit(t))
        return theory.claim("next number", "so is the number", goal, [whole, said, alike])

    def signed_sum(
        self, total: z3.BitVecRef, parts: Sequence[tuple[z3.BitVecRef, z3.BitVecRef]], t: z3.BitVecRef
    ) -> z3.BoolRef:
        """That a sum of two signed magnitudes, in units of 2^t, is the sum of those numbers."""
        theory, point, k = self.theory, self.point, self.point.shift(t)
        x, y = (negate_if(sign, point.integer(m)) for sign, m in parts)
        same = wide(total, point.bits) == x + y
        text = "the sum is that of its terms"
        inner = theory.claim("sum of integers", text, same)
        said = instance(theory, point.addition, [(point.x, x), (point.y, y), (point.amount, k)])
        ends = [
            self.signed_shift(negate_if(sign, point.integer(m)), sign == 1, point.integer(m), k, [])
            for sign, m in parts
        ]
        alike = self.same_shift(wide(total, point.bits), x + y, k)
        numbers = [self.number(sign, Scaled(m, t)) for sign, m in parts]
        goal = point.signed(total, t) == numbers[0] + numbers[1]
        text = "so the sum is that of the numbers"
        return theory.claim("sum of numbers", text, goal, [inner, said, alike, *ends])

    def same_shift(self, x: z3.BitVecRef, y: z3.BitVecRef, k: z3.BitVecRef) -> z3.BoolRef:
        claim = z3.Implies(x == y, self.point.shifted(x, k) == self.point.shifted(y, k))
        return self.theory.claim("same shift", "equal integers are shifted alike", claim)

    def signed_shift(
        self,
        total: z3.BitVecRef,
        negative: z3.BoolRef,
        x: z3.BitVecRef,
        k: z3.BitVecRef,
        known: Sequence[z3.BoolRef],
    ) -> z3.BoolRef:
        """That an integer, −x where it is `negative`, else x, is shifted as x is; that it is, is seen from `known`."""
        theory, point = self.theory, self.point
        said = instance(theory, point.negation, [(point.x, x), (point.amount, k)])
        value, whole = point.shifted(x, k), point.shifted(total, k)
        goal, cases = whole == z3.If(negative, -value, value), []
        text = "an integer is shifted as its magnitude is"
        for where, y in ((negative, -x), (z3.Not(negative), x)):
            magnitude = "an integer is its magnitude with its sign"
            same = theory.claim("magnitude", magnitude, z3.Implies(where, total == y), known)
            alike = self.same_shift(total, y, k)
            claim = z3.Implies(where, goal)
            cases.append(theory.claim("signed, of a sign", text, claim, [same, said, alike]))
        return theory.claim("signed", text, goal, cases)
