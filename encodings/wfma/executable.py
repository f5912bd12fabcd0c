"""wfma, fused multiply-add of widened factors, executable.  Specification: semantics §10 (Apple AMX, fma16 onto fp32).

`d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K-1, the factors converted to ρ's format exactly; each fma one of sfma.
"""

from __future__ import annotations

from typing import NamedTuple

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.encodings.executable.chain import looped
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


def step(spec: DotAdd, p: Wfma, a: Lane, b: Lane, c: Lane, stages: Stages) -> WfmaStep:
    """`fma(a, b, c)` of two codes of the factors' formats, converted to that of c."""
    u, v = (stages.convert(x, fmt, p.rho.format) for x, fmt in ((a, spec.a_format), (b, spec.b_format)))
    fma = sfma.step(p.rho, u, v, c, stages=stages)
    return WfmaStep(u, v, fma, fma.result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Wfma), a[0], b[0], c, stages))
