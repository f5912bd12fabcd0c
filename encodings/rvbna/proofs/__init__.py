"""Facts of rvbna: why both encodings agree, why order is no matter, and why the corrected text is the model."""

from __future__ import annotations

from mmaformal.cases.encodings import Traces
from mmaformal.cases.inputs import Inputs
from mmaformal.encodings.rvbna import smt as smt_rvbna
from mmaformal.encodings.rvbna.proofs import equal, model, related
from mmaformal.facts.protocol import Facts
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_steps import RelatedStep
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


class RvbnaFacts(Facts[smt_rvbna.RvbnaStep]):
    def equal(self, argument: Argument, traces: Traces[smt_rvbna.RvbnaStep]) -> None:
        equal.link_encodings(argument, traces)

    def related(self, step: RelatedStep[smt_rvbna.RvbnaStep]) -> Link:
        return related.link_runs(step)

    def may_agree(self, x: DotAdd, y: DotAdd) -> bool:
        return model.applies(x, y)

    def may_agree_on_few(self, x: DotAdd, y: DotAdd, products: int) -> bool:
        return products == 1 and model.applies_to_one(x, y)

    def prove_agreement(self, asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> Proof | None:
        return model.prove_equal(asker, x, y, inputs)


FACTS = RvbnaFacts("rvbna")
