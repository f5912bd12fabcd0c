"""Steps of gps, shown."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.gps import executable as gps
from mmaformal.formats import fp32
from mmaformal.renderers.rows import (
    Row,
    ShownStep,
    Steps,
    addends,
    bits_of_products,
    code_text,
    product_name,
    rounded_text,
    term_value,
)
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[gps.GpsStep], c: int) -> Steps:
    """Returns the rows of each step."""
    shown: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        rows, first = [], number * len(step.products)
        for k, product in enumerate(step.products, first):
            exact = term_value(product.exact, bits_of_products(spec))
            if exact or any(product.special):
                rows.append(Row("multiply", product_name(k), rounded_text(exact, product.result, fp32)))
        rows += [Row("pairwise", f"sum {i}", code_text(s.result, fp32)) for i, s in enumerate(step.sums)]
        rows.append(Row("group", "flushed", code_text(step.group, fp32)))
        rows.append(Row("encode", "d", code_text(step.result, fp32)))
        shown.append(ShownStep(rows, passes_on(step, entering)))
    return shown


def passes_on(step: gps.GpsStep, entering: int) -> bool:
    """Whether all products are zeros, and c is passed on."""
    return not any(each.result & 0x7FFFFFFF for each in step.products) and entering == step.result
