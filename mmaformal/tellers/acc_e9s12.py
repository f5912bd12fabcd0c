"""A step of acc_e9s12, all passes, told."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.acc_e9s12 import executable as acc_e9s12
from mmaformal.encodings.dpa_e9s12 import executable as dpa_e9s12
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.spec import DotAdd
from mmaformal.tellers.dpa_e9s12 import HALVES
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
)


def tell(spec: DotAdd, trace: Trace[acc_e9s12.Step], c: int) -> Steps:
    p = spec.parameters
    assert isinstance(p, AccE9s12)
    steps: Steps = []
    for number, (step, entering) in enumerate(zip(trace.steps, addends(spec, trace, c), strict=True)):
        special = special_rows(step.special, step.result, spec.d_format)
        zero = not any(x.significand for each in step.passes for x in each.products)
        idle = is_idle(zero, (*step.a, *step.b)) and entering == step.result
        if special:
            steps.append(ToldStep(special, idle))
            continue
        F, names = p.L - 3 - p.carries(spec), _names(p, len(step.passes[-1].products) // p.N, number * p.D)
        rows, before = [], Fraction(0)
        for each in step.passes:
            unit = each.e_max - 2 * dpa_e9s12.BIAS - F - dpa_e9s12.BELOW
            rows += _shifted(before, _value(each.before, unit))
            for product, placed in zip(each.products, each.placed, strict=True):
                signed = -product.significand if product.sign else product.significand
                exact = scaled(signed, product.exponent - 2 * (dpa_e9s12.BIAS + dpa_e9s12.FRACTION))
                name = next(names)
                if exact:
                    rows.append(Row("align", name, kept_and_lost(_value(placed, unit), exact)))
            before = _value(each.partials[-1], unit)
        steps.append(ToldStep(rows + ending_rows(before, step.result, spec.d_format), idle))
    return steps


def _names(p: AccE9s12, each: int, first: int) -> Iterator[str]:
    """Of all terms, in order: c's halves, then each product, or its halves'."""
    yield from ("c high", "c low")
    for k in range(first, first + p.D):
        yield from (product_name(k) + (f" {HALVES[i]}" if each > 1 else "") for i in range(each))


def _shifted(before: Fraction, after: Fraction) -> list[Row]:
    """What is accumulated, if bits of it are lost before a pass."""
    return [Row("align", "accumulator", kept_and_lost(after, before))] if before != after else []


def _value(x: limbs.Wide, unit: int) -> Fraction:
    return scaled((x.high << limbs.BITS) + x.low, unit)
