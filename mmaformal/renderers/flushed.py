"""Steps in fp32 without subnormals, shown: gps, oddsum and pfma."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.gps import executable as gps
from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.pfma import executable as pfma
from mmaformal.encodings.pfma.executable import without_subnormal
from mmaformal.formats import fp32
from mmaformal.renderers.rows import (
    Row,
    ShownStep,
    Steps,
    addends,
    code_text,
    hex_text,
    is_idle,
    product_name,
    rounded_text,
    sum_text,
    term_value,
)
from mmaformal.spec import DotAdd


def _places(spec: DotAdd) -> int:
    return spec.a_format.fraction_bits + spec.b_format.fraction_bits


def pairwise(spec: DotAdd, trace: Trace[gps.GpsStep], c: int) -> Steps:
    """Returns the rows of each step of gps."""
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        rows, first = [], number * len(step.products)
        for k, product in enumerate(step.products, first):
            exact = term_value(product.exact, _places(spec))
            if exact or any(product.special):
                rows.append(Row("multiply", product_name(k), rounded_text(exact, product.result, fp32)))
        rows += [Row("pairwise", f"sum {i}", code_text(s.result, fp32)) for i, s in enumerate(step.sums)]
        rows.append(Row("group", "flushed", code_text(step.group, fp32)))
        rows.append(Row("encode", "d", code_text(step.result, fp32)))
        steps.append(ShownStep(rows, _is_idle(step, entering)))
    return steps


def pair(spec: DotAdd, trace: Trace[gps.GpsStep], c: int) -> Steps:
    """Returns the rows of each step of oddsum."""
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        rows = []
        for k, product in enumerate(step.products, 2 * number):
            if product.exact.significand or any(product.special):
                exact, text = term_value(product.exact, _places(spec)), code_text(product.result, fp32)
                if fp32.is_finite(product.result):
                    text = hex_text(exact) + ("  (flushed)" if exact != fp32.value(product.result) else "")
                rows.append(Row("multiply", product_name(k), text))
        first, second = (each.result for each in step.products)
        rows.append(Row("pairwise", "sum of both", sum_text(first, second, step.group)))
        steps.append(
            ShownStep([*rows, *_with_c(entering, step.group, step.result)], _is_idle(step, entering))
        )
    return steps


def fmas(spec: DotAdd, trace: Trace[pfma.PfmaStep], c: int) -> Steps:
    """Returns the rows of each step of pfma."""
    p = spec.parameters_as(Pfma)
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        zero = not any(x.product.significand for x in step.fmas)
        idle = is_idle(zero, [x for each in step.fmas for x in (each.a, each.b)]) and entering == step.result
        rows = [row for k, each in enumerate(step.fmas) for row in _fma(spec, number * p.L, k, each)]
        first, second = (each.result for each in step.fmas[-2:])
        rows.append(Row("pairwise", "sum 0 + sum 1", sum_text(first, second, step.sum)))
        steps.append(ShownStep([*rows, *_with_c(entering, step.sum, step.result)], idle))
    return steps


def _fma(spec: DotAdd, first: int, k: int, each: pfma.FmaStages) -> list[Row]:
    """Returns the rows of one product and its sum, unless it is zero."""
    rows = list[Row]()
    if each.product.significand or each.special.nan:
        exact, text = term_value(each.product, _places(spec)), code_text(each.result, fp32)
        name = product_name(first + k)
        if fp32.is_finite(each.result):
            rows.append(Row("multiply", name, hex_text(exact)))
            total = exact + term_value(each.addend, fp32.fraction_bits)
            text = rounded_text(total, each.result, fp32)
        rows.append(Row("accumulate", f"sum {k % 2} with {name}", text))
    return rows


def _with_c(entering: int, total: int, result: int) -> list[Row]:
    text = sum_text(without_subnormal(entering), total, result)
    return [Row("accumulate", "c and that", text), Row("encode", "d", code_text(result, fp32))]


def _is_idle(step: gps.GpsStep, entering: int) -> bool:
    return not any(each.result & 0x7FFFFFFF for each in step.products) and entering == step.result
