"""d grows with c where aligned terms are added: sums with neighbouring c are in order, and so are their roundings.

With c' > c, neighbours, e_max stays or rises by r, and a term loses less than 2^r finer units more; c' is larger than c
by what the other terms can lose.  So the sums S of c and S' of c', in finer units, are in order (S ≤ S' for c ≥ 0; else
the other way about), or, with one term more, less than one coarser unit out of order, S being larger than a number that
ρ, which cuts toward zero, gives.  r is 0 or 1; or, from c = 0 to the least c, any number up to `furthest`, and 2^r a
constant.

Both sums are those of the aligned terms; D_k is what the first k of them lose, and R_k their sum in the run with c.
`SumsPair` is any such step; `FusedPair`, at the end, one of fda, gdfs or gfda.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.interfaces import Judged
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfda import smt as gfda
from mmaformal.encodings.smt.blocks import ExponentRange, Term, negate_if, sum_of
from mmaformal.facts.fused_steps import AlignedTerms, fused_step, prove_e_max, prove_highest, prove_small
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import fit
from mmaformal.proof.fixed_sums import accumulate, is_between, limited, wide
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import Neighbours, prove_steps_in_c, special_flags
from mmaformal.theory.rounding import At, OrderedRounding


def products_allowed(spec: DotAdd) -> int:
    """The most products (or groups) that a step of fda, gdfs or gfda may have to be monotone in c.

    c gains what 2^(F − M) of them can lose, at least one; with one more, all of them losing, the sum falls by less than
    one unit of the coarser grid, from above a number that it has: nothing that is cut toward zero shows.
    """
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs, Gfda))
    return covered(spec) + (p.rho.rounding is Rounding.RZ and p.rho.fraction_bits <= p.F)


def covered(spec: DotAdd) -> int:
    """The number of products of which c gains what they can lose."""
    p = spec.parameters
    assert isinstance(p, (Fda, Gdfs, Gfda))
    return int(1 << max(0, p.F - spec.c_format.fraction_bits))


@dataclass(frozen=True)
class Rise:
    """A way in which e_max rises from c to the larger c, and what a coarser unit is in finer ones, at least."""

    name: str
    happens: z3.BoolRef
    unit: z3.BitVecRef  #: a power of two
    number: int | None = None  #: how far, if that is one number
    loses: int | None = None  #: the most that a term loses in finer units, if it is another number

    @property
    def some(self) -> bool:
        """Whether the units differ."""
        return self.number != 0

    def finer(self, x: z3.BitVecRef) -> z3.BitVecRef:
        """So many coarser units in finer ones."""
        return x * self.unit

    def lost(self, terms: int) -> z3.BitVecRef:
        """The most finer units that so many terms can lose."""
        one = self.unit - 1 if self.loses is None else z3.BitVecVal(self.loses, self.unit.size())
        if self.number is not None:
            return z3.simplify(terms * one)
        return sum_of([one] * terms) if terms else z3.BitVecVal(0, one.size())

    @property
    def cut(self) -> list[z3.BitVecRef]:
        """The unit, if it is not one number."""
        return [self.unit] if self.number is None else []


@dataclass(frozen=True)
class SumsPair:
    """Two runs of a step that rounds a sum of aligned terms, c the last: with neighbouring codes of c, the smaller in
    magnitude first."""

    spec: DotAdd
    runs: Neighbours[Judged]
    x: AlignedTerms
    y: AlignedTerms
    rho: Conversion
    lowest: int  #: of e_max

    @property
    def E(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        return self.x.e_max, self.y.e_max

    @property
    def c(self) -> tuple[Term, Term]:
        return self.x.summands[-1].term, self.y.summands[-1].term

    @property
    def exponents(self) -> ExponentRange:
        return self.x.exponents

    @property
    def rises(self) -> list[Rise]:
        """How far e_max rises."""
        raise NotImplementedError

    @property
    def places(self) -> int:
        """The most by which sums are scaled."""
        return 1

    @property
    def bits(self) -> int:
        """Wide enough for all sums, on the finer grid."""
        return int(self.x.total.size()) + self.places + 3

    @property
    def terms(self) -> int:
        """All but c."""
        return len(self.x.summands) - 1

    @property
    def covers(self) -> bool:
        """Whether c gains what all other terms can lose."""
        return True

    def aligned(self, k: int) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """The k-th aligned term in both runs, with its sign, each in its own units."""
        x, y = (side.summands[k] for side in (self.x, self.y))
        return negate_if(x.term.sign, fit(x.aligned, self.bits)), negate_if(
            y.term.sign, fit(y.aligned, self.bits)
        )

    def in_order(
        self, rise: Rise, up: z3.BoolRef, down: z3.BoolRef, D: z3.BitVecRef, R: z3.BitVecRef
    ) -> z3.BoolRef:
        """Whether sums are in order, `up` for c ≥ 0 and else `down`; or, where one term more loses than c gains, less
        than a coarser unit out of order: D is the sum with c, R, less that with the larger c."""
        if rise.some and not self.covers:
            size, rest = self.beyond, rise.lost(1)
            up = z3.Or(up, z3.And(rest >= D, size <= R))
            down = z3.Or(down, z3.And(-rest <= D, -size >= R))
        return self.runs.in_turn(up, down)

    @property
    def beyond(self) -> z3.BitVecRef:
        """The least that the sum with c can be where one term more loses than c gains."""
        raise NotImplementedError

    def ordered_totals(self, rise: Rise) -> z3.BoolRef:
        """Whether the totals are in order, in units of the finer grid; or less than a coarser unit out of order."""
        a, b = wide(self.x.total, self.bits), rise.finer(wide(self.y.total, self.bits))
        return self.in_order(rise, a <= b, a >= b, a - b, a)


def prove_rounded_in_order(theory: Theory, pair: SumsPair, totals: Sequence[tuple[Rise, z3.BoolRef]]) -> None:
    """Prove that totals in order, or almost, are rounded in order: from what `Sums.in_order` gave.

    After claims of the ranges of e_max and of both totals, and of `OrderedRounding` theorems where c covers all.
    """
    rule, ex = rounding_of_pair(pair), pair.exponents
    ends = At(pair.x.total, pair.E[0]), At(pair.y.total, pair.E[1])
    steps = pair.runs.small, pair.runs.large
    linked = (
        [rule.prove_result(theory, *each) for each in zip(steps, ends, strict=True)] if pair.covers else []
    )
    ranges = [z3.UGE(pair.E[0], ex.constant(pair.lowest)), z3.ULE(pair.E[1], ex.constant(ex.high))]
    ranges += [rule.is_small(at.total) for at in ends]
    for rise, claim in totals:
        given = [claim, *ranges]
        hint = [
            *pair.E,
            pair.x.total,
            pair.y.total,
            pair.runs.sign,
            *(f for step in steps for f in special_flags(step)),
        ]
        if linked and rise.number is not None:
            given += [*linked, *rule.of_sums(theory, *ends, rise.number)]
            hint += [*(rule.code(*at) for at in ends), *(step.result for step in steps)]
        name = f"rounding with e_max {rise.name} higher"
        text = f"sums in order are rounded in order, where e_max is {rise.name} higher for the larger c"
        theory.claim(name, text, z3.Implies(rise.happens, pair.runs.ordered), given, hint)


def rounding_of_pair(pair: SumsPair) -> OrderedRounding:
    x = pair.x
    return OrderedRounding(pair.rho, x.exponents, x.F, pair.lowest, x.total.size(), sum(x.bounds))


# ---- sums --------------------------------------------------------------------------------------------------------


def bounded(x: z3.BitVecRef, most: z3.BitVecRef) -> z3.BoolRef:
    return z3.And(-most <= x, x <= most)


class PairedSums:
    """The sums of both runs, term by term; `small` are claims that aligned magnitudes are at most their bounds."""

    def __init__(self, proving: Composing, pair: SumsPair, small: Sequence[Sequence[z3.BoolRef]]) -> None:
        self.proving, self.pair = proving, pair
        self.terms = [pair.aligned(k) for k in range(pair.terms)] + [pair.aligned(-1)]
        sides = list(zip((pair.x, pair.y), small, strict=True))
        runs = [accumulate(proving, x.total, x.signed, x.bounds, known, pair.bits) for x, known in sides]
        self.sums, self.ranges = [run.sums for run in runs], [run.ranges for run in runs]
        self.totals = [run.prove_total(proving) for run in runs]

    def lost(
        self, rise: Rise, facts: Sequence[z3.BoolRef], of_c: z3.BoolRef
    ) -> tuple[z3.BoolRef, z3.BoolRef]:
        """(the sum of what all terms lose is bounded; it is the difference of both sums).

        `facts` say what each other term loses, `of_c` what c gains.
        """
        proving, n, pair = self.proving, self.pair.terms, self.pair
        sums, others = self.sums
        differences = [A - rise.finer(B) for A, B in self.terms]
        D, unit = differences[:1], self._unit(rise)
        for each in differences[1:]:
            D.append(D[-1] + each)
        cut = [*pair.E, pair.runs.sign, *rise.cut]
        known: list[z3.BoolRef] = []
        split: list[z3.BoolRef] = []
        for k in range(n + 1):
            text = "the difference of two sums on two grids is the sum of what each term loses"
            claim = D[k] == sums[k] - rise.finer(others[k])
            split = [proving.claim(f"difference of sums {k}, {rise.name}", text, claim, split)]
            if k == n:
                break
            text = "terms lose no more than a unit each, and more than all but one of them only if all have one sign"
            claim = z3.Implies(rise.happens, self._lost_by(k + 1, rise, D[k], sums[k]))
            small = [self.ranges[0][k - 1]] if k else []
            given = [*known, *unit, facts[k], *small, self.ranges[0][k]]
            before = [D[k - 1], sums[k - 1]] if k else []
            inside = [*cut, *before, self.terms[k][0], differences[k], *self._losses(rise, k)]
            known = [proving.claim(f"difference {k}, {rise.name}", text, claim, given, inside)]
        text = "c gains what all lose, or all but one, if all have its sign and less than a unit is lost"
        together = pair.in_order(rise, D[n] <= 0, D[n] >= 0, D[n], sums[n])
        A, B = self.terms[n]
        inside = [*cut, D[n - 1], sums[n - 1], A, rise.finer(B) if rise.cut else B, *self._losses(rise, n)]
        given, claim = [*known, *unit, of_c, self.ranges[0][n - 1]], z3.Implies(rise.happens, together)
        return proving.claim(f"difference with c, {rise.name}", text, claim, given, inside), split[0]

    def _unit(self, rise: Rise) -> list[z3.BoolRef]:
        """Prove that a coarser unit is not too large: what a term loses has places to spare."""
        if not rise.cut:
            return []
        claim = is_between(0, rise.lost(1), 1 << self.pair.places)
        text = "what a term loses has places to spare"
        return [self.proving.claim("coarser unit", text, claim)]

    def in_order(self, rise: Rise, lost: tuple[z3.BoolRef, z3.BoolRef]) -> z3.BoolRef:
        """Return the claim that the totals are in order, or almost."""
        pair, n, proving = self.pair, self.pair.terms, self.proving
        text = f"where e_max rises by {rise.name}, the sum with the larger c is the larger, or less than a unit less"
        claim = z3.Implies(rise.happens, pair.ordered_totals(rise))
        given = [*lost, *self.totals, *(each[n] for each in self.ranges)]
        if rise.cut:
            scaled = [rise.finer(each) for each in (self.sums[1][n], wide(pair.y.total, pair.bits))]
            small = limited(scaled[0], sum(pair.x.bounds) << pair.places)
            more = "the sum with the larger c has places to spare"
            given.append(proving.claim(f"finer sum, {rise.name}", more, small, [self.ranges[1][n]]))
            same, more = scaled[0] == scaled[1], "the accumulator in finer units is the sum"
            given.append(proving.claim(f"finer accumulator, {rise.name}", more, same, [self.totals[1]]))
        return proving.claim(f"totals, {rise.name}", text, claim, given)

    def _losses(self, rise: Rise, k: int) -> list[z3.BitVecRef]:
        """Return the most that one term, and the first of them, lose: constants, if no numbers."""
        first = k if self.pair.covers else k - 1
        return [*([rise.lost(first)] if first > 1 else []), rise.lost(1)] if rise.cut else []

    def _lost_by(self, k: int, rise: Rise, D: z3.BitVecRef, R: z3.BitVecRef) -> z3.BoolRef:
        """k terms lose no more than a unit each.

        If c gains less: where they lose more than k − 1 of them could, they have one sign, and none is zero.
        """
        claims = [bounded(D, rise.lost(k))]
        if rise.cut:
            claims.append(is_between(0, rise.lost(k), k << self.pair.places))
        if not self.pair.covers:
            inner = rise.lost(k - 1)
            claims += [z3.Implies(inner < D, k <= R), z3.Implies(-inner > D, -k >= R)]
        return z3.And(claims)


# ---- fda, gdfs, gfda ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FusedPair(SumsPair):
    """Both runs of a step of fda, gdfs or gfda."""

    @property
    def least(self) -> z3.BitVecRef:
        """The least exponent of c, if it is not zero."""
        return self.exponents.constant(self.spec.c_format.min_exponent)

    @property
    def zero(self) -> int:
        """The exponent of c = 0."""
        e_zero = self.spec.parameters.e_zero  # type: ignore[attr-defined]
        return self.spec.c_format.min_exponent if e_zero is None else int(e_zero)

    @property
    def furthest(self) -> int:
        """The most that e_max rises by."""
        return max(1, self.spec.c_format.min_exponent - self.zero)

    @property
    def rises(self) -> list[Rise]:
        """How far e_max rises: by 0, by 1, or further, which is only from c = 0 to the least exponent of c."""
        (E0, E1), bits = self.E, self.bits
        out = [
            Rise(str(n), z3.And(E0 + n == E1, z3.ULE(E0, E1)), z3.BitVecVal(1 << n, bits), n)
            for n in range(2)
        ]
        if self.furthest > 1:
            by, most = E1 - E0, z3.BitVecVal(self.places, E0.size())
            far = z3.BitVecVal(1 << self.places, bits)
            unit = z3.If(z3.ULT(by, most), z3.BitVecVal(1, bits) << fit(by, bits), far)
            further = z3.And(z3.ULT(E0, E1), z3.UGE(by, 2), z3.ULE(by, self.furthest), self.least == E1)
            out.append(Rise("more", further, unit))
        return out

    @property
    def places(self) -> int:
        """Where e_max rises further, it is by more than any sum has places."""
        return min(self.furthest, sum(self.x.bounds).bit_length())

    @property
    def covers(self) -> bool:
        return self.terms <= covered(self.spec)

    @property
    def beyond(self) -> z3.BitVecRef:
        n, bits = self.terms, self.bits
        more = n + (2 << self.x.F) - covered(self.spec)
        return z3.If(self.least == self.E[1], z3.BitVecVal(n, bits), z3.BitVecVal(more, bits))


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """Prove that a model of fda, gdfs or gfda is monotone in c: `two_runs(spec).statement`.  Raises NotProvedError."""
    prove_steps_in_c(theory, spec, lambda one, x: fused_step(one, x).step, _prove_in_order)


def _prove_in_order(
    proving: Theory, spec: DotAdd, runs: Neighbours[fda.FdaStep | gdfs.GdfsStep | gfda.GfdaStep]
) -> None:
    """Prove what gives `runs.ordered`, from that both c are finite.  Raises NotProvedError."""
    inputs = symbolic_inputs(one_step(spec))
    x, y = (fused_step(spec, replace(inputs, c=code)) for code in runs.rule.neighbouring)
    pair = FusedPair(spec, runs, x.whole, y.whole, x.rho, x.least)
    if pair.covers:
        rounding_of_pair(pair).prove(proving)
    (_, _, s0), (_, _, s1) = pair.c
    larger, M = z3.And(s0 != 0, s1 == s0 + 1, s0 != -1), spec.c_format.fraction_bits
    step = runs.prove_next(proving, *pair.c, larger, M, from_zero=[_from_zero(pair)])
    (below0, some0), (below1, some1) = prove_e_max(proving, x), prove_e_max(proving, y)
    maxima = _maxima(proving, pair, step, [*below0, *below1, some0, some1])
    sides = (x, below0, some0), (y, below1, some1)
    sums = PairedSums(proving, pair, [prove_small(proving, side, below) for side, below, _ in sides])
    for side in sides:
        prove_highest(proving, *side)
    totals = []
    for rise in pair.rises:
        facts = [_term(proving, pair, k, rise, below0[k]) for k in range(pair.terms)]
        of_c = _of_c(proving, pair, rise, [step, maxima, below0[-1], below1[-1]])
        totals.append((rise, sums.in_order(rise, sums.lost(rise, facts, of_c))))
    prove_rounded_in_order(proving, pair, totals)


def _from_zero(pair: FusedPair) -> z3.BoolRef:
    """Whether c is zero, and the next the least code."""
    (_, e0, s0), (_, e1, s1) = pair.c
    return z3.And(s0 == 0, s1 == 1, e0 == pair.exponents.constant(pair.zero), e1 == pair.least)


def _maxima(
    proving: Composing, pair: FusedPair, step: z3.BoolRef, largest: Sequence[z3.BoolRef]
) -> z3.BoolRef:
    """How e_max changes with c; and the ways of that are how far it rises."""
    (E0, E1), ((_, e0, s0), (_, e1, _)) = pair.E, pair.c
    zero, least = pair.exponents.constant(pair.zero), pair.least
    next_up = z3.And(z3.ULT(E0, E1), E1 == E0 + 1, e0 == E0, e1 == E1, s0 == -1)
    risen = z3.And(_from_zero(pair), least == E1, z3.ULT(E0, least), z3.UGE(E0, zero))
    maxima = proving.claim(
        "e_max of neighbours",
        "e_max stays, or rises by one with c, or from below the least exponent of c to that",
        z3.Or(E1 == E0, next_up, risen),
        [step, *largest],
    )
    text = "so e_max rises by 0 or 1, or further from c = 0"
    ways = z3.Or([rise.happens for rise in pair.rises])
    proving.claim("rise of e_max", text, ways, [maxima])
    return maxima


def _term(proving: Composing, pair: FusedPair, k: int, rise: Rise, below: z3.BoolRef) -> z3.BoolRef:
    """Prove that by the rise the k-th product loses less than a coarser unit, with its own sign."""
    u, v = pair.x.summands[k], pair.y.summands[k]
    A, B = pair.aligned(k)
    lost = A - rise.finer(B)
    text = f"where e_max rises by {rise.name}, a term loses less than one unit of the coarser grid, and has its sign"
    claim = z3.And(bounded(lost, rise.lost(1)), z3.Implies(lost > 0, A >= 1), z3.Implies(lost < 0, A <= -1))
    cut = [u.term.exponent, u.term.significand, u.term.sign, v.term.sign, *pair.E]
    claims = z3.Implies(rise.happens, claim)
    return proving.claim(f"{u.name} on two grids, {rise.name}", text, claims, [below], cut)


def _of_c(proving: Composing, pair: FusedPair, rise: Rise, given: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """Prove that c gains at least what `covered` products can lose."""
    gains, F = covered(pair.spec), pair.x.F
    A, B = pair.aligned(-1)
    gained, least = rise.lost(min(pair.terms, gains)), (2 << F) - gains
    sign = pair.runs.sign
    up = z3.And(rise.finer(B) - A >= gained, A >= 0)
    down = z3.And(A - rise.finer(B) >= gained, A <= 0)
    if rise.some:
        at_least = pair.E[1] == pair.least
        up, down = z3.And(up, z3.Or(at_least, least <= A)), z3.And(down, z3.Or(at_least, -least >= A))
    plus = sign == 0
    small = [limited(each, pair.x.bounds[-1]) for each in (A, B)]
    if rise.cut:
        small.append(limited(rise.finer(B), pair.x.bounds[-1] << pair.places))
    claim = z3.And(*small, z3.Implies(plus, up), z3.Implies(z3.Not(plus), down))
    text = f"where e_max rises by {rise.name}, c is larger by at least what {min(pair.terms, gains)} terms can lose"
    claims = z3.Implies(rise.happens, claim)
    return proving.claim(f"c on two grids, {rise.name}", text, claims, given)
