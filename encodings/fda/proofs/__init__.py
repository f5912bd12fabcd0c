"""Facts of fda."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.inputs import Codes, Inputs
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import executable as executable_fda
from mmaformal.encodings.fda import smt as smt_fda
from mmaformal.encodings.fda.proofs import e_zero, exactness, monotonicity, ranges
from mmaformal.facts.exactness import Exact, Roundings
from mmaformal.facts.protocol import Lossless
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import (
    StepSum,
    aligned_terms,
    largest_product,
    places_of,
    sum_of,
)
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Answer, Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_fda.FdaStep


class FdaFacts(RoundsOneSum[Step]):
    unreachable = (ranges.ends_in_zeros, ranges.too_large)

    def alike(self, x: DotAdd, y: DotAdd) -> bool:
        return e_zero.applies(x, y)

    def prove_alike(self, asker: Asker, x: DotAdd, y: DotAdd, inputs: Inputs) -> Proof | None:
        return e_zero.prove_equal(asker, x, y, inputs)

    def may_pass_c_on(self, spec: DotAdd) -> bool:
        return spec.scale_format is None

    def sums(self, spec: DotAdd, step: Step) -> list[StepSum]:
        return self.sums_of(spec, step, largest_product(spec))

    def sums_of(self, spec: DotAdd, step: Step, product: int, c: int | None = None) -> list[StepSum]:
        """The same, with another largest significand of products, and of c."""
        assert isinstance(spec.parameters, Fda)
        F, products = spec.parameters.F, step.products
        parts = aligned_terms(spec, step, F, products, product, places_of(spec), c)
        return [sum_of(step, "products and c", step.total, parts, step.e_max)]

    def first_sum(self, step: object) -> Lane:
        assert isinstance(step, executable_fda.FdaStep)
        return step.total

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_fused(proving, spec)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return exactness.on_codes(spec, codes)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        p = instruction.spec.parameters
        assert isinstance(p, Fda)
        if p.cut is not Rounding.RZ:
            self.lack("what terms that are cut to odd are off")
        return exactness.error_bound(instruction, proving)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return monotonicity.in_c(instruction, theory)

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        return monotonicity.in_product(instruction)

    def lossless_of(self, spec: DotAdd) -> Lossless | None:
        p = spec.parameters
        assert isinstance(p, Fda)
        formats = spec.a_format, spec.b_format, spec.c_format
        return Lossless(*formats, p.L, p.e_zero) if spec.scale_format is None else None

    def lossless(self, proving: Composing, spec: DotAdd) -> str:
        return exactness.prove_lossless(proving, spec)


FACTS = FdaFacts("fda")
