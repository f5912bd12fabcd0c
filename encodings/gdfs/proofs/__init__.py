"""Facts of gdfs."""

from __future__ import annotations

import z3

from mmaformal.cases.inputs import Codes
from mmaformal.cases.interfaces import Adds
from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.fda.proofs.exactness import error_bound, prove_fused
from mmaformal.encodings.gdfs import Gdfs
from mmaformal.encodings.gdfs import executable as executable_gdfs
from mmaformal.encodings.gdfs import smt as smt_gdfs
from mmaformal.encodings.gdfs.proofs import monotonicity, sums
from mmaformal.facts import monotone_fused
from mmaformal.facts.exactness import Exact
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import StepSum, aligned_terms, case_of, nearest_exponent, sum_of_terms
from mmaformal.instruction import Instruction
from mmaformal.limits import widest
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.rules import Theory
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd


class GdfsFacts(RoundsOneSum[smt_gdfs.GdfsStep]):
    def sums(self, spec: DotAdd, step: smt_gdfs.GdfsStep) -> list[StepSum]:
        p = spec.parameters_as(Gdfs)
        assert spec.scale_format is not None
        largest = p.G * 36 * 4 * widest(spec.scale_format) ** 2
        parts = aligned_terms(spec, step, p.F, step.groups, largest, 2 + 2 * spec.scale_format.fraction_bits)
        return [sum_of_terms(step, "products and c", step.total, parts, step.e_max)]

    def significand_is_small(
        self, pairing: Pairing, spec: DotAdd, step: Adds, significand: z3.BitVecRef, size: Link
    ) -> None:
        assert isinstance(step, smt_gdfs.GdfsStep)
        sums.significand_is_small(pairing, spec, step, significand, size)

    def largest_case(self, spec: DotAdd) -> Codes:
        """The exponents of products do not matter, but their size does."""
        a, b, c = spec.a_format, spec.b_format, spec.c_format
        return case_of(spec, a.max_exponent, b.max_exponent, nearest_exponent(c, 0))

    def first_sum(self, step: object) -> Lane:
        assert isinstance(step, executable_gdfs.GdfsStep)
        return step.total

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return prove_fused(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return error_bound(instruction, proving)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        monotone_fused.prove_in_c(theory, instruction.spec)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> None:
        monotonicity.prove_in_products(theory, instruction.spec)

    def scaling_breaker(self, spec: DotAdd) -> Codes | None:
        return sums.group_that_cancels(spec)


FACTS = GdfsFacts("gdfs")
