"""A PTX instruction that the compiler lowers to several, executable.  Specification: semantics §6, "Lowered PTX".

One step is one PTX instruction:

1. a and b are converted to the operand format (exactly);
2. fda steps take the products in the order given, L at a time, the first with c = +0, each one's result the next
   one's c;
3. the real c is added last, by an IEEE addition in the type of d.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.algorithms import DotAdd, Lowered
from mmaformal.encodings.executable import fda
from mmaformal.encodings.executable.blocks import (
    Lane,
    Trace,
    canonical_nan,
    convert_exactly,
    ieee_add,
)


def dot_add(
    spec: DotAdd,
    a: Sequence[Lane],
    b: Sequence[Lane],
    c: Lane,
    scale_a: Sequence[Lane] = (),
    scale_b: Sequence[Lane] = (),
) -> Trace:
    """The trace of `c + Σ a_k·b_k`: K codes a, K codes b, one c; no scales.

    Its steps are those of the fda steps (`fda.Step`), then that of the addition (`blocks.Addition`).
    """
    parameters = spec.parameters
    assert isinstance(parameters, Lowered)
    inner = parameters.inner_dot_add(spec)
    steps: list[object] = []
    for start in range(0, spec.k, len(parameters.order)):
        order = [start + k for k in parameters.order]
        a_codes = [convert_exactly(a[k], spec.a_format, parameters.operands) for k in order]
        b_codes = [convert_exactly(b[k], spec.b_format, parameters.operands) for k in order]
        fused = fda.dot_add(inner, a_codes, b_codes, c * 0)
        addition = ieee_add(fused.result, c, parameters.addition, canonical_nan(spec.d_format))
        steps += [*fused.steps, addition]
        c = addition.result
    return Trace(tuple(steps), c)
