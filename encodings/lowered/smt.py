"""lowered, a PTX instruction that is compiled to several, as bit-vector terms.  Specification: semantics §6.

The operands are converted exactly, fda steps take them in the order of `order` starting from +0, and c is added
last by one IEEE addition, whose NaN is that of the fda steps, or the default one (`nan`).  Widths are those of `fda`
and `ieee`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.smt.blocks import BitVec, canonical_nan, quiet_nan
from mmaformal.encodings.smt.chain import looped
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.encodings.smt.stages import Stages
from mmaformal.formats import Format
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


@dataclass(frozen=True)
class LoweredStep:
    """The interfaces of one instruction, in order."""

    a: tuple[BitVec, ...]  #: codes of the converted operands, in the order in which they are taken
    b: tuple[BitVec, ...]
    inner: tuple[fda.FdaStep, ...]
    dot: BitVec  #: code of what the fda steps give
    addition: Addition  #: of c
    result: BitVec


def nan_code(parameters: Lowered, fmt: Format) -> int:
    """The NaN that the addition of c gives."""
    return quiet_nan(fmt) if parameters.nan is NanRule.DEFAULT else canonical_nan(fmt)


def step(
    spec: DotAdd, parameters: Lowered, a: Sequence[BitVec], b: Sequence[BitVec], c: BitVec, stages: Stages
) -> LoweredStep:
    """One instruction over `len(order)` products."""
    to_a, to_b = parameters.taken_as(spec.a_format), parameters.taken_as(spec.b_format)
    a_codes = tuple(stages.convert(a[k], spec.a_format, to_a) for k in parameters.order)
    b_codes = tuple(stages.convert(b[k], spec.b_format, to_b) for k in parameters.order)
    zero = stages.zero(spec.d_format)
    dot = fda.dot_add(parameters.inner_dot_add(spec), a_codes, b_codes, zero, stages=stages)
    addition = stages.add(dot.result, c, parameters.addition, nan_code(parameters, spec.d_format))
    return LoweredStep(a_codes, b_codes, dot.steps, dot.result, addition, addition.result)


dot_add = looped(Lowered, lambda spec, p, a, b, c, stages: step(spec, p, a, b, c, stages))
