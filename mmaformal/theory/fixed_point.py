"""Numbers m · 2^t as integers of one fixed point, wide enough for all of them, and what claims say of those integers.

A number is m shifted to the left by how far t lies above the last place of all (`FixedPoint`).  A shift is a product
with a power of two, so it is linear; and since each number is far from the ends of the fixed point, nothing wraps.

`at_least` is the order of those integers (`FixedPointOrder`):

1. *step*:   shifted by one place more, both of two integers are doubled, which keeps their order;
2. *ascent*: so they are in the same order shifted by any number of places (the rule `ascent`);
3. *pair*:   m · 2^t and n · 2^q are compared as integers in units of 2^(the smaller exponent), by `at_least`, and are
             the same two integers shifted by as many places in the fixed point.

So claims of a step, which compare magnitudes by `at_least`, say how large differences are (`WideNumbers`), and sums can
be spoken of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import z3

from mmaformal.encodings.smt.blocks import bit, negate_if
from mmaformal.proof.cuts import follows, of_sums
from mmaformal.proof.definitions import at_least, fit
from mmaformal.proof.fixed_sums import wide
from mmaformal.proof.rules import Ascent, Theory, instance
from mmaformal.proof.sticky_sums import is_around, is_odd, is_sharp


@dataclass(frozen=True)
class FixedPoint:
    """Integers in units of 2^low, of `bits` bits in two's complement: of m < 2^size and t from low to high."""

    low: int
    high: int
    size: int  #: of m
    spare: int  #: bits above the highest number

    @property
    def last(self) -> int:
        """The farthest shift."""
        return self.high - self.low

    @property
    def bits(self) -> int:
        return self.last + self.size + self.spare

    @property
    def shift_bits(self) -> int:
        return self.bits.bit_length() + 1

    def shift(self, t: z3.BitVecRef) -> z3.BitVecRef:
        """How far m is shifted, of t in two's complement, in range."""
        amount = t - self.low
        n = self.shift_bits
        return z3.Extract(n - 1, 0, amount) if amount.size() > n else z3.SignExt(n - amount.size(), amount)

    def in_range(self, t: z3.BitVecRef) -> z3.BoolRef:
        return z3.And(t >= self.low, t <= self.high)

    def shifted(self, x: z3.BitVecRef, amount: z3.BitVecRef) -> z3.BitVecRef:
        return x << fit(amount, self.bits)

    def value(self, m: z3.BitVecRef, t: z3.BitVecRef) -> z3.BitVecRef:
        """m · 2^t, m unsigned."""
        return self.shifted(self.integer(m), self.shift(t))

    def integer(self, m: z3.BitVecRef) -> z3.BitVecRef:
        return fit(fit(m, self.size), self.bits)

    def unit(self, t: z3.BitVecRef) -> z3.BitVecRef:
        """2^t."""
        return self.power(self.shift(t))

    def signed(self, m: z3.BitVecRef, t: z3.BitVecRef) -> z3.BitVecRef:
        """m · 2^t, m in two's complement."""
        return self.shifted(wide(m, self.bits), self.shift(t))

    def small(self, x: z3.BitVecRef) -> z3.BoolRef:
        """x < 2^size, of an integer that is not shifted."""
        return z3.Extract(self.bits - 1, self.size, x) == 0

    # ---- constants

    @property
    def x(self) -> z3.BitVecRef:
        return z3.BitVec("x", self.bits)

    @property
    def y(self) -> z3.BitVecRef:
        return z3.BitVec("y", self.bits)

    @property
    def amount(self) -> z3.BitVecRef:
        return z3.BitVec("amount", self.shift_bits)

    # ---- a shift is a product with a power of two

    def times(self, x: z3.BitVecRef, amount: z3.BitVecRef) -> z3.BitVecRef:
        return x * self.power(amount)

    def power(self, amount: z3.BitVecRef) -> z3.BitVecRef:
        return self.shifted(z3.BitVecVal(1, self.bits), amount)

    @property
    def product(self) -> z3.BoolRef:
        return self.shifted(self.x, self.amount) == self.times(self.x, self.amount)

    @property
    def doubling(self) -> z3.BoolRef:
        """One place more doubles."""
        x, k = self.x, self.amount
        return z3.Implies(z3.ULT(k, self.last), self.shifted(x, k + 1) == self.shifted(x, k) << 1)

    @property
    def room(self) -> z3.BoolRef:
        """Nothing is lost above."""
        x, k = self.x, self.amount
        here = self.shifted(x, k)
        inside = z3.And(self.small(x), z3.ULE(k, self.last))
        return z3.Implies(inside, z3.And(self.has_room(here), (here == 0) == (x == 0)))

    def has_room(self, x: z3.BitVecRef) -> z3.BoolRef:
        return z3.Extract(self.bits - 1, self.bits - self.spare, x) == 0

    @property
    def addition(self) -> z3.BoolRef:
        x, y, k = self.x, self.y, self.amount
        return self.shifted(x + y, k) == self.shifted(x, k) + self.shifted(y, k)

    @property
    def negation(self) -> z3.BoolRef:
        x, k = self.x, self.amount
        return self.shifted(-x, k) == -self.shifted(x, k)

    @property
    def order(self) -> z3.BoolRef:
        """Numbers are in order as their difference has it."""
        x, y = self.x, self.y
        return z3.Implies(z3.And(self.has_room(x), self.has_room(y)), z3.UGE(x, y) == (x - y >= 0))

    @property
    def signed_order(self) -> z3.BoolRef:
        """The order of numbers of either sign, as their difference has it."""
        x, y = self.x, self.y
        return z3.Implies(z3.And(self.is_near(x), self.is_near(y)), (x >= y) == (x - y >= 0))

    @property
    def gain(self) -> z3.BoolRef:
        """A negative number less one that is not negative is negative."""
        x, y = self.x, self.y
        given = z3.And(self.is_near(x), self.is_near(y), x < 0, y >= 0)
        return z3.Implies(given, x - y < 0)

    def is_near(self, x: z3.BitVecRef, bits: int = 3) -> z3.BoolRef:
        """Whether a number in two's complement is far from the ends: so many highest bits are its sign."""
        top = z3.Extract(self.bits - 1, self.bits - bits, x)
        return z3.Or(top == 0, top == -1)

    def prove(self, theory: Theory) -> None:
        """Each of the statements above as a theorem.  Raises NotProvedError."""
        theory.holds("shift", "a shift is a product with a power of two", self.product)
        self._prove_doubling(theory)
        theory.holds("room", "nothing is lost above", self.room)
        theory.holds("order", "the order is the sign of the difference", self.order)
        theory.holds("signed order", "and of numbers of either sign", self.signed_order)
        theory.holds("gain", "a negative number less one that is not negative is negative", self.gain)
        x, y, here = self.x, self.y, self.power(self.amount)
        text = "a sum is shifted as its summands are"
        split = theory.claim("sum of products", text, (x + y) * here == x * here + y * here)
        self._prove_linear(theory, text, self.addition, split, [x + y, x, y])
        text = "a negative is shifted as the number is"
        split = theory.claim("negative product", text, -x * here == -(x * here))
        self._prove_linear(theory, text, self.negation, split, [-x, x])

    def _prove_doubling(self, theory: Theory) -> None:
        x, k = self.x, self.amount
        here, there = self.power(k), self.power(k + 1)
        powers = z3.Implies(z3.ULT(k, self.last), there == here << 1)
        theory.holds("power", "the next power of two is twice that", powers)
        text = "one place more doubles"
        more = instance(theory, self.product, [(k, k + 1)])
        twice = theory.claim("twice", text, x * (here << 1) == (x * here) << 1)
        alike = z3.Implies(there == here << 1, x * there == x * (here << 1))
        alike = theory.claim("next product", text, alike)
        theory.claim("doubling", text, self.doubling, [powers, self.product, more, twice, alike])
        theory.theorem(text, self.doubling)

    def _prove_linear(
        self, theory: Theory, text: str, goal: z3.BoolRef, split: z3.BoolRef, parts: list[z3.BitVecRef]
    ) -> None:
        """From the same of products."""

        said = [instance(theory, self.product, [(self.x, x)]) for x in parts if not x.eq(self.x)]
        theory.claim("shifted", text, goal, [split, self.product, *said])
        theory.theorem(text, goal)


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
        """The numbers that the statement is about: (m, t), (n, q)."""
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
    """Return the claim that x and y, one integer shifted by k and by n, are equal if k and n are."""
    text = "equal shifts give the same"
    return theory.claim("same shift", text, z3.Implies(k == n, x == y))


class Shifted(NamedTuple):
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
        """Prove what the claims rest on.  Raises NotProvedError."""
        self.point.prove(self.theory)
        self.in_order.prove(self.theory)

    def value(self, x: Shifted) -> z3.BitVecRef:
        return self.point.value(x.m, x.t)

    def number(self, sign: z3.BitVecRef, x: Shifted) -> z3.BitVecRef:
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

    def compare(self, x: Shifted, y: Shifted, ranges: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Return the claim that `at_least` is the order of two integers."""
        point, ((m, t), (n, q)) = self.point, self.in_order.numbers
        x_fit, y_fit = (Shifted(fit(each.m, point.size), each.t) for each in (x, y))
        own = list(zip((m, t, n, q), (*x_fit, *y_fit), strict=True))
        said = instance(self.theory, self.in_order.statement, own)
        mine, other = at_least(*x, *y), at_least(*x_fit, *y_fit)
        same = self.theory.claim("at least", "widths do not matter", mine == other)
        goal = mine == z3.UGE(self.value(x), self.value(y))
        return self.theory.claim("integers", "that is the order of integers", goal, [said, same, *ranges])

    def difference(self, x: Shifted, y: Shifted, ranges: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Return the claim that `at_least` says that a difference is not negative."""
        point, (v, w) = self.point, (self.value(x), self.value(y))
        order = self.compare(x, y, ranges)
        said = instance(self.theory, point.order, [(point.x, v), (point.y, w)])
        rooms = [self.roomy(each, point.in_range(each.t)) for each in (x, y)]
        is_larger = at_least(*x, *y)
        text = "the order is that of the difference"
        return self.theory.claim(
            "difference", text, is_larger == (v - w >= 0), [order, said, *rooms, *ranges]
        )

    def equal(self, x: Shifted, y: Shifted, ranges: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Where `is_sharp` holds, both are one number."""
        order = [self.compare(x, y, ranges), self.compare(y, x, ranges)]
        goal = z3.Implies(is_sharp(*x, *y), self.value(x) == self.value(y))
        return self.theory.claim("one number", "both are one number", goal, order)

    def around(self, x: Shifted, y: Shifted, ranges: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Where `is_around` holds and x.m is odd, the two are less than one unit 2^x.t apart."""
        B, u = fit(x.m, x.m.size() + 1), x.t
        below, above = Shifted(B - 1, u), Shifted(B + 1, u)
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

    def roomy(self, x: Shifted, in_range: z3.BoolRef) -> z3.BoolRef:
        """Return the claim that m · 2^t is far from the end of the fixed point, and zero if m is."""
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
        """Return the claim that 2^t is, too, and not zero."""
        point, one = self.point, Shifted(z3.BitVecVal(1, 1), t)
        roomy, unit = self.roomy(one, in_range), point.unit(t)
        same = self.theory.claim("unit", "2^t is one, shifted", unit == self.value(one))
        goal = z3.And(point.has_room(unit), unit != 0)
        return self.theory.claim("room of a unit", "so is 2^t", goal, [roomy, same])

    # ---- sums

    def one_more(self, m: z3.BitVecRef, small: Shifted, large: Shifted) -> z3.BoolRef:
        """Return the claim that (n + 1) · 2^t = n · 2^t + 2^t; both are m, or next to it, which is not 0."""
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
        """Return the claim that a sum of two signed magnitudes, in units of 2^t, is the sum of those numbers."""
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
        numbers = [self.number(sign, Shifted(m, t)) for sign, m in parts]
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
        """Return the claim that an integer, −x where it is `negative`, else x, is shifted as x is; that it is, is
        seen from `known`."""
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
