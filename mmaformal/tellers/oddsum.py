"""A step of oddsum, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.gps import executable as gps
from mmaformal.encodings.pfma.executable import without_subnormal
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
    sum_text,
    term_value,
)


def tell(spec: DotAdd, trace: Trace[gps.Step], c: int) -> Steps:
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        rows = []
        for i, product in enumerate(step.products):
            if product.exact.significand or any(product.special):
                exact, text = term_value(product.exact, bits), code_text(product.result, fp32)
                if fp32.is_finite(product.result):
                    text = hex_text(exact) + ("  (flushed)" if exact != fp32.value(product.result) else "")
                rows.append(Row("multiply", product_name(2 * number + i), text))
        pair = [each.result for each in step.products]
        rows.append(Row("pairwise", "sum of both", sum_text(pair[0], pair[1], step.group)))
        text = sum_text(without_subnormal(entering), step.group, step.result)
        rows.append(Row("accumulate", "c and that", text))
        rows.append(Row("encode", "d", code_text(step.result, fp32)))
        idle = not any(code & 0x7FFFFFFF for code in pair) and entering == step.result
        steps.append(ToldStep(rows, idle))
    return steps
