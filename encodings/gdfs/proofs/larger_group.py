"""A group of gdfs in which no product is smaller: its sum, scaled, is not smaller; nor has it lost its exponent."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gdfs.proofs.two_steps import Summing, TwoSteps, known, signed
from mmaformal.encodings.smt.blocks import all_of, negate_if, resize
from mmaformal.facts.fused_steps import E2M1_PRODUCT


def _one_sign(flags: Sequence[z3.BoolRef], x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """If the first is flagged it is zero, and the second is not negative, and zero only if it is flagged; and so on."""
    return z3.And(
        z3.Implies(flags[0], z3.And(x == 0, y >= 0, (y == 0) == flags[1])),
        z3.Implies(flags[1], z3.And(y == 0, x <= 0, (x == 0) == flags[0])),
    )


class LargerGroup(TwoSteps):
    """Claims about the group alone."""

    def products(self, side: gdfs.GdfsStep, i: int) -> Summing:
        G, text = self.p.G, "a product of e2m1 is at most 36"
        products = side.products[i * G : (i + 1) * G]
        small = [
            self.derive("e2m1 product", text, z3.ULE(magnitude, E2M1_PRODUCT)) for _, magnitude in products
        ]
        return self.summing("products", products, [E2M1_PRODUCT] * G, small, side.sums[i])

    def larger(self, mine: tuple[Summing, Summing], larger: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
        bits, text = self.x.sums[0].size(), "a product of e2m1 is that of its numbers"
        pairs = zip(larger, mine[0].parts, mine[1].parts, strict=True)
        return [
            self.derive("product", text, signed(*u, bits) <= signed(*v, bits), [premise])
            for premise, u, v in pairs
        ]

    def zeros(self, mine: tuple[Summing, Summing], products: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """If all products of one run are zero, those of the other have one sign, and so has their sum."""
        derive, (x, y) = self.derive, mine
        text = (
            "where all products of one run are zero, the sum of the other is of one sign, or all of them are"
        )
        given: list[z3.BoolRef] = []
        for n in range(self.p.G):
            flags = self._all_zero(mine, n + 1)
            claim = _one_sign(flags, x.totals[n], y.totals[n])
            before = [each.totals[n - 1] for each in mine] if n else []
            ranges = [each.ranges[n - 1] for each in mine] if n else []
            factors = [v for each in mine for part in each.parts[: n + 1] for v in part]
            small = [each.small[n] for each in mine]
            given = [
                derive("zeros", text, claim, [*given, products[n], *ranges, *small], [*before, *factors])
            ]
        flags = self._all_zero(mine, self.p.G)
        sums = [side.sums[self.g] for side in (self.x, self.y)]
        cut = [*sums, x.totals[-1], y.totals[-1], *flags]
        return derive("zero sums", text, _one_sign(flags, *sums), [*given, x.summed, y.summed], cut)

    def _all_zero(self, mine: tuple[Summing, Summing], count: int) -> list[z3.BoolRef]:
        return [all_of([magnitude == 0 for _, magnitude in each.parts[:count]]) for each in mine]

    def terms(self, mine: tuple[Summing, Summing], sums: z3.BoolRef) -> z3.BoolRef:
        """That the scaled groups are in order."""
        x, y = (side.groups[self.g] for side in (self.x, self.y))
        bits = x.significand.size() + 1
        scales = [each[self.g].significand for each in (self.x.scale_a, self.x.scale_b)]
        cut = [side.sums[self.g] for side in (self.x, self.y)] + [each.totals[-1] for each in mine]
        claim = signed(x.sign, x.significand, bits) <= signed(y.sign, y.significand, bits)
        text = "scales have no sign, so scaled groups are in order"
        given = [sums, *known(mine)]
        if z3.is_bv_value(scales[0]):  # a power of two
            return self.derive("scaled", text, claim, given, cut)
        # One factor after the other, for each value that it has.
        derive, wide, top = self.derive, x.significand.size(), (1 << scales[0].size()) - 1
        factors = [resize(each, wide) for each in scales]
        sums_of = zip((x, y), cut, strict=False)
        magnitudes = [resize(resize(negate_if(t.sign, s), s.size() - 1), wide) for t, s in sums_of]
        once = [m * factors[0] for m in magnitudes]
        twice = [m * factors[1] for m in once]
        bound = self.p.G * E2M1_PRODUCT * top
        claim_once = z3.And(
            signed(x.sign, once[0], bits) <= signed(y.sign, once[1], bits), *(z3.ULE(m, bound) for m in once)
        )
        first = derive("scaled once", text, claim_once, given, cut, scales[0])
        claim_twice = signed(x.sign, twice[0], bits) <= signed(y.sign, twice[1], bits)
        second = derive("scaled twice", text, claim_twice, [first], [*once, x.sign, y.sign], scales[1])
        same = [
            derive("scaling", "in any order", t.significand == m, (), [cut[n], scales[1]], scales[0])
            for n, (t, m) in enumerate(zip((x, y), twice, strict=True))
        ]
        inside = [*twice, x.significand, y.significand, x.sign, y.sign]
        return derive("scaled", text, claim, [second, *same], inside)

    def kinds(self, mine: tuple[Summing, Summing], zeros: z3.BoolRef) -> z3.BoolRef:
        """That a group keeps its exponent, or it was all zeros in one run, and is of one sign in the other."""
        x, y = (side.groups[self.g] for side in (self.x, self.y))
        zero = gdfs.exponents_of(self.spec, self.p).constant(self.least())
        flags = self._all_zero(mine, self.p.G)
        claim = z3.Or(
            x.exponent == y.exponent,
            z3.And(x.exponent == zero, x.significand == 0, y.significand != 0, y.sign == 0),
            z3.And(y.exponent == zero, y.significand == 0, x.significand != 0, x.sign == 1),
        )
        text = "a group's exponent is the same, or its products are all zero in one run, and of one sign in the other"
        cut: list[z3.ExprRef] = [side.sums[self.g] for side in (self.x, self.y)]
        cut += [*(each.totals[-1] for each in mine), *flags]
        return self.derive("exponents", text, claim, [zeros, *known(mine)], cut)
