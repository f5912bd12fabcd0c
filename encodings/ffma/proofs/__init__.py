"""Facts of ffma: a step is one fma of pfma, whose addend is c."""

from __future__ import annotations

import z3

from mmaformal.cases.falling_products import falls_where_flushed
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.ffma.proofs import exactness, monotonicity
from mmaformal.encodings.pfma import on_taken
from mmaformal.encodings.pfma import smt as pfma
from mmaformal.encodings.pfma.smt import flush
from mmaformal.facts.exactness import Exact, no_bound_where_flushed
from mmaformal.facts.protocol import Facts, ResultFact
from mmaformal.facts.ranges import no_subnormals
from mmaformal.facts.sums import StepSum, sum_of_two
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd


def _made_of(step: pfma.FmaStages) -> list[z3.ExprRef]:
    return [*step.codes, *step.special, *step.rounded, step.sum.total, step.sum.e_max]


class FfmaFacts(Facts[pfma.FmaStages]):
    unreachable = (no_subnormals(_made_of),)

    def nan_of_operands(self, spec: DotAdd) -> bool:
        return True

    def sums(self, spec: DotAdd, step: pfma.FmaStages) -> list[StepSum]:
        return [sum_of_two(step, "a product and c", step.sum)]

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        if on_taken(instruction.spec) != instruction.spec:
            self.unsupported("what is lost where factors are converted first")
        return no_bound_where_flushed(instruction, proving)

    def of_result(self, step: pfma.FmaStages) -> ResultFact:
        return ResultFact(lambda code: flush(code) == code, _made_of(step))

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        if on_taken(spec) != spec:
            self.unsupported("the numbers of factors that are converted first")
        return exactness.prove_step(proving, spec)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        monotonicity.prove_in_c(theory, instruction.spec)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return falls_where_flushed(instruction)


FACTS = FfmaFacts("ffma")
