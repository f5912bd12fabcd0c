"""Facts of wfma: a step is one fma of sfma on converted factors."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.algorithms import DotAdd, NanRule, Wfma
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import wfma as executable_wfma
from mmaformal.encodings.smt import wfma as smt_wfma
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sfma import related
from mmaformal.facts.sfma.equal import fma
from mmaformal.facts.sums import Sum, sum_of_two
from mmaformal.proof.encoding_links import inputs, same_code
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.proof.related_runs import Opposite
from mmaformal.proof.related_runs import Step as RelatedStep

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
        if isinstance(step.kind, Opposite):
            self.lack("why negated inputs have opposite results")  # settled as a whole
        left, right = step.left.fma, step.right.fma
        return related.derive(RelatedStep(step.argument, step.runs, left, right, step.c, step.order))

    def sums(self, spec: DotAdd, step: Step) -> list[Sum]:
        return [sum_of_two(step.fma, "a product and c", step.fma.sum)]


FACTS = WfmaFacts("wfma")
