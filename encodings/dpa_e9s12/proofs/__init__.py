"""Facts of dpa_e9s12."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.encodings import Traces
from mmaformal.cases.falling_products import falls_with_a_product, random_searches
from mmaformal.cases.inputs import Codes
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.dpa_e9s12.proofs import losses, stages, sums
from mmaformal.encodings.dpa_e9s12.proofs.exact import prove_fma
from mmaformal.encodings.dpa_e9s12.proofs.exact_sums import OneFma, ShortSum
from mmaformal.encodings.dpa_e9s12.smt import DpaE9s12Step
from mmaformal.encodings.smt.blocks import Trace
from mmaformal.facts import monotone_sticky
from mmaformal.facts.exact_steps import Claims, RoundsExactSums
from mmaformal.facts.exactness import Exact
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import StepSum
from mmaformal.formats import fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.related_steps import RelatedStep as RelatedStep
from mmaformal.proof.rules import Theory
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd
from mmaformal.stages import Stage


class DpaE9s12Facts(RoundsExactSums[DpaE9s12Step], RoundsOneSum[DpaE9s12Step]):
    def equal(self, argument: Argument, traces: Traces[DpaE9s12Step]) -> None:
        stages.link_encodings(argument, traces)

    def related(self, step: RelatedStep[DpaE9s12Step]) -> Link:
        return stages.link_runs(step)

    def stages(self, spec: DotAdd, trace: Trace[DpaE9s12Step], c: z3.BitVecRef) -> Sequence[Stage]:
        return stages.stages_of(spec, trace, c)

    def sums(self, spec: DotAdd, step: DpaE9s12Step) -> list[StepSum]:
        return sums.sums_of(spec, step)

    def sum_fits(self, pairing: Pairing, spec: DotAdd, each: StepSum) -> None:
        if spec.a_format == fp32:
            sums.fours_fit(pairing, each)
        else:
            super().sum_fits(pairing, spec, each)

    def largest_case(self, spec: DotAdd) -> Codes:
        return sums.largest_products(spec)

    def rounding(self, spec: DotAdd) -> Claims:
        if (claims := _lossless(spec)) is None:
            what = "when d is the exact sum, of products that may lose bits (`mmaformal e9s12 error`)"
            self.unsupported(what)
        return claims

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        lossless = _lossless(spec) is not None
        return super().exactness(proving, spec) if lossless else losses.exactness(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        lossless = _lossless(instruction.spec) is not None
        return (
            super().error_bound(instruction, proving)
            if lossless
            else losses.error_bound(instruction, proving)
        )

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        if self.rounds_exactly(instruction.spec) is not None:
            return super().monotone_in_c(instruction, theory)
        monotone_sticky.prove_in_c(theory, instruction.spec)
        return None

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        spec = instruction.spec
        if self.rounds_exactly(spec) is not None:
            return super().monotone_in_product(instruction, theory)
        places = range(spec.parameters.step_products)
        return falls_with_a_product(
            instruction, random_searches(spec, losses.places_kept(spec).F, order=places)
        )

    def rounds_exactly(self, spec: DotAdd) -> ShortSum | OneFma | None:
        if spec.a_format == fp16:
            return ShortSum(spec)
        return OneFma(spec) if spec.a_format == fp32 and spec.parameters.step_products == 1 else None


def _lossless(spec: DotAdd) -> Claims | None:
    """Why a step of fp16 products, or of one fp32 product, is its exact sum rounded once; None of others."""
    if spec.a_format == fp16:
        return losses.prove_exact
    if spec.a_format == fp32 and spec.parameters.step_products == 1:
        return lambda proving, spec: prove_fma(proving, spec, 0)
    return None


FACTS = DpaE9s12Facts("dpa_e9s12")
