"""Facts of dpa_e9s12."""

from __future__ import annotations

from mmaformal.algorithms import DotAdd
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt.dpa_e9s12 import Step
from mmaformal.facts.dpa_e9s12 import equal, exact
from mmaformal.facts.exact_steps import prove_step
from mmaformal.facts.ranges import RoundedSum
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Argument


class DpaE9s12Facts(RoundedSum[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        prove_step(proving, spec, exact.prove_exact)


FACTS = DpaE9s12Facts("dpa_e9s12")
