"""Facts of sfma."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma import smt as smt_sfma
from mmaformal.encodings.sfma.proofs.exact_sums import FmaSum
from mmaformal.facts import exact_steps
from mmaformal.facts.exact_steps import always_exact, prove_step, rounded_once
from mmaformal.facts.exactness import Exact, Roundings
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import StepSum, sum_of_two, sum_with_zero
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_sfma.SfmaStep


class SfmaFacts(RoundsOneSum[Step]):
    def nan_of_operands(self, spec: DotAdd) -> bool:
        assert isinstance(spec.parameters, Sfma)
        return bool(spec.parameters.nan.order)

    def sums(self, spec: DotAdd, step: Step) -> list[StepSum]:
        return [sum_of_two(step, "a product and c", step.sum)]

    def sums_without_c(self, spec: DotAdd, step: Step) -> list[StepSum]:
        return [sum_with_zero("a product", step.sum, [step.product.exponent])]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return rounded_once(proving, spec)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return always_exact(spec, codes)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return exact_steps.error_bound(instruction, proving)

    def rounds_exactly(self, spec: DotAdd) -> FmaSum:
        return FmaSum(spec)

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        prove_step(proving, spec)


FACTS = SfmaFacts("sfma")
