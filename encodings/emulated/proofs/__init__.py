"""Facts of emulations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mmaformal.encodings.emulated import smt as smt_emulated
from mmaformal.encodings.emulated.proofs import exactness, portable, stages
from mmaformal.facts.exactness import Exact
from mmaformal.facts.protocol import Facts
from mmaformal.proof.composition import Composing
from mmaformal.spec import DotAdd

if TYPE_CHECKING:
    from mmaformal.cases.inputs import Inputs
    from mmaformal.instruction import Instruction
    from mmaformal.solver.answers import Answer, Proof
    from mmaformal.solver.asking import Asker


class EmulatedFacts(Facts[smt_emulated.EmulatedStep]):
    stage_links = stages.EQUAL
    related_links = stages.RELATED

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        self.unsupported("what each of its sums is off; all of them together: `mmaformal bound`")

    def may_agree(self, x: DotAdd, y: DotAdd) -> bool:
        return portable.applies(x, y)

    def prove_agreement(self, asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> Proof | None:
        return portable.prove_same(asker, x, y)

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_program(proving, spec)


FACTS = EmulatedFacts("emulated")
