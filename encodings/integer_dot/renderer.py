"""The steps of integer_dot: products, groups, the sum, and d."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.integer_dot import IntegerDot
from mmaformal.encodings.integer_dot.executable import IntegerStep
from mmaformal.renderers.rows import Row, ShownStep, Steps, code_text, operand_code, product_name
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[IntegerStep], c: int) -> Steps:
    """Returns the rows of each step; what is zero is not shown."""
    p = spec.parameters_as(IntegerDot)
    return [_step(spec, p, k, step) for k, step in enumerate(trace.steps)]


def _step(spec: DotAdd, p: IntegerDot, number: int, step: IntegerStep) -> ShownStep:
    first = number * p.L
    rows = _shown("multiply", [product_name(first + k) for k in range(p.L)], step.products)
    rows += _shown("accumulate", [f"group {k}" for k in range(len(step.groups))], step.groups)
    rows.append(Row("accumulate", "sum with c", str(step.total)))
    code = operand_code(step.result, spec.d_format)
    return ShownStep([*rows, Row("encode", "d", code_text(code, spec.d_format))], not any(step.products))


def _shown(stage: str, names: Sequence[str], values: Sequence[int]) -> list[Row]:
    return [Row(stage, name, str(x)) for name, x in zip(names, values, strict=True) if x]
