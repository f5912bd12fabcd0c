"""Two steps of gdfs that differ in one group, in which no product of the second is smaller: what all claims share
(`TwoSteps`); and the group's sum, scaled, is not smaller; nor has it lost its exponent (`LargerGroup`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import z3

from mmaformal.encodings.fda.smt import lowest_e_max
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.smt.blocks import Term, all_of, encode, negate_if, normalise_and_round, resize
from mmaformal.facts.fused_steps import E2M1_PRODUCT
from mmaformal.proof.definitions import fit
from mmaformal.proof.kernel import demand
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd

Signed: TypeAlias = tuple[z3.BitVecRef, z3.BitVecRef]  #: a sign and a magnitude


def derive(
    theory: Theory,
    name: str,
    statement: str,
    claim: z3.BoolRef,
    given: Sequence[z3.BoolRef] = (),
    cut: Sequence[z3.ExprRef] = (),
    each_value_of: z3.BitVecRef | None = None,
) -> z3.BoolRef:
    """The claim, proved from others; with `each_value_of` a narrow term, for each of its values."""
    terms = [x for x in cut if not z3.is_bv_value(x)]
    if each_value_of is None:
        return theory.claim(name, statement, claim, given, terms)
    bits = each_value_of.size()
    values = [each_value_of == z3.BitVecVal(value, bits) for value in range(1 << bits)]
    theory.claim(f"values of {name}", "a term has one of its values", z3.Or(values), (), [each_value_of])
    for value in values:
        theory.claim(name, statement, z3.Implies(value, claim), given, [*terms, each_value_of])
    return claim  # follows from these, in the composition


def signed(sign: z3.BitVecRef, magnitude: z3.BitVecRef, bits: int) -> z3.BitVecRef:
    return negate_if(sign, fit(magnitude, bits))


def within(x: z3.BitVecRef, bound: int) -> z3.BoolRef:
    return z3.And(x <= bound, x >= -bound)


def running(parts: Sequence[Signed], bits: int) -> list[z3.BitVecRef]:
    """The sums of the first, the first two, …"""
    out: list[z3.BitVecRef] = []
    for sign, magnitude in parts:
        part = signed(sign, magnitude, bits)
        out.append(out[-1] + part if out else part)
    return out


@dataclass(frozen=True)
class Summing:
    """Sums of signed magnitudes, one more each time."""

    parts: Sequence[Signed]
    totals: Sequence[z3.BitVecRef]
    small: Sequence[z3.BoolRef]  #: that each magnitude is at most its bound
    ranges: Sequence[z3.BoolRef]  #: that each sum is in its range
    summed: z3.BoolRef  #: that the last sum is what the encoding has


def known(sums: Iterable[Summing]) -> list[z3.BoolRef]:
    """What is known of the totals: that they are in range."""
    return [claim for each in sums for claim in (each.ranges[-1], each.summed)]


@dataclass(frozen=True)
class TwoSteps:
    """Two steps that differ in group g, in which no product of the second, y, is smaller."""

    theory: Theory
    spec: DotAdd
    p: Gdfs
    x: gdfs.GdfsStep
    y: gdfs.GdfsStep
    g: int

    @property
    def parts(self) -> tuple[Theory, DotAdd, Gdfs, gdfs.GdfsStep, gdfs.GdfsStep, int]:
        return self.theory, self.spec, self.p, self.x, self.y, self.g

    def derive(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        given: Sequence[z3.BoolRef] = (),
        cut: Sequence[z3.ExprRef] = (),
        each_value_of: z3.BitVecRef | None = None,
    ) -> z3.BoolRef:
        return derive(
            self.theory,
            name,
            statement=statement,
            claim=claim,
            given=given,
            cut=cut,
            each_value_of=each_value_of,
        )

    def own(self) -> list[z3.BitVecRef]:
        """The terms of the group in both steps."""
        return [part for side in (self.x, self.y) for part in side.groups[self.g]]

    def least(self) -> int:
        """A lower bound of e_max, c's exponent; where zeros have one of their own, it is that of zero."""
        return lowest_e_max(self.spec, self.p.e_zero)

    def summands(self, side: gdfs.GdfsStep) -> list[tuple[Term, z3.BitVecRef]]:
        """All terms of a step with their aligned magnitudes, c the last."""
        return list(zip((*side.groups, side.addend), (*side.aligned, side.aligned_c), strict=True))

    def code(self, total: z3.BitVecRef, e_max: z3.BitVecRef) -> z3.BitVecRef:
        """The code of total · 2^(e_max - F)."""
        p, lowest = self.p, lowest_e_max(self.spec, self.p.e_zero)
        return encode(
            normalise_and_round(total, e_max, gdfs.exponents_of(self.spec, p), p.F, p.rho, lowest), p.rho
        )

    def summing(
        self, what: str, parts: Sequence[Signed], bounds: Sequence[int], small: Sequence[z3.BoolRef],
        total: z3.BitVecRef,
    ) -> Summing:  # fmt: skip
        """That sums stay in range, from the bounds of what is added, and that the last one is the total."""
        derive, bits = self.derive, total.size()
        ranges: list[z3.BoolRef] = []
        totals, reach = running(parts, bits), 0
        for n, (part, bound) in enumerate(zip(parts, bounds, strict=True)):
            reach += bound
            demand(reach < 1 << (bits - 1), "sums of this size do not fit their bits")
            given, cut = [small[n], *ranges[-1:]], [*part, *(totals[n - 1 : n] if n else [])]
            ranges.append(
                derive(f"{what} {n}", f"{what}: no sum wraps", within(totals[n], reach), given, cut)
            )
        cut = [x for part in parts for x in part]
        summed = derive(f"{what} sum", f"{what}: the sum is that of all", total == totals[-1], (), cut)
        return Summing(parts, totals, small, ranges, summed)

    def ordered(
        self,
        what: str,
        sums: tuple[Summing, Summing],
        parts: Sequence[z3.BoolRef],
        where: z3.BoolRef | None = None,
        more: Sequence[z3.ExprRef] = (),
    ) -> z3.BoolRef:
        """That the totals are in order if all parts are; `where` that is so, a claim about `more`."""
        derive = self.derive
        given: list[z3.BoolRef] = []
        x, y = sums

        def so(claim: z3.BoolRef) -> z3.BoolRef:
            return claim if where is None else z3.Implies(where, claim)

        for n, part in enumerate(parts):
            before = [each.totals[n - 1] for each in sums] if n else []
            ranges = [each.ranges[n - 1] for each in sums] if n else []
            small = [each.small[n] for each in sums]
            cut = [*x.parts[n], *y.parts[n], *before, *more]
            claim = so(x.totals[n] <= y.totals[n])
            given = [
                derive(
                    f"{what} ordered",
                    f"{what}: sums stay in order",
                    claim,
                    [*given, part, *ranges, *small],
                    cut,
                )
            ]
        ends = [each.summed.arg(0) for each in sums]
        cut = [*ends, x.totals[-1], y.totals[-1], *more]
        text = f"{what}: so the sums are in order"
        return derive(what, text, so(ends[0] <= ends[1]), [*given, x.summed, y.summed], cut)


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
