"""Facts of esda: the links of efda, and how its result grows with c."""

from __future__ import annotations

from operator import attrgetter

import z3

from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.efda.proofs import stages
from mmaformal.encodings.efda.proofs.sums import sums_of
from mmaformal.encodings.esda import Esda
from mmaformal.encodings.esda import smt as esda
from mmaformal.encodings.esda.executable import nan_code
from mmaformal.encodings.pfma.smt import flush
from mmaformal.encodings.smt import ieee
from mmaformal.facts.monotone_addition import AdditionOfC, addition_of_c, prove_in_c
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sums import StepSum, sum_in_ieee
from mmaformal.instruction import Instruction
from mmaformal.proof.rules import Theory
from mmaformal.spec import DotAdd


class EsdaFacts(Facts[esda.EsdaStep]):
    stage_links = stages.EQUAL
    related_links = stages.RELATED
    doubled_links = stages.DOUBLED

    def sums(self, spec: DotAdd, step: esda.EsdaStep) -> list[StepSum]:
        p = spec.parameters_as(Esda)
        if isinstance(step.inner, efda.LongStep):
            self.unsupported("what its sums reach in a row of limbs")
        return [sum_in_ieee(step.addition), *sums_of(p.inner(spec), step.inner)]

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        p = instruction.spec.parameters_as(Esda)

        def add(c: z3.BitVecRef, dot: z3.BitVecRef) -> AdditionOfC:
            sum_ = ieee.add(c, dot, p.rho, nan_code(p))
            return addition_of_c(sum_, flush) if p.flush else addition_of_c(sum_)

        prove_in_c(theory, instruction.spec, add, attrgetter("dot"))


FACTS = EsdaFacts("esda")
