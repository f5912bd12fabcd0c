"""Facts of gfda."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.falling_products import falls_with_a_product, random_searches
from mmaformal.cases.inputs import Codes
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfda import smt as smt_gfda
from mmaformal.encodings.gfda.proofs import exactness
from mmaformal.facts.exactness import Exact, Roundings
from mmaformal.facts.monotone_fused import products_allowed, prove_in_c
from mmaformal.facts.protocol import Facts
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import NotProvedError
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_gfda.GfdaStep


class GfdaFacts(Facts[Step]):
    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_step(proving, spec)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return exactness.on_codes(spec, codes)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        spec, p = instruction.spec, instruction.parameters
        assert isinstance(p, Gfda)
        allowed = products_allowed(spec)  # c gains what so many groups lose
        if p.cut is not Rounding.RZ or allowed < p.L // p.G:
            why = f"there is an argument for {allowed} groups whose sums are cut toward zero"
            raise NotProvedError("d grows with c", "unknown", why)
        prove_in_c(theory, spec)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        p = instruction.parameters
        assert isinstance(p, Gfda)
        return falls_with_a_product(instruction, random_searches(instruction.spec, p.F))


FACTS = GfdaFacts("gfda")
