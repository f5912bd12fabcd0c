"""Facts of fma; of one format, with subnormals kept, a step is one fma of sfma (`one_format`)."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.inputs import Codes
from mmaformal.cases.one_step import one_step
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.fma import smt as smt_fma
from mmaformal.encodings.fma.proofs.one_format import prove_claims, with_sfma
from mmaformal.encodings.sfma.proofs.exact_sums import FmaSum
from mmaformal.facts import exact_steps
from mmaformal.facts.exact_steps import always_exact, prove_step, rounded_once
from mmaformal.facts.exactness import Exact, Roundings
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import StepSum, sum_of_two
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd
from mmaformal.theory import monotone
from mmaformal.theory.numbers import larger_product

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

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        inner = with_sfma(one_step(instruction.spec))
        if inner is None:
            return super().monotone_in_c(instruction, theory)
        monotone.prove_in_c(theory, instruction.spec, FmaSum(inner))
        return None

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        spec = instruction.spec
        inner = with_sfma(spec)
        if inner is None:
            return super().monotone_in_product(instruction, theory)
        monotone.prove_in_products(theory, inner, FmaSum(one_step(inner)))
        for k in range(spec.k):
            runs, others = larger_product(spec, k), larger_product(inner, k)
            (x, y), (u, v) = ([trace.result for trace in each.traces] for each in (runs, others))
            monotone.same_results(
                theory, f"sfma, {k}", "a step is an fma of sfma", (x, y), (u, v), spec.d_format
            )
            theory.theorem(f"d is not smaller if product {k} is not", runs.statement)
        return None

    def _of_one_format(self, spec: DotAdd, what: str) -> None:
        """Raises UnsupportedError of models that are no sfma."""
        if with_sfma(spec) is None:
            self.lack(f"{what}, of several formats, of flushed numbers or of NaNs of all ones")


FACTS = FmaFacts("fma")
