"""d grows with c, of a step of ffma or dpa_e9s12, which need not be its exact sum rounded: one sum of two terms, c and
what does not depend on it.

With the next c the larger exponent stays or rises by one; the other term, jammed into its last place, changes by two
finer units at most when it does, and c by more.  So the sums are in order, on one grid or on two, and so are the
results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.interfaces import Judged
from mmaformal.cases.one_step import one_step
from mmaformal.cases.out_of_order import two_runs
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import smt as dpa_e9s12
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.smt.blocks import (
    ExponentRange,
    StickySum,
    Term,
    negate_if,
)
from mmaformal.proof.composition import wide, within
from mmaformal.proof.definitions import fit
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd, LossModel
from mmaformal.theory.monotone import Neighbours, OneStep, prove_steps
from mmaformal.theory.rounding import At, OrderedRounding


class AddsTerm(Judged, Protocol):
    """A step that adds c to one term."""

    @property
    def term(self) -> Term: ...
    @property
    def addend(self) -> Term: ...
    @property
    def sum(self) -> StickySum: ...


Sticky: TypeAlias = pfma.Fma | AddsTerm


def sticky_step(spec: DotAdd, x: Inputs) -> dpa_e9s12.DpaE9s12Step:
    p = spec.parameters
    assert isinstance(p, DpaE9s12)
    return dpa_e9s12.step(spec, p, x.a, x.b, x.c)


def terms_of(step: Sticky) -> tuple[Term, Term]:
    """(what c is added to, c)."""
    return (step.product if isinstance(step, pfma.Fma) else step.term), step.addend


def exponents_of(spec: DotAdd) -> ExponentRange:
    p = spec.parameters
    assert isinstance(p, DpaE9s12)
    return dpa_e9s12.exponents_of(spec, p.L, p.summands(spec))


def frame_of(spec: DotAdd) -> int:
    """The places of a sum below the one of its exponent."""
    p = spec.parameters
    if p.loss is LossModel.OPERATIONS:
        return pfma.FRAME
    assert isinstance(p, DpaE9s12)
    return p.L - 1 + dpa_e9s12.GUARD


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    prove_steps(theory, two_runs(spec), *prove_step_in_c(theory, spec))


def prove_step_in_c(theory: Theory, spec: DotAdd) -> tuple[OneStep[dpa_e9s12.DpaE9s12Step], z3.BoolRef]:
    """(one step as a function of c; that it is not smaller if c is not).  Raises NotProvedError."""
    inputs = symbolic_inputs(one_step(spec))
    one = OneStep(lambda c: sticky_step(spec, replace(inputs, c=c)), inputs.c, spec.c_format, spec.d_format)
    return one, one.prove(theory, lambda proving, runs: prove_in_order(proving, spec, runs))


@dataclass(frozen=True)
class StickyPair:
    """Both runs of a step, with neighbouring codes of c, the smaller in magnitude first."""

    spec: DotAdd
    runs: Neighbours[Sticky]
    exponents: ExponentRange
    least: int  #: exponent of c
    fraction_bits: int  #: of c
    least_other: int  #: exponent of what c is added to

    @property
    def steps(self) -> tuple[Sticky, Sticky]:
        return self.runs.small, self.runs.large

    @property
    def term(self) -> Term:
        """What c is added to."""
        return terms_of(self.runs.small)[0]

    @property
    def c(self) -> list[Term]:
        return [terms_of(step)[1] for step in self.steps]

    @property
    def sums(self) -> list[StickySum]:
        return [step.sum for step in self.steps]

    @property
    def E(self) -> list[z3.BitVecRef]:
        return [each.e_max for each in self.sums]

    @property
    def totals(self) -> list[z3.BitVecRef]:
        return [each.total for each in self.sums]

    @property
    def bits(self) -> int:
        """Wide enough for all sums, on the finer grid."""
        return int(self.totals[0].size()) + 2

    @property
    def parts(self) -> list[tuple[z3.BitVecRef, z3.BitVecRef]]:
        """Both aligned terms of either run, with their signs."""
        return [
            (negate_if(self.term.sign, fit(sum_.x, self.bits)), negate_if(c.sign, fit(sum_.y, self.bits)))
            for sum_, c in zip(self.sums, self.c, strict=True)
        ]

    @property
    def of_c(self) -> list[z3.BitVecRef]:
        """Letters."""
        return [*(part for c in self.c for part in c), self.runs.sign]

    def risen(self, rise: int) -> z3.BoolRef:
        (E0, E1), ex = self.E, self.exponents
        low, high = ex.constant(self.spec.c_format.min_exponent), ex.constant(ex.high)
        return z3.And(E0 + rise == E1, z3.ULE(E0, E1), z3.UGE(E0, low), z3.ULE(E1, high))

    def in_turn(self, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
        """x ≤ y for c ≥ 0, else y ≤ x."""
        sign = self.runs.sign
        return z3.And(z3.Implies(sign == 0, x <= y), z3.Implies(sign != 0, x >= y))

    def in_order(self, rise: int) -> z3.BoolRef:
        """Whether the sums are."""
        t0, t1 = (wide(total, self.bits) for total in self.totals)
        return self.in_turn(t0, t1 << rise)


def prove_in_order(theory: Theory, spec: DotAdd, runs: Neighbours[Sticky]) -> None:
    """What gives `runs.ordered`, from that both c are finite.  Raises NotProvedError."""
    ex, fmt = exponents_of(spec), spec.c_format
    prove_pair_in_order(theory, StickyPair(spec, runs, ex, fmt.min_exponent, fmt.fraction_bits, ex.low))


def prove_pair_in_order(theory: Theory, pair: StickyPair) -> None:
    """The same; "c" is whatever changes from one run to the other."""
    spec, runs = pair.spec, pair.runs
    bits, reach = pair.totals[0].size(), _reach(pair.totals[0])
    rho, lowest = spec.parameters.last_rounding, spec.c_format.min_exponent
    rounding = OrderedRounding(rho, pair.exponents, frame_of(spec), lowest, bits, reach)
    rounding.prove(theory)
    step = _next_c(theory, pair)
    maxima, ways = _maxima(theory, pair, step)
    totals = [_total(theory, pair, run) for run in (0, 1)]
    sums = [_sums(theory, pair, rise, step, maxima, totals) for rise in (0, 1)]
    first, second = (At(*each) for each in zip(pair.totals, pair.E, strict=True))
    small = [total.arg(1) for total in totals]
    cases = [each for rise in (0, 1) for each in rounding.of_sums(theory, first, second, rise)]
    linked = [rounding.prove_result(theory, *each) for each in zip(pair.steps, (first, second), strict=True)]
    text = "so the results are in order"
    theory.claim("ordered", text, runs.ordered, [ways, *sums, *small, *cases, *linked])


def _next_c(theory: Theory, pair: StickyPair) -> z3.BoolRef:
    """How c changes from a code to the next."""
    (_, e0, s0), (_, e1, s1) = pair.c
    sign, ex, M = pair.runs.sign, pair.exponents, pair.fraction_bits
    return theory.claim(
        "neighbouring c",
        "the next c has no less in its last place (a flushed one no more), or the next exponent",
        z3.And(
            *(c.sign == sign for c in pair.c),
            z3.UGE(e0, ex.constant(pair.least)),
            z3.ULE(e1, ex.constant(ex.high)),
            z3.Or(
                z3.And(e1 == e0, z3.UGE(s1, s0)),
                z3.And(s0 == -1, z3.ULT(e0, e1), e1 == e0 + 1, s1 == 1 << M),
            ),
        ),
        [pair.runs.finite],
    )


def _maxima(theory: Theory, pair: StickyPair, step: z3.BoolRef) -> tuple[z3.BoolRef, z3.BoolRef]:
    """(how e_max changes with c; the ways of that are how far it rises)."""
    (E0, E1), (c0, c1), e = pair.E, pair.c, pair.term.exponent
    text = "the other term's exponent is in its range"
    ex = pair.exponents
    inside = z3.And(z3.ULE(e, ex.constant(ex.high)), z3.UGE(e, ex.constant(pair.least_other)))
    in_range = theory.claim("term in range", text, inside)
    claim = z3.And(
        *(z3.ULE(each, E0) for each in (c0.exponent, e)),
        z3.ULE(c1.exponent, E1),
        z3.Or(pair.risen(0), z3.And(pair.risen(1), c0.exponent == E0, c1.exponent == E1)),
    )
    text = "e_max stays, or rises by one with c"
    maxima = theory.claim("e_max of neighbours", text, claim, [step, in_range])
    ways = z3.Or(pair.risen(0), pair.risen(1))
    return maxima, theory.claim("rise of e_max", "so it rises by 0 or 1", ways, [maxima])


def _total(theory: Theory, pair: StickyPair, run: int) -> z3.BoolRef:
    """That a sum is that of both terms, and how large it is at most."""
    sum_, (x, y) = pair.sums[run], pair.parts[run]
    total, reach = sum_.total, _reach(sum_.total)
    claim = z3.And(wide(total, pair.bits) == x + y, z3.And(total <= reach, total >= -reach))
    return theory.claim("sum", "the sum is that of both terms", claim)


def _sums(
    theory: Theory,
    pair: StickyPair,
    rise: int,
    step: z3.BoolRef,
    maxima: z3.BoolRef,
    totals: Sequence[z3.BoolRef],
) -> z3.BoolRef:
    """That the sum with the larger c is the larger, where e_max rises so far."""
    (A, C), (B, D) = pair.parts
    way, most, sign = pair.risen(rise), 2 * rise, pair.runs.sign
    changed, gained = (B << rise) - A, (D << rise) - C
    text = f"where e_max rises by {rise}, the other term changes by no more than {most} units"
    near = z3.Implies(way, within(changed, most))
    theory.claim(f"term on two grids, {rise}", text, near, [maxima])
    more = z3.Implies(
        way, z3.And(z3.Implies(sign == 0, gained >= most), z3.Implies(sign != 0, gained <= -most))
    )
    text = f"and c by {most} at least"
    theory.claim(f"c on two grids, {rise}", text, more, [step, maxima])
    text = "the difference of two sums is the sum of the differences"
    split = ((B + D) << rise) - (A + C) == changed + gained
    theory.claim(f"difference of sums, {rise}", text, split)
    small = within(gained, 1 << (pair.bits - 2))
    theory.claim(f"range of c, {rise}", "that of c is in its range", small)
    text = f"so where e_max rises by {rise}, the sum with the larger c is the larger"
    claim = z3.Implies(way, pair.in_order(rise))
    return theory.claim(f"sums, {rise}", text, claim, [near, more, split, small, *totals])


def _reach(total: z3.BitVecRef) -> int:
    """A bound of a sum of two terms, in two's complement."""
    return 2 * ((1 << (int(total.size()) - 2)) - 1)
