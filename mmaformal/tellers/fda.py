"""A step of fda, told."""

from __future__ import annotations

from collections.abc import Iterable

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import executable as fda
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import (
    Row,
    Steps,
    ToldStep,
    addends,
    cut_row,
    ending_rows,
    is_idle,
    product_name,
    scaled,
    special_rows,
    term_value,
)


def step_rows(spec: DotAdd, step: fda.Step, F: int, names: Iterable[str]) -> list[Row]:
    special = special_rows(step.special, step.result, spec.d_format)
    if special:
        return special
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    unit = step.e_max - F
    rows = [Row("align", "largest exponent", str(step.e_max))]
    for name, product, aligned in zip(names, step.products, step.aligned, strict=True):
        if product.significand:
            rows.append(cut_row("align", name, scaled(aligned, unit), term_value(product, bits), unit))
    if step.addend.significand:
        exact = term_value(step.addend, spec.c_format.fraction_bits)
        rows.append(cut_row("align", "c", scaled(step.aligned_c, unit), exact, unit))
    return rows + ending_rows(scaled(step.total, unit), step.result, spec.d_format)


def tell(spec: DotAdd, trace: Trace[fda.Step], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, Fda)
    F, L = p.F, p.L
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        zero = not any(p.significand for p in step.products)
        operands = (*step.a, *step.b, *step.scale_a, *step.scale_b)
        idle = is_idle(zero, operands) and entering == step.result
        names = [product_name(number * L + i) for i in range(L)]
        steps.append(ToldStep(step_rows(spec, step, F, names), idle))
    return steps
