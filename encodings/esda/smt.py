"""esda, exact dot product rounded once, then added, as bit-vector terms.  Specification: semantics §3.

An efda step from +0, the addition of `ieee.add`, and subnormal codes to zero where results are flushed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import smt as efda
from mmaformal.encodings.esda import Esda
from mmaformal.encodings.pfma.smt import INVALID, flush
from mmaformal.encodings.smt.blocks import BitVec, quiet_nan
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.encodings.smt.stages import Stages
from mmaformal.formats import fp32
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class EsdaStep:
    """The sum of products, and its addition to c."""

    inner: efda.EfdaStep
    dot: BitVec  #: its code
    addition: Addition  #: of c; not flushed yet
    result: BitVec


def step(
    spec: DotAdd, parameters: Esda, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> EsdaStep:
    """The sum of L products, added to c."""
    inner = parameters.inner(spec)
    exact = inner.parameters_as(Efda)
    dot = efda.step(inner, exact, a, b, stages.zero(fp32), stages)
    nan = INVALID if parameters.nan is NanRule.INDEFINITE else quiet_nan(fp32)
    addition = stages.add(c, dot.result, parameters.rho, nan)
    result = addition.result
    if parameters.flush:
        result = stages.code("flush", [result], flush(result), fp32)
    return EsdaStep(dot, dot.result, addition, result)


dot_add = looped(Esda, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
