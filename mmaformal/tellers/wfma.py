"""A step of wfma, told."""

from __future__ import annotations

from dataclasses import replace

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.wfma import Wfma
from mmaformal.encodings.wfma import executable as wfma
from mmaformal.spec import DotAdd
from mmaformal.tellers import sfma
from mmaformal.tellers.rows import Steps


def tell(spec: DotAdd, trace: Trace[wfma.Step], c: int) -> Steps:
    """As sfma, on the converted factors."""
    parameters = spec.parameters
    assert isinstance(parameters, Wfma)
    wide = replace(spec, a_format=spec.d_format, b_format=spec.d_format, parameters=Sfma(parameters.rho))
    return sfma.tell(wide, Trace(tuple(step.fma for step in trace.steps), trace.result), c)
