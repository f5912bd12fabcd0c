"""How a trace of the executable encoding is shown: stage by stage, or step by step where no stages are recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.renderers import e9s12, emulated, fdrda, flags, flushed, integers, residues, stages
from mmaformal.renderers.rows import Row, ShownStep, Steps, code_text, operand_code
from mmaformal.spec import DotAdd

#: `(spec, trace, code of c)` to the rows of each step.
Renderer = Callable[[DotAdd, Trace[Any], int], Steps]


#: Renderers of the algorithms that record no stages, or stages of their own alone.
_BY_STEPS: Mapping[str, Renderer] = {
    "acc_e9s12": e9s12.passes,
    "dpa_e9s12": e9s12.dot_product_rows,
    "emulated": emulated.word_rows,
    "fdrda": fdrda.group_rows,
    "gfdrda": fdrda.group_rows,
    "fma_flags": flags.exceptions,
    "gps": flushed.pairwise,
    "integer_dot": integers.sum_rows,
    "oddsum": flushed.pair,
    "pfma": flushed.fmas,
    "residues": residues.remainders,
}


def renderer_of(spec: DotAdd) -> Renderer:
    """Returns the renderer of an algorithm, or the one that knows stages."""
    return _BY_STEPS.get(spec.parameters.algorithm, _by_stages)


def _by_stages(spec: DotAdd, trace: Trace[Any], c: int) -> Steps:
    """Returns what each stage shows; only results, if no stages are recorded."""
    if trace.stages:
        order = getattr(spec.parameters, "order", (0,))  # a tree's is text, and its products are in order
        return stages.steps(trace, c, order if isinstance(order, tuple) else (0,))
    codes = [operand_code(step.result, spec.d_format) for step in trace.steps]
    return [ShownStep([Row("encode", "d", code_text(code, spec.d_format))]) for code in codes]
