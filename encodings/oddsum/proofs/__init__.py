"""Facts of oddsum: a step has the interfaces of gps, with one pair of products, and other roundings."""

from __future__ import annotations

from operator import attrgetter

import z3

from mmaformal.cases.falling_products import falls_where_flushed
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.gps.proofs import exactness, ranges
from mmaformal.encodings.gps.smt import NAN, GpsStep, flush_result
from mmaformal.encodings.smt import ieee
from mmaformal.facts.exactness import Exact, no_bound_where_flushed
from mmaformal.facts.monotone_addition import AdditionOfC, addition_of_c, prove_in_c
from mmaformal.facts.protocol import Facts, ResultFact
from mmaformal.facts.sums import StepSum, sum_in_ieee
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd


class OddsumFacts(Facts[GpsStep]):
    unreachable = (ranges.no_subnormals,)

    def of_result(self, step: GpsStep) -> ResultFact:
        return ResultFact(lambda code: flush_result(code) == code, [step.addition.result])

    def sums(self, spec: DotAdd, step: GpsStep) -> list[StepSum]:
        return [sum_in_ieee(each) for each in (*step.sums, step.addition)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_group_exact(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return no_bound_where_flushed(instruction, proving)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        rho = instruction.spec.parameters.last_rounding

        def add(c: z3.BitVecRef, group: z3.BitVecRef) -> AdditionOfC:
            return addition_of_c(ieee.add(flush_result(c), group, rho, NAN), flush_result)

        prove_in_c(theory, instruction.spec, add, attrgetter("group"))

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return falls_where_flushed(instruction)


FACTS = OddsumFacts("oddsum")
