"""A step of efda, told."""

from __future__ import annotations

from mmaformal.encodings.efda import Efda
from mmaformal.encodings.efda import executable as efda
from mmaformal.encodings.executable.blocks import Trace
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


def tell(spec: DotAdd, trace: Trace[efda.Step], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, Efda)
    L = p.L
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        special = special_rows(step.special, step.result, spec.d_format)
        zero = not any(x.significand for x in step.products)
        idle = is_idle(zero, (*step.a, *step.b)) and entering == step.result
        if special:
            steps.append(ToldStep(special, idle))
            continue
        products = [term_value(x, bits) for x in step.products]
        rows = [
            Row("multiply", product_name(number * L + i), hex_text(x)) for i, x in enumerate(products) if x
        ]
        total = sum(products, term_value(step.addend, spec.c_format.fraction_bits))
        steps.append(ToldStep(rows + ending_rows(total, step.result, spec.d_format), idle))
    return steps
