"""Facts of gfda."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.algorithms import DotAdd
from mmaformal.cases.encodings import Traces
from mmaformal.cases.inputs import Codes
from mmaformal.encodings.smt import gfda as smt_gfda
from mmaformal.facts.exactness import Exact
from mmaformal.facts.exactness_codes import Roundings
from mmaformal.facts.gfda import equal, exactness, related
from mmaformal.facts.protocol import Facts
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step as RelatedStep

Step: TypeAlias = smt_gfda.Step


class GfdaFacts(Facts[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)

    def related(self, step: RelatedStep[Step]) -> Link:
        return related.derive(step)

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_step(proving, spec)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return exactness.on_codes(spec, codes)


FACTS = GfdaFacts("gfda")
