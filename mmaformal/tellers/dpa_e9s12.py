"""A step of dpa_e9s12, told."""

from __future__ import annotations

from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import executable as dpa_e9s12
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.spec import DotAdd
from mmaformal.tellers.rows import (
    Row,
    Steps,
    ToldStep,
    addends,
    ending_rows,
    is_idle,
    kept_and_lost,
    product_name,
    scaled,
    special_rows,
    term_value,
)

#: what the halves of an fp32 product are called, in the order in which they are multiplied
HALVES = ("high·high", "high·low", "low·high", "low·low")


def tell(spec: DotAdd, trace: Trace[dpa_e9s12.Step], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, DpaE9s12)
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        special = special_rows(step.special, step.result, spec.d_format)
        zero = not any(x.significand for x in step.products)
        idle = is_idle(zero, (*step.a, *step.b)) and entering == step.result
        if special:
            steps.append(ToldStep(special, idle))
            continue
        each = len(step.products) // p.N
        places = 2 * (dpa_e9s12.BIAS + dpa_e9s12.FRACTION)
        F = p.L - 3 - dpa_e9s12.carries(len(step.products))
        unit = step.e_max - 2 * dpa_e9s12.BIAS - F - dpa_e9s12.BELOW
        rows, total = [], term_value(step.addend, spec.c_format.fraction_bits)
        for i, (product, placed) in enumerate(zip(step.products, step.placed, strict=True)):
            exact = scaled(
                -product.significand if product.sign else product.significand, product.exponent - places
            )
            kept = scaled((placed.high << limbs.BITS) + placed.low, unit)
            total += kept
            if exact:
                name = product_name(number * p.N + i // each) + (f" {HALVES[i % each]}" if each > 1 else "")
                rows.append(Row("align", name, kept_and_lost(kept, exact)))
        steps.append(ToldStep(rows + ending_rows(total, step.result, spec.d_format), idle))
    return steps
