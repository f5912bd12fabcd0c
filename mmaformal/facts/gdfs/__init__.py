"""Facts of gdfs."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.facts.gdfs import equal, related
from mmaformal.facts.protocol import Facts
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step


class GdfsFacts(Facts):
    def equal(self, argument: Argument, traces: Traces) -> None:
        equal.derive(argument, traces)

    def related(self, step: Step) -> Link:
        return related.derive(step)


FACTS = GdfsFacts("gdfs")
