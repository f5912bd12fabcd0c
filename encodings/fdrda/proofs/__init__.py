"""Facts of fdrda."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import executable as executable_fdrda
from mmaformal.encodings.fdrda.proofs import (
    error_bound,
    exactness,
    monotonicity,
    ranges,
    stages,
)
from mmaformal.encodings.fdrda.proofs.stages import AnyFdrda
from mmaformal.encodings.gfdrda import smt as smt_gfdrda
from mmaformal.encodings.smt.blocks import Trace
from mmaformal.facts.exactness import Exact
from mmaformal.facts.ranges import RoundsOneSum, not_minus_zero
from mmaformal.facts.sums import (
    StepSum,
    largest_product,
    product_places,
    sum_of_terms,
)
from mmaformal.instruction import Instruction
from mmaformal.limits import aligned
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.related_steps import RelatedStep as RelatedStep
from mmaformal.proof.rules import Theory
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd
from mmaformal.stages import Stage


class FdrdaFacts(RoundsOneSum[AnyFdrda]):
    def equal(self, argument: Argument, traces: Traces[AnyFdrda]) -> None:
        stages.link_encodings(argument, traces)

    def related(self, step: RelatedStep[AnyFdrda]) -> Link:
        return stages.link_runs(step)

    doubled_links = stages.DOUBLED

    def stages(self, spec: DotAdd, trace: Trace[AnyFdrda], c: z3.BitVecRef) -> Sequence[Stage]:
        return stages.stages_of(spec, trace, c)

    def never_minus_zero(
        self, pairing: Pairing, spec: DotAdd, steps: Sequence[AnyFdrda], c: z3.BitVecRef
    ) -> Link:
        given = [ranges.places_of(pairing, spec, steps[-1])]
        return not_minus_zero(pairing, spec, steps[-1], given, steps[-1].special)

    def sums(self, spec: DotAdd, step: AnyFdrda) -> list[StepSum]:
        p = spec.parameters_as(Fdrda)
        product = largest_product(spec)
        most = aligned(product, product_places(spec), p.F)
        parts = [(t, product, most) for t in step.products]
        if not isinstance(step, smt_gfdrda.GfdrdaStep):
            return [sum_of_terms(step, "products", step.dot, parts, step.e_products)]
        count = len(step.groups)
        return [
            sum_of_terms(step, f"products of group {g}", step.groups[g], parts[g::count], step.e_groups[g])
            for g in range(count)
        ]

    def first_sum(self, step: object) -> Lane:
        assert isinstance(step, executable_fdrda.FdrdaStep)
        return step.dot.total

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_round_down(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return error_bound.settle_error_bound(instruction, proving)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        monotonicity.prove_in_c(theory, instruction.spec)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return monotonicity.in_product(instruction)


FACTS = FdrdaFacts("fdrda")
