"""Facts of pfma."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import attrgetter

import z3

from mmaformal.cases.falling_products import falls_where_flushed
from mmaformal.cases.inputs import Codes
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.pfma import on_taken
from mmaformal.encodings.pfma import smt as smt_pfma
from mmaformal.encodings.pfma.proofs import exactness
from mmaformal.encodings.pfma.smt import flush
from mmaformal.encodings.smt import ieee
from mmaformal.facts import last_addition
from mmaformal.facts.exactness import Exact, no_bound_where_flushed
from mmaformal.facts.monotone_addition import AdditionOfC, addition_of_c, prove_in_c
from mmaformal.facts.protocol import Facts, LastAddition, ResultFact
from mmaformal.facts.ranges import no_subnormals
from mmaformal.facts.sums import StepSum, case_of, sum_in_ieee, sum_of_two
from mmaformal.formats import fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.rounding import IEEE_FP32
from mmaformal.solver.answers import Answer
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd
from mmaformal.theory.monotone import is_same_number


def _made_of(step: smt_pfma.PfmaStep) -> list[z3.BitVecRef]:
    return [step.c, step.sum, step.addition.result]


class PfmaFacts(Facts[smt_pfma.PfmaStep]):
    unreachable = (no_subnormals(_made_of),)

    def nan_of_operands(self, spec: DotAdd) -> bool:
        return True

    def adds_c_last(self, asker: Asker, spec: DotAdd) -> LastAddition | None:
        return last_addition.of_flushed_pairs(asker, spec)

    def sums(self, spec: DotAdd, step: smt_pfma.PfmaStep) -> list[StepSum]:
        of_products = [sum_of_two(each, "a product and a partial sum", each.sum) for each in step.fmas]
        return [sum_in_ieee(step.addition), sum_in_ieee(step.pair), *of_products]

    def largest_case(self, spec: DotAdd) -> Codes:
        """One product, and c of the exponent of that."""
        case = case_of(spec, 0, 0, 1)
        rest = (0,) * (spec.k - 1)
        return replace(case, a=(case.a[0], *rest), b=(case.b[0], *rest))

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        if on_taken(instruction.spec) != instruction.spec:
            self.unsupported("what is lost where factors are converted first")
        return no_bound_where_flushed(instruction, proving)

    def of_result(self, step: smt_pfma.PfmaStep) -> ResultFact:
        return ResultFact(lambda code: flush(code) == code, _made_of(step))

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        if on_taken(spec) != spec:
            self.unsupported("the numbers of factors that are converted first")
        return exactness.prove_step(proving, spec)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        def add(c: z3.BitVecRef, products: z3.BitVecRef) -> AdditionOfC:
            flush = smt_pfma.flush
            return addition_of_c(ieee.add(flush(c), flush(products), IEEE_FP32, smt_pfma.INVALID), flush)

        same = partial(is_same_number, fmt=fp32)  # which NaN is the result is decided beside the addition
        prove_in_c(theory, instruction.spec, add, attrgetter("sum"), same=same)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return falls_where_flushed(instruction)


FACTS = PfmaFacts("pfma")
