"""A step of muladd, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.muladd import executable as muladd
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import (
    Row,
    Steps,
    ToldStep,
    addends,
    code_text,
    hex_text,
    product_name,
    term_value,
)


def tell(spec: DotAdd, trace: Trace[muladd.Step], c: int) -> Steps:
    assert isinstance(spec.parameters, Muladd)
    fmt, bits = spec.d_format, spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        product, text = step.product, code_text(step.product.result, fmt)
        exact = term_value(product.exact, bits)
        idle = not any(product.special) and not exact and entering == step.result
        if fmt.is_finite(product.result) and exact != fmt.value(product.result):
            text += f"  (lost {hex_text(exact - fmt.value(product.result))})"
        rows = [
            Row("multiply", product_name(number), text),
            Row("encode", "d", code_text(step.result, fmt)),
        ]
        steps.append(ToldStep(rows, idle))
    return steps
