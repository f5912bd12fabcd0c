"""Facts of wfma: a step is one fma of sfma on converted factors."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.cases.encodings import Traces
from mmaformal.cases.inputs import Codes
from mmaformal.cases.one_step import one_step
from mmaformal.encodings.sfma.proofs import scaled
from mmaformal.encodings.sfma.proofs.equal import fma
from mmaformal.encodings.wfma import Wfma
from mmaformal.encodings.wfma import executable as executable_wfma
from mmaformal.encodings.wfma import smt as smt_wfma
from mmaformal.encodings.wfma.proofs.exact_sums import WideFmaSum
from mmaformal.encodings.wfma.proofs.widened import prove_claims, widened
from mmaformal.facts import exact_steps, related
from mmaformal.facts.exact_steps import always_exact, prove_step, rounded_once
from mmaformal.facts.exactness import Exact
from mmaformal.facts.exactness_codes import Roundings
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sums import Sum, sum_of_two
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.encoding_links import inputs, same_code
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Runs
from mmaformal.proof.related_runs import Step as RelatedStep
from mmaformal.proof.scaling import Two
from mmaformal.rounding import NanRule
from mmaformal.solver.answers import Answer
from mmaformal.spec import DotAdd

Step: TypeAlias = smt_wfma.Step


class WfmaFacts(Facts[Step]):
    def equal(self, argument: Argument, traces: Traces[Step]) -> None:
        spec, parameters = traces.spec, traces.spec.parameters
        assert isinstance(parameters, Wfma)
        a, b, c, *_ = inputs(argument, traces)
        for k, (executable, smt) in enumerate(zip(traces.executable.steps, traces.smt.steps, strict=True)):
            assert isinstance(executable, executable_wfma.Step)
            factors = same_code(executable.a, smt.a), same_code(executable.b, smt.b)
            for wide, narrow, fmt in zip(factors, (a[k], b[k]), (spec.a_format, spec.b_format), strict=True):
                text = f"{fmt} codes are converted to {parameters.rho.format} alike"
                argument.derive("convert", text, [wide], [narrow])
            c = fma(argument, parameters.rho, NanRule.DEFAULT, (*factors, c), executable.fma, smt.fma)

    def related(self, step: RelatedStep[Step]) -> Link:
        """A converted factor is a function of its code, and so are its operands: the rest is sfma's."""
        runs, inner = step.runs, widened(one_step(step.runs.left_spec))
        fmas = [step.left.fma], [step.right.fma]
        alone = Runs(
            runs.kind, inner, inner, *fmas, match=step.order, dropped=step.dropped, nans_keep_sign=True
        )
        return related.chain(step.argument, alone, step.c)

    def scaled(self, two: Two[Step]) -> Link:
        """What doubling does to a factor's operand is asked of its own code; the rest is sfma's."""
        steps = two.left.fma, two.right.fma
        return scaled.doubled(Two(two.pairing, widened(two.spec), *steps, two.c, two.assumed))

    def sums(self, spec: DotAdd, step: Step) -> list[Sum]:
        return [sum_of_two(step.fma, "a product and c", step.fma.sum)]

    def exactness(self, proving: Composing, spec: DotAdd) -> Exact:
        return rounded_once(proving, spec, prove_claims)

    def exactness_on_codes(self, spec: DotAdd, codes: Codes) -> Roundings:
        return always_exact(spec, codes)

    def error_bound(self, instruction: Instruction, proving: Composing) -> Answer:
        return exact_steps.error_bound(instruction, proving, prove_claims)

    def rounds_exactly(self, spec: DotAdd) -> WideFmaSum:
        return WideFmaSum(spec)

    def rounds_exact_sum(self, proving: Composing, spec: DotAdd) -> None:
        prove_step(proving, spec, prove_claims)


FACTS = WfmaFacts("wfma")
