"""A step of fdrda, told."""

from __future__ import annotations

from fractions import Fraction

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import executable as fdrda
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
    kept_and_lost,
    product_name,
    scaled,
    special_rows,
    term_value,
)


def tell(spec: DotAdd, trace: Trace[fdrda.Step], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, Fdrda)
    F, L, dot_bits = p.F, p.L, p.dot_bits
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        special = special_rows(step.special, step.result, spec.d_format)
        zero = not any(x.significand for x in step.products)
        idle = is_idle(zero, (*step.a, *step.b)) and entering == step.result
        if special:
            steps.append(ToldStep(special, idle))
            continue
        rows = []
        stride = len(step.dots)
        names = ("products",) if stride == 1 else ("even products", "odd products")
        for g, (dot, name) in enumerate(zip(step.dots, names, strict=True)):
            if not any(x.significand for x in step.products[g::stride]):
                continue
            rows.append(Row("align", f"largest exponent, {name}", str(dot.e_max)))
            for i, aligned in enumerate(dot.aligned):
                product = step.products[g + i * stride]
                if product.significand:
                    last, name = dot.e_max - F, product_name(number * L + g + i * stride)
                    rows.append(
                        cut_row("align", name, scaled(aligned, last), term_value(product, bits), last)
                    )
            rows.append(Row("accumulate", f"sum of {name}", hex_text(scaled(dot.total, dot.e_max - F))))
        exact_dots = sum((scaled(dot.total, dot.e_max - F) for dot in step.dots), Fraction(0))
        if stride > 1:
            joined = scaled(step.dot.total, step.dot.e_max - F)
            rows.append(Row("accumulate", "even + odd", kept_and_lost(joined, exact_dots)))
        rows.append(Row("align", "largest exponent with c", str(step.e_max)))
        cut_dot = scaled(step.cut_dot, step.e_max - dot_bits)
        dot_sum, last = scaled(step.dot.total, step.dot.e_max - F), step.e_max - dot_bits
        rows.append(cut_row("align", "sum of products", cut_dot, dot_sum, last))
        if step.c.significand:
            cut_c, exact = scaled(step.cut_c, step.e_max - F), term_value(step.c, spec.c_format.fraction_bits)
            rows.append(cut_row("align", "c", cut_c, exact, step.e_max - F))
        total = scaled(step.total, step.e_max - dot_bits)
        cut_total = scaled(step.cut_total.total, step.cut_total.unit)
        rows.append(Row("accumulate", "sum with c", kept_and_lost(cut_total, total)))
        steps.append(ToldStep(rows + ending_rows(cut_total, step.result, spec.d_format)[1:], idle))
    return steps
