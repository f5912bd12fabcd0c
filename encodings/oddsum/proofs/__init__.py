"""Facts of oddsum: a step has the interfaces of gps, with one pair of products, and other roundings."""

from __future__ import annotations

from operator import attrgetter
from typing import TypeAlias

import z3

from mmaformal.encodings.gps.proofs import PairFacts
from mmaformal.encodings.gps.smt import NAN, GpsStep, flush_result
from mmaformal.encodings.smt import ieee
from mmaformal.facts.monotone_addition import AdditionOfC, addition_of_c, prove_in_c
from mmaformal.facts.protocol import ResultFact
from mmaformal.instruction import Instruction
from mmaformal.proof.rules import Theory

Step: TypeAlias = GpsStep


class OddsumFacts(PairFacts):
    def of_result(self, step: Step) -> ResultFact:
        return ResultFact(lambda code: flush_result(code) == code, [step.addition.result])

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        rho = instruction.spec.parameters.last_rounding

        def add(c: z3.BitVecRef, group: z3.BitVecRef) -> AdditionOfC:
            return addition_of_c(ieee.add(flush_result(c), group, rho, NAN), flush_result)

        prove_in_c(theory, instruction.spec, add, attrgetter("group"))


FACTS = OddsumFacts("oddsum")
