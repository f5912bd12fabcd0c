"""Facts of rvbna: why both encodings agree, and why the corrected text is the model."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.encodings import Traces
from mmaformal.cases.inputs import Inputs
from mmaformal.encodings.rvbna import smt as smt_rvbna
from mmaformal.encodings.rvbna.proofs import equal, model
from mmaformal.facts.protocol import Facts
from mmaformal.proof.lemmas import Argument
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_rvbna.RvbnaStep


class RvbnaFacts(Facts[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)

    def alike(self, x: DotAdd, y: DotAdd) -> bool:
        return model.applies(x, y)

    def prove_alike(self, asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> Proof | None:
        return model.prove_equal(asker, x, y, inputs)


FACTS = RvbnaFacts("rvbna")
