"""A step of gps, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps import executable as gps
from mmaformal.formats import fp32
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


def tell(spec: DotAdd, trace: Trace[gps.Step], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, Gps)
    G = p.G
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        idle = all(p.result & 0x7FFFFFFF == 0 for p in step.products) and entering == step.result
        rows = []
        for i, product in enumerate(step.products):
            text = code_text(product.result, fp32)
            exact = term_value(product.exact, bits)
            special = (
                product.special.nan or product.special.positive_infinity or product.special.negative_infinity
            )
            if fp32.is_finite(product.result) and exact != fp32.value(product.result):
                text += f"  (lost {hex_text(exact - fp32.value(product.result))})"
            if exact or special:
                rows.append(Row("multiply", product_name(number * G + i), text))
        rows += [Row("pairwise", f"sum {i}", code_text(s.result, fp32)) for i, s in enumerate(step.sums)]
        rows.append(Row("group", "flushed", code_text(step.group, fp32)))
        rows.append(Row("encode", "d", code_text(step.result, fp32)))
        steps.append(ToldStep(rows, idle))
    return steps
