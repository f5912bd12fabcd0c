"""wfma, fused multiply-add of widened factors, executable.  Specification: semantics §10 (Apple AMX, fma16 onto fp32).

`d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K-1, the factors converted to ρ's format exactly; each fma one of sfma.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import Lane, Trace
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.sfma import executable as sfma
from mmaformal.encodings.wfma import Wfma
from mmaformal.spec import DotAdd


class WfmaStep(NamedTuple):
    """The interfaces between the stages of one step, in order."""

    a: Lane  #: convert: the codes of the factors in ρ's format
    b: Lane
    fma: sfma.SfmaStep
    result: Lane


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[WfmaStep]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales."""
    parameters = spec.parameters_as(Wfma)
    rho, formats, stages = parameters.rho, (spec.a_format, spec.b_format), Stages()

    def widened(k: slice, c: Lane) -> WfmaStep:
        u, v = (stages.convert(x[k.start], fmt, rho.format) for x, fmt in zip((a, b), formats, strict=True))
        fma = sfma.step(rho, u, v, c, stages=stages)
        return WfmaStep(u, v, fma, fma.result)

    return chain(spec, widened, c, stages)
