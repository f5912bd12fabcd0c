"""d is ρ of the exact sum, of a sum that is that one, or odd with room and less than one unit off (`NearSum`).

Let x be the exact sum with the sign of the sum T · 2^u, and M the magnitude of that.  By definition M lies between the
midpoints of d, and where T is odd and has room, so does all that is less than one unit off (`prove_rounded`).

1. *distance*: x is M, or less than one unit off, with any sign;
2. *exactly*:  if x = M, the differences to the midpoints are those;
3. *off*:      if not, M ± one unit are between the midpoints, and x is between those;
4. *sign*:     d has the sign of T, but a zero may have either.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.encodings.smt.blocks import Special
from mmaformal.proof.definitions import fit
from mmaformal.proof.rules import instance
from mmaformal.proof.sticky_sums import is_odd
from mmaformal.proof.wide_numbers import Scaled, WideNumbers, near
from mmaformal.theory.near_sums import NearSum
from mmaformal.theory.ordered_grid import Grid


@dataclass(frozen=True)
class RoundedOnce:
    """A step's last sum, and the code of d; `exact` is the exact sum."""

    grid: Grid
    sum: NearSum
    exact: z3.BitVecRef
    special: Special
    code: z3.BitVecRef

    @property
    def w(self) -> WideNumbers:
        return self.grid.numbers

    @property
    def x(self) -> z3.BitVecRef:
        """The exact sum, with the sign of the sum."""
        return z3.If(self.sum.negative, -self.exact, self.exact)

    @property
    def size(self) -> z3.BitVecRef:
        """The sum's magnitude."""
        return self.w.value(self.sum.magnitude)

    @property
    def whole(self) -> z3.BitVecRef:
        return self.w.point.signed(self.sum.total, self.sum.u)

    @property
    def unit(self) -> z3.BitVecRef:
        return self.w.point.unit(self.sum.u)

    @property
    def index(self) -> z3.BitVecRef:
        return self.grid.index(self.code)

    @property
    def nothing_special(self) -> z3.BoolRef:
        return z3.Not(z3.Or(*self.special))

    def prove(self, known: z3.BoolRef, in_u: z3.BoolRef, far: z3.BoolRef) -> z3.BoolRef:
        """That if nothing is special, d is the exact sum rounded.

        Known are what the sum is (`NearSum.claim`), that u is in its range, and the exact sum far from the ends.
        """
        w, grid, index = self.w, self.grid, self.index
        text = "midpoints are in their range"
        in_q = w.theory.claim("midpoints", text, w.point.in_range(grid.midpoints(index)[0].t))
        distance = self.prove_distance(self.sum.prove_sign(w))
        ranges = [in_u, in_q]
        given = [*self._definition, known, distance, *self._prove_exactly(in_q)]
        given += [self._prove_off(ranges, far), *self._prove_next(ranges), *self._comparisons(ranges)]
        text = "the exact sum lies between the midpoints of d"
        between = z3.Implies(self.nothing_special, grid.between(self.x, index))
        between = w.follows("between midpoints", text, between, [*given, *self._prove_odd()])
        return self._prove_sign([between, known, distance], in_u)

    @property
    def _definition(self) -> list[z3.BoolRef]:
        """What `prove_rounded` claimed of d."""
        named = self.w.theory.named
        return [named[f"rounded by {self.grid.rho}"], named[f"rounded by {self.grid.rho} around"]]

    def _prove_odd(self) -> list[z3.BoolRef]:
        total, m = self.sum.total, self.sum.magnitude.m
        claim = z3.Implies(is_odd(total), z3.Not(m == 0))
        return [self.w.theory.claim("odd sum", "an odd sum is not zero", claim)]

    def prove_distance(self, by_sign: z3.BoolRef) -> z3.BoolRef:
        """That x is as far from the magnitude as the exact sum from the sum."""
        w, exact, whole, size, p, x = self.w, self.exact, self.whole, self.size, self.unit, self.x
        goal = z3.And((whole == exact) == (size == x), near(whole, exact, p) == near(size, x, p))
        text, cases = "magnitudes are as far apart as the numbers", []
        for where, y, signed in (
            (self.sum.negative, -exact, -size),
            (z3.Not(self.sum.negative), exact, size),
        ):
            claim = z3.Implies(where, z3.And(x == y, signed == whole))
            both = w.theory.claim("sign of a sum", "a sum with its sign", claim, [by_sign])
            claim = z3.Implies(
                signed == whole,
                z3.And((whole == exact) == (size == y), near(whole, exact, p) == near(size, y, p)),
            )
            moved = w.theory.claim("sum with a sign", text, claim)
            claim = z3.Implies(
                x == y, z3.And((size == y) == (size == x), near(size, y, p) == near(size, x, p))
            )
            back = w.theory.claim("sum with its sign", text, claim)
            cases.append(w.follows("distance", text, z3.Implies(where, goal), [both, moved, back]))
        return w.follows("distance with the sign", text, goal, cases)

    def _prove_exactly(self, in_q: z3.BoolRef) -> list[z3.BoolRef]:
        """Of x that is the magnitude."""
        w, x, size, (lo, up) = self.w, self.x, self.size, self.grid.ends(self.index)
        text = "if it is exact, the sum is between the midpoints as its magnitude is"
        same = z3.And(
            (x - up < 0) == z3.Not(size - up >= 0),
            (up - x >= 0) == (up - size >= 0),
            (lo - x < 0) == z3.Not(lo - size >= 0),
            (x - lo >= 0) == (size - lo >= 0),
        )
        exactly = w.theory.claim("exactly", text, z3.Implies(size == x, same))
        in_u = w.point.in_range(self.sum.u)
        rooms = [w.roomy(self.sum.magnitude, in_u), w.roomy(self.grid.midpoints(self.index)[1], in_q)]
        text = "and not below the other side"
        positive = z3.Implies(size == x, up + x >= 0)
        above = w.theory.claim("other side", text, positive, [room.arg(0) for room in rooms])
        return [exactly, above]

    def _comparisons(self, ranges: list[z3.BoolRef]) -> list[z3.BoolRef]:
        """That what the definition compares are differences of integers."""
        m, (lower, upper) = self.sum.magnitude, self.grid.midpoints(self.index)
        pairs = [(upper, m), (m, upper), (m, lower), (lower, m), (upper, self._above), (self._below, lower)]
        return [self.w.difference(*pair, ranges) for pair in pairs]

    @property
    def _above(self) -> Scaled:
        m, u = self.sum.magnitude
        return Scaled(fit(m, m.size() + 1) + 1, u)

    @property
    def _below(self) -> Scaled:
        return Scaled(self.sum.magnitude.m - 1, self.sum.u)

    def _prove_off(self, ranges: list[z3.BoolRef], far: z3.BoolRef) -> z3.BoolRef:
        """Of x less than one unit from the magnitude."""
        w, point, x, size, p = self.w, self.w.point, self.x, self.size, self.unit
        (in_u, in_q), m = ranges, self.sum.magnitude
        (lower, upper), (lo, up) = self.grid.midpoints(self.index), self.grid.ends(self.index)
        rooms = [w.roomy(m, in_u), w.roomy(upper, in_q), w.roomy(lower, in_q), w.unit_room(self.sum.u, in_u)]
        rooms = [room.arg(0) for room in rooms]
        small = w.theory.claim("range of x", "with its sign, too", point.is_near(x, 4), [far])
        given = []
        for off, gap in (
            (x - size - p, up - (size + p)),
            (size - x - p, (size - p) - lo),
            (size - x - p, (size - p) + up),
        ):
            given.append(instance(w.theory, point.gain, [(point.x, off), (point.y, gap)]))
            claim, text = z3.And(point.is_near(off), point.is_near(gap)), "differences are far from the ends"
            given.append(w.theory.claim("ranges", text, claim, [*rooms, small]))
        text = "if it is less than one unit off, the sum is between what all around the magnitude is between"
        ends = z3.And(
            z3.Implies(up - (size + p) >= 0, x - up < 0),
            z3.Implies((size - p) - lo >= 0, lo - x < 0),
            z3.Implies((size - p) + up >= 0, -x - up < 0),
        )
        return w.theory.claim("off", text, z3.Implies(near(size, x, p), ends), given)

    def _prove_next(self, ranges: list[z3.BoolRef]) -> list[z3.BoolRef]:
        """Of the values one unit from the magnitude, which the definition speaks of."""
        w, size, p, m, (in_u, in_q) = self.w, self.size, self.unit, self.sum.magnitude, ranges
        lo, up = self.grid.ends(self.index)
        above, below, nonzero = w.value(self._above), w.value(self._below), z3.Not(m.m == 0)
        steps = [w.one_more(m.m, m, self._above), w.one_more(m.m, self._below, m)]
        higher = (up - above >= 0) == (up - (size + p) >= 0)
        lower = (below - lo >= 0) == ((size - p) - lo >= 0)
        text = "one unit off is the next value"
        claim = z3.Implies(nonzero, z3.And(higher, lower))
        moved = w.theory.claim("next values", text, claim, steps)
        upper = self.grid.midpoints(self.index)[1]
        rooms = [w.roomy(self._below, in_u).arg(0), w.roomy(upper, in_q).arg(0)]
        claim, cut = z3.Implies(nonzero, (size - p) + up >= 0), [below, size, p, up, m.m == 0]
        text = "one unit below is not below the other side"
        return [moved, w.theory.claim("last unit", text, claim, [steps[1], *rooms], cut)]

    def _prove_sign(self, known: list[z3.BoolRef], in_u: z3.BoolRef) -> z3.BoolRef:
        """That x may be taken with the sign of d."""
        w, grid, x, exact, index, m = self.w, self.grid, self.x, self.exact, self.index, self.sum.magnitude
        along, sign, zero = grid.along(exact, self.code), grid.sign(self.code), index == 0
        cases = []
        for y in (x, -x):
            text = "equal numbers are alike between midpoints"
            claim = z3.Implies(along == y, grid.between(along, index) == grid.between(y, index))
            cases.append(w.theory.claim("between alike", text, claim))
        text = "around zero either sign is"
        mirrored = z3.Implies(z3.And(grid.between(x, index), zero), grid.between(-x, index))
        mirrored = w.theory.claim("between, mirrored", text, mirrored)
        claim = z3.And(z3.Implies(sign == self.sum.negative, along == x), z3.Or(along == x, along == -x))
        signs = [exact, sign, self.sum.negative]
        same = w.theory.claim("same sign", "with the sign of d", claim, (), signs)
        claim = z3.Implies(x == 0, along == x)
        no_sum = w.theory.claim("no sum", "zero has any sign", claim)
        claim = z3.Implies(z3.And(m.m == 0, self.size == x), x == 0)
        text = "no magnitude is zero"
        nothing = w.theory.claim("no magnitude", text, claim, [w.roomy(m, in_u)])
        given = [*known, *self._definition, *cases, mirrored, same, no_sum, nothing, *self._prove_odd()]
        text = "d is the exact sum, rounded"
        return w.follows(
            "rounded", text, z3.Implies(self.nothing_special, grid.rounds(exact, self.code)), given
        )
