"""A step of gfda, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfda import executable as gfda
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import (
    Row,
    Steps,
    ToldStep,
    addends,
    cut_row,
    ending_rows,
    hex_text,
    is_idle,
    product_name,
    scaled,
    special_rows,
    term_value,
)


def step_rows(spec: DotAdd, p: Gfda, step: gfda.Step, first: int) -> list[Row]:
    special = special_rows(step.special, step.result, spec.d_format)
    if special:
        return special
    bits, unit, rows = spec.a_format.fraction_bits + spec.b_format.fraction_bits, step.e_max - p.F, []
    for g, (group, aligned) in enumerate(zip(step.groups, step.aligned, strict=True)):
        own = step.products[g * p.G : (g + 1) * p.G]
        for k, (product, part) in enumerate(zip(own, group.aligned, strict=True)):
            if product.significand:
                last = group.e_max - p.W
                name, exact = product_name(first + g * p.G + k), term_value(product, bits)
                rows.append(cut_row("group", name, scaled(part, last), exact, last))
        if group.total:
            total = scaled(group.total, group.e_max - p.W)
            rows.append(Row("group", f"sum {g}", hex_text(total)))
            rows.append(cut_row("align", f"sum {g}", scaled(aligned, unit), total, unit))
    rows.append(Row("align", "largest exponent", str(step.e_max)))
    if step.addend.significand:
        exact = term_value(step.addend, spec.c_format.fraction_bits)
        rows.append(cut_row("align", "c", scaled(step.aligned_c, unit), exact, unit))
    return rows + ending_rows(scaled(step.total, unit), step.result, spec.d_format)


def tell(spec: DotAdd, trace: Trace[gfda.Step], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, Gfda)
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        zero = not any(product.significand for product in step.products)
        idle = is_idle(zero, (*step.a, *step.b)) and entering == step.result
        steps.append(ToldStep(step_rows(spec, p, step, number * p.L), idle))
    return steps
