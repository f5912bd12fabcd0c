"""The total of a step of gdfs with a larger group: e_max, the sums on one grid (`Totals`) or, where e_max is another,
on two (`Risen`), and how they are rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.out_of_order import order
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gdfs.proofs.larger_group import Summing, TwoSteps, known, signed, within
from mmaformal.encodings.smt.blocks import canonical_nan, select_special, shift_right
from mmaformal.proof.kernel import demand
from mmaformal.spec import DotAdd


class Totals(TwoSteps):
    """Claims about all terms of both steps, and the case that e_max is the same."""

    def below(self, side: gdfs.GdfsStep) -> list[z3.BoolRef]:
        exponents = [term.exponent for term, _ in self.summands(side)]
        text = "no exponent is above e_max"
        return [self.derive("e_max", text, z3.ULE(e, side.e_max), (), exponents) for e in exponents]

    def ranges(self, side: gdfs.GdfsStep, below: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
        """(e_max is not above its range, nor below the least exponent of c)."""
        derive, ex = self.derive, gdfs.exponents_of(self.spec, self.p)
        high, least = ex.constant(ex.high), ex.constant(self.least())
        exponents = [term.exponent for term, _ in self.summands(side)]
        each = [
            derive("exponent in range", "no exponent is above its range", z3.ULE(e, high)) for e in exponents
        ]
        lowest = derive(
            "c's exponent", f"c's exponent is at least {self.least()}", z3.UGE(exponents[-1], least)
        )
        text = "e_max is in its range"
        return [
            derive("highest e_max", text, z3.ULE(side.e_max, high), each, exponents),
            derive(
                "least e_max",
                text,
                z3.UGE(side.e_max, least),
                [lowest, below[-1]],
                [side.e_max, exponents[-1]],
            ),
        ]

    def e_max(self, kinds: z3.BoolRef) -> z3.BoolRef:
        """That e_max is the same; or in one run the group is zero, and in the other it is of one sign and has e_max."""
        derive, (x, y) = self.derive, (side.groups[self.g] for side in (self.x, self.y))
        least = gdfs.exponents_of(self.spec, self.p).constant(self.least())
        E, H = self.x.e_max, self.y.e_max
        c = self.x.addend.exponent
        lowest = derive("c's exponent", f"c's exponent is at least {self.least()}", z3.UGE(c, least))
        claim = z3.Or(
            E == H,
            z3.And(z3.ULT(E, H), y.exponent == H, x.significand == 0, y.significand != 0, y.sign == 0),
            z3.And(z3.ULT(H, E), x.exponent == E, y.significand == 0, x.significand != 0, x.sign == 1),
        )
        text = "e_max is the same, or it is that of a group of one sign, which is all zeros in the other run"
        exponents = [term.exponent for side in (self.x, self.y) for term, _ in self.summands(side)]
        return derive("both e_max", text, claim, [kinds, lowest], [*exponents, *self.own()])

    def _bounds(self) -> list[int]:
        """Of the aligned magnitudes."""
        assert self.spec.scale_format is not None
        shift = self.p.F - 2 - 2 * self.spec.scale_format.fraction_bits
        return [gdfs.group_bound(self.spec, self.p) << shift] * len(self.x.groups) + [(2 << self.p.F) - 1]

    def totals(self, side: gdfs.GdfsStep, groups: Sequence[Summing], below: Sequence[z3.BoolRef]) -> Summing:
        derive, bounds, small = self.derive, self._bounds(), []
        largest = gdfs.group_bound(self.spec, self.p)
        for i, ((term, aligned), bound) in enumerate(zip(self.summands(side), bounds, strict=True)):
            cut = [term.exponent, term.significand, side.e_max]
            given = [below[i]]
            if i < len(groups):
                scales = [s[i].significand for s in (side.scale_a, side.scale_b)]
                inside = [side.sums[i], groups[i].totals[-1], *scales]
                text, claim = "a scaled group is in its range", z3.ULE(term.significand, largest)
                given.append(derive("group", text, claim, known(groups[i : i + 1]), inside))
            small.append(
                derive("aligned", "an aligned term is in its range", z3.ULE(aligned, bound), given, cut)
            )
        parts = [(term.sign, aligned) for term, aligned in self.summands(side)]
        return self.summing("terms", parts, bounds, small, side.total)

    def same_e_max(
        self,
        totals: Sequence[Summing],
        terms: z3.BoolRef,
        kinds: z3.BoolRef,
        below: Sequence[Sequence[z3.BoolRef]],
        ranges: Sequence[z3.BoolRef],
    ) -> z3.BoolRef:
        """That d is not smaller where e_max is the same."""
        derive, x, y = self.derive, self.x, self.y
        same, bits = x.e_max == y.e_max, x.total.size()
        parts = []
        for i, ((u, A), (v, B)) in enumerate(zip(self.summands(x), self.summands(y), strict=True)):
            given = [terms, kinds] if i == self.g else []
            cut = [x.e_max, y.e_max, *u, *v]
            claim = z3.Implies(same, signed(u.sign, A, bits) <= signed(v.sign, B, bits))
            text = "a cut toward zero keeps the order of terms that have one e_max"
            parts.append(derive("alignment", text, claim, [*given, below[0][i], below[1][i]], cut))
        sums = self.ordered("terms", (totals[0], totals[1]), parts, same, [x.e_max, y.e_max])
        goal = z3.Implies(same, order(self.code(x.total, x.e_max)) <= order(self.code(y.total, y.e_max)))
        cut = [x.e_max, y.e_max, x.total, y.total, *(t.totals[-1] for t in totals)]
        text = "sums in order are rounded in order, where e_max is the same"
        rounded = derive("rounding", text, goal, [sums, *known(totals), *ranges], cut)
        return self.special(rounded, same)

    def special(self, rounded: z3.BoolRef, where: z3.BoolRef) -> z3.BoolRef:
        """That d is not smaller, if the rounded sum is not: both runs have the same special values."""
        derive, x, y, fmt = self.derive, self.x, self.y, self.p.rho.format
        codes = [self.code(side.total, side.e_max) for side in (x, y)]
        selected = [select_special(x.special, code, fmt, canonical_nan(fmt)) for code in codes]
        text = "both runs have the same special values"
        claim = z3.Implies(where, order(selected[0]) <= order(selected[1]))
        chosen = derive("special values", text, claim, [rounded], [x.e_max, y.e_max, *codes, *x.special])
        text = "d is the rounded sum, or what c and the scales decide"
        results = [
            derive("result", text, side.result == own, (), [side.total, side.e_max, *x.special])
            for side, own in zip((x, y), selected, strict=True)
        ]
        claim = z3.Implies(where, order(x.result) <= order(y.result))
        cut = [x.e_max, y.e_max, *selected, x.result, y.result]
        return derive("d", "so d is not smaller", claim, [chosen, *results], cut)


def worth(spec: DotAdd) -> int:
    """The least that a nonzero group whose exponent is e_max is worth, in units of 2^(e_max - F)."""
    assert isinstance(spec.parameters, Gdfs)
    assert spec.scale_format is not None
    return int(1 << max(spec.parameters.F - 2 - 2 * spec.scale_format.fraction_bits, 0))


class Risen(Totals):
    """The cases that one of both steps has the larger e_max."""

    def prove(
        self,
        totals: Sequence[Summing],
        maxima: z3.BoolRef,
        below: Sequence[Sequence[z3.BoolRef]],
        ranges: Sequence[z3.BoolRef],
        falls: bool,
    ) -> z3.BoolRef:
        """That d is not smaller where the second run has the larger e_max, or, if it `falls`, the first."""
        grids = _Grids(self, falls, totals[::-1] if falls else totals)
        given: list[z3.BoolRef] = []
        for n in range(len(grids.terms)):
            of_term = maxima if n == self.g else below[int(falls)][n]
            given = [grids.next_sum(n, grids.lost(n, of_term), given)]
        sums, inside = grids.last(given)
        return self.rounded_in_order(grids.low, grids.high, sums, known(totals), ranges, inside, falls)

    def rounded_in_order(
        self,
        low: gdfs.GdfsStep,
        high: gdfs.GdfsStep,
        sums: z3.BoolRef,
        known: Sequence[z3.BoolRef],
        ranges: Sequence[z3.BoolRef],
        totals: Sequence[z3.BitVecRef],
        falls: bool,
    ) -> z3.BoolRef:
        """That d is not smaller, if the sum on the coarser grid is beyond that on the finer one.

        From one grid to the other by powers of two, those that the distance of the two is the sum of.
        """
        derive, ex = self.derive, gdfs.exponents_of(self.spec, self.p)
        E, H = low.e_max, high.e_max
        higher, rise, bits = z3.ULT(E, H), H - E, low.total.size()
        least, top = ex.constant(self.least()), ex.constant(ex.high)
        reach = (1 << (bits - 1)) - 1

        def coarser(x: z3.BitVecRef, amount: z3.BitVecRef | int) -> z3.BitVecRef:
            return -(-x >> amount)

        # Where the group takes something away, it is the opposite numbers that are in order.
        T, at, target = (-low.total, E, -high.total) if falls else (low.total, E, high.total)
        codes, numbers, chain = [self.code(T, at)], [T], []
        text = "the total is in range"
        bounded, last = (derive("total", text, within(t, reach), known, totals) for t in (T, target))
        for j in range(rise.size()):
            on = z3.Extract(j, j, rise) == 1
            after, up = z3.If(on, coarser(T, min(1 << j, bits - 1)), T), z3.If(on, at + (1 << j), at)
            text = "on the way from one e_max to the other, exponents are in range"
            claim = z3.Implies(higher, z3.And(z3.UGE(at, least), z3.UGE(up, at), z3.ULE(up, top)))
            in_range = derive(f"exponent {j}", text, claim, ranges, [E, H])
            codes.append(self.code(after, up))
            ordered = z3.Implies(higher, order(codes[-2]) <= order(codes[-1]))
            text = "a number on a coarser grid, cut up, is rounded to no less"
            cut = [T, at, on, E, H]
            chain.append(derive(f"grid {j}", text, ordered, [in_range, bounded], cut))
            bounded = derive("number", "and is in range", within(after, reach), [bounded], [T, on])
            T, at = after, up
            numbers.append(T)
        text = "the last of them are the larger e_max, and a number not above the sum on that grid"
        claim = z3.Implies(higher, z3.And(at == H, target >= T))
        arrived = derive("coarser grid", text, claim, [sums, *known], [E, H, *totals])
        codes.append(self.code(target, H))
        text = "sums in order are rounded in order, where e_max is the same"
        claim = z3.Implies(higher, order(codes[-2]) <= order(codes[-1]))
        given = [arrived, bounded, last, *ranges]
        chain.append(derive("rounding", text, claim, given, [T, target, at, E, H]))
        text = "so the sum on the coarser grid is rounded to no less"
        ends = [order(code) for code in codes]
        claim = z3.Implies(higher, ends[0] <= ends[-1])
        rounded = derive("rounding on two grids", text, claim, chain, [E, H, *ends, *numbers])
        if falls:
            rounded = self._opposite(low, high, rounded, [codes[0], codes[-1]], [*known, *ranges], totals)
        return self.special(rounded, higher)

    def _opposite(
        self,
        low: gdfs.GdfsStep,
        high: gdfs.GdfsStep,
        rounded: z3.BoolRef,
        codes: Sequence[z3.BitVecRef],
        known: Sequence[z3.BoolRef],
        totals: Sequence[z3.BitVecRef],
    ) -> z3.BoolRef:
        """That rounded sums are in order, if their opposites are."""
        derive = self.derive
        own = [self.code(side.total, side.e_max) for side in (low, high)]
        text, opposite = "the opposite of a number is rounded to the opposite", []
        for code, mine in zip(codes, own, strict=True):
            claim = z3.And(order(code) == -order(mine), within(order(mine), self.spec.d_format.sign_mask - 1))
            opposite.append(derive("opposite", text, claim, known, [low.e_max, high.e_max, *totals]))
        claim = z3.Implies(z3.ULT(low.e_max, high.e_max), order(own[1]) <= order(own[0]))
        cut = [low.e_max, high.e_max, *(order(code) for code in (*codes, *own))]
        return derive("in order", "so the sums are rounded in order", claim, [rounded, *opposite], cut)


class _Grids:
    """Sums on two grids: in the run of the larger e_max, `high`, and in the other, `low`, in which the group is zero.

    All are taken with the sign with which the group takes something away.
    """

    def __init__(self, steps: Risen, falls: bool, sums: Sequence[Summing]) -> None:
        self.steps, self.falls, self.sums, self.derive = steps, falls, sums, steps.derive
        self.low, self.high = (steps.y, steps.x) if falls else (steps.x, steps.y)
        self.E, self.H = self.low.e_max, self.high.e_max
        self.higher, self.rise = z3.ULT(self.E, self.H), self.H - self.E
        self.terms = list(zip(steps.summands(self.low), steps.summands(self.high), strict=True))
        self.bits = self.low.total.size()
        self.wide, self.most = self.bits + 4, 1 << self.bits
        self.by = z3.ZeroExt(self.wide - self.rise.size(), self.rise)

    def so(self, claim: z3.BoolRef) -> z3.BoolRef:
        return z3.Implies(self.higher, claim)

    def extended(self, x: z3.BitVecRef) -> z3.BitVecRef:
        """A sum, or its opposite where the group's sign is plus: so that the group takes something away."""
        x = z3.SignExt(self.wide - x.size(), x)
        return x if self.falls else -x

    def loses(self, n: int) -> int:
        """How many units the n-th term loses at most."""
        return -worth(self.steps.spec) if n == self.steps.g else 1

    def lost_before(self, n: int) -> int:
        return sum(self.loses(i) for i in range(n))

    def parts(self, n: int) -> list[z3.BitVecRef]:
        """The n-th term on both grids."""
        return [self.extended(signed(t.sign, aligned, self.bits)) for t, aligned in self.terms[n]]

    def totals(self, n: int) -> list[z3.BitVecRef]:
        """The sum of the first n + 1 terms on both grids."""
        return [self.extended(each.totals[n]) for each in self.sums]

    def lost(self, n: int, of_term: z3.BoolRef) -> z3.BoolRef:
        """What the n-th term loses on the coarser grid; `of_term` is what is known of its exponents."""
        ((u, A), (v, B)), (E, H) = self.terms[n], (self.E, self.H)
        text = "a term on the coarser grid is that on the finer one without the places between"
        claim = shift_right(A, self.rise) == B
        if n == self.steps.g:
            least = worth(self.steps.spec)
            text = f"the group is zero in one run, and in the other at least {least} units"
            claim = z3.And(A == 0, z3.UGE(B, least), v.sign == int(self.falls))
        grids = self.derive("two grids", text, self.so(claim), [of_term], [E, H, *u, *v])
        x, y = self.parts(n)
        claim = self.so(z3.And((x >> self.by) + self.loses(n) >= y, within(y, self.most)))
        text = "so it loses less than a unit, or the group is worth so many"
        small = [each.small[n] for each in self.sums]
        return self.derive("lost", text, claim, [grids, *small], self._inside(n))

    def _inside(self, n: int) -> list[z3.BitVecRef]:
        (u, A), (v, B) = self.terms[n]
        return [self.E, self.H, A, B, u.sign, v.sign]

    def next_sum(self, n: int, lost: z3.BoolRef, given: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """That the sums of the first n + 1 terms differ by what these lose, if those of n do (`given`)."""
        derive, most = self.derive, self.most
        text, more, loses = (
            "sums on two grids differ by what all terms lose",
            self.lost_before(n + 1),
            self.loses(n),
        )
        sums, (x, y) = self.totals(n), self.parts(n)
        if not n:
            claim = self.so((sums[0] >> self.by) + more >= sums[1])
            return derive("first on two grids", text, claim, [lost], self._inside(n))
        before = self.totals(n - 1)
        added = [self._added(i, n) for i in range(2)]
        whole, parts = sums[0] >> self.by, [t >> self.by for t in (before[0], x)]
        both = parts[0] + parts[1]
        claim = z3.And(
            whole >= both,
            *(within(t, 2 * most) for t in (whole, both)),
            *(within(t, most) for t in parts),
        )
        floor_text = "the floor of a sum is at least the sum of the floors"
        floor = derive("floor", floor_text, claim, [added[0]], [sums[0], before[0], x, self.rise])
        left = (parts[0] + (more - loses)) + (parts[1] + loses)
        no_wrap = z3.And([within(t, 2 * most) for t in left.children()])
        inner = derive("no wrap", "no sum wraps", no_wrap, [floor], [whole, both, *parts])
        cut = [self.E, self.H, *left.children(), sums[1], before[1], y]
        claim = self.so(left >= sums[1])
        of_parts = derive("parts on two grids", text, claim, [*given, lost, added[1], inner], cut)
        equal = derive("parts", "terms in another order", left == both + more, (), parts)
        claim = self.so(whole + more >= sums[1])
        cut = [self.E, self.H, whole, left, both, *parts, sums[1]]
        return derive("sums on two grids", text, claim, [of_parts, floor, equal], cut)

    def _added(self, run: int, n: int) -> z3.BoolRef:
        """That the n-th term is added to those before, in one of both runs."""
        sums, total, last, term = (
            self.sums[run],
            self.totals(n)[run],
            self.totals(n - 1)[run],
            self.parts(n)[run],
        )
        claim = z3.And(total == last + term, within(last, self.most), within(term, self.most))
        cut = [sums.totals[n - 1], *sums.parts[n]]
        return self.derive("one more term", "no sum wraps", claim, [sums.ranges[n - 1], sums.small[n]], cut)

    def last(self, given: Sequence[z3.BoolRef]) -> tuple[z3.BoolRef, list[z3.BitVecRef]]:
        """(that the totals are in order, the terms that this is about)."""
        demand(self.lost_before(len(self.terms)) <= 0, "something of the last sum is lost")
        first, second = self.sums
        ends = [self.extended(total) for total in (self.low.total, self.high.total)]
        text = "so the sum of the larger e_max is on the side on which its group is"
        inside = [self.low.total, self.high.total, first.totals[-1], second.totals[-1]]
        claim = self.so(ends[0] >> self.by >= ends[1])
        totals = [second, first] if self.falls else [first, second]
        cut = [self.E, self.H, *inside]
        return self.derive("totals on two grids", text, claim, [*given, *known(totals)], cut), inside
