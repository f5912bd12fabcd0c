"""esda, exact dot product rounded once, then added, executable.  Specification: semantics §3 (Intel, AMX-FP8).

One step: the exact sum of L products, rounded once (an efda step from +0), then `d = c + sum`, an IEEE 754 addition; a
subnormal result is made zero of its sign if `flush`.  Sums of two codes are exact where they are subnormal, so it does
not matter whether one looks before or after rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.efda import executable as efda
from mmaformal.encodings.esda import Esda
from mmaformal.encodings.executable.blocks import Lane, quiet_nan
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.executable.ieee import Addition
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.pfma.executable import without_subnormal
from mmaformal.formats import fp32
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


class EsdaStep(NamedTuple):
    """The sum of products, and its addition to c."""

    dot: efda.EfdaStep
    addition: Addition
    result: Lane


def nan_code(parameters: Esda) -> int:
    """Returns the code of every NaN result."""
    sign = fp32.sign_mask if parameters.nan is NanRule.INDEFINITE else 0
    return quiet_nan(fp32) | sign


def step(
    spec: DotAdd, parameters: Esda, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> EsdaStep:
    """The sum of L products, added to c."""
    inner = parameters.inner(spec)
    dot = efda.step(inner, parameters.exact, a, b, stages.zero(c), stages)
    addition = stages.add(c, dot.result, parameters.rho, nan_code(parameters))
    result = addition.result
    if parameters.flush:
        result = stages.code("flush", [result], without_subnormal(result), fp32)
    return EsdaStep(dot, addition, result)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Esda), a, b, c, stages))
