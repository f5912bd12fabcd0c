"""Facts of acc_e9s12."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.encodings.acc_e9s12.proofs import equal
from mmaformal.encodings.acc_e9s12.smt import AccE9s12Step
from mmaformal.facts.protocol import Facts
from mmaformal.proof.lemmas import Argument


class AccE9s12Facts(Facts[AccE9s12Step]):
    def equal(self, argument: Argument, traces: Traces[AccE9s12Step]) -> None:
        equal.derive(argument, traces)


FACTS = AccE9s12Facts("acc_e9s12")
