"""Facts of efda."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as smt_efda
from mmaformal.encodings.efda.proofs import stages, sums
from mmaformal.encodings.efda.proofs.exact_sums import EfdaSum
from mmaformal.facts.exact_steps import Claims, RoundsExactSums, prove_claims
from mmaformal.facts.ranges import RoundsOneSum, not_minus_zero
from mmaformal.facts.sums import StepSum
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.spec import DotAdd


def _usual(spec: DotAdd) -> bool:
    """Return whether the arguments against the exact sum are about a model: of sums that are not long, and c as d."""
    p = spec.parameters_as(Efda)
    return not p.is_long(spec) and not p.flush_inputs and spec.c_format == spec.d_format


class EfdaFacts(RoundsExactSums[smt_efda.EfdaStep], RoundsOneSum[smt_efda.EfdaStep]):
    stage_links = stages.EQUAL
    related_links = stages.RELATED

    doubled_links = stages.DOUBLED

    def never_minus_zero(
        self, pairing: Pairing, spec: DotAdd, steps: Sequence[smt_efda.EfdaStep], c: z3.BitVecRef
    ) -> Link:
        last = steps[-1]
        if not isinstance(last, smt_efda.FixedStep):
            return not_minus_zero(pairing, spec, last)
        given = [sums.places_of(pairing, spec, last)]
        return not_minus_zero(pairing, spec, last, given, last.special)

    def sums(self, spec: DotAdd, step: smt_efda.EfdaStep) -> list[StepSum]:
        if isinstance(step, smt_efda.LongStep):
            self.unsupported("what its sums reach in a row of limbs")
        return sums.sums_of(spec, step)

    def largest_case(self, spec: DotAdd) -> Codes:
        return sums.largest_numbers(spec)

    def rounding(self, spec: DotAdd) -> Claims:
        if not _usual(spec):
            self.unsupported(
                "why it rounds its exact sum, of long sums, of c of another format or of operands that are flushed"
            )
        return prove_claims

    def rounds_exactly(self, spec: DotAdd) -> EfdaSum | None:
        return EfdaSum(spec) if _usual(spec) else None


FACTS = EfdaFacts("efda")
