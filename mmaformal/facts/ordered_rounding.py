"""Rounding keeps the order of sums, on one grid or on the next coarser one.

Of the codes that sums T · 2^e are rounded to: T and T + 1 give codes in order, so do any two T ≤ T' (the rule
`ascent`); 2T at e and T at e + 1 are one number, and give the same.  So T at e and ⌈T / 2⌉ at e + 1 give codes in
order, and so do the floor of T / 2 at e + 1 and T at e.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.out_of_order import order
from mmaformal.encodings.smt.blocks import ExponentRange, encode, normalise_and_round
from mmaformal.proof.kernel import demand
from mmaformal.proof.rules import Ascent, Theory, instance
from mmaformal.rounding import Conversion


def not_above(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    return order(x) <= order(y)


@dataclass(frozen=True)
class OrderedRounding:
    """Rounding of sums of `bits` bits, at most `reach`, in units of 2^(e_max − F)."""

    rho: Conversion
    exponents: ExponentRange
    F: int
    lowest: int  #: of e_max
    bits: int
    reach: int

    def __post_init__(self) -> None:
        demand(self.even_reach < 1 << (self.bits - 1), "sums of this size do not fit their bits")

    @property
    def even_reach(self) -> int:
        return self.reach + self.reach % 2

    @property
    def e_max(self) -> z3.BitVecRef:
        return z3.BitVec("e_max", self.exponents.bits)

    @property
    def total(self) -> z3.BitVecRef:
        return z3.BitVec("total", self.bits)

    def code(self, total: z3.BitVecRef, e_max: z3.BitVecRef) -> z3.BitVecRef:
        rounded = normalise_and_round(total, e_max, self.exponents, self.F, self.rho, self.lowest)
        return encode(rounded, self.rho)

    @property
    def ascent(self) -> Ascent:
        in_range = self.in_range(self.e_max)
        return Ascent(self.total, self.code(self.total, self.e_max), not_above, self.even_reach, in_range)

    def in_range(self, e_max: z3.BitVecRef) -> z3.BoolRef:
        ex = self.exponents
        return z3.And(z3.UGE(e_max, ex.constant(self.lowest)), z3.ULE(e_max, ex.constant(ex.high)))

    @property
    def _fits(self) -> z3.BoolRef:
        T, e, ex = self.total, self.e_max, self.exponents
        return z3.And(self.in_range(e), z3.ULT(e, ex.constant(ex.high)), -self.reach <= T, self.reach >= T)

    @property
    def doubled(self) -> z3.BoolRef:
        T, e, ex, most = self.total, self.e_max, self.exponents, self.even_reach // 2
        fits = z3.And(self.in_range(e), z3.ULT(e, ex.constant(ex.high)), -most <= T, most >= T)
        return z3.Implies(fits, self.code(T << 1, e) == self.code(T, e + 1))

    @property
    def up(self) -> z3.BoolRef:
        T, e = self.total, self.e_max
        return z3.Implies(self._fits, not_above(self.code(T, e), self.code(half_up(T), e + 1)))

    @property
    def down(self) -> z3.BoolRef:
        T, e = self.total, self.e_max
        return z3.Implies(self._fits, not_above(self.code(T >> 1, e + 1), self.code(T, e)))

    def prove(self, theory: Theory) -> None:
        """Theorems: to be concluded before anything else is claimed.  Raises NotProvedError."""
        rule = self.ascent
        theory.holds("next sum", f"a sum and the next are rounded in order by {self.rho}", rule.neighbours)
        theory.holds("≤ of codes", "≤ is transitive", rule.transitive)
        theory.holds("d and d", "and reflexive", rule.reflexive)
        rule.conclude(theory)
        text = "twice a sum is rounded as the sum is on the next coarser grid"
        theory.holds("doubled sum", text, self.doubled)
        self._prove_coarser(theory, half_up(self.total), self.up, "up")
        self._prove_coarser(theory, self.total >> 1, self.down, "down")

    def _prove_coarser(self, theory: Theory, half: z3.BitVecRef, claim: z3.BoolRef, way: str) -> None:
        T, e, double = self.total, self.e_max, half << 1
        ends = (T, double) if way == "up" else (double, T)
        ordered = instance(theory, self.ascent.conclusion, list(zip(self.ascent.numbers, ends, strict=True)))
        same = instance(theory, self.doubled, [(T, half)])
        cut = [self.code(T, e), self.code(double, e), self.code(half, e + 1)]
        text = f"a sum on the next coarser grid, cut {way}, is that of an even one, which is in order"
        theory.claim(f"coarser grid, {way}", text, claim, [ordered, same], cut)
        theory.theorem(text, claim)

    def in_order(self, theory: Theory, x: At, y: At) -> z3.BoolRef:
        """Sums that are claimed to be in range, on one grid: where they are in order, so are their codes."""
        rule = self.ascent
        pairs = [(self.e_max, y.e_max), (rule.numbers[0], x.total), (rule.numbers[1], y.total)]
        return instance(theory, rule.conclusion, pairs)

    def coarser(self, theory: Theory, x: At, up: bool) -> z3.BoolRef:
        """What one of both says of a sum."""
        theorem = self.up if up else self.down
        return instance(theory, theorem, [(self.e_max, x.e_max), (self.total, x.total)])


@dataclass(frozen=True)
class At:
    """A sum, and the exponent of its unit."""

    total: z3.BitVecRef
    e_max: z3.BitVecRef


def half_up(x: z3.BitVecRef) -> z3.BitVecRef:
    """⌈x / 2⌉, in two's complement."""
    return -(-x >> 1)


def prove_rounded_in_order(
    theory: Theory,
    rounding: OrderedRounding,
    runs: tuple[At, At],
    rise: int,
    given: z3.BoolRef,
    plus: z3.BoolRef,
) -> z3.BoolRef:
    """That the codes of two sums, the second in units `rise` times doubled, are in order; from `given`.

    `given` is a claim that e_max rises so far, from a range, and if `plus`, the first sum is at most the second, else
    at least, both being in range.
    """
    (x, y), bits = runs, rounding.bits
    demand(bits == x.total.size(), "sums have other bits than those that are rounded")
    mine, other = (rounding.code(each.total, each.e_max) for each in runs)
    claims = []
    for positive in (True, False):
        half = x.total if not rise else half_up(x.total) if positive else x.total >> 1
        moved, at_y = At(half, x.e_max + rise if rise else x.e_max), At(half, y.e_max)
        pair = (at_y, y) if positive else (y, at_y)
        used = [rounding.in_order(theory, *pair)]
        if rise:
            used.append(rounding.coarser(theory, x, positive))
        codes = [rounding.code(each.total, each.e_max) for each in (moved, at_y)]
        same = z3.Implies(given, codes[0] == codes[1])
        text = "the exponents are the same"
        theory.claim(f"code on the coarser grid, {rise}", text, same, (), [half, x.e_max, y.e_max])
        ends = (mine, other) if positive else (other, mine)
        where = plus if positive else z3.Not(plus)
        claim = z3.Implies(z3.And(given, where), not_above(*ends))
        text = f"so sums in order are rounded in order, where e_max is {rise} higher"
        cut = [x.total, y.total, x.e_max, y.e_max, mine, other, *codes]
        claims.append(theory.claim(f"rounding, {rise}, {positive}", text, claim, [same, *used], cut))
    return z3.And(claims)
