"""Facts of emulations."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt import emulated as smt_emulated
from mmaformal.facts.emulated import equal
from mmaformal.facts.protocol import Facts
from mmaformal.proof.lemmas import Argument

Step: TypeAlias = smt_emulated.Step


class EmulatedFacts(Facts[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)


FACTS = EmulatedFacts("emulated")
