"""gdfs: d grows with every product, if all else is the same.  Proof for the groups of one step, one after another.

Two runs share all scales, c and all groups but one, in which no product of the second is smaller.  Then

1. *group*:    its sum is not smaller, nor is it once scaled, for scales have no sign;
2. *exponent*: that of a group is its scales', whatever the products are, unless all of them are zero in one run.  The
               other run's sum is then of one sign and not zero;
3. *e_max*:    so it is the same in both, or the run whose group is not zero has the larger one, which is its group's;
4. *same e_max*:  the group's aligned magnitude is the larger in the second run if it was (a cut toward zero keeps the
               order), so is the total, and ρ of it;
5. *e_max r higher*:  every other term loses less than one coarser unit, L/G and c together, and the group is worth at
               least 2^(F − 2 − 2m) of them.  So ⌈T / 2^r⌉ ≤ T', T and T' the totals on the finer and the coarser grid,
               and ρ keeps the order of such numbers.

A group at a time, all products may grow: ≤ is transitive.  NaN and infinity are decided by c and the scales.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import z3

from mmaformal.algorithms import DotAdd, Gdfs
from mmaformal.cases.descents import order
from mmaformal.encodings.smt import gdfs
from mmaformal.encodings.smt.blocks import (
    Term,
    all_of,
    canonical_nan,
    encode,
    negate_if,
    normalise_and_round,
    resize,
    select_special,
    shift_right,
)
from mmaformal.encodings.smt.fda import lowest_e_max
from mmaformal.facts.fused_steps import E2M1_PRODUCT
from mmaformal.proof.definitions import fit
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.larger_products import LargerProduct, larger_product
from mmaformal.proof.rules import Theory, instance

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


# ---- what is claimed ---------------------------------------------------------------------------------------------


def prove_in_products(theory: Theory, spec: DotAdd) -> None:
    """That a gdfs model is monotone in its products: `larger_product(spec, k).statement`.  Raises NotProvedError."""
    p = spec.parameters
    assert isinstance(p, Gdfs)
    if spec.k != p.L:
        raise NotProvedError("a chain of steps is monotone in a product", "unknown", "no argument for it")
    if worth(spec) < p.L // p.G:
        raise NotProvedError("a group is worth what the other terms lose", "sat", "")
    for start in range(0, spec.k, p.G):
        group = larger_product(spec, *range(start, start + p.G))
        x, y = group.traces
        pair = Grown(theory, spec, p, x.steps[0], y.steps[0], start // p.G)
        end = pair.prove(group.premises)
        results = [x.steps[0].result, y.steps[0].result]
        theory.claim("d", "d is the result of the step", group.in_order, [end], results)
        text = "d is not smaller if no product of a group is"
        _prove_each(theory, group, theory.theorem(text, group.statement))


def _prove_each(theory: Theory, group: LargerProduct, theorem: z3.BoolRef) -> None:
    """Of a single product: the others are what they are, so they are not smaller."""
    for k in group.places:
        rest = [i for i in group.places if i != k]
        pairs = [(mine[i], own[i]) for i in rest for own, mine in _sides(group)]
        said = instance(theory, theorem, pairs)
        alone = larger_product(group.spec, k)
        for premise in (each for i, each in zip(group.places, said.arg(0).children(), strict=True) if i != k):
            theory.claim("the same product", "a product is not smaller than itself", premise)
        theory.theorem(f"d is not smaller if product {k} is not", alone.statement)


def _sides(group: LargerProduct) -> list[tuple[Sequence[z3.BitVecRef], Sequence[z3.BitVecRef]]]:
    return [(group.x.a, group.y.a), (group.x.b, group.y.b)]


# ---- one group ---------------------------------------------------------------------------------------------------


def worth(spec: DotAdd) -> int:
    """The least that a nonzero group whose exponent is e_max is worth, in units of 2^(e_max - F)."""
    assert isinstance(spec.parameters, Gdfs)
    assert spec.scale_format is not None
    return int(1 << max(spec.parameters.F - 2 - 2 * spec.scale_format.fraction_bits, 0))


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


def _known(sums: Iterable[Summing]) -> list[z3.BoolRef]:
    """What is known of the totals: that they are in range."""
    return [claim for each in sums for claim in (each.ranges[-1], each.summed)]


def _one_sign(flags: Sequence[z3.BoolRef], x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """If the first is flagged it is zero, and the second is not negative, and zero only if it is flagged; and so on."""
    return z3.And(
        z3.Implies(flags[0], z3.And(x == 0, y >= 0, (y == 0) == flags[1])),
        z3.Implies(flags[1], z3.And(y == 0, x <= 0, (x == 0) == flags[0])),
    )


@dataclass(frozen=True)
class Grown:
    """Two steps that differ in group g, in which no product of the second, y, is smaller."""

    theory: Theory
    spec: DotAdd
    p: Gdfs
    x: gdfs.Step
    y: gdfs.Step
    g: int

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

    def prove(self, larger: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """That d is not smaller, from the claims that the products are not."""
        x, y, derive = self.x, self.y, self.derive
        groups = [[self._products(side, i) for i in range(len(x.groups))] for side in (x, y)]
        mine = groups[0][self.g], groups[1][self.g]
        products = self._larger(mine, larger)
        terms = self._terms(mine, self._ordered("products", mine, products))
        kinds = self._kinds(mine, self._zeros(mine, products))
        below = [self._below(side) for side in (x, y)]
        maxima = self._e_max(kinds)
        totals = [
            self._totals(side, each, under) for side, each, under in zip((x, y), groups, below, strict=True)
        ]
        ranges = [
            claim for side, under in zip((x, y), below, strict=True) for claim in self._range(side, under)
        ]
        cases = [self._same_e_max(totals, terms, kinds, below, ranges)]
        cases += [self._risen(totals, maxima, below, ranges, falls) for falls in (False, True)]
        goal = order(x.result) <= order(y.result)
        text = "d is not smaller, whether e_max stays, rises or falls"
        return derive(
            "cases", text, goal, [maxima, *cases], [x.e_max, y.e_max, x.result, y.result, *self._own()]
        )

    def _own(self) -> list[z3.BitVecRef]:
        """The terms of the group in both steps."""
        return [part for side in (self.x, self.y) for part in side.groups[self.g]]

    # ---- products and their sums ----

    def _summing(
        self, what: str, parts: Sequence[Signed], bounds: Sequence[int], small: Sequence[z3.BoolRef],
        total: z3.BitVecRef,
    ) -> Summing:  # fmt: skip
        """That sums stay in range, from the bounds of what is added, and that the last one is the total."""
        derive, bits = self.derive, total.size()
        ranges: list[z3.BoolRef] = []
        totals, reach = running(parts, bits), 0
        for n, (part, bound) in enumerate(zip(parts, bounds, strict=True)):
            reach += bound
            assert reach < 1 << (bits - 1)
            given, cut = [small[n], *ranges[-1:]], [*part, *(totals[n - 1 : n] if n else [])]
            ranges.append(
                derive(f"{what} {n}", f"{what}: no sum wraps", within(totals[n], reach), given, cut)
            )
        cut = [x for part in parts for x in part]
        summed = derive(f"{what} sum", f"{what}: the sum is that of all", total == totals[-1], (), cut)
        return Summing(parts, totals, small, ranges, summed)

    def _products(self, side: gdfs.Step, i: int) -> Summing:
        G, text = self.p.G, "a product of e2m1 is at most 36"
        products = side.products[i * G : (i + 1) * G]
        small = [
            self.derive("e2m1 product", text, z3.ULE(magnitude, E2M1_PRODUCT)) for _, magnitude in products
        ]
        return self._summing("products", products, [E2M1_PRODUCT] * G, small, side.sums[i])

    def _larger(self, mine: tuple[Summing, Summing], larger: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
        bits, text = self.x.sums[0].size(), "a product of e2m1 is that of its numbers"
        pairs = zip(larger, mine[0].parts, mine[1].parts, strict=True)
        return [
            self.derive("product", text, signed(*u, bits) <= signed(*v, bits), [premise])
            for premise, u, v in pairs
        ]

    def _ordered(
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

    def _zeros(self, mine: tuple[Summing, Summing], products: Sequence[z3.BoolRef]) -> z3.BoolRef:
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

    # ---- groups ----

    def _terms(self, mine: tuple[Summing, Summing], sums: z3.BoolRef) -> z3.BoolRef:
        """That the scaled groups are in order."""
        x, y = (side.groups[self.g] for side in (self.x, self.y))
        bits = x.significand.size() + 1
        scales = [each[self.g].significand for each in (self.x.scale_a, self.x.scale_b)]
        cut = [side.sums[self.g] for side in (self.x, self.y)] + [each.totals[-1] for each in mine]
        claim = signed(x.sign, x.significand, bits) <= signed(y.sign, y.significand, bits)
        text = "scales have no sign, so scaled groups are in order"
        given = [sums, *_known(mine)]
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

    def _kinds(self, mine: tuple[Summing, Summing], zeros: z3.BoolRef) -> z3.BoolRef:
        """That a group keeps its exponent, or it was all zeros in one run, and is of one sign in the other."""
        x, y = (side.groups[self.g] for side in (self.x, self.y))
        zero = gdfs.exponents_of(self.spec, self.p).constant(self._least())
        flags = self._all_zero(mine, self.p.G)
        claim = z3.Or(
            x.exponent == y.exponent,
            z3.And(x.exponent == zero, x.significand == 0, y.significand != 0, y.sign == 0),
            z3.And(y.exponent == zero, y.significand == 0, x.significand != 0, x.sign == 1),
        )
        text = "a group's exponent is the same, or its products are all zero in one run, and of one sign in the other"
        cut: list[z3.ExprRef] = [side.sums[self.g] for side in (self.x, self.y)]
        cut += [*(each.totals[-1] for each in mine), *flags]
        return self.derive("exponents", text, claim, [zeros, *_known(mine)], cut)

    def _least(self) -> int:
        """A lower bound of e_max, c's exponent; where zeros have one of their own, it is that of zero."""
        return lowest_e_max(self.spec, self.p.e_zero)

    # ---- e_max ----

    def _summands(self, side: gdfs.Step) -> list[tuple[Term, z3.BitVecRef]]:
        """All terms of a step with their aligned magnitudes, c the last."""
        return list(zip((*side.groups, side.addend), (*side.aligned, side.aligned_c), strict=True))

    def _below(self, side: gdfs.Step) -> list[z3.BoolRef]:
        exponents = [term.exponent for term, _ in self._summands(side)]
        text = "no exponent is above e_max"
        return [self.derive("e_max", text, z3.ULE(e, side.e_max), (), exponents) for e in exponents]

    def _range(self, side: gdfs.Step, below: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
        """(e_max is not above its range, nor below the least exponent of c)."""
        derive, ex = self.derive, gdfs.exponents_of(self.spec, self.p)
        high, least = ex.constant(ex.high), ex.constant(self._least())
        exponents = [term.exponent for term, _ in self._summands(side)]
        each = [
            derive("exponent in range", "no exponent is above its range", z3.ULE(e, high)) for e in exponents
        ]
        lowest = derive(
            "c's exponent", f"c's exponent is at least {self._least()}", z3.UGE(exponents[-1], least)
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

    def _e_max(self, kinds: z3.BoolRef) -> z3.BoolRef:
        """That e_max is the same; or in one run the group is zero, and in the other it is of one sign and has e_max."""
        derive, (x, y) = self.derive, (side.groups[self.g] for side in (self.x, self.y))
        least = gdfs.exponents_of(self.spec, self.p).constant(self._least())
        E, H = self.x.e_max, self.y.e_max
        c = self.x.addend.exponent
        lowest = derive("c's exponent", f"c's exponent is at least {self._least()}", z3.UGE(c, least))
        claim = z3.Or(
            E == H,
            z3.And(z3.ULT(E, H), y.exponent == H, x.significand == 0, y.significand != 0, y.sign == 0),
            z3.And(z3.ULT(H, E), x.exponent == E, y.significand == 0, x.significand != 0, x.sign == 1),
        )
        text = "e_max is the same, or it is that of a group of one sign, which is all zeros in the other run"
        exponents = [term.exponent for side in (self.x, self.y) for term, _ in self._summands(side)]
        return derive("both e_max", text, claim, [kinds, lowest], [*exponents, *self._own()])

    # ---- aligned terms and their sums ----

    def _bounds(self) -> list[int]:
        """Of the aligned magnitudes."""
        assert self.spec.scale_format is not None
        shift = self.p.F - 2 - 2 * self.spec.scale_format.fraction_bits
        return [gdfs.group_bound(self.spec, self.p) << shift] * len(self.x.groups) + [(2 << self.p.F) - 1]

    def _totals(self, side: gdfs.Step, groups: Sequence[Summing], below: Sequence[z3.BoolRef]) -> Summing:
        derive, bounds, small = self.derive, self._bounds(), []
        largest = gdfs.group_bound(self.spec, self.p)
        for i, ((term, aligned), bound) in enumerate(zip(self._summands(side), bounds, strict=True)):
            cut = [term.exponent, term.significand, side.e_max]
            given = [below[i]]
            if i < len(groups):
                known, scales = (
                    _known(groups[i : i + 1]),
                    [s[i].significand for s in (side.scale_a, side.scale_b)],
                )
                text, claim = "a scaled group is in its range", z3.ULE(term.significand, largest)
                given.append(
                    derive("group", text, claim, known, [side.sums[i], groups[i].totals[-1], *scales])
                )
            small.append(
                derive("aligned", "an aligned term is in its range", z3.ULE(aligned, bound), given, cut)
            )
        parts = [(term.sign, aligned) for term, aligned in self._summands(side)]
        return self._summing("terms", parts, bounds, small, side.total)

    def _same_e_max(
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
        for i, ((u, A), (v, B)) in enumerate(zip(self._summands(x), self._summands(y), strict=True)):
            given = [terms, kinds] if i == self.g else []
            cut = [x.e_max, y.e_max, *u, *v]
            claim = z3.Implies(same, signed(u.sign, A, bits) <= signed(v.sign, B, bits))
            text = "a cut toward zero keeps the order of terms that have one e_max"
            parts.append(derive("alignment", text, claim, [*given, below[0][i], below[1][i]], cut))
        sums = self._ordered("terms", (totals[0], totals[1]), parts, same, [x.e_max, y.e_max])
        goal = z3.Implies(same, order(self._code(x.total, x.e_max)) <= order(self._code(y.total, y.e_max)))
        cut = [x.e_max, y.e_max, x.total, y.total, *(t.totals[-1] for t in totals)]
        text = "sums in order are rounded in order, where e_max is the same"
        rounded = derive("rounding", text, goal, [sums, *_known(totals), *ranges], cut)
        return self._special(rounded, same)

    def _risen(
        self,
        totals: Sequence[Summing],
        maxima: z3.BoolRef,
        below: Sequence[Sequence[z3.BoolRef]],
        ranges: Sequence[z3.BoolRef],
        falls: bool,
    ) -> z3.BoolRef:
        """The same where the second run has the larger e_max, or, if it `falls`, the first.

        The run of the larger one is `high`, the other `low`, in which the group is zero.
        """
        derive = self.derive
        low, high = (self.y, self.x) if falls else (self.x, self.y)
        first, second = totals[::-1] if falls else totals
        E, H = low.e_max, high.e_max
        higher, rise = z3.ULT(E, H), H - E
        terms = list(zip(self._summands(low), self._summands(high), strict=True))
        least = worth(self.spec)
        bits = low.total.size()
        wide = bits + 4
        by, most = z3.ZeroExt(wide - rise.size(), rise), 1 << bits

        def so(claim: z3.BoolRef) -> z3.BoolRef:
            return z3.Implies(higher, claim)

        def extended(x: z3.BitVecRef) -> z3.BitVecRef:
            """A sum, or its opposite where the group's sign is plus: so that the group takes something away."""
            x = z3.SignExt(wide - x.size(), x)
            return x if falls else -x

        given: list[z3.BoolRef] = []
        more = 0
        for n, ((u, A), (v, B)) in enumerate(terms):
            cut = [E, H, *u, *v]
            text = "a term on the coarser grid is that on the finer one without the places between"
            claim, of_term, loses = shift_right(A, rise) == B, below[int(falls)][n], 1
            if n == self.g:
                text = f"the group is zero in one run, and in the other at least {least} units"
                claim, of_term, loses = z3.And(A == 0, z3.UGE(B, least), v.sign == int(falls)), maxima, -least
            grids = derive("two grids", text, so(claim), [of_term], cut)
            x, y = (extended(signed(term.sign, aligned, bits)) for term, aligned in ((u, A), (v, B)))
            small = [each.small[n] for each in (first, second)]
            text = "so it loses less than a unit, or the group is worth so many"
            inside = [E, H, A, B, u.sign, v.sign]
            lost = derive(
                "lost", text, so(z3.And((x >> by) + loses >= y, within(y, most))), [grids, *small], inside
            )
            sums = [extended(each.totals[n]) for each in (first, second)]
            more += loses
            claim = so((sums[0] >> by) + more >= sums[1])
            text = "sums on two grids differ by what all terms lose"
            if not n:
                given = [derive("first on two grids", text, claim, [lost], inside)]
                continue
            before = [extended(each.totals[n - 1]) for each in (first, second)]
            added = []
            for sums_of, total, last, term in zip((first, second), sums, before, (x, y), strict=True):
                cut = [sums_of.totals[n - 1], *sums_of.parts[n]]
                claim = z3.And(total == last + term, within(last, most), within(term, most))
                added.append(
                    derive(
                        "one more term", "no sum wraps", claim, [sums_of.ranges[n - 1], sums_of.small[n]], cut
                    )
                )
            whole, parts = sums[0] >> by, [t >> by for t in (before[0], x)]
            both = parts[0] + parts[1]
            claim = z3.And(
                whole >= both,
                *(within(t, 2 * most) for t in (whole, both)),
                *(within(t, most) for t in parts),
            )
            floor_text = "the floor of a sum is at least the sum of the floors"
            floor = derive("floor", floor_text, claim, [added[0]], [sums[0], before[0], x, rise])
            left = (parts[0] + (more - loses)) + (parts[1] + loses)
            cut = [E, H, parts[0] + (more - loses), parts[1] + loses, sums[1], before[1], y]
            claim = so(left >= sums[1])
            inner = [
                derive(
                    "no wrap",
                    "no sum wraps",
                    z3.And([within(t, 2 * most) for t in left.children()]),
                    [floor],
                    [whole, both, *parts],
                )
            ]
            of_parts = derive("parts on two grids", text, claim, [*given, lost, added[1], *inner], cut)
            equal = derive("parts", "terms in another order", left == both + more, (), parts)
            claim = so(whole + more >= sums[1])
            given = [
                derive(
                    "sums on two grids",
                    text,
                    claim,
                    [of_parts, floor, equal],
                    [E, H, whole, left, both, *parts, sums[1]],
                )
            ]
        assert more <= 0
        ends = extended(low.total), extended(high.total)
        text = "so the sum of the larger e_max is on the side on which its group is"
        inside = [low.total, high.total, first.totals[-1], second.totals[-1]]
        sums_ = derive(
            "totals on two grids",
            text,
            so(ends[0] >> by >= ends[1]),
            [*given, *_known(totals)],
            [E, H, *inside],
        )
        return self._rounded(low, high, sums_, _known(totals), ranges, inside, falls)

    # ---- rounding ----

    def _code(self, total: z3.BitVecRef, e_max: z3.BitVecRef) -> z3.BitVecRef:
        """The code of total · 2^(e_max - F)."""
        p, lowest = self.p, lowest_e_max(self.spec, self.p.e_zero)
        return encode(
            normalise_and_round(total, e_max, gdfs.exponents_of(self.spec, p), p.F, p.rho, lowest), p.rho
        )

    def _special(self, rounded: z3.BoolRef, where: z3.BoolRef) -> z3.BoolRef:
        """That d is not smaller, if the rounded sum is not: both runs have the same special values."""
        derive, x, y, fmt = self.derive, self.x, self.y, self.p.rho.format
        codes = [self._code(side.total, side.e_max) for side in (x, y)]
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

    def _rounded(
        self,
        low: gdfs.Step,
        high: gdfs.Step,
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
        least, top = ex.constant(self._least()), ex.constant(ex.high)
        reach = (1 << (bits - 1)) - 1

        def coarser(x: z3.BitVecRef, amount: z3.BitVecRef | int) -> z3.BitVecRef:
            return -(-x >> amount)

        # Where the group takes something away, it is the opposite numbers that are in order.
        T, at, target = (-low.total, E, -high.total) if falls else (low.total, E, high.total)
        codes, numbers, chain = [self._code(T, at)], [T], []
        text = "the total is in range"
        bounded, last = (derive("total", text, within(t, reach), known, totals) for t in (T, target))
        for j in range(rise.size()):
            on = z3.Extract(j, j, rise) == 1
            after, up = z3.If(on, coarser(T, min(1 << j, bits - 1)), T), z3.If(on, at + (1 << j), at)
            text = "on the way from one e_max to the other, exponents are in range"
            claim = z3.Implies(higher, z3.And(z3.UGE(at, least), z3.UGE(up, at), z3.ULE(up, top)))
            in_range = derive(f"exponent {j}", text, claim, ranges, [E, H])
            codes.append(self._code(after, up))
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
        codes.append(self._code(target, H))
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
        return self._special(rounded, higher)

    def _opposite(
        self,
        low: gdfs.Step,
        high: gdfs.Step,
        rounded: z3.BoolRef,
        codes: Sequence[z3.BitVecRef],
        known: Sequence[z3.BoolRef],
        totals: Sequence[z3.BitVecRef],
    ) -> z3.BoolRef:
        """That rounded sums are in order, if their opposites are."""
        derive = self.derive
        own = [self._code(side.total, side.e_max) for side in (low, high)]
        text, opposite = "the opposite of a number is rounded to the opposite", []
        for code, mine in zip(codes, own, strict=True):
            claim = z3.And(order(code) == -order(mine), within(order(mine), self.spec.d_format.sign_mask - 1))
            opposite.append(derive("opposite", text, claim, known, [low.e_max, high.e_max, *totals]))
        claim = z3.Implies(z3.ULT(low.e_max, high.e_max), order(own[1]) <= order(own[0]))
        cut = [low.e_max, high.e_max, *(order(code) for code in (*codes, *own))]
        return derive("in order", "so the sums are rounded in order", claim, [rounded, *opposite], cut)
