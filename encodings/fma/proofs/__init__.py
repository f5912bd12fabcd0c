"""Facts of fma; of one format, with subnormals kept, a step is one fma of sfma (`one_format`)."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.fma import smt as smt_fma
from mmaformal.encodings.fma.proofs.one_format import prove_claims, with_sfma
from mmaformal.facts import exact_steps
from mmaformal.facts.exact_steps import always_exact, prove_step, rounded_once
from mmaformal.facts.exactness import Exact, Roundings
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import StepSum, sum_of_two
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_fma.FmaStep


class FmaFacts(RoundsOneSum[Step]):
    def nan_of_operands(self, spec: DotAdd) -> bool:
        assert isinstance(spec.parameters, Fma)
        return bool(spec.parameters.nan.order)

    def sums(self, spec: DotAdd, step: Step) -> list[StepSum]:
        return [sum_of_two(step, "a product and c", step.sum)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        self._of_one_format(spec, "when d is the exact sum")
        return rounded_once(proving, spec, prove_claims)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        self._of_one_format(spec, "when d is the exact sum")
        return always_exact(spec, codes)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        self._of_one_format(instruction.spec, "what its sums are off")
        return exact_steps.error_bound(instruction, proving, prove_claims)

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        self._of_one_format(spec, "why a step rounds its exact sum")
        prove_step(proving, spec, prove_claims)

    def _of_one_format(self, spec: DotAdd, what: str) -> None:
        """Raises UnsupportedError of models that are no sfma."""
        if with_sfma(spec) is None:
            self.lack(f"{what}, of several formats, of flushed numbers or of NaNs of all ones")


FACTS = FmaFacts("fma")
