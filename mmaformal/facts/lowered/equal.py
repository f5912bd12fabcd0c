"""Why both wings' steps of lowered instructions give the same code."""

from __future__ import annotations

import z3

from mmaformal.algorithms import Fda, Lowered
from mmaformal.cases.encodings import Traces
from mmaformal.encodings.executable import fda as executable_fda
from mmaformal.encodings.executable.blocks import Addition
from mmaformal.encodings.smt import lowered as smt_lowered
from mmaformal.facts.fda.equal import fda_step
from mmaformal.proof.encoding_links import (
    add_codes,
    decode,
    inputs,
)
from mmaformal.proof.lemmas import Argument, Link


def derive(argument: Argument, traces: Traces[smt_lowered.Step]) -> None:
    spec, parameters = traces.spec, traces.spec.parameters
    assert isinstance(parameters, Lowered)
    inner, width = parameters.inner_dot_add(spec), len(parameters.order)
    assert isinstance(inner.parameters, Fda)
    a, b, c, *_ = inputs(argument, traces)
    stride = width // parameters.L + 1  # the executable's steps: those of the fda, then the addition
    for i, smt in enumerate(traces.smt.steps):
        *fused, addition = traces.executable.steps[i * stride : (i + 1) * stride]
        (dot,) = argument.derive("inputs", "both wings begin at zero", [Link(z3.BoolVal(True), ())])
        for n, (executable, step) in enumerate(zip(fused, smt.inner, strict=True)):
            assert isinstance(executable, executable_fda.Step)
            order = [i * width + k for k in parameters.order[n * parameters.L : (n + 1) * parameters.L]]
            x, y = (
                [
                    decode(argument, codes[k], u, v, to, f"{fmt} codes are converted alike")
                    for k, u, v in zip(order, us, vs, strict=True)
                ]
                for codes, us, vs, fmt, to in (
                    (a, executable.a, step.a, spec.a_format, inner.a_format),
                    (b, executable.b, step.b, spec.b_format, inner.b_format),
                )
            )
            z = decode(argument, dot, executable.c, step.c, inner.c_format)
            dot = fda_step(
                argument,
                inner,
                parameters=inner.parameters,
                factors=[x, y],
                c=z,
                executable=executable,
                smt=step,
            )
        assert isinstance(addition, Addition)
        c = add_codes(argument, [dot, c], addition, smt.addition, parameters.addition)
