"""A PTX instruction that the compiler lowers to several, executable.  Specification: semantics §6, "Lowered PTX".

One step is one PTX instruction:

1. a and b are converted to the operand format (exactly), if there is one;
2. fda steps take the products in the order given, L at a time, the first with c = +0, each one's result the next
   one's c;
3. the real c is added last, by an IEEE addition in the type of d; of its NaNs, `nan` says which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mmaformal.encodings.executable.blocks import Lane, Trace, canonical_nan, quiet_nan
from mmaformal.encodings.executable.chain import chain
from mmaformal.encodings.executable.ieee import Addition
from mmaformal.encodings.executable.stages import Stages
from mmaformal.encodings.fda import executable as fda
from mmaformal.encodings.lowered import Lowered
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


class Lowering(NamedTuple):
    """The steps of one PTX instruction: those of the fda steps (`FdaStep`), then that of the addition."""

    steps: tuple[fda.FdaStep | Addition, ...]
    result: Lane


def nan_code(spec: DotAdd, parameters: Lowered) -> int:
    """Returns the code of every NaN result: the default NaN, or that of the fda steps."""
    return (quiet_nan if parameters.nan is NanRule.DEFAULT else canonical_nan)(spec.d_format)


def step(
    spec: DotAdd, parameters: Lowered, a: Sequence[Lane], b: Sequence[Lane], c: Lane, stages: Stages
) -> Lowering:
    """One PTX instruction."""
    to_a, to_b = parameters.taken_as(spec.a_format), parameters.taken_as(spec.b_format)
    a_codes = [stages.convert(a[k], spec.a_format, to_a) for k in parameters.order]
    b_codes = [stages.convert(b[k], spec.b_format, to_b) for k in parameters.order]
    fused = fda.dot_add(parameters.inner_dot_add(spec), a_codes, b_codes, stages.zero(c), stages=stages)
    addition = stages.add(fused.result, c, parameters.addition, nan_code(spec, parameters))
    return Lowering((*fused.steps, addition), addition.result)


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace[fda.FdaStep | Addition]:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales.

    Its steps are those of the fda steps (`FdaStep`), then that of the addition (`ieee.Addition`).
    """
    parameters = spec.parameters_as(Lowered)
    stages = Stages()
    lowered = chain(spec, lambda k, c: step(spec, parameters, a[k], b[k], c, stages), c)
    steps = tuple(each for lowering in lowered.steps for each in lowering.steps)
    return Trace(steps, lowered.result, stages)
