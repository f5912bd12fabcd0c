"""Facts of efda."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as smt_efda
from mmaformal.encodings.efda.proofs import stages, sums
from mmaformal.encodings.efda.proofs.exact_sums import EfdaSum
from mmaformal.facts import exact_steps
from mmaformal.facts.exact_steps import always_exact, prove_step, rounded_once
from mmaformal.facts.exactness import Exact, Roundings
from mmaformal.facts.ranges import RoundsOneSum, not_minus_zero
from mmaformal.facts.sums import StepSum
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_efda.FixedStep | smt_efda.SortedStep | smt_efda.LongStep


def _usual(spec: DotAdd) -> bool:
    """Return whether the arguments against the exact sum are about a model: of sums that are not long, and c as d."""
    p = spec.parameters_as(Efda)
    return not p.is_long(spec) and not p.flush_inputs and spec.c_format == spec.d_format


class EfdaFacts(RoundsOneSum[Step]):
    stage_links = stages.EQUAL
    related_links = stages.RELATED

    doubled_links = stages.DOUBLED

    def never_minus_zero(
        self, pairing: Pairing, spec: DotAdd, steps: Sequence[Step], c: z3.BitVecRef
    ) -> Link:
        last = steps[-1]
        if not isinstance(last, smt_efda.FixedStep):
            return not_minus_zero(pairing, spec, last)
        given = [sums.places_of(pairing, spec, last)]
        return not_minus_zero(pairing, spec, last, given, last.special)

    def sums(self, spec: DotAdd, step: Step) -> list[StepSum]:
        if isinstance(step, smt_efda.LongStep):
            self.lack("what its sums reach in a row of limbs")
        return sums.sums_of(spec, step)

    def largest_case(self, spec: DotAdd) -> Codes:
        return sums.largest_numbers(spec)

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        if not _usual(spec):
            self.lack(
                "when d is the exact sum, of long sums, of c of another format or of operands that are flushed"
            )
        return rounded_once(proving, spec)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return always_exact(spec, codes)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        if not _usual(instruction.spec):
            self.lack(
                "what sums are off, of long ones, of c of another format or of operands that are flushed"
            )
        return exact_steps.error_bound(instruction, proving)

    def rounds_exactly(self, spec: DotAdd) -> EfdaSum | None:
        return EfdaSum(spec) if _usual(spec) else None

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        if not _usual(spec):
            self.lack(
                "that it rounds the exact sum, of long sums, of c of another format or of operands that are flushed"
            )
        prove_step(proving, spec)


FACTS = EfdaFacts("efda")
