"""Facts of rnd2: what is not the same for every algorithm made of known stages."""

from __future__ import annotations

from operator import attrgetter

from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.encodings.rnd2 import smt as rnd2
from mmaformal.encodings.rnd2.proofs import exactness, nans, pairs, ranges
from mmaformal.encodings.smt.blocks import quiet_nan
from mmaformal.facts import exact_steps
from mmaformal.facts.exactness import Exact
from mmaformal.facts.monotone_addition import ieee_addition, prove_in_c
from mmaformal.facts.protocol import Facts
from mmaformal.facts.signed import falls_with_products
from mmaformal.facts.sums import StepSum, sum_in_ieee, sum_of_two
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import Rule
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.rules import Theory
from mmaformal.rounding import NanRule
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd


class Rnd2Facts(Facts[rnd2.Rnd2Step]):
    def but_for_nans(self, spec: DotAdd) -> DotAdd | None:
        p = spec.parameters_as(Rnd2)
        return spec.replace(nan=NanRule.DEFAULT) if p.nan.order else None

    def same_but_nans(self, spec: DotAdd, other: DotAdd) -> Pairing:
        return nans.argue_same_but_nans(spec, other)

    unreachable_without_c = (ranges.no_subnormal_pair,)

    def every_exact_sum(self, spec: DotAdd) -> Rule:
        return ranges.every_sum(spec)

    def sums_without_c(self, spec: DotAdd, step: rnd2.Rnd2Step) -> list[StepSum]:
        return [sum_of_two(None, "two products", step.sum)]

    def sums(self, spec: DotAdd, step: rnd2.Rnd2Step) -> list[StepSum]:
        return [sum_in_ieee(step.addition), sum_of_two(None, "two products", step.sum)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_step(proving, spec)

    def rounds_exact_sum_without_c(self, proving: Composing, spec: DotAdd) -> None:
        p = spec.parameters_as(Rnd2)
        if p.pair != p.rho or spec.k > p.step_products or p.negate_pair:
            self.unsupported("why its last rounding is of an exact sum")
        exactness.prove_pair_alone(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return exact_steps.error_bound(instruction, proving, exactness.prove_claims)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        spec = instruction.spec
        add = ieee_addition(spec.parameters_as(Rnd2).rho, quiet_nan(spec.d_format))
        prove_in_c(theory, instruction.spec, add, attrgetter("summand"))

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        if instruction.spec.product_sign < 0:
            return falls_with_products(instruction)
        pairs.prove_in_products(theory, instruction.spec)
        return None


FACTS = Rnd2Facts("rnd2")
