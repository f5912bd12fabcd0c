"""Facts of wfma: a step is one fma of sfma on converted factors."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.wfma import smt as smt_wfma
from mmaformal.encodings.wfma.proofs.exact_sums import WideFmaSum, prove_claims
from mmaformal.facts import exact_steps, last_addition
from mmaformal.facts.exact_steps import always_exact, prove_step, rounded_once
from mmaformal.facts.exactness import Exact, Roundings
from mmaformal.facts.protocol import Facts, LastAddition
from mmaformal.facts.sums import StepSum, sum_of_two
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.solver.answers import Answer
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_wfma.WfmaStep


class WfmaFacts(Facts[Step]):
    def sums(self, spec: DotAdd, step: Step) -> list[StepSum]:
        return [sum_of_two(step.fma, "a product and c", step.fma.sum)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return rounded_once(proving, spec, prove_claims)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return always_exact(spec, codes)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return exact_steps.error_bound(instruction, proving, prove_claims)

    def rounds_exactly(self, spec: DotAdd) -> WideFmaSum:
        return WideFmaSum(spec)

    def adds_c_last(self, asker: Asker, spec: DotAdd) -> LastAddition | None:
        return last_addition.of_exact_products(asker, spec)

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        prove_step(proving, spec, prove_claims)


FACTS = WfmaFacts("wfma")
