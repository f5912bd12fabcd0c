"""Facts of gps."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.facts.gps import equal, related, scaled
from mmaformal.facts.protocol import Facts
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step
from mmaformal.proof.scaling import Two


class GpsFacts(Facts):
    def equal(self, argument: Argument, traces: Traces) -> None:
        equal.derive(argument, traces)

    def related(self, step: Step) -> Link:
        return related.derive(step)

    def scaled(self, two: Two) -> Link:
        return scaled.derive(two)


FACTS = GpsFacts("gps")
