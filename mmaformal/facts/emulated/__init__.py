"""Facts of emulations."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from mmaformal.algorithms import DotAdd
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt import emulated as smt_emulated
from mmaformal.facts.emulated import equal, exactness, related
from mmaformal.facts.exactness import Exact
from mmaformal.facts.protocol import Facts
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step as RelatedStep

if TYPE_CHECKING:
    from mmaformal.instruction import Instruction
    from mmaformal.solver.answers import Answer

Step: TypeAlias = smt_emulated.Step


class EmulatedFacts(Facts[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)

    def related(self, step: RelatedStep[Step]) -> Link:
        if step.dropped:
            self.lack("why a product less has related results")
        return related.derive(step, step.argument)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        self.lack(
            "what each of its sums is off; all of them together: `mmaformal bound`, queries/program_bound"
        )

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_program(proving, spec)


FACTS = EmulatedFacts("emulated")
