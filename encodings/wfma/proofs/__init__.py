"""Facts of wfma: a step is one fma of sfma on converted factors."""

from __future__ import annotations

from mmaformal.encodings.wfma import smt as smt_wfma
from mmaformal.encodings.wfma.proofs.exact_sums import WideFmaSum, prove_claims
from mmaformal.facts import last_addition
from mmaformal.facts.exact_steps import Claims, RoundsExactSums
from mmaformal.facts.protocol import LastAddition
from mmaformal.facts.sums import StepSum, sum_of_two
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


class WfmaFacts(RoundsExactSums[smt_wfma.WfmaStep]):
    def sums(self, spec: DotAdd, step: smt_wfma.WfmaStep) -> list[StepSum]:
        return [sum_of_two(step.fma, "a product and c", step.fma.sum)]

    def rounding(self, spec: DotAdd) -> Claims:
        return prove_claims

    def rounds_exactly(self, spec: DotAdd) -> WideFmaSum:
        return WideFmaSum(spec)

    def adds_c_last(self, asker: Asker, spec: DotAdd) -> LastAddition | None:
        return last_addition.of_exact_products(asker, spec)


FACTS = WfmaFacts("wfma")
