"""Facts of sfma."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.facts.protocol import Facts
from mmaformal.facts.scaling_sums import of_sfma
from mmaformal.facts.sfma import equal, related
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step
from mmaformal.proof.scaling import Two


class SfmaFacts(Facts):
    def equal(self, argument: Argument, traces: Traces) -> None:
        equal.derive(argument, traces)

    def related(self, step: Step) -> Link:
        return related.derive(step)

    def scaled(self, two: Two) -> Link:
        return of_sfma(two)


FACTS = SfmaFacts("sfma")
