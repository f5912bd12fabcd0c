"""Facts of fda."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.facts.fda import equal, related
from mmaformal.facts.protocol import Facts
from mmaformal.facts.scaling_fused import of_fda
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step
from mmaformal.proof.scaling import Two


class FdaFacts(Facts):
    def equal(self, argument: Argument, traces: Traces) -> None:
        equal.derive(argument, traces)

    def related(self, step: Step) -> Link:
        return related.derive(step)

    def scaled(self, two: Two) -> Link:
        return of_fda(two)


FACTS = FdaFacts("fda")
