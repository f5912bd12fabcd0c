"""Facts of gfda."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.inputs import Codes
from mmaformal.cases.out_of_order import Descends
from mmaformal.encodings.gfda import smt as smt_gfda
from mmaformal.encodings.gfda.proofs import exactness, monotonicity, related
from mmaformal.facts.exactness import Exact
from mmaformal.facts.exactness_codes import Roundings
from mmaformal.facts.protocol import Facts
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Step as RelatedStep
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_gfda.Step


class GfdaFacts(Facts[Step]):
    def related(self, step: RelatedStep[Step]) -> Link:
        return related.derive(step)

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_step(proving, spec)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return exactness.on_codes(spec, codes)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        monotonicity.in_c(instruction, theory)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> Descends | None:
        return monotonicity.in_product(instruction)


FACTS = GfdaFacts("gfda")
