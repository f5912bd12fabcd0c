"""A step of sfma, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.sfma import executable as sfma
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import (
    Row,
    Steps,
    ToldStep,
    addends,
    code_of,
    ending_rows,
    hex_text,
    is_idle,
    product_name,
    special_rows,
    term_value,
)


def tell(spec: DotAdd, trace: Trace[sfma.Step], c: int) -> Steps:
    bits, d = spec.a_format.fraction_bits, spec.d_format
    steps: Steps = []
    for k, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        special = special_rows(step.special, step.result, d)
        zero = step.a.significand * step.b.significand == 0
        idle = is_idle(zero, (step.a, step.b)) and entering == code_of(step.result, d)
        if special:
            steps.append(ToldStep(special, idle))
            continue
        product = term_value(step.a, bits) * term_value(step.b, bits)
        rows = [Row("multiply", product_name(k), hex_text(product))]
        rows += ending_rows(product + term_value(step.c, bits), step.result, d)
        steps.append(ToldStep(rows, idle))
    return steps
