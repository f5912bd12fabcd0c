"""Facts of sfma."""

from __future__ import annotations

from typing import Any

from mmaformal.algorithms import DotAdd
from mmaformal.cases.encodings import Traces
from mmaformal.facts.ranges import RoundedSum
from mmaformal.facts.scaling_sums import of_sfma
from mmaformal.facts.sfma import equal, related
from mmaformal.facts.sums import (
    Sum,
    sum_of_two,
)
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step
from mmaformal.proof.scaling import Two


class SfmaFacts(RoundedSum):
    def equal(self, argument: Argument, traces: Traces) -> None:
        equal.derive(argument, traces)

    def related(self, step: Step) -> Link:
        return related.derive(step)

    def scaled(self, two: Two) -> Link:
        return of_sfma(two)

    def sums(self, spec: DotAdd, step: Any) -> list[Sum]:
        return [sum_of_two(step, "a product and c", step.sum)]


FACTS = SfmaFacts("sfma")
