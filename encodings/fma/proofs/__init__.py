"""Facts of fma."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.encodings.fma import Fma
from mmaformal.encodings.fma import smt as smt_fma
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import StepSum, sum_of_two
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_fma.FmaStep


class FmaFacts(RoundsOneSum[Step]):
    def nan_of_operands(self, spec: DotAdd) -> bool:
        assert isinstance(spec.parameters, Fma)
        return bool(spec.parameters.nan.order)

    def sums(self, spec: DotAdd, step: Step) -> list[StepSum]:
        return [sum_of_two(step, "a product and c", step.sum)]


FACTS = FmaFacts("fma")
