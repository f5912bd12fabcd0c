"""Facts of lowered instructions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import attrgetter

import z3

from mmaformal.cases.codes import is_nan
from mmaformal.cases.falling_products import falls_with_a_product, narrow_cases, random_searches
from mmaformal.cases.interfaces import Adds
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.fda import executable as executable_fda
from mmaformal.encodings.fda.proofs import FACTS as FDA
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered import smt as smt_lowered
from mmaformal.encodings.lowered.proofs import exactness, pairs
from mmaformal.facts.exactness import Exact
from mmaformal.facts.monotone_addition import ieee_addition, prove_in_c
from mmaformal.facts.protocol import Facts, Lossless
from mmaformal.facts.ranges import no_nan, not_minus_zero, not_nan
from mmaformal.facts.sums import StepSum, largest_product, product_places, significand_is_small
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Pairing
from mmaformal.proof.rules import Theory
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd


class LoweredFacts(Facts[smt_lowered.LoweredStep]):
    def no_nan(
        self,
        pairing: Pairing,
        spec: DotAdd,
        step: smt_lowered.LoweredStep,
        assumed: dict[int, Link],
        c: Link,
        finite: Link,
    ) -> Link:
        zero = z3.BitVecVal(0, spec.d_format.storage_bits)
        dot = Link(z3.Not(is_nan(zero, spec.d_format)), ())
        pairing.derive("inputs", "the inner steps start from +0", [dot])
        inner = spec.parameters.inner_dot_add(spec)  # type: ignore[attr-defined]
        for each in step.inner:
            dot = no_nan(pairing, inner, each, assumed, dot)
        text = "a number and a finite number add up to no NaN"
        return not_nan(pairing, step.result, spec, [dot, finite], text)

    def never_minus_zero(
        self, pairing: Pairing, spec: DotAdd, steps: Sequence[smt_lowered.LoweredStep], c: z3.BitVecRef
    ) -> Link:
        last = steps[-1]
        dot = not_minus_zero(pairing, spec, last.inner[-1])
        link = Link(last.result != spec.d_format.sign_mask, ())
        inputs = [c] if len(steps) == 1 else []
        text = "a number that is not −0, and another, do not add up to −0"
        return pairing.derive("accumulate", text, [link], [dot], inputs)[0]

    def sums(self, spec: DotAdd, step: smt_lowered.LoweredStep) -> list[StepSum]:
        inner = spec.parameters_as(Lowered).inner_dot_add(spec)
        converted = largest_product(spec) << product_places(inner) - product_places(spec)
        c = 0 if len(step.inner) == 1 else None  # a single one begins with zero
        return [sum_ for each in step.inner for sum_ in FDA.sums_of(inner, each, converted, c)]

    def significand_is_small(
        self, pairing: Pairing, spec: DotAdd, step: Adds, significand: z3.BitVecRef, size: Link
    ) -> None:
        significand_is_small(pairing, spec, step, significand, size, converted=True)

    def first_sum(self, step: object) -> Lane:
        assert isinstance(step, executable_fda.FdaStep)
        return step.total  # of the first inner step

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return exactness.prove_lowered_exact(proving, spec)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        p = instruction.spec.parameters_as(Lowered)
        if p.cut is Rounding.RO and len(p.order) > p.L:
            self.unsupported("what terms that are cut to odd are off in a step that does not begin with zero")
        return exactness.error_bound(instruction, proving)

    def lossless_of(self, spec: DotAdd) -> Lossless | None:
        return exactness.decides_losses(spec)

    def lossless(self, proving: Composing, spec: DotAdd) -> str:
        return exactness.prove_lossless(proving, spec)

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> None:
        p = instruction.spec.parameters_as(Lowered)
        nan = smt_lowered.nan_code(p, instruction.spec.d_format)
        add = ieee_addition(p.addition, nan, c_first=False)
        prove_in_c(theory, instruction.spec, add, attrgetter("dot"))

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        p = instruction.spec.parameters_as(Lowered)
        narrow = partial(narrow_cases, instruction.spec, p.F)
        found = falls_with_a_product(
            instruction, random_searches(instruction.spec, p.F, narrow, order=p.order)
        )
        if found is None and pairs.adds_odd_pairs(instruction.spec):
            pairs.prove_in_products(theory, instruction.spec)
        return found


FACTS = LoweredFacts("lowered")
