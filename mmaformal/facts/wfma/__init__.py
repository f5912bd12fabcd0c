"""Facts of wfma: a step is one fma of sfma on converted factors."""

from __future__ import annotations

from typing import TypeAlias

from mmaformal.algorithms import NanRule, Wfma
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import wfma as executable_wfma
from mmaformal.encodings.smt import wfma as smt_wfma
from mmaformal.facts.protocol import Facts
from mmaformal.facts.sfma.equal import fma
from mmaformal.proof.encoding_links import inputs, same_code
from mmaformal.proof.lemmas import Argument

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


FACTS = WfmaFacts("wfma")
