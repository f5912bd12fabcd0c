"""A step of efda gives d = ρ(c + Σ a·b), as a theorem about codes: all numbers are integers of one fixed point.

`exact_steps` and `sorted_steps` prove what is kept of each term, and what d is ρ of.  These are put together:

1. *sum*:      the sum that is rounded is the exact one, or odd, with room, and less than one unit off (`sorted_sums`
               and `jammed`, or `fixed_sums`);
2. *rounding*: so d is the exact sum rounded (`rounded_sums`), and has its sign (`signs_of_sums`);
3. *terms*:    and that is the sum of the numbers of the codes (`sorted_terms`, or `fixed_sums`).
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.efda.proofs.fixed_sums import FixedSum
from mmaformal.encodings.efda.proofs.jammed import JammedSum
from mmaformal.encodings.efda.proofs.sorted_sums import SortedSum
from mmaformal.encodings.efda.proofs.sorted_terms import SortedTerms
from mmaformal.encodings.smt.blocks import exponent_range, product_range
from mmaformal.facts.exact_steps import OneStepModel, fixed_terms, prove_sticky, span_of
from mmaformal.facts.exact_terms import step_of
from mmaformal.facts.sorted_steps import Sorted, prove_sorted
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd
from mmaformal.theory.code_numbers import CodeNumbers
from mmaformal.theory.ordered_grid import Grid
from mmaformal.theory.rounded_exactly import ExactSum, Span, conclude, grid_of, prove_finite


@dataclass(frozen=True)
class EfdaSum(OneStepModel):
    """One step of a model of efda."""

    @property
    def step(self) -> efda.Step:
        step = step_of(self.spec, self.inputs)
        assert isinstance(step, (efda.FixedStep, efda.SortedStep))
        return step

    @property
    def p(self) -> Efda:
        assert isinstance(self.spec.parameters, Efda)
        return self.spec.parameters

    @property
    def span(self) -> Span:
        step = self.step
        if isinstance(step, efda.SortedStep):
            at = Sorted(self.spec, step)
            return Span(at.ex.low - at.bits, at.ex.high, step.sum.total.size(), at.wide)
        bits = efda.sum_places(self.spec, self.p.L)
        own = product_range(self.spec.a_format, self.spec.b_format)
        low = own.low - efda.fraction_bits(self.spec) + bits
        exponents = exponent_range(self.spec.c_format).union(low)
        frame = bits + efda.places_below(efda.precision(self.spec, self.p))
        return span_of(exponents, frame, step.sum.total, self.p.rho)

    @property
    def zero(self) -> z3.BitVecRef:
        return z3.BitVecVal(0, 1)

    def prove(self, grid: Grid) -> ExactSum:
        step = self.step
        if isinstance(step, efda.SortedStep):
            return self._prove_sorted(grid, step)
        return self._prove_fixed(grid, step)

    def _prove_sorted(self, grid: Grid, step: efda.SortedStep) -> ExactSum:
        theory, at = grid.numbers.theory, Sorted(self.spec, step)
        prove_sorted(theory, self.spec, step)
        said, codes = dict(theory.named), CodeNumbers(grid.numbers, self.spec)
        sums = SortedSum(grid.numbers, at, said)
        shown = JammedSum(grid.numbers, at, said, sums.prove()).prove()
        same = SortedTerms(sums, codes).prove()
        return conclude(grid, shown, step, self.zero, same, codes.total)

    def _prove_fixed(self, grid: Grid, step: efda.FixedStep) -> ExactSum:
        theory, codes = grid.numbers.theory, CodeNumbers(grid.numbers, self.spec)
        terms = fixed_terms(theory, self.spec, self.p, step)
        prove_sticky(theory, terms)
        sums = FixedSum(grid.numbers, terms, dict(theory.named), step, codes)
        shown, same = sums.prove(), sums.prove_codes()
        prove_finite(theory, step, [*step.a, *step.b, step.c])
        return conclude(grid, shown, step, self.zero, same, codes.total)


def prove_exact_sum(theory: Theory, spec: DotAdd) -> ExactSum:
    """Of one step of a model of efda, in a fixed point of its own.  Raises NotProvedError."""
    model = EfdaSum(spec)
    return model.prove(grid_of(theory, model.p.rho, model.span))
