"""Facts of muladd."""

from __future__ import annotations

from operator import attrgetter

from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.muladd import smt as smt_muladd
from mmaformal.encodings.muladd.proofs import exactness
from mmaformal.encodings.muladd.proofs.exactness import ProductSum, holds_products
from mmaformal.encodings.smt.blocks import quiet_nan
from mmaformal.facts import exact_steps, last_addition
from mmaformal.facts.exactness import Exact
from mmaformal.facts.monotone_addition import ieee_addition, prove_in_c
from mmaformal.facts.protocol import Facts, LastAddition
from mmaformal.facts.sums import StepSum, sum_in_ieee
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.solver.answers import Answer
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


class MuladdFacts(Facts[smt_muladd.MuladdStep]):
    def sums(self, spec: DotAdd, step: smt_muladd.MuladdStep) -> list[StepSum]:
        return [sum_in_ieee(step.addition)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_step(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return exact_steps.error_bound(instruction, proving, exactness.prove_claims)

    def rounds_exactly(self, spec: DotAdd) -> ProductSum | None:
        return ProductSum(spec) if holds_products(spec) else None

    def adds_c_last(self, asker: Asker, spec: DotAdd) -> LastAddition | None:
        return last_addition.of_exact_products(asker, spec)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        spec = instruction.spec
        add = ieee_addition(spec.parameters_as(Muladd).rho, quiet_nan(spec.d_format))
        prove_in_c(theory, instruction.spec, add, attrgetter("product.result"))


FACTS = MuladdFacts("muladd")
