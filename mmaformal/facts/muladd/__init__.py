"""Facts of muladd."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.algorithms import DotAdd
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.smt import muladd as smt_muladd
from mmaformal.facts.muladd import equal, monotonicity, related
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sums import Sum, addition
from mmaformal.instruction import Instruction
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Step as RelatedStep
from mmaformal.proof.rules import Theory

Step: TypeAlias = smt_muladd.Step


class MuladdFacts(Facts[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        equal.derive(argument, traces)

    def related(self, step: RelatedStep[Step]) -> Link:
        return related.derive(step)

    def sums(self, spec: DotAdd, step: Step) -> list[Sum]:
        return [addition(step.addition)]

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        monotonicity.prove_in_c(theory, instruction.spec)


FACTS = MuladdFacts("muladd")
