"""Facts of gfda."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt import gfda as smt_gfda
from mmaformal.facts.gfda import equal, related
from mmaformal.facts.protocol import Facts
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step as RelatedStep

Step: TypeAlias = smt_gfda.Step


class GfdaFacts(Facts[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)

    def related(self, step: RelatedStep[Step]) -> Link:
        return related.derive(step)


FACTS = GfdaFacts("gfda")
