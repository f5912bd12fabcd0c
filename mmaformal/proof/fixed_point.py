"""Numbers m · 2^t as integers of one fixed point, wide enough for all of them.

A number is m shifted to the left by how far t lies above the last place of all.  A shift is a product with a power of
two, so it is linear; and since each number is far from the ends of the fixed point, nothing wraps.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.proof.composition import wide
from mmaformal.proof.definitions import fit
from mmaformal.proof.rules import Theory, instance


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

    # ---- letters

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
        """The same of numbers of either sign."""
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
