"""ρ keeps the order of numbers.

Of the integers of a fixed point, where ρ is RNE or RO to all places of its format (`RoundingGrid`).  d = ρ(x) is said
by differences: x lies between the midpoints of d and its neighbours, or on one of them if d is even.  So one need not
know how d was computed, nor x be more than an integer.  Rounding to odd is said with the same words: of an odd d both
neighbours are in the midpoints' place, and of an even one d itself.

1. *comparisons*: differences of numbers that are far from the ends are their comparisons;
2. *midpoints*:   of larger codes the midpoints are not smaller, and of two codes that share one, one is odd;
3. *codes*:       if ρ(x) > ρ(y), in one of few ways, then x ≥ a midpoint ≥ y;
4. *order*:       so if y ≥ x, they are that midpoint, which cannot be rounded to both codes.

And of sums as an encoding rounds them, on one grid or on the next coarser one (`OrderedRounding`).  Of the codes that
sums T · 2^e are rounded to: T and T + 1 give codes in order, so do any two T ≤ T' (the rule `ascent`); 2T at e and T at
e + 1 are one number, and give the same.  So T at e and ⌈T / 2⌉ at e + 1 give codes in order, and so do the floor of
T / 2 at e + 1 and T at e.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import z3

from mmaformal.cases.interfaces import Judged
from mmaformal.cases.out_of_order import order
from mmaformal.encodings.smt.blocks import ExponentRange, encode, normalise_and_round
from mmaformal.proof.definitions import at_least, code_parts, fit, last_index, midpoints
from mmaformal.proof.fixed_sums import wide
from mmaformal.proof.kernel import NotProvedError, demand
from mmaformal.proof.rules import Ascent, Theory, instance
from mmaformal.rounding import Conversion, Rounding
from mmaformal.theory.fixed_point import Shifted, WideNumbers

FAR = 5  #: highest bits that are the sign, of any number that is rounded


@dataclass(frozen=True)
class RoundingGrid:
    """Codes of ρ, and what is rounded to them."""

    numbers: WideNumbers
    rho: Conversion

    def __post_init__(self) -> None:
        kept = self.rho.fraction_bits == self.rho.format.fraction_bits
        if self.rho.rounding not in (Rounding.RNE, Rounding.RO) or not kept:
            raise NotProvedError(
                f"{self.rho} keeps order", "unknown", "shown of RNE and RO to all places of a format"
            )

    def index(self, code: z3.BitVecRef) -> z3.BitVecRef:
        return z3.Extract(code.size() - 2, 0, code)

    def sign(self, code: z3.BitVecRef) -> z3.BoolRef:
        return z3.Extract(code.size() - 1, code.size() - 1, code) == 1

    @property
    def last(self) -> int:
        """The index of infinity."""
        return last_index(self.rho)

    def midpoints(self, index: z3.BitVecRef) -> tuple[Shifted, Shifted]:
        """Those below and above the index-th number; to odd, its neighbours if it is odd, and else itself."""
        if self.rho.rounding is Rounding.RO:
            significand, q = code_parts(index, self.numbers.exponent_bits, self.rho)
            odd = fit(z3.Extract(0, 0, index), significand.size())
            return Shifted(significand - odd, q), Shifted(significand + odd, q)
        lower, upper, q = midpoints(index, self.numbers.exponent_bits, self.rho)
        return Shifted(lower, q), Shifted(upper, q)

    def ends(self, index: z3.BitVecRef) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """Return the midpoints, or what is in their place, as integers."""
        lower, upper = self.midpoints(index)
        return self.numbers.value(lower), self.numbers.value(upper)

    # ---- what is claimed

    def between(self, x: z3.BitVecRef, index: z3.BitVecRef) -> z3.BoolRef:
        """Whether x, with the sign of a code, is between the midpoints of its magnitude.

        Infinity has no upper midpoint, and zero no lower one: −x is below the upper one, too.
        """
        lo, up = self.ends(index)
        infinite, zero, even = self.infinite(index), index == 0, self.even(index)
        high = z3.Or(infinite, x - up < 0, z3.And(even, up - x >= 0))
        low = z3.Or(zero, lo - x < 0, z3.And(even, x - lo >= 0))
        return z3.And(high, low, z3.Or(z3.Not(zero), -x - up < 0, up + x >= 0))

    def infinite(self, index: z3.BitVecRef) -> z3.BoolRef:
        """The very term of `definitions`: Python compares a number first, so with a plain integer it is another."""
        return index == z3.BitVecVal(self.last, index.size())

    def even(self, index: z3.BitVecRef) -> z3.BoolRef:
        return z3.Extract(0, 0, index) == 0

    def along(self, x: z3.BitVecRef, code: z3.BitVecRef) -> z3.BitVecRef:
        """x with the sign of a code."""
        return z3.If(self.sign(code), -x, x)

    def rounds(self, x: z3.BitVecRef, code: z3.BitVecRef) -> z3.BoolRef:
        """Whether x is rounded to a code, by the definition."""
        index = self.index(code)
        return z3.And(z3.ULE(index, self.last), self.between(self.along(x, code), index))

    def is_far(self, x: z3.BitVecRef) -> z3.BoolRef:
        """Whether x is far from the ends of the fixed point."""
        return self.numbers.point.is_near(x, FAR)

    @property
    def codes(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        bits = self.rho.format.storage_bits
        return z3.BitVec("d", bits), z3.BitVec("d'", bits)

    @property
    def keeps_order(self) -> z3.BoolRef:
        """Numbers in order are rounded to codes in order."""
        (x, y), (d, e) = self._integers, self.codes
        given = z3.And(self.is_far(x), self.is_far(y), self.rounds(x, d), self.rounds(y, e), y - x >= 0)
        return z3.Implies(given, order(d) <= order(e))

    @property
    def _integers(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        return self.numbers.point.x, self.numbers.point.y

    # ---- proof

    def prove(self) -> None:
        """`keeps_order`, a theorem.  Raises NotProvedError."""
        (x, y), (d, e), follows = self._integers, self.codes, self.numbers.follows
        i, j = self.index(d), self.index(e)
        midpoints_ = [self._prove_midpoints(each) for each in (i, j)]
        ordered = [self._prove_apart(i, j), self._prove_apart(j, i)]
        compared = [
            self._prove_compared(number, code, negative)
            for number, code in ((x, d), (y, e))
            for negative in (False, True)
        ]
        text = "negatives are in the other order"
        other = self.numbers.of_sums("negatives", text, (y - x >= 0) == (-x - (-y) >= 0))
        signs = [self._signed(y, x), self._signed(-x, -y), self._range(x), self._range(y)]
        numbers = z3.Implies(self.keeps_order.arg(0), z3.And(y >= x, -x >= -y))
        both = follows("both orders", "the comparison of the numbers is that", numbers, [other, *signs])
        zero = z3.BitVecVal(0, x.size())
        opposite = []
        for number in (x, y):
            text = "a number and its negative are not both positive"
            claim = z3.Implies(self.is_far(number), z3.Or(zero >= number, zero >= -number))
            opposite.append(self.numbers.of_sums("opposite", text, claim))
        (lo_i, up_i), (lo_j, up_j) = self.ends(i), self.ends(j)
        sets = [(x, y, lo_i, up_j), (-x, -y, lo_j, up_i), (zero, x, y, lo_i), (zero, -y, lo_j)]
        transitive = self._prove_transitive()
        chains = [
            instance(self.numbers.theory, transitive, list(zip(self._three, three, strict=True)))
            for each in sets
            for three in permutations(each, 3)
        ]
        text = "numbers in order are rounded to codes in order"
        given = [*midpoints_, *ordered, *compared, both, *opposite, *chains, self._prove_codes()]
        follows("order of codes", text, self.keeps_order, given)
        self.numbers.theory.theorem(text, self.keeps_order)

    def apart(self, i: z3.BitVecRef, j: z3.BitVecRef) -> z3.BoolRef:
        """i < j, of numbers that have midpoints between them."""
        return z3.And(z3.ULT(i, j), z3.ULE(j, self.last), z3.Not(j == 0), z3.Not(self.infinite(i)))

    def _prove_codes(self) -> z3.BoolRef:
        """In which ways codes are not in order."""
        d, e = self.codes
        i, j, minus_d, minus_e = self.index(d), self.index(e), self.sign(d), self.sign(e)
        opposite = z3.Or(
            z3.And(z3.Not(i == 0), z3.Not(j == 0)),
            z3.And(j == 0, self.even(j), self.apart(j, i)),
            z3.And(i == 0, self.even(i), self.apart(i, j)),
        )
        ways = z3.Or(
            order(d) <= order(e),
            z3.And(z3.Not(minus_d), z3.Not(minus_e), self.apart(j, i)),
            z3.And(minus_d, minus_e, self.apart(i, j)),
            z3.And(z3.Not(minus_d), minus_e, opposite),
        )
        inside = z3.And(z3.ULE(i, self.last), z3.ULE(j, self.last))
        text = "codes are in order, or one magnitude is larger, or the signs differ"
        return self.numbers.theory.claim("codes", text, z3.Implies(inside, ways))

    def _prove_midpoints(self, index: z3.BitVecRef) -> z3.BoolRef:
        """Prove that a lower midpoint is positive, or zero of an odd number, and none is near the ends."""
        w, point, (lower, upper) = self.numbers, self.numbers.point, self.midpoints(index)
        (lo, up), zero = self.ends(index), z3.BitVecVal(0, self.numbers.point.bits)
        text = "midpoints are in their range"
        inside = w.theory.claim("midpoints", text, point.in_range(lower.t))
        rooms = [w.roomy(each, inside) for each in (lower, upper)]
        text = "only zero has no lower midpoint; that of an odd number may be zero"
        odd = z3.Not(self.even(index))
        some = w.theory.claim("lower midpoint", text, z3.Or(index == 0, lower.m != 0, odd))
        text = "a lower midpoint is positive, or zero of an odd number, and midpoints are far from the ends"
        positive = z3.Or(index == 0, z3.Not(zero >= lo), z3.And(odd, lo >= zero))
        claim = z3.And(positive, point.has_room(lo), point.has_room(up))
        return w.theory.claim("midpoint", text, claim, [*rooms, some])

    def _prove_apart(self, i: z3.BitVecRef, j: z3.BitVecRef) -> z3.BoolRef:
        """Prove that of larger numbers midpoints are not smaller, and what is the midpoint of two is so of an even
        one."""
        w, upper, lower = self.numbers, self.midpoints(i)[1], self.midpoints(j)[0]
        up, lo = w.value(upper), w.value(lower)
        parity = z3.Not(z3.And(self.even(i), self.even(j)))
        above, equal = at_least(*lower, *upper), at_least(*upper, *lower)
        text = "of larger numbers midpoints are not smaller; of two, one is odd"
        claim = z3.Implies(self.apart(i, j), z3.And(above, z3.Implies(equal, parity)))
        own = w.theory.claim("midpoints in order", text, claim)
        ranges = [w.point.in_range(each.t) for each in (lower, upper)]
        both = [w.difference(lower, upper, ranges), w.difference(upper, lower, ranges)]
        signs = [self._signed(lo, up), self._signed(up, lo), self._range_of_end(lo), self._range_of_end(up)]
        rooms = [w.point.has_room(each) for each in (lo, up)]
        claim = z3.Implies(self.apart(i, j), z3.And(lo >= up, z3.Implies(up >= lo, parity)))
        return w.follows("ends in order", text, claim, [own, *both, *signs, *rooms], above, equal)

    def _prove_compared(self, x: z3.BitVecRef, code: z3.BitVecRef, negative: bool) -> z3.BoolRef:
        """Prove what it means, in comparisons, that x is rounded to a code of this sign."""
        w, index = self.numbers, self.index(code)
        (lo, up), (z, other) = self.ends(index), (-x, x) if negative else (x, -x)
        infinite, zero, even, along = self.infinite(index), index == 0, self.even(index), self.along(x, code)
        sign = self.sign(code) if negative else z3.Not(self.sign(code))
        same = z3.Implies(sign, along == z)
        same = w.theory.claim("number with a sign", "a number with a sign", same)
        text = "equal numbers are alike between midpoints"
        claim = z3.Implies(along == z, self.between(along, index) == self.between(z, index))
        alike = w.theory.claim("alike between", text, claim, (), [along, z, lo, up, index])
        pairs = [(z, up), (up, z), (lo, z), (z, lo), (other, up), (up, other)]
        signs = [self._signed(*pair) for pair in pairs]
        signs += [self._range(x), self._range_of_end(lo), self._range_of_end(up)]
        text = "a difference is negative or not, and so is its negative"
        claim = z3.And(
            (z - up < 0) == z3.Not(z - up >= 0),
            (lo - z < 0) == z3.Not(lo - z >= 0),
            (-z - up < 0) == z3.Not(other - up >= 0),
            (up + z >= 0) == (up - other >= 0),
        )
        links = w.of_sums("differences", text, claim)
        text = "of two numbers one is not the smaller"
        totals = [
            w.theory.claim("total", text, z3.Or(u >= v, v >= u)) for u, v in pairs if u.eq(up) or v.eq(z)
        ]
        claim = z3.And(
            z3.Or(infinite, z3.And(up >= z, z3.Or(even, z3.Not(z >= up)))),
            z3.Or(zero, z3.And(z >= lo, z3.Or(even, z3.Not(lo >= z)))),
            z3.Or(z3.Not(zero), up >= other),
        )
        rooms = [w.point.has_room(each) for each in (lo, up)]
        where = z3.And(sign, self.rounds(x, code), self.is_far(x))
        text = "what is rounded to a code is between its midpoints, or on one if it is even"
        given = [same, alike, *signs, links, *totals, *rooms]
        return w.follows("comparisons", text, z3.Implies(where, claim), given)

    @property
    def _three(self) -> tuple[z3.BitVecRef, z3.BitVecRef, z3.BitVecRef]:
        """Letters of any integers."""
        return *self._integers, z3.BitVec("z", self.numbers.point.bits)

    def _prove_transitive(self) -> z3.BoolRef:
        """Return the theorem that ≥ of integers is transitive."""
        x, y, z = self._three
        claim = z3.Implies(z3.And(x >= y, y >= z), x >= z)
        return self.numbers.theory.holds("transitive", "≥ is transitive", claim)

    def _signed(self, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
        point = self.numbers.point
        return instance(self.numbers.theory, point.signed_order, [(point.x, x), (point.y, y)])

    def _range(self, x: z3.BitVecRef) -> z3.BoolRef:
        point, text = self.numbers.point, "a number far from the ends, and its negative, are in their range"
        claim = z3.Implies(self.is_far(x), z3.And(point.is_near(x), point.is_near(-x)))
        return self.numbers.of_sums("negatives in range", text, claim)

    def _range_of_end(self, end: z3.BitVecRef) -> z3.BoolRef:
        point = self.numbers.point
        claim = z3.Implies(point.has_room(end), point.is_near(end))
        return self.numbers.of_sums("range of a midpoint", "midpoints are in their range", claim)


def prove_to_odd(
    grid: RoundingGrid,
    index: z3.BitVecRef,
    sizes: tuple[Shifted, Shifted, Shifted],
    known: tuple[z3.BoolRef, z3.BoolRef],
    hint: Sequence[z3.ExprRef],
) -> list[z3.BoolRef]:
    """Prove what the definition of rounding to odd says in terms of what is in the midpoints' place.

    `sizes`: of what is rounded, and one unit above and below; `known` says that the index-th number is that rounded, or
    all that is between those.
    """
    theory, (m, above, below), (lower, upper) = grid.numbers.theory, sizes, grid.midpoints(index)
    infinite, zero, even = grid.infinite(index), index == 0, grid.even(index)
    high = z3.And(at_least(*upper, *m), z3.Or(even, z3.Not(at_least(*m, *upper))))
    low = z3.And(at_least(*m, *lower), z3.Or(even, z3.Not(at_least(*lower, *m))))
    exactly = z3.And(z3.Or(infinite, high), z3.Or(zero, low))
    around = z3.And(z3.Or(infinite, at_least(*upper, *above)), z3.Or(zero, at_least(*below, *lower)))
    text = "what is rounded to odd is between the neighbours of an odd number, or an even one"
    claims = [
        theory.claim(
            f"to odd, {name}",
            text,
            z3.Implies(given.arg(0), z3.And(z3.ULE(index, grid.last), goal)),
            [given],
            [*hint, *m],
        )
        for name, given, goal in zip(("exactly", "around"), known, (exactly, around), strict=True)
    ]
    said = known[0].arg(1)
    sign = z3.Implies(known[0].arg(0), said.arg(said.num_args() - 1))
    return [*claims, theory.claim("sign to odd", "with the sign of the sum", sign, [known[0]])]


def not_above(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    return order(x) <= order(y)


class At(NamedTuple):
    """A sum, and the exponent of its unit."""

    total: z3.BitVecRef
    e_max: z3.BitVecRef


def half_up(x: z3.BitVecRef) -> z3.BitVecRef:
    """⌈x / 2⌉, in two's complement."""
    return -(-x >> 1)


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
    def sums(self) -> tuple[At, At]:
        """The sums that theorems are about: one, and another whose unit is the same or twice as large."""
        (T, U), (e, f) = (
            z3.BitVecs("total total'", self.bits),
            z3.BitVecs("e_max e_max'", self.exponents.bits),
        )
        return At(T, e), At(U, f)

    def code(self, total: z3.BitVecRef, e_max: z3.BitVecRef) -> z3.BitVecRef:
        rounded = normalise_and_round(total, e_max, self.exponents, self.F, self.rho, self.lowest)
        return encode(rounded, self.rho)

    @property
    def ascent(self) -> Ascent:
        (T, e), _ = self.sums
        return Ascent(T, self.code(T, e), not_above, self.even_reach, self.in_range(e))

    def in_range(self, e_max: z3.BitVecRef) -> z3.BoolRef:
        ex = self.exponents
        return z3.And(z3.UGE(e_max, ex.constant(self.lowest)), z3.ULE(e_max, ex.constant(ex.high)))

    def is_small(self, total: z3.BitVecRef) -> z3.BoolRef:
        return z3.And(total <= self.reach, total >= -self.reach)

    @property
    def doubled(self) -> z3.BoolRef:
        """Twice a sum is rounded as the sum is on the next coarser grid."""
        ((T, e), _), ex, most = self.sums, self.exponents, self.even_reach // 2
        fits = z3.And(self.in_range(e), z3.ULT(e, ex.constant(ex.high)), -most <= T, most >= T)
        return z3.Implies(fits, self.code(T << 1, e) == self.code(T, e + 1))

    def in_order(self, rise: int, up: bool) -> z3.BoolRef:
        """Sums in order are rounded in order, the second in units `rise` times doubled; if not `up`, the first is the
        larger."""
        ((T, e), (U, f)), bits = self.sums, self.bits + 1
        x, y = wide(T, bits), wide(U, bits) << rise
        risen = z3.And(f == e + rise, z3.ULE(e, f), self.in_range(e), self.in_range(f))
        ordered = x <= y if up else x >= y
        codes = (T, e), (U, f)
        ends = [self.code(*each) for each in (codes if up else codes[::-1])]
        return z3.Implies(z3.And(risen, ordered, self.is_small(T), self.is_small(U)), not_above(*ends))

    def prove(self, theory: Theory, rises: Sequence[int] = (0, 1)) -> None:
        """Theorems: to be concluded before anything else is claimed.  Raises NotProvedError."""
        rule = self.ascent
        theory.holds("next sum", f"a sum and the next are rounded in order by {self.rho}", rule.neighbours)
        theory.holds("≤ of codes", "≤ is transitive", rule.transitive)
        theory.holds("d and d", "and reflexive", rule.reflexive)
        rule.conclude(theory)
        text = "twice a sum is rounded as the sum is on the next coarser grid"
        theory.holds("doubled sum", text, self.doubled)
        for rise in rises:
            for up in (True, False):
                self._prove_in_order(theory, rise, up)

    def _prove_in_order(self, theory: Theory, rise: int, up: bool) -> None:
        """`in_order`: a sum is not above twice its half, cut up, nor that half above the other one."""
        (T, e), (U, f) = self.sums
        goal, half = self.in_order(rise, up), T
        if rise:
            half = half_up(T) if up else T >> 1
        used = [self._ascending(theory, half, U, f, up)]
        codes = [self.code(half, f), self.code(half, e + rise), self.code(T, e), self.code(U, f)]
        if rise:
            double = half << 1
            used += [self._ascending(theory, T, double, e, up), instance(theory, self.doubled, [(T, half)])]
            codes.append(self.code(double, e))
        text = "the exponents are the same"
        same = z3.Implies(f == e + rise, codes[0] == codes[1])
        used.append(theory.claim(f"code on the coarser grid, {rise}", text, same))
        text = f"sums in order are rounded in order, where e_max is {rise} higher"
        theory.claim(f"rounding, {rise}, {up}", text, goal, used)
        theory.theorem(text, goal)

    # ---- grids however far apart

    def far_in_order(self, up: bool) -> z3.BoolRef:
        """A sum on a finer grid, cut up to the coarser one, is rounded to no more than what is not below that; or, cut
        down, to no less than what is not above."""
        ((T, e), (U, f)), bits = self.sums, self.bits + 4
        by, x, y = z3.ZeroExt(bits - f.size(), f - e), wide(T, bits), wide(U, bits)
        if up:
            x, y = -x, -y
        ends = [self.code(T, e), self.code(U, f)][:: 1 if up else -1]
        given = z3.And(*self._apart, self.is_small(T), self.is_small(U), x >> by >= y)
        return z3.Implies(given, not_above(*ends))

    @property
    def _apart(self) -> tuple[z3.BoolRef, ...]:
        (_, e), (_, f) = self.sums
        return z3.ULT(e, f), self.in_range(e), self.in_range(f)

    def prove_far(self, theory: Theory, up: bool) -> None:
        """`far_in_order`, a theorem: from one grid to the other by powers of two, those that the distance of both is
        the sum of."""
        (T, e), (U, f) = self.sums
        goal, apart, small = self.far_in_order(up), z3.And(self._apart), self.is_small(T)
        here, at, codes, chain = T, e, [self.code(T, e)], []
        bounded = theory.claim("sum in range", "a sum is in range", z3.Implies(small, self.is_small(T)))
        for j in range(e.size()):
            on, by = z3.Extract(j, j, f - e) == 1, min(1 << j, self.bits - 1)
            there = z3.If(on, -(-here >> by) if up else here >> by, here)
            next_ = z3.If(on, at + (1 << j), at)
            text = "on the way from one e_max to the other, exponents are in range"
            claim = z3.And(self.in_range(at), z3.UGE(next_, at), self.in_range(next_))
            in_range = theory.claim(f"exponent {j}", text, z3.Implies(apart, claim))
            codes.append(self.code(there, next_))
            ends = (codes[-2], codes[-1]) if up else (codes[-1], codes[-2])
            text = "a sum on a coarser grid, cut up, is rounded to no less; cut down, to no more"
            claim = z3.Implies(z3.And(apart, small), not_above(*ends))
            hint = [here, at, on, apart, small]
            chain.append(theory.claim(f"grid {j}", text, claim, [in_range, bounded], hint))
            claim = z3.Implies(small, self.is_small(there))
            bounded = theory.claim(f"number {j}", "and is in range", claim, [bounded])
            here, at = there, next_
        text = "the last of them has the larger exponent, and is not beyond the other sum"
        claim = z3.Implies(goal.arg(0), z3.And(at == f, here <= U if up else here >= U))
        arrived = theory.claim("coarser grid", text, claim)
        ends = (codes[-1], self.code(U, f)) if up else (self.code(U, f), codes[-1])
        text, claim = "sums in order are rounded in order", z3.Implies(goal.arg(0), not_above(*ends))
        said = self._ascending(theory, here, U, f, up)
        alike = z3.Implies(at == f, self.code(here, at) == self.code(here, f))
        alike = theory.claim("code on the last grid", "the exponents are the same", alike)
        chain.append(theory.claim("last grid", text, claim, [arrived, bounded, said, alike]))
        text = "so a sum on another grid is rounded in order"
        theory.claim("far grids", text, goal, chain)
        theory.theorem(text, goal)

    def of_far_sums(self, theory: Theory, x: At, y: At, up: bool) -> z3.BoolRef:
        """Return what `far_in_order` says of two sums."""
        pairs = [
            each for own, at in zip(self.sums, (x, y), strict=True) for each in zip(own, at, strict=True)
        ]
        return instance(theory, self.far_in_order(up), pairs)

    def _ascending(
        self, theory: Theory, x: z3.BitVecRef, y: z3.BitVecRef, e_max: z3.BitVecRef, up: bool
    ) -> z3.BoolRef:
        """Return that on one grid, where x ≤ y, so are their codes; or where y ≤ x."""
        rule, ends = self.ascent, (x, y) if up else (y, x)
        pairs = [(self.sums[0].e_max, e_max), *zip(rule.numbers, ends, strict=True)]
        return instance(theory, rule.conclusion, pairs)

    def of_sums(self, theory: Theory, x: At, y: At, rise: int) -> list[z3.BoolRef]:
        """Return what the theorems say of two sums: for either order."""
        demand(self.bits == x.total.size(), "sums have other bits than those that are rounded")
        pairs = [
            pair for own, each in zip(self.sums, (x, y), strict=True) for pair in zip(own, each, strict=True)
        ]
        return [instance(theory, self.in_order(rise, up), pairs) for up in (True, False)]

    def prove_result(self, theory: Theory, step: Judged, at: At) -> z3.BoolRef:
        """Prove that a step's result is such a code."""
        text = "where nothing is special, d is the rounded sum; a zero may have another sign"
        claim = z3.Or(*step.special, order(step.result) == order(self.code(*at)))
        return theory.claim("rounded sum", text, claim)
