"""Facts of muladd."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.muladd import smt as smt_muladd
from mmaformal.encodings.muladd.proofs import exactness, monotonicity, related
from mmaformal.encodings.muladd.proofs.exact_sums import ProductSum, holds_products
from mmaformal.facts.exactness import Exact
from mmaformal.facts.exactness_codes import Roundings
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sums import Sum, addition
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Step as RelatedStep
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_muladd.Step


class MuladdFacts(Facts[Step]):
    def related(self, step: RelatedStep[Step]) -> Link:
        return related.derive(step)

    def sums(self, spec: DotAdd, step: Step) -> list[Sum]:
        return [addition(step.addition)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_step(proving, spec)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return exactness.on_codes(spec, codes)

    def rounds_exactly(self, spec: DotAdd) -> ProductSum | None:
        return ProductSum(spec) if holds_products(spec) else None

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        monotonicity.prove_in_c(theory, instruction.spec)


FACTS = MuladdFacts("muladd")
