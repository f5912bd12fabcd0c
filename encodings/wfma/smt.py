"""wfma, fused multiply-add of widened factors, as terms.  Specification: semantics §10 (Apple AMX, fma16 onto fp32).

A step is one fma of sfma in ρ's format, which holds all values of the factors' formats.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt.blocks import BitVec, Rounded, Special
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.stages import Stages
from mmaformal.encodings.wfma import Wfma
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class WfmaStep:
    """The interfaces between the stages of one step, in order."""

    a: BitVec  #: convert: the codes of the factors in ρ's format
    b: BitVec
    fma: sfma.SfmaStep

    @property
    def special(self) -> Special:
        return self.fma.special

    @property
    def rounded(self) -> Rounded:
        return self.fma.rounded

    @property
    def result(self) -> BitVec:
        return self.fma.result


def step(spec: DotAdd, a: BitVec, b: BitVec, c: BitVec, stages: Stages) -> WfmaStep:
    """`fma(a, b, c)` of two codes of the factors' formats and one of ρ's."""
    parameters = spec.parameters_as(Wfma)
    rho = parameters.rho
    x, y = stages.convert(a, spec.a_format, rho.format), stages.convert(b, spec.b_format, rho.format)
    return WfmaStep(x, y, sfma.step(rho, x, y, c, stages=stages))


dot_add = looped(Wfma, lambda spec, p, a, b, c, stages: step(spec, a[0], b[0], c, stages))
