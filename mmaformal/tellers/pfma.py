"""A step of pfma, told."""

from __future__ import annotations

from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.pfma import Pfma
from mmaformal.encodings.pfma import executable as pfma
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
    is_idle,
    product_name,
    sum_text,
    term_value,
)


def tell(spec: DotAdd, trace: Trace[pfma.Step], c: int) -> Steps:
    p, bits = spec.parameters, spec.a_format.fraction_bits + spec.b_format.fraction_bits
    assert isinstance(p, Pfma)
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        zero = not any(x.product.significand for x in step.fmas)
        factors = [x for each in step.fmas for x in (each.a, each.b)]
        idle = is_idle(zero, factors) and entering == step.result
        rows = []
        for k, each in enumerate(step.fmas):
            exact = term_value(each.product, bits)
            if each.product.significand or each.special.nan:
                name, sum_ = product_name(number * p.L + k), f"sum {k % 2}"
                if fp32.is_finite(each.result):
                    lost = exact + term_value(each.addend, fp32.fraction_bits) - fp32.value(each.result)
                    rows.append(Row("multiply", name, hex_text(exact)))
                    text = code_text(each.result, fp32) + (f"  (lost {hex_text(lost)})" if lost else "")
                else:
                    text = code_text(each.result, fp32)
                rows.append(Row("accumulate", f"{sum_} with {name}", text))
        sums = [each.result for each in step.fmas[-2:]]
        rows.append(Row("pairwise", "sum 0 + sum 1", sum_text(sums[0], sums[1], step.sum)))
        text = sum_text(without_subnormal(entering), step.sum, step.result)
        rows.append(Row("accumulate", "c and that", text))
        rows.append(Row("encode", "d", code_text(step.result, fp32)))
        steps.append(ToldStep(rows, idle))
    return steps
