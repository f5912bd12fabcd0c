"""How a trace of the executable encoding is shown: stage by stage, or step by step where no stages are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mmaformal.encodings import part
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.renderers import stages
from mmaformal.renderers.rows import Row, ShownStep, Steps, code_text, operand_code
from mmaformal.spec import DotAdd

#: `(spec, trace, code of c)` to the rows of each step.
Renderer = Callable[[DotAdd, Trace[Any], int], Steps]


def renderer_of(spec: DotAdd) -> Renderer:
    """Returns `steps` of the file `renderer` of an algorithm that has one; of another, what knows stages."""
    module = part(spec.parameters.algorithm, "renderer")
    return _by_stages if module is None else module.steps


def _by_stages(spec: DotAdd, trace: Trace[Any], c: int) -> Steps:
    """Returns what each stage shows; only results, if no stages are recorded."""
    if trace.stages:
        order = getattr(spec.parameters, "order", (0,))  # a tree's is text, and its products are in order
        return stages.steps(trace, c, order if isinstance(order, tuple) else (0,))
    codes = [operand_code(step.result, spec.d_format) for step in trace.steps]
    return [ShownStep([Row("encode", "d", code_text(code, spec.d_format))]) for code in codes]
