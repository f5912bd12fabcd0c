"""A step of lowered, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Addition, Trace
from mmaformal.encodings.fda import executable as fda
from mmaformal.encodings.lowered import Lowered
from mmaformal.spec import DotAdd
from mmaformal.tellers.fda import step_rows
from mmaformal.tellers.rows import (
    Row,
    Steps,
    ToldStep,
    ending_rows,
    hex_text,
    is_idle,
    product_name,
    special_rows,
    term_value,
)


def tell(spec: DotAdd, trace: Trace[fda.Step | Addition], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, Lowered)
    order, inner = p.order, p.inner_dot_add(spec)
    fused = len(order) // p.L
    steps: Steps = []
    for start in range(0, len(trace.steps), fused + 1):
        first = start // (fused + 1) * len(order)
        for i in range(fused):
            step = trace.steps[start + i]
            assert isinstance(step, fda.Step)
            names = [product_name(first + k) for k in order[i * p.L : (i + 1) * p.L]]
            idle = is_idle(not any(x.significand for x in step.products), (*step.a, *step.b))
            steps.append(ToldStep(step_rows(inner, step, p.F, names), idle))
        addition = trace.steps[start + fused]
        assert isinstance(addition, Addition)
        special = special_rows(addition.special, addition.result, spec.d_format)
        bits = spec.d_format.fraction_bits
        total = term_value(addition.x, bits) + term_value(addition.y, bits)
        adding = [Row("add c", "fused sum", hex_text(term_value(addition.x, bits)))]
        steps.append(ToldStep(special or adding + ending_rows(total, addition.result, spec.d_format)))
    return steps
