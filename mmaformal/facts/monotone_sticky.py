"""d grows with c, of a step of ffma or dpa_e9s12, which need not be its exact sum rounded: one sum of two terms, c and
what does not depend on it.

With the next c the larger exponent stays or rises by one; the other term, its last place sticky, changes by two
finer units at most when it does, and c by more.  So the sums are in order, on one grid or on two, and so are the
results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

import z3

from mmaformal.cases.inputs import Inputs
from mmaformal.cases.interfaces import Judged
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import smt as dpa_e9s12
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.smt.blocks import ExponentRange, StickySum, Term
from mmaformal.facts.fused_steps import AlignedTerms
from mmaformal.facts.monotone_fused import (
    PairedSums,
    Rise,
    SumsPair,
    bounded,
    prove_rounded_in_order,
    rounding_of_pair,
)
from mmaformal.proof.fixed_sums import limited
from mmaformal.proof.fused import Summand
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd, LossModel
from mmaformal.theory.monotone import Neighbours, prove_steps_in_c


class AddsTerm(Judged, Protocol):
    """A step that adds c to one term."""

    @property
    def term(self) -> Term: ...
    @property
    def addend(self) -> Term: ...
    @property
    def sum(self) -> StickySum: ...


StickyStep: TypeAlias = pfma.FmaStages | AddsTerm


def sticky_step(spec: DotAdd, x: Inputs) -> dpa_e9s12.DpaE9s12Step:
    p = spec.parameters_as(DpaE9s12)
    return dpa_e9s12.step(spec, p, x.a, x.b, x.c)


def _terms_of(step: StickyStep) -> tuple[Term, Term]:
    """(what c is added to, c)."""
    return (step.product if isinstance(step, pfma.FmaStages) else step.term), step.addend


def _exponents_of(spec: DotAdd) -> ExponentRange:
    p = spec.parameters_as(DpaE9s12)
    return dpa_e9s12.exponents_of(spec, p.accumulator_bits, p.summands(spec))


def _frame_of(spec: DotAdd) -> int:
    """The places of a sum below the one of its exponent."""
    p = spec.parameters
    if p.loss is LossModel.OPERATIONS:
        return pfma.FRAME
    assert isinstance(p, DpaE9s12)
    return p.accumulator_bits - 1 + dpa_e9s12.GUARD


def prove_in_c(theory: Theory, spec: DotAdd) -> None:
    """`two_runs(spec).statement`.  Raises NotProvedError."""
    prove_steps_in_c(theory, spec, sticky_step, _prove_in_order)


def _sum_of(step: StickyStep, exponents: ExponentRange, frame: int, fraction_bits: int) -> AlignedTerms:
    """The sum of a step, of c with so many fraction bits; nothing is said of those of the other term."""
    x, y = _terms_of(step)
    summands = Summand("term", x, step.sum.x, 0, ()), Summand("c", y, step.sum.y, fraction_bits, ())
    bounds = [(1 << s.aligned.size()) - 1 for s in summands]
    return AlignedTerms(summands, (bounds[0], bounds[1]), step.sum.e_max, step.sum.total, exponents, frame)


@dataclass(frozen=True)
class StickyPair(SumsPair):
    """Both runs of a step; "c" is whatever changes from one to the other."""

    least: int  #: exponent of c
    least_other: int  #: exponent of what c is added to

    @classmethod
    def of(
        cls,
        spec: DotAdd,
        runs: Neighbours[StickyStep],
        exponents: ExponentRange,
        *,
        least: int,
        fraction_bits: int,
    ) -> StickyPair:
        frame, rho, lowest = _frame_of(spec), spec.parameters.last_rounding, spec.c_format.min_exponent
        x, y = (_sum_of(step, exponents, frame, fraction_bits) for step in (runs.small, runs.large))
        return cls(spec, runs, x, y, rho, lowest, least, exponents.low)

    def risen(self, rise: int) -> z3.BoolRef:
        (E0, E1), ex = self.E, self.exponents
        low, high = ex.constant(self.lowest), ex.constant(ex.high)
        return z3.And(E0 + rise == E1, z3.ULE(E0, E1), z3.UGE(E0, low), z3.ULE(E1, high))

    @property
    def rises(self) -> list[Rise]:
        """By 0 or 1; what is kept of a term with a sticky place changes by two finer units."""
        return [Rise(str(n), self.risen(n), z3.BitVecVal(1 << n, self.bits), n, 2 * n) for n in (0, 1)]


def _prove_in_order(theory: Theory, spec: DotAdd, runs: Neighbours[StickyStep]) -> None:
    """Prove what gives `runs.ordered`, from that both c are finite.  Raises NotProvedError."""
    ex, fmt = _exponents_of(spec), spec.c_format
    pair = StickyPair.of(spec, runs, ex, least=fmt.min_exponent, fraction_bits=fmt.fraction_bits)
    prove_pair_in_order(theory, pair)


def prove_pair_in_order(theory: Theory, pair: StickyPair) -> None:
    """Prove for a pair of runs what `_prove_in_order` proves.  Raises NotProvedError."""
    rounding_of_pair(pair).prove(theory)
    (low, high), (x, y) = (pair.exponents.constant(n) for n in (pair.least, pair.exponents.high)), pair.c
    ranges = z3.UGE(x.exponent, low), z3.ULE(y.exponent, high)
    larger, places = z3.UGE(y.significand, x.significand), pair.x.summands[-1].fraction_bits
    step = pair.runs.prove_next(theory, x, y, larger, places, ranges)
    maxima = _maxima(theory, pair, step)
    small = [
        [z3.ULE(s.aligned, bound) for s, bound in zip(x.summands, x.bounds, strict=True)]
        for x in (pair.x, pair.y)
    ]
    sums, totals = PairedSums(theory, pair, small), []
    for rise in pair.rises:
        (A, B), (C, D), most = pair.aligned(0), pair.aligned(1), rise.lost(1)
        text = f"where e_max rises by {rise.name}, the other term changes by no more than {2 * int(rise.name)} units"
        changed = z3.Implies(rise.happens, bounded(A - rise.finer(B), most))
        term = theory.claim(f"term on two grids, {rise.name}", text, changed, [maxima])
        gained = rise.finer(D) - C
        more = pair.runs.in_turn(gained >= most, gained <= -most)
        more = z3.And(more, *(limited(each, pair.x.bounds[1]) for each in (C, D)))
        text = f"and c by {2 * int(rise.name)} at least"
        of_c = theory.claim(
            f"c on two grids, {rise.name}", text, z3.Implies(rise.happens, more), [step, maxima]
        )
        totals.append((rise, sums.in_order(rise, sums.lost(rise, [term], of_c))))
    prove_rounded_in_order(theory, pair, totals)


def _maxima(theory: Theory, pair: StickyPair, step: z3.BoolRef) -> z3.BoolRef:
    """How e_max changes with c, and that it is in its range; the ways of that are how far it rises."""
    (E0, E1), (c0, c1), e, ex = pair.E, pair.c, pair.x.summands[0].term.exponent, pair.exponents
    text = "the other term's exponent is in its range"
    inside = z3.And(z3.ULE(e, ex.constant(ex.high)), z3.UGE(e, ex.constant(pair.least_other)))
    in_range = theory.claim("term in range", text, inside)
    claim = z3.And(
        *(z3.ULE(each, E0) for each in (c0.exponent, e)),
        z3.ULE(c1.exponent, E1),
        z3.Or(pair.risen(0), z3.And(pair.risen(1), c0.exponent == E0, c1.exponent == E1)),
    )
    text = "e_max stays, or rises by one with c"
    maxima = theory.claim("e_max of neighbours", text, claim, [step, in_range])
    ways, ends = (
        z3.Or(pair.risen(0), pair.risen(1)),
        [z3.UGE(E0, ex.constant(pair.lowest)), z3.ULE(E1, ex.constant(ex.high))],
    )
    theory.claim("rise of e_max", "so it rises by 0 or 1", ways, [maxima])
    theory.claim("range of e_max", "and is in its range", z3.And(ends), [ways])
    return maxima
