"""Facts of dpa_e9s12."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt.dpa_e9s12 import Step
from mmaformal.facts.dpa_e9s12 import equal
from mmaformal.facts.ranges import RoundedSum
from mmaformal.proof.lemmas import Argument


class DpaE9s12Facts(RoundedSum[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)


FACTS = DpaE9s12Facts("dpa_e9s12")
