"""Facts of gps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter

import z3

from mmaformal.cases.falling_products import falls_where_flushed
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.gps import smt as smt_gps
from mmaformal.encodings.gps.proofs import exactness, ranges
from mmaformal.encodings.gps.smt import flush
from mmaformal.encodings.smt import ieee
from mmaformal.facts.exactness import Exact, no_bound_where_flushed
from mmaformal.facts.monotone_addition import AdditionOfC, addition_of_c, prove_in_c
from mmaformal.facts.protocol import Facts, ResultFact
from mmaformal.facts.sums import StepSum, sum_in_ieee
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.rules import Theory
from mmaformal.rounding import IEEE_FP32
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd


class GpsFacts(Facts[smt_gps.GpsStep]):
    def of_result(self, step: smt_gps.GpsStep) -> ResultFact:
        return ResultFact(lambda code: flush(code, keep_sign=True) == code, [step.addition.result])

    def no_nan(
        self,
        pairing: Pairing,
        spec: DotAdd,
        step: smt_gps.GpsStep,
        assumed: dict[int, Link],
        c: Link,
        finite: Link,
    ) -> Link:
        return ranges.no_nan_of(pairing, spec, step, assumed, c)

    def never_minus_zero(
        self, pairing: Pairing, spec: DotAdd, steps: Sequence[smt_gps.GpsStep], c: z3.BitVecRef
    ) -> Link:
        return ranges.normal_or_plus_zero(pairing, spec, steps)

    unreachable = (ranges.no_subnormals,)

    def sums(self, spec: DotAdd, step: smt_gps.GpsStep) -> list[StepSum]:
        return [sum_in_ieee(each) for each in (*step.sums, step.addition)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_group_exact(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return no_bound_where_flushed(instruction, proving)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        def add(c: z3.BitVecRef, group: z3.BitVecRef) -> AdditionOfC:
            return addition_of_c(ieee.add(c, group, IEEE_FP32, smt_gps.NAN), smt_gps.flush_result)

        start = partial(smt_gps.flush, keep_sign=False)
        prove_in_c(theory, instruction.spec, add, attrgetter("group"), flush=start)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return falls_where_flushed(instruction)


FACTS = GpsFacts("gps")
