"""The total of a step of gdfs with a larger group: e_max, the sums on one grid, and how they are rounded."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.out_of_order import order
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gdfs.proofs.two_steps import Summing, TwoSteps, known, signed
from mmaformal.encodings.smt.blocks import canonical_nan, select_special


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
