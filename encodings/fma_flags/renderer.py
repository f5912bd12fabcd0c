"""The steps of fma_flags: the exact sum, and the exceptions that its rounding raises."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.fma_flags.executable import FlagsStep
from mmaformal.renderers.rows import Row, ShownStep, Steps, code_text, operand_code
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[FlagsStep], c: int) -> Steps:
    """Returns the rows of each step."""
    return [_step(spec, step) for step in trace.steps]


def _step(spec: DotAdd, step: FlagsStep) -> ShownStep:
    names = [name for name, flag in step.raised._asdict().items() if flag]
    code = operand_code(step.result, spec.d_format)
    rows = [Row("round", "raised by the sum", ", ".join(names) or "none")]
    return ShownStep([*rows, Row("encode", "d", code_text(code, spec.d_format))])
