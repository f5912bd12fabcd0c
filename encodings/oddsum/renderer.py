"""Steps of oddsum, shown."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.gps import executable as gps
from mmaformal.encodings.gps.renderer import passes_on
from mmaformal.encodings.pfma.renderer import last_rows
from mmaformal.formats import fp32
from mmaformal.renderers.rows import (
    Row,
    ShownStep,
    Steps,
    addends,
    bits_of_products,
    code_text,
    hex_text,
    product_name,
    sum_text,
    term_value,
)
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[gps.GpsStep], c: int) -> Steps:
    """Returns the rows of each step."""
    shown: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        rows = []
        for k, product in enumerate(step.products, 2 * number):
            if product.exact.significand or any(product.special):
                exact, text = (
                    term_value(product.exact, bits_of_products(spec)),
                    code_text(product.result, fp32),
                )
                if fp32.is_finite(product.result):
                    text = hex_text(exact) + ("  (flushed)" if exact != fp32.value(product.result) else "")
                rows.append(Row("multiply", product_name(k), text))
        first, second = (each.result for each in step.products)
        rows.append(Row("pairwise", "sum of both", sum_text(first, second, step.group)))
        shown.append(
            ShownStep([*rows, *last_rows(entering, step.group, step.result)], passes_on(step, entering))
        )
    return shown
