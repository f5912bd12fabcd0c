"""Steps of fdrda and gfdrda, shown."""

from __future__ import annotations

from fractions import Fraction

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.fdrda import executable as fdrda
from mmaformal.renderers.rows import (
    Row,
    Steps,
    bits_of_products,
    cut_row,
    ending_rows,
    hex_text,
    kept_and_lost,
    product_name,
    scaled,
    step_rows,
    term_value,
)
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[fdrda.FdrdaStep], c: int) -> Steps:
    """Returns the rows of each step: of all products, or of even and odd ones; and of their sum with c."""
    p = spec.parameters_as(Fdrda)

    def rows(number: int, step: fdrda.FdrdaStep) -> list[Row]:
        return [*_products(spec, p, number * p.L, step), *_with_c(spec, p, step)]

    return step_rows(spec, trace, c, lambda step: any(x.significand for x in step.products), rows)


def _products(spec: DotAdd, p: Fdrda, first: int, step: fdrda.FdrdaStep) -> list[Row]:
    rows, stride = list[Row](), len(step.dots)
    bits = bits_of_products(spec)
    names = ("products",) if stride == 1 else ("even products", "odd products")
    sums = [scaled(dot.total, dot.e_max - p.F) for dot in step.dots]
    for g, (dot, name) in enumerate(zip(step.dots, names, strict=True)):
        own = [
            *zip(range(first + g, first + len(step.products), stride), step.products[g::stride], strict=True)
        ]
        if any(x.significand for _, x in own):
            rows.append(Row("align", f"largest exponent, {name}", str(dot.e_max)))
            for (k, product), aligned in zip(own, dot.aligned, strict=True):
                if product.significand:
                    kept, last = scaled(aligned, dot.e_max - p.F), dot.e_max - p.F
                    rows.append(cut_row("align", product_name(k), kept, term_value(product, bits), last))
            rows.append(Row("accumulate", f"sum of {name}", hex_text(sums[g])))
    if stride > 1:
        joined = scaled(step.dot.total, step.dot.e_max - p.F)
        rows.append(Row("accumulate", "even + odd", kept_and_lost(joined, sum(sums, Fraction(0)))))
    return rows


def _with_c(spec: DotAdd, p: Fdrda, step: fdrda.FdrdaStep) -> list[Row]:
    rows, last = [Row("align", "largest exponent with c", str(step.e_max))], step.e_max - p.dot_bits
    dot = scaled(step.dot.total, step.dot.e_max - p.F)
    rows.append(cut_row("align", "sum of products", scaled(step.cut_dot, last), dot, last))
    if step.c.significand:
        kept, exact = scaled(step.cut_c, step.e_max - p.F), term_value(step.c, spec.c_format.fraction_bits)
        rows.append(cut_row("align", "c", kept, exact, step.e_max - p.F))
    total = scaled(step.cut_total.total, step.cut_total.unit)
    rows.append(Row("accumulate", "sum with c", kept_and_lost(total, scaled(step.total, last))))
    return rows + ending_rows(total, step.result, spec.d_format)[1:]
