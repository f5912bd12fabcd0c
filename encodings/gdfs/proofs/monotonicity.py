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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import z3

from mmaformal.cases.out_of_order import order
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.smt.blocks import (
    all_of,
    canonical_nan,
    negate_if,
    resize,
    select_special,
    shift_right,
)
from mmaformal.facts.fused_steps import (
    E2M1_PRODUCT,
    Fused,
    fused_step,
    prove_e_max,
    prove_highest,
    prove_small,
)
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import Accumulated, accumulate
from mmaformal.proof.kernel import NotProvedError, demand
from mmaformal.proof.rules import Theory, instance
from mmaformal.spec import DotAdd
from mmaformal.theory.numbers import LargerProduct, larger_product
from mmaformal.theory.rounding import At, OrderedRounding


def worth(spec: DotAdd) -> int:
    """The least that a nonzero group whose exponent is e_max is worth, in units of 2^(e_max - F)."""
    assert spec.scale_format is not None
    return int(1 << max(spec.parameters_as(Gdfs).F - 2 - 2 * spec.scale_format.fraction_bits, 0))


def prove_in_products(theory: Theory, spec: DotAdd) -> None:
    """Prove that a gdfs model is monotone in its products: `larger_product(spec, k).statement`.  Raises
    NotProvedError."""
    p = spec.parameters_as(Gdfs)
    if spec.k != p.L:
        raise NotProvedError("a chain of steps is monotone in a product", "unknown", "no argument for it")
    if worth(spec) < p.L // p.G:
        raise NotProvedError("a group is worth what the other terms lose", "sat", "")
    for start in range(0, spec.k, p.G):
        group = larger_product(spec, *range(start, start + p.G))
        x, y = (fused_step(spec, side) for side in (group.x, group.y))
        pair = LargerGroup(theory, spec, x, y, start // p.G)
        if not start:
            pair.rounding.prove(theory, [0])
            for up in (True, False):
                pair.rounding.prove_far(theory, up)
        end = pair.prove(group.premises)
        theory.claim("d", "d is the result of the step", group.in_order, [end])
        text = "d is not smaller if no product of a group is"
        _prove_each(theory, group, theory.theorem(text, group.statement))


def _prove_each(theory: Theory, group: LargerProduct, theorem: z3.BoolRef) -> None:
    """Prove that d is not smaller if a single product is not: the others are what they are, so not smaller."""
    sides = [(group.x.a, group.y.a), (group.x.b, group.y.b)]
    for k in group.places:
        rest = [i for i in group.places if i != k]
        said = instance(theory, theorem, [(mine[i], own[i]) for i in rest for own, mine in sides])
        alone = larger_product(group.spec, k)
        for premise in (each for i, each in zip(group.places, said.arg(0).children(), strict=True) if i != k):
            theory.claim("the same product", "a product is not smaller than itself", premise)
        theory.theorem(f"d is not smaller if product {k} is not", alone.statement)


def _signed(sign: z3.BitVecRef, magnitude: z3.BitVecRef, bits: int) -> z3.BitVecRef:
    return negate_if(sign, fit(magnitude, bits))


def _within(x: z3.BitVecRef, bound: int) -> z3.BoolRef:
    return z3.And(x <= bound, x >= -bound)


def _one_sign(flags: Sequence[z3.BoolRef], x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    """If the first is flagged it is zero, and the second is not negative, and zero only if it is flagged; and so on."""
    return z3.And(
        z3.Implies(flags[0], z3.And(x == 0, y >= 0, (y == 0) == flags[1])),
        z3.Implies(flags[1], z3.And(y == 0, x <= 0, (x == 0) == flags[0])),
    )


AccumulatedPair = tuple[Accumulated, Accumulated]  #: sums of both runs


@dataclass(frozen=True)
class LargerGroup:
    """Two steps that differ in group g, in which no product of the second is smaller."""

    theory: Theory
    spec: DotAdd
    first: Fused
    second: Fused
    g: int

    @cached_property
    def x(self) -> gdfs.GdfsStep:
        assert isinstance(self.first.step, gdfs.GdfsStep)
        return self.first.step

    @cached_property
    def y(self) -> gdfs.GdfsStep:
        assert isinstance(self.second.step, gdfs.GdfsStep)
        return self.second.step

    @cached_property
    def rounding(self) -> OrderedRounding:
        one = self.first
        bits = one.step.total.size()
        return OrderedRounding(one.rho, one.exponents, one.F, one.least, bits, sum(one.bounds))

    def derive(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        given: Sequence[z3.BoolRef] = (),
        hint: Sequence[z3.ExprRef] = (),
    ) -> z3.BoolRef:
        return self.theory.claim(name, statement, claim, given, [x for x in hint if not z3.is_bv_value(x)])

    def derive_for_each(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        given: Sequence[z3.BoolRef],
        hint: Sequence[z3.ExprRef],
        narrow: z3.BitVecRef,
    ) -> z3.BoolRef:
        """The claim, proved for each value of a narrow term."""
        bits = narrow.size()
        values = [narrow == z3.BitVecVal(value, bits) for value in range(1 << bits)]
        self.derive(f"values of {name}", "a term has one of its values", z3.Or(values))
        for value in values:
            self.derive(name, statement, z3.Implies(value, claim), given, hint)
        return claim  # follows from these, in the composition

    def prove(self, larger: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Prove that d is not smaller, from the claims that the products of the group are not."""
        theory, x, y = self.theory, self.x, self.y
        mine = self.products(x), self.products(y)
        products = self._larger(mine, larger)
        terms = self._terms(mine, self.ordered("products", mine, products))
        kinds = self._kinds(mine, self._zeros(mine, products))
        maxima = self._e_max(kinds)
        totals, below, ranges = [], [], list[z3.BoolRef]()
        for side in (self.first, self.second):
            at_most, some = prove_e_max(theory, side)
            small, total = prove_small(theory, side, at_most), side.step.total
            totals.append(accumulate(theory, total, side.whole.signed, side.bounds, small, total.size()))
            totals[-1].prove_range(theory)
            ranges += prove_highest(theory, side, at_most, some)
            below.append(at_most)
        both = totals[0], totals[1]
        cases = [self._same_e_max(both, [terms, kinds], below, ranges)]
        for falls in (False, True):
            grids = _Grids(self, falls, both)
            cases.append(self._risen(grids, *grids.prove(maxima, below), ranges))
        goal = order(x.result) <= order(y.result)
        text = "d is not smaller, whether e_max stays, rises or falls"
        return self.derive("cases", text, goal, [maxima, *cases])

    # ---- the group alone

    def products(self, side: gdfs.GdfsStep) -> Accumulated:
        G, text = len(side.products) // len(side.sums), "a product of e2m1 is at most 36"
        products, total = side.products[self.g * G : (self.g + 1) * G], side.sums[self.g]
        small = [self.derive("e2m1 product", text, z3.ULE(m, E2M1_PRODUCT)) for _, m in products]
        done = accumulate(self.theory, total, products, [E2M1_PRODUCT] * G, small, total.size())
        done.prove_range(self.theory)
        return done

    def _larger(self, mine: AccumulatedPair, larger: Sequence[z3.BoolRef]) -> list[z3.BoolRef]:
        bits, text = self.x.sums[0].size(), "a product of e2m1 is that of its numbers"
        pairs = zip(larger, mine[0].summands, mine[1].summands, strict=True)
        return [
            self.derive("product", text, _signed(*u, bits) <= _signed(*v, bits), [premise])
            for premise, u, v in pairs
        ]

    def ordered(
        self, what: str, sums: AccumulatedPair, parts: Sequence[z3.BoolRef], where: z3.BoolRef | None = None
    ) -> z3.BoolRef:
        """Return the claim that the totals are in order if all parts are, or `where` that is so."""
        (x, y), given = sums, list[z3.BoolRef]()

        def so(claim: z3.BoolRef) -> z3.BoolRef:
            return claim if where is None else z3.Implies(where, claim)

        for n, part in enumerate(parts):
            known = [*given, part, *(each.small[n] for each in sums)]
            known += [each.ranges[n - 1] for each in sums] if n else []
            claim, text = so(x.sums[n] <= y.sums[n]), f"{what}: sums stay in order"
            given = [self.derive(f"{what} ordered", text, claim, known)]
        text, claim = f"{what}: so the sums are in order", so(x.total <= y.total)
        return self.derive(what, text, claim, [*given, *x.order, *y.order])

    def _zeros(self, mine: AccumulatedPair, products: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """If all products of one run are zero, those of the other have one sign, and so has their sum."""
        (x, y), given = mine, list[z3.BoolRef]()
        text = (
            "where all products of one run are zero, the sum of the other is of one sign, or all of them are"
        )
        for n, product in enumerate(products):
            claim = _one_sign(self._all_zero(mine, n + 1), x.sums[n], y.sums[n])
            known = [*given, product, *(each.small[n] for each in mine)]
            known += [each.ranges[n - 1] for each in mine] if n else []
            given = [self.derive("zeros", text, claim, known)]
        claim = _one_sign(self._all_zero(mine, len(products)), x.total, y.total)
        return self.derive("zero sums", text, claim, [*given, *x.order, *y.order])

    @staticmethod
    def _all_zero(mine: AccumulatedPair, count: int) -> list[z3.BoolRef]:
        return [all_of([magnitude == 0 for _, magnitude in each.summands[:count]]) for each in mine]

    def _terms(self, mine: AccumulatedPair, sums: z3.BoolRef) -> z3.BoolRef:
        """Return the claim that the scaled groups are in order."""
        derive, (x, y) = self.derive, (side.groups[self.g] for side in (self.x, self.y))
        bits = x.significand.size() + 1
        scales = [each[self.g].significand for each in (self.x.scale_a, self.x.scale_b)]
        totals = [each.total for each in mine]
        claim = _signed(x.sign, x.significand, bits) <= _signed(y.sign, y.significand, bits)
        text = "scales have no sign, so scaled groups are in order"
        given = [sums, *(each.in_range for each in mine)]
        if z3.is_bv_value(scales[0]):  # a power of two
            return derive("scaled", text, claim, given)
        # One factor after the other, for each value that it has.
        wide, top = x.significand.size(), (1 << scales[0].size()) - 1
        factors = [resize(each, wide) for each in scales]
        magnitudes = [
            resize(resize(negate_if(t.sign, s), s.size() - 1), wide)
            for t, s in zip((x, y), totals, strict=True)
        ]
        once = [m * factors[0] for m in magnitudes]
        twice = [m * factors[1] for m in once]
        bound = len(mine[0].sums) * E2M1_PRODUCT * top
        claim_once = z3.And(
            _signed(x.sign, once[0], bits) <= _signed(y.sign, once[1], bits),
            *(z3.ULE(m, bound) for m in once),
        )
        hint = [*totals, scales[0]]
        first = self.derive_for_each("scaled once", text, claim_once, given, hint, scales[0])
        claim_twice = _signed(x.sign, twice[0], bits) <= _signed(y.sign, twice[1], bits)
        hint = [*once, x.sign, y.sign, scales[1]]
        second = self.derive_for_each("scaled twice", text, claim_twice, [first], hint, scales[1])
        same = [
            self.derive_for_each("scaling", "in any order", t.significand == m, (), (), scales[0])
            for t, m in zip((x, y), twice, strict=True)
        ]
        return derive("scaled", text, claim, [second, *same])

    def _kinds(self, mine: AccumulatedPair, zeros: z3.BoolRef) -> z3.BoolRef:
        """Return the claim that a group keeps its exponent, or is zero in one run and of one sign in the other."""
        x, y = (side.groups[self.g] for side in (self.x, self.y))
        zero = self.first.exponents.constant(self.first.least)
        claim = z3.Or(
            x.exponent == y.exponent,
            z3.And(x.exponent == zero, x.significand == 0, y.significand != 0, y.sign == 0),
            z3.And(y.exponent == zero, y.significand == 0, x.significand != 0, x.sign == 1),
        )
        text = "a group's exponent is the same, or its products are all zero in one run, and of one sign in the other"
        given = [zeros, *(each.in_range for each in mine)]
        return self.derive("exponents", text, claim, given)

    # ---- e_max

    def _e_max(self, kinds: z3.BoolRef) -> z3.BoolRef:
        """Return the claim that e_max is the same, or the group is zero in one run, and in the other has it."""
        x, y = (side.groups[self.g] for side in (self.x, self.y))
        c, E, H = self.x.addend.exponent, self.x.e_max, self.y.e_max
        text = f"c's exponent is at least {self.first.least}"
        lowest = self.derive("c's exponent", text, z3.UGE(c, self.first.exponents.constant(self.first.least)))
        claim = z3.Or(
            E == H,
            z3.And(z3.ULT(E, H), y.exponent == H, x.significand == 0, y.significand != 0, y.sign == 0),
            z3.And(z3.ULT(H, E), x.exponent == E, y.significand == 0, x.significand != 0, x.sign == 1),
        )
        text = "e_max is the same, or it is that of a group of one sign, which is all zeros in the other run"
        return self.derive("both e_max", text, claim, [kinds, lowest])

    def _same_e_max(
        self,
        totals: AccumulatedPair,
        of_group: Sequence[z3.BoolRef],
        below: Sequence[Sequence[z3.BoolRef]],
        ranges: Sequence[z3.BoolRef],
    ) -> z3.BoolRef:
        """Return the claim that d is not smaller where e_max is the same."""
        x, y = self.x, self.y
        same, bits, parts = x.e_max == y.e_max, x.total.size(), []
        for i, (u, v) in enumerate(zip(self.first.summands, self.second.summands, strict=True)):
            given = [*(of_group if i == self.g else []), below[0][i], below[1][i]]
            sides = _signed(u.term.sign, u.aligned, bits), _signed(v.term.sign, v.aligned, bits)
            text = "a cut toward zero keeps the order of terms that have one e_max"
            claim, hint = z3.Implies(same, sides[0] <= sides[1]), [x.e_max, y.e_max, *u.term, *v.term]
            parts.append(self.derive("alignment", text, claim, given, hint))
        sums, code = self.ordered("terms", totals, parts, same), self.rounding.code
        goal = z3.Implies(same, order(code(x.total, x.e_max)) <= order(code(y.total, y.e_max)))
        text = "sums in order are rounded in order, where e_max is the same"
        given = [sums, *(each.in_range for each in totals), *ranges]
        given += self.rounding.of_sums(self.theory, At(x.total, x.e_max), At(y.total, y.e_max), 0)
        rounded = self.derive("rounding", text, goal, given)
        return self._special(rounded, same)

    def _special(self, rounded: z3.BoolRef, where: z3.BoolRef) -> z3.BoolRef:
        """Return the claim that d is not smaller, if the rounded sum is not: both runs have the same special values."""
        derive, x, y, fmt = self.derive, self.x, self.y, self.first.rho.format
        codes = [self.rounding.code(side.total, side.e_max) for side in (x, y)]
        selected = [select_special(x.special, code, fmt, canonical_nan(fmt)) for code in codes]
        text = "both runs have the same special values"
        claim = z3.Implies(where, order(selected[0]) <= order(selected[1]))
        chosen = derive("special values", text, claim, [rounded])
        text = "d is the rounded sum, or what c and the scales decide"
        results = [
            derive("result", text, side.result == own) for side, own in zip((x, y), selected, strict=True)
        ]
        claim = z3.Implies(where, order(x.result) <= order(y.result))
        return derive("d", "so d is not smaller", claim, [chosen, *results])

    def _risen(
        self, grids: _Grids, sums: z3.BoolRef, known: Sequence[z3.BoolRef], ranges: Sequence[z3.BoolRef]
    ) -> z3.BoolRef:
        """Return the claim that d is not smaller, if the sum on the coarser grid is beyond that on the finer one."""
        ends = [At(side.total, side.e_max) for side in (grids.low, grids.high)]
        said = self.rounding.of_far_sums(self.theory, ends[0], ends[1], not grids.falls)
        text = "so the sum on the coarser grid is rounded to no less, or no more"
        claim = z3.Implies(grids.higher, said.arg(1))
        rounded = self.derive("rounding on two grids", text, claim, [said, sums, *known, *ranges])
        return self._special(rounded, grids.higher)


class _Grids:
    """Sums on two grids: in the run of the larger e_max, `high`, and in the other, `low`, in which the group is zero.

    All are taken with the sign with which the group takes something away.
    """

    def __init__(self, steps: LargerGroup, falls: bool, totals: AccumulatedPair) -> None:
        self.steps, self.falls, self.derive = steps, falls, steps.derive
        self.low, self.high = (steps.y, steps.x) if falls else (steps.x, steps.y)
        sides = (steps.second, steps.first) if falls else (steps.first, steps.second)
        self.sums = totals[::-1] if falls else totals
        self.E, self.H = self.low.e_max, self.high.e_max
        self.higher, self.rise = z3.ULT(self.E, self.H), self.H - self.E
        self.terms = list(zip(sides[0].summands, sides[1].summands, strict=True))
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

    def parts(self, n: int) -> list[z3.BitVecRef]:
        """The n-th term on both grids."""
        return [self.extended(_signed(s.term.sign, s.aligned, self.bits)) for s in self.terms[n]]

    def totals(self, n: int) -> list[z3.BitVecRef]:
        """The sum of the first n + 1 terms on both grids."""
        return [self.extended(each.sums[n]) for each in self.sums]

    def prove(
        self, maxima: z3.BoolRef, below: Sequence[Sequence[z3.BoolRef]]
    ) -> tuple[z3.BoolRef, list[z3.BoolRef]]:
        """(that the totals are in order; that they are in range)."""
        given, lost = list[z3.BoolRef](), 0
        for n in range(len(self.terms)):
            of_term = maxima if n == self.steps.g else below[int(self.falls)][n]
            lost += self.loses(n)
            given = [self._next_sum(n, lost, self._lost(n, of_term), given)]
        demand(lost <= 0, "something of the last sum is lost")
        ends = [self.extended(total) for total in (self.low.total, self.high.total)]
        text = "so the sum of the larger e_max is on the side on which its group is"
        claim, orders = self.so(ends[0] >> self.by >= ends[1]), [each for s in self.sums for each in s.order]
        sums = self.derive("totals on two grids", text, claim, [*given, *orders])
        return sums, [each.in_range for each in self.sums]

    def _lost(self, n: int, of_term: z3.BoolRef) -> z3.BoolRef:
        """Derive what the n-th term loses on the coarser grid; `of_term` is what is known of its exponents."""
        (u, v), (E, H) = self.terms[n], (self.E, self.H)
        text = "a term on the coarser grid is that on the finer one without the places between"
        claim = shift_right(u.aligned, self.rise) == v.aligned
        if n == self.steps.g:
            least = worth(self.steps.spec)
            text = f"the group is zero in one run, and in the other at least {least} units"
            claim = z3.And(u.aligned == 0, z3.UGE(v.aligned, least), v.term.sign == int(self.falls))
        grids = self.derive("two grids", text, self.so(claim), [of_term], [E, H, *u.term, *v.term])
        x, y = self.parts(n)
        claim = self.so(z3.And((x >> self.by) + self.loses(n) >= y, _within(y, self.most)))
        text = "so it loses less than a unit, or the group is worth so many"
        return self.derive("lost", text, claim, [grids, *(s.small[n] for s in self.sums)])

    def _next_sum(self, n: int, more: int, lost: z3.BoolRef, given: Sequence[z3.BoolRef]) -> z3.BoolRef:
        """Return the claim that the sums of the first n + 1 terms differ by what these lose, if those of n do
        (`given`)."""
        derive, most, loses = self.derive, self.most, self.loses(n)
        text = "sums on two grids differ by what all terms lose"
        sums, x = self.totals(n), self.parts(n)[0]
        if not n:
            claim = self.so((sums[0] >> self.by) + more >= sums[1])
            return derive("first on two grids", text, claim, [lost])
        before = self.totals(n - 1)
        added = [self._added(i, n) for i in range(2)]
        whole, parts = sums[0] >> self.by, [t >> self.by for t in (before[0], x)]
        both = parts[0] + parts[1]
        small = [_within(t, 2 * most) for t in (whole, both)] + [_within(t, most) for t in parts]
        floor_text = "the floor of a sum is at least the sum of the floors"
        claim, hint = z3.And(whole >= both, *small), [sums[0], before[0], x, self.rise]
        floor = derive("floor", floor_text, claim, [added[0]], hint)
        left = (parts[0] + (more - loses)) + (parts[1] + loses)
        no_wrap = z3.And([_within(t, 2 * most) for t in left.children()])
        inner = derive("no wrap", "no sum wraps", no_wrap, [floor])
        known = [*given, lost, added[1], inner]
        of_parts = derive("parts on two grids", text, self.so(left >= sums[1]), known)
        equal = derive("parts", "terms in another order", left == both + more)
        claim = self.so(whole + more >= sums[1])
        return derive("sums on two grids", text, claim, [of_parts, floor, equal])

    def _added(self, run: int, n: int) -> z3.BoolRef:
        """Return the claim that the n-th term is added to those before, in one of both runs."""
        sums, total, last, term = (
            self.sums[run],
            self.totals(n)[run],
            self.totals(n - 1)[run],
            self.parts(n)[run],
        )
        claim = z3.And(total == last + term, _within(last, self.most), _within(term, self.most))
        return self.derive("one more term", "no sum wraps", claim, [sums.ranges[n - 1], sums.small[n]])
