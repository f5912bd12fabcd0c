"""d grows with c, of fda, gdfs or gfda: sums with neighbouring c are in order, and so is what they are rounded to.

With c' > c, neighbours, e_max stays or rises by r, and a term loses less than 2^r finer units more; c' is larger than c
by what `covered` terms can lose.  So the sums S of c and S' of c', in finer units, are in order (S ≤ S' for c ≥ 0; else
the other way about), or, with one term more, less than one coarser unit out of order, S being larger than a number that
ρ, which cuts toward zero, gives.  r is 0 or 1; or, from c = 0 to the least c, any number up to `furthest`, and 2^r a
letter.

Both sums are those of the aligned terms; D_k is what the first k of them lose, and R_k their sum in the run with c.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.cases.out_of_order import two_runs
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfda import smt as gfda
from mmaformal.encodings.smt.blocks import ExponentRange, negate_if, sum_of
from mmaformal.facts.fused_steps import Fused, fused_step, prove_e_max, prove_highest, prove_small
from mmaformal.proof.composition import Accumulated, Composing, accumulate, between, wide, within
from mmaformal.proof.definitions import fit
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import Neighbours, OneStep, flags, prove_steps
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

    @property
    def some(self) -> bool:
        """Whether the units differ."""
        return self.number != 0

    def finer(self, x: z3.BitVecRef) -> z3.BitVecRef:
        """So many coarser units in finer ones."""
        return x * self.unit

    def lost(self, terms: int) -> z3.BitVecRef:
        """The most finer units that so many terms can lose: each less than a coarser one."""
        one = self.unit - 1
        if self.number is not None:
            return z3.simplify(terms * one)
        return sum_of([one] * terms) if terms else z3.BitVecVal(0, one.size())

    @property
    def cut(self) -> list[z3.BitVecRef]:
        """The unit, if it is not one number."""
        return [self.unit] if self.number is None else []


@dataclass(frozen=True)
class FusedPair:
    """Both runs of a step of fda, gdfs or gfda, with neighbouring codes of c."""

    spec: DotAdd
    runs: Neighbours[fda.FdaStep | gdfs.GdfsStep | gfda.GfdaStep]
    x: Fused  #: with the code of smaller magnitude
    y: Fused

    @property
    def E(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        return self.x.step.e_max, self.y.step.e_max

    @property
    def c(self) -> tuple[tuple[z3.BitVecRef, z3.BitVecRef], tuple[z3.BitVecRef, z3.BitVecRef]]:
        """(exponent, significand) of c in both runs."""
        x, y = (side.step.addend for side in (self.x, self.y))
        return (x.exponent, x.significand), (y.exponent, y.significand)

    @property
    def c_signs(self) -> list[z3.BitVecRef]:
        return [side.step.addend.sign for side in (self.x, self.y)]

    @property
    def exponents(self) -> ExponentRange:
        return self.x.exponents

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
        """The most by which sums are scaled; where e_max rises further, it is by more than any sum has places."""
        return min(self.furthest, sum(self.x.bounds).bit_length())

    @property
    def bits(self) -> int:
        """Wide enough for all sums, on the finer grid."""
        return int(self.x.step.total.size()) + self.places + 3

    @property
    def terms(self) -> int:
        """All but c."""
        return len(self.x.summands) - 1

    @property
    def covers(self) -> bool:
        """Whether c gains what all other terms can lose."""
        return self.terms <= covered(self.spec)


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """That a model of fda, gdfs or gfda is monotone in c: `two_runs(spec).statement`.  Raises NotProvedError."""
    inputs = symbolic_inputs(one_step(spec))

    def step(c: z3.BitVecRef) -> fda.FdaStep | gdfs.GdfsStep | gfda.GfdaStep:
        return fused_step(spec, replace(inputs, c=c)).step

    one = OneStep(step, inputs.c, spec.c_format, spec.d_format)
    theorem = one.prove(theory, lambda proving, runs: prove_in_order(proving, spec, runs))
    prove_steps(theory, two_runs(spec), one, theorem)


def prove_in_order(
    proving: Theory, spec: DotAdd, runs: Neighbours[fda.FdaStep | gdfs.GdfsStep | gfda.GfdaStep]
) -> None:
    """What gives `runs.ordered`, from that both c are finite.  Raises NotProvedError."""
    inputs = symbolic_inputs(one_step(spec))
    x, y = (fused_step(spec, replace(inputs, c=code)) for code in runs.rule.neighbouring)
    pair = FusedPair(spec, runs, x, y)
    rounding = _Rounding(proving, pair)
    if pair.covers:
        rounding.rule.prove(proving)
    step = _next_c(proving, pair)
    (below0, some0), (below1, some1) = prove_e_max(proving, x), prove_e_max(proving, y)
    maxima = _maxima(proving, pair, step, [*below0, *below1, some0, some1])
    sums = _Sums(proving, pair, [below0, below1])
    for side, below, some in ((x, below0, some0), (y, below1, some1)):
        prove_highest(proving, side, below, some)
    totals = []
    for rise in pair.rises:
        facts = [_term(proving, pair, k, rise, below0[k]) for k in range(pair.terms)]
        of_c = _of_c(proving, pair, rise, [step, maxima, below0[-1], below1[-1]])
        lost = sums.lost(rise, facts, of_c)
        totals.append((rise, sums.in_order(rise, lost)))
    rounding.prove(totals)


# ---- c and e_max -------------------------------------------------------------------------------------------------


def _next_c(proving: Composing, pair: FusedPair) -> z3.BoolRef:
    """How c changes from a code to the next."""
    (e0, s0), (e1, s1) = pair.c
    sign, M = pair.runs.sign, pair.spec.c_format.fraction_bits
    zero, least = pair.exponents.constant(pair.zero), pair.least
    from_zero = z3.And(s0 == 0, s1 == 1, e0 == zero, e1 == least)
    return proving.claim(
        "neighbouring c",
        "the next c has one more in its last place, or the next exponent, or is the least after zero",
        z3.And(
            *(each == sign for each in pair.c_signs),
            z3.Or(
                from_zero,
                z3.And(s0 != 0, e1 == e0, s1 == s0 + 1, s0 != -1),
                z3.And(s0 == -1, z3.ULT(e0, e1), e1 == e0 + 1, s1 == 1 << M),
            ),
        ),
        [pair.runs.finite],
    )


def _maxima(
    proving: Composing, pair: FusedPair, step: z3.BoolRef, largest: Sequence[z3.BoolRef]
) -> z3.BoolRef:
    """How e_max changes with c; and the ways of that are how far it rises."""
    (E0, E1), ((e0, s0), (e1, s1)) = pair.E, pair.c
    zero, least = pair.exponents.constant(pair.zero), pair.least
    next_up = z3.And(z3.ULT(E0, E1), E1 == E0 + 1, e0 == E0, e1 == E1, s0 == -1)
    from_zero = z3.And(s0 == 0, s1 == 1, e0 == zero, e1 == least)
    risen = z3.And(from_zero, least == E1, z3.ULT(E0, least), z3.UGE(E0, zero))
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


# ---- terms on two grids ------------------------------------------------------------------------------------------


def _aligned(pair: FusedPair, k: int) -> tuple[z3.BitVecRef, z3.BitVecRef]:
    """The k-th aligned term in both runs, with its sign, each in its own units."""
    x, y = (side.summands[k] for side in (pair.x, pair.y))
    return negate_if(x.term.sign, fit(x.aligned, pair.bits)), negate_if(
        y.term.sign, fit(y.aligned, pair.bits)
    )


def _bounded(x: z3.BitVecRef, most: z3.BitVecRef) -> z3.BoolRef:
    return z3.And(-most <= x, x <= most)


def _term(proving: Composing, pair: FusedPair, k: int, rise: Rise, below: z3.BoolRef) -> z3.BoolRef:
    """What the k-th product loses by the rise: less than a coarser unit, with its own sign."""
    u, v = pair.x.summands[k], pair.y.summands[k]
    A, B = _aligned(pair, k)
    lost = A - rise.finer(B)
    text = f"where e_max rises by {rise.name}, a term loses less than one unit of the coarser grid, and has its sign"
    claim = z3.And(_bounded(lost, rise.lost(1)), z3.Implies(lost > 0, A >= 1), z3.Implies(lost < 0, A <= -1))
    cut = [u.term.exponent, u.term.significand, u.term.sign, v.term.sign, *pair.E]
    claims = z3.Implies(rise.happens, claim)
    return proving.claim(f"{u.name} on two grids, {rise.name}", text, claims, [below], cut)


def _of_c(proving: Composing, pair: FusedPair, rise: Rise, given: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """What c gains: at least what `covered` products can lose."""
    gains, F = covered(pair.spec), pair.x.F
    A, B = _aligned(pair, -1)
    gained, least = rise.lost(min(pair.terms, gains)), (2 << F) - gains
    sign = pair.runs.sign
    up = z3.And(rise.finer(B) - A >= gained, A >= 0)
    down = z3.And(A - rise.finer(B) >= gained, A <= 0)
    if rise.some:
        at_least = pair.E[1] == pair.least
        up, down = z3.And(up, z3.Or(at_least, least <= A)), z3.And(down, z3.Or(at_least, -least >= A))
    plus = sign == 0
    small = [within(each, pair.x.bounds[-1]) for each in (A, B)]
    if rise.cut:
        small.append(within(rise.finer(B), pair.x.bounds[-1] << pair.places))
    claim = z3.And(*small, z3.Implies(plus, up), z3.Implies(z3.Not(plus), down))
    text = f"where e_max rises by {rise.name}, c is larger by at least what {min(pair.terms, gains)} terms can lose"
    claims = z3.Implies(rise.happens, claim)
    return proving.claim(f"c on two grids, {rise.name}", text, claims, given)


# ---- sums --------------------------------------------------------------------------------------------------------


class _Sums:
    """The sums of both runs, term by term."""

    def __init__(self, proving: Composing, pair: FusedPair, below: Sequence[Sequence[z3.BoolRef]]) -> None:
        self.proving, self.pair = proving, pair
        self.terms = [_aligned(pair, k) for k in range(pair.terms)] + [_aligned(pair, -1)]
        runs = [self._accumulate(*each) for each in zip((pair.x, pair.y), below, strict=True)]
        self.sums, self.ranges = [run.sums for run in runs], [run.ranges for run in runs]
        self.totals = [self._total(*each) for each in zip((pair.x, pair.y), runs, strict=True)]

    def _accumulate(self, side: Fused, below: Sequence[z3.BoolRef]) -> Accumulated:
        small = prove_small(self.proving, side, below)
        return accumulate(self.proving, side.step.total, side.signed, side.bounds, small, self.pair.bits)

    def _reach(self, k: int) -> int:
        """A bound of the sum of the first terms, up to the k-th."""
        return sum(self.pair.x.bounds[: k + 1])

    def _total(self, side: Fused, run: Accumulated) -> z3.BoolRef:
        """That the accumulator is the sum of the run's terms, and how large it is at most."""
        total = side.step.total
        claim = z3.And(wide(total, self.pair.bits) == run.sums[-1], total <= run.reach, total >= -run.reach)
        return self.proving.claim("accumulator", "so the accumulator is the sum", claim, run.known)

    @staticmethod
    def _running(parts: Sequence[z3.BitVecRef]) -> list[z3.BitVecRef]:
        out = [parts[0]]
        for part in parts[1:]:
            out.append(out[-1] + part)
        return out

    def _size(self) -> z3.BitVecRef:
        """What the sum with c is at least where one term more loses than c gains."""
        pair, n, bits = self.pair, self.pair.terms, self.pair.bits
        beyond = n + (2 << pair.x.F) - covered(pair.spec)
        return z3.If(pair.least == pair.E[1], z3.BitVecVal(n, bits), z3.BitVecVal(beyond, bits))

    def _together(self, rise: Rise, D: z3.BitVecRef, R: z3.BitVecRef) -> z3.BoolRef:
        """How D, the sum with c less that with the larger c, is bounded, R being the former."""
        sign = self.pair.runs.sign
        up, down = D <= 0, D >= 0
        if rise.some and not self.pair.covers:
            size, rest = self._size(), rise.lost(1)
            up = z3.Or(up, z3.And(rest >= D, size <= R))
            down = z3.Or(down, z3.And(-rest <= D, -size >= R))
        return z3.And(z3.Implies(sign == 0, up), z3.Implies(sign != 0, down))

    def lost(
        self, rise: Rise, facts: Sequence[z3.BoolRef], of_c: z3.BoolRef
    ) -> tuple[z3.BoolRef, z3.BoolRef]:
        """(the sum of what all terms lose is bounded; it is the difference of both sums)."""
        proving, n = self.proving, self.pair.terms
        sums, others = self.sums
        differences = [A - rise.finer(B) for A, B in self.terms]
        D, unit = self._running(differences), self._unit(rise)
        cut = [*self.pair.E, self.pair.runs.sign, *rise.cut]
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
        together = z3.Implies(rise.happens, self._together(rise, D[n], sums[n]))
        A, B = self.terms[n]
        inside = [*cut, D[n - 1], sums[n - 1], A, rise.finer(B) if rise.cut else B, *self._losses(rise, n)]
        given = [*known, *unit, of_c, self.ranges[0][n - 1]]
        return proving.claim(f"difference with c, {rise.name}", text, together, given, inside), split[0]

    def _unit(self, rise: Rise) -> list[z3.BoolRef]:
        """That a coarser unit is not too large."""
        if not rise.cut:
            return []
        claim = between(0, rise.lost(1), 1 << self.pair.places)
        text = "what a term loses has places to spare"
        return [self.proving.claim("coarser unit", text, claim)]

    def in_order(self, rise: Rise, lost: tuple[z3.BoolRef, z3.BoolRef]) -> z3.BoolRef:
        """That the totals are in order, or almost."""
        pair, n = self.pair, self.pair.terms
        other = self.sums[1][n]
        t1 = pair.y.step.total
        text = f"where e_max rises by {rise.name}, the sum with the larger c is the larger, or less than a unit less"
        claim = z3.Implies(rise.happens, ordered_totals(pair, rise))
        given = [*lost, *self.totals, *(each[n] for each in self.ranges)]
        if rise.cut:
            scaled = [rise.finer(each) for each in (other, wide(t1, pair.bits))]
            given += self._scaled(rise, scaled)
        return self.proving.claim(f"totals, {rise.name}", text, claim, given)

    def _losses(self, rise: Rise, k: int) -> list[z3.BitVecRef]:
        """What one term, and the first of them, lose at most, of which all else is made: letters, if no numbers."""
        first = k if self.pair.covers else k - 1
        return [*([rise.lost(first)] if first > 1 else []), rise.lost(1)] if rise.cut else []

    def _lost_by(self, k: int, rise: Rise, D: z3.BitVecRef, R: z3.BitVecRef) -> z3.BoolRef:
        """k terms lose no more than a unit each.

        If c gains less: where they lose more than k − 1 of them could, they have one sign, and none is zero.
        """
        claims = [_bounded(D, rise.lost(k))]
        if rise.cut:
            claims.append(between(0, rise.lost(k), k << self.pair.places))
        if not self.pair.covers:
            inner = rise.lost(k - 1)
            claims += [z3.Implies(inner < D, k <= R), z3.Implies(-inner > D, -k >= R)]
        return z3.And(claims)

    def _scaled(self, rise: Rise, scaled: Sequence[z3.BitVecRef]) -> list[z3.BoolRef]:
        """Of the sum with the larger c and of its total, in finer units: they are the same, and in their range."""
        pair, proving, n = self.pair, self.proving, self.pair.terms

        small = within(scaled[0], self._reach(n) << pair.places)
        text = "the sum with the larger c has places to spare"
        proving.claim(f"finer sum, {rise.name}", text, small, [self.ranges[1][n]])
        same, text = scaled[0] == scaled[1], "the accumulator in finer units is the sum"
        proving.claim(f"finer accumulator, {rise.name}", text, same, [self.totals[1]])
        return [small, same]


# ---- rounding ----------------------------------------------------------------------------------------------------


def ordered_totals(pair: FusedPair, rise: Rise) -> z3.BoolRef:
    """Whether the totals are in order, in units of the finer grid; or less than a coarser unit out of order."""
    bits = pair.bits
    a, b = wide(pair.x.step.total, bits), rise.finer(wide(pair.y.step.total, bits))
    up, down = a <= b, a >= b
    if rise.some and not pair.covers:
        n, gains = pair.terms, covered(pair.spec)
        beyond = n + (2 << pair.x.F) - gains
        size = z3.If(pair.least == pair.E[1], z3.BitVecVal(n, bits), z3.BitVecVal(beyond, bits))
        rest = rise.lost(1)
        up, down = z3.Or(up, z3.And(a - b <= rest, a >= size)), z3.Or(down, z3.And(b - a <= rest, -a >= size))
    sign = pair.runs.sign
    return z3.And(z3.Implies(sign == 0, up), z3.Implies(sign != 0, down))


@dataclass(frozen=True)
class _Rounding:
    """Totals in order are rounded in order, and so are those that are almost."""

    theory: Theory
    pair: FusedPair

    @property
    def rule(self) -> OrderedRounding:
        x = self.pair.x
        return OrderedRounding(
            x.rho, x.exponents, F=x.F, lowest=x.least, bits=x.step.total.size(), reach=sum(x.bounds)
        )

    @property
    def runs(self) -> tuple[At, At]:
        x, y = self.pair.x.step, self.pair.y.step
        return At(x.total, x.e_max), At(y.total, y.e_max)

    @property
    def ranges(self) -> list[z3.BoolRef]:
        """Claimed of e_max and of both totals."""
        x, (E0, E1) = self.pair.x, self.pair.E
        ex, reach = x.exponents, sum(x.bounds)
        small = [z3.And(each.total <= reach, each.total >= -reach) for each in self.runs]
        return [z3.UGE(E0, ex.constant(x.least)), z3.ULE(E1, ex.constant(ex.high)), *small]

    @property
    def letters(self) -> list[z3.ExprRef]:
        pair = self.pair
        totals = [each.total for each in self.runs]
        return [*pair.E, *totals, pair.runs.sign, *flags(pair.x.step), *flags(pair.y.step)]

    def prove(self, totals: Sequence[tuple[Rise, z3.BoolRef]]) -> None:
        """From what `_Sums.in_order` gave.  Raises NotProvedError."""
        sides = zip((self.pair.x.step, self.pair.y.step), self.runs, strict=True)
        linked = [self.rule.prove_result(self.theory, *side) for side in sides] if self.pair.covers else []
        for rise, claim in totals:
            self._rounded(rise, claim, linked)

    def _rounded(self, rise: Rise, totals: z3.BoolRef, linked: Sequence[z3.BoolRef]) -> None:
        given, hint = [totals, *self.ranges], self.letters
        if linked and rise.number is not None:
            given += [*linked, *self.rule.of_sums(self.theory, *self.runs, rise.number)]
            hint += [self.rule.code(*at) for at in self.runs]
            hint += [self.pair.x.step.result, self.pair.y.step.result]
        name = f"rounding with e_max {rise.name} higher"
        text = f"sums in order are rounded in order, where e_max is {rise.name} higher for the larger c"
        self.theory.claim(name, text, z3.Implies(rise.happens, self.pair.runs.ordered), given, hint)
