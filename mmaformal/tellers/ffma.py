"""A step of ffma, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.ffma import executable as ffma
from mmaformal.formats import fp32
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import (
    Row,
    Steps,
    ToldStep,
    addends,
    ending_rows,
    hex_text,
    is_idle,
    product_name,
    special_rows,
    term_value,
)


def tell(spec: DotAdd, trace: Trace[ffma.Step], c: int) -> Steps:
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for k, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        idle = is_idle(step.product.significand == 0, (step.a, step.b)) and entering == step.result
        rows = special_rows(step.special, step.result, fp32)
        if not rows:
            product = term_value(step.product, bits)
            rows = [Row("multiply", product_name(k), hex_text(product))]
            rows += ending_rows(product + term_value(step.addend, fp32.fraction_bits), step.result, fp32)
        steps.append(ToldStep(rows, idle))
    return steps
