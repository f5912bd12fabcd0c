"""Steps of pfma, shown."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.pfma import executable as pfma
from mmaformal.encodings.pfma.executable import without_subnormal
from mmaformal.formats import fp32
from mmaformal.renderers.rows import (
    Row,
    ShownStep,
    Steps,
    addends,
    bits_of_products,
    code_text,
    hex_text,
    is_idle,
    product_name,
    rounded_text,
    sum_text,
    term_value,
)
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[pfma.PfmaStep], c: int) -> Steps:
    """Returns the rows of each step."""
    p = spec.parameters_as(Pfma)
    shown: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        zero = not any(x.product.significand for x in step.fmas)
        idle = is_idle(zero, [x for each in step.fmas for x in (each.a, each.b)]) and entering == step.result
        rows = [row for k, each in enumerate(step.fmas) for row in _fma(spec, number * p.L, k, each)]
        first, second = (each.result for each in step.fmas[-2:])
        rows.append(Row("pairwise", "sum 0 + sum 1", sum_text(first, second, step.sum)))
        shown.append(ShownStep([*rows, *last_rows(entering, step.sum, step.result)], idle))
    return shown


def _fma(spec: DotAdd, first: int, k: int, each: pfma.FmaStages) -> list[Row]:
    """Returns the rows of one product and its sum, unless it is zero."""
    rows = list[Row]()
    if each.product.significand or each.special.nan:
        exact, text = term_value(each.product, bits_of_products(spec)), code_text(each.result, fp32)
        name = product_name(first + k)
        if fp32.is_finite(each.result):
            rows.append(Row("multiply", name, hex_text(exact)))
            total = exact + term_value(each.addend, fp32.fraction_bits)
            text = rounded_text(total, each.result, fp32)
        rows.append(Row("accumulate", f"sum {k % 2} with {name}", text))
    return rows


def last_rows(entering: int, total: int, result: int) -> list[Row]:
    """Returns the rows of the last sum of a step, with c, which is flushed."""
    text = sum_text(without_subnormal(entering), total, result)
    return [Row("accumulate", "c and that", text), Row("encode", "d", code_text(result, fp32))]
