"""Facts of sfma; and that an fma gives d = ρ(c + a·b), as a theorem about codes (`theory/rounded_sums`)."""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt.blocks import sign_of_zero
from mmaformal.facts.exact_steps import (
    OneStepModel,
    RoundsExactSums,
    TwoTerms,
    prove_sticky,
    sfma_terms,
    span_of,
)
from mmaformal.facts.exact_terms import smt_step
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import StepSum, sum_of_two, sum_with_zero
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.numbers import CodeNumbers
from mmaformal.theory.rounded_sums import Span, SumTheorem, conclude, prove_finite
from mmaformal.theory.rounding import RoundingGrid


@dataclass(frozen=True)
class FmaSum(OneStepModel):
    """One step of a model of sfma; on other codes than the usual ones, if some are given."""

    own: Inputs | None = None

    @property
    def rho(self) -> Conversion:
        p = self.spec.parameters_as(Sfma)
        return p.rho

    @property
    def inputs(self) -> Inputs:
        return self.own or symbolic_inputs(self.spec)

    @property
    def step(self) -> sfma.SfmaStep:
        step = smt_step(self.spec, self.inputs)
        assert isinstance(step, sfma.SfmaStep)
        return step

    @property
    def span(self) -> Span:
        fmt = self.rho.format
        exponents, frame = sfma.exponents_of(fmt), sfma.frame_bits(fmt.fraction_bits + 1)
        return span_of(exponents, frame, self.step.sum.total, self.rho)

    @property
    def zero(self) -> z3.BitVecRef:
        return sign_of_zero([self.step.product.sign, self.step.addend.sign], self.rho)

    def prove(self, grid: RoundingGrid) -> SumTheorem:
        """Raises NotProvedError."""
        w, theory, step = grid.numbers, grid.numbers.theory, self.step
        codes, terms = CodeNumbers(w, self.spec, self.own), sfma_terms(theory, step, self.rho)
        prove_sticky(theory, terms)
        finite = prove_finite(theory, step, [step.a, step.b, step.c])
        sums = TwoTerms(w, terms, dict(theory.named))
        shown = sums.prove()
        y = step.addend
        first = self._prove_product(codes, sums, finite.arg(0))
        second = codes.prove_term(1, y, sums.addend.t, [step.c], z3.BoolVal(True))
        none = z3.Not(z3.Or(*step.special))
        same, text = z3.Implies(none, sums.exact == codes.total), "the sum is that of the codes' numbers"
        same = theory.claim("sum of codes", text, same, [first, second, finite])
        return conclude(grid, shown, step, self.zero, same, codes.total)

    def _prove_product(self, codes: CodeNumbers, sums: TwoTerms, finite: z3.BoolRef) -> z3.BoolRef:
        """Prove that the product, of numbers, is that of the codes."""
        step, (of_product, _) = self.step, sums.terms.invariants
        return codes.prove_product(0, step.product, sums.first, [step.a, step.b], finite, of_product)


class SfmaFacts(RoundsExactSums[sfma.SfmaStep], RoundsOneSum[sfma.SfmaStep]):
    def nan_of_operands(self, spec: DotAdd) -> bool:
        return bool(spec.parameters_as(Sfma).nan.order)

    def sums(self, spec: DotAdd, step: sfma.SfmaStep) -> list[StepSum]:
        return [sum_of_two(step, "a product and c", step.sum)]

    def sums_without_c(self, spec: DotAdd, step: sfma.SfmaStep) -> list[StepSum]:
        return [sum_with_zero("a product", step.sum, [step.product.exponent])]

    def rounds_exactly(self, spec: DotAdd) -> FmaSum:
        return FmaSum(spec)


FACTS = SfmaFacts("sfma")
