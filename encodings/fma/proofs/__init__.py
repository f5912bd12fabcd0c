"""Facts of fma.

Of one format, with subnormals kept, a step is one fma of sfma, which keeps other places below the sum.  So what is
known of sfma is known of it.  sfma is meant for fp16, fp32 and fp64; what is proved of it holds of every format with
infinities that uses all bits of its word.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.cases.out_of_order import OutOfOrder
from mmaformal.encodings import smt
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.fma import smt as smt_fma
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma.proofs import FmaSum
from mmaformal.facts import exact_steps
from mmaformal.facts.exact_steps import Claims, RoundsExactSums
from mmaformal.facts.ranges import RoundsOneSum
from mmaformal.facts.sums import StepSum, sum_of_two
from mmaformal.formats import Specials
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.rules import Theory
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd
from mmaformal.theory import monotone
from mmaformal.theory.numbers import larger_product


@dataclass(frozen=True, repr=False)
class SfmaOfAnyFormat(Sfma):
    """sfma of a format that it is not meant for, in proofs alone."""

    def check(self, spec: DotAdd) -> None:
        """Raises ValueError for several formats."""
        formats = {spec.a_format, spec.b_format, spec.c_format, spec.d_format}
        self.needs(formats == {self.rho.format}, f"one format, not {spec.types}")


def with_sfma(spec: DotAdd) -> DotAdd | None:
    """Return the model of sfma that computes the same; None where there is none."""
    p = spec.parameters_as(Fma)
    fmt = p.rho.format
    one = {spec.a_format, spec.b_format, spec.c_format, spec.d_format} == {fmt}
    usual = fmt.specials is Specials.IEEE and fmt.is_whole and fmt.signed and p.rho.saturation is None
    kept = not p.flush_inputs and p.tiny is None and not p.ones and p.nan is not NanRule.INDEFINITE
    if not (one and usual and kept):
        return None
    return spec.replace(parameters=SfmaOfAnyFormat(rho=p.rho, nan=p.nan))


def _prove_claims(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that a step is correctly rounded; returns that every input is a number.  Raises NotProvedError."""
    one = one_step(spec)
    inner = with_sfma(one)
    assert inner is not None
    x = symbolic_inputs(one)
    own, alone = smt.dot_add(one, x.a, x.b, x.c).result, smt.dot_add(inner, x.a, x.b, x.c).result
    proving.claim("fma", "a step is an fma of sfma", own == alone)
    return exact_steps.prove_claims(proving, inner)


class FmaFacts(RoundsExactSums[smt_fma.FmaStep], RoundsOneSum[smt_fma.FmaStep]):
    def nan_of_operands(self, spec: DotAdd) -> bool:
        return bool(spec.parameters_as(Fma).nan.order)

    def sums(self, spec: DotAdd, step: smt_fma.FmaStep) -> list[StepSum]:
        return [sum_of_two(step, "a product and c", step.sum)]

    def rounding(self, spec: DotAdd) -> Claims:
        if with_sfma(spec) is None:
            self.unsupported(
                "why it rounds its exact sum, of several formats, of flushed numbers or of NaNs of all ones"
            )
        return _prove_claims

    def monotone_in_c(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        inner = with_sfma(one_step(instruction.spec))
        if inner is None:
            return super().monotone_in_c(instruction, theory)
        monotone.prove_in_c(theory, instruction.spec, FmaSum(inner))
        return None

    def monotone_in_product(self, instruction: Instruction, theory: Theory) -> OutOfOrder | None:
        spec = instruction.spec
        inner = with_sfma(spec)
        if inner is None:
            return super().monotone_in_product(instruction, theory)
        monotone.prove_in_products(theory, inner, FmaSum(one_step(inner)))
        for k in range(spec.k):
            runs, others = larger_product(spec, k), larger_product(inner, k)
            (x, y), (u, v) = ([trace.result for trace in each.traces] for each in (runs, others))
            monotone.same_results(
                theory, f"sfma, {k}", "a step is an fma of sfma", (x, y), (u, v), spec.d_format
            )
            theory.theorem(f"d is not smaller if product {k} is not", runs.statement)
        return None


FACTS = FmaFacts("fma")
