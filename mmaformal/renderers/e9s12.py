"""Steps of dpa_e9s12 and acc_e9s12, shown."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.acc_e9s12 import executable as acc_e9s12
from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.encodings.dpa_e9s12 import executable as dpa_e9s12
from mmaformal.encodings.executable import limbs
from mmaformal.encodings.executable.blocks import Term, Trace
from mmaformal.renderers.rows import (
    Row,
    Steps,
    ending_rows,
    kept_and_lost,
    product_name,
    scaled,
    step_rows,
    term_value,
)
from mmaformal.spec import DotAdd

_HALVES = ("high·high", "high·low", "low·high", "low·low")
_PLACES = 2 * (dpa_e9s12.BIAS + dpa_e9s12.FRACTION)  #: that a product's exponent is held above


def dot_product_rows(spec: DotAdd, trace: Trace[dpa_e9s12.DpaE9s12Step], c: int) -> Steps:
    """Returns the rows of each step."""
    p = spec.parameters_as(DpaE9s12)

    def rows(number: int, step: dpa_e9s12.DpaE9s12Step) -> list[Row]:
        unit = _unit(step.e_max, p.accumulator_bits - 3 - dpa_e9s12.carries(len(step.products)))
        names = _names(number * p.N, p.N, len(step.products) // p.N)
        total = term_value(step.addend, spec.c_format.fraction_bits)
        total += sum(_value(each, unit) for each in step.placed)
        shown = _placed(step.products, step.placed, unit, names)
        return shown + ending_rows(total, step.result, spec.d_format)

    return step_rows(spec, trace, c, lambda step: any(x.significand for x in step.products), rows)


def passes(spec: DotAdd, trace: Trace[acc_e9s12.AccE9s12Step], c: int) -> Steps:
    """Returns the rows of each step, all passes."""
    p = spec.parameters_as(AccE9s12)

    def rows(number: int, step: acc_e9s12.AccE9s12Step) -> list[Row]:
        names = iter(["c high", "c low", *_names(number * p.D, p.D, len(step.passes[-1].products) // p.N)])
        shown, before = list[Row](), Fraction(0)
        for each in step.passes:
            unit = _unit(each.e_max, p.accumulator_bits - 3 - p.carries(spec))
            after = _value(each.before, unit)  # bits of what is accumulated may be lost before a pass
            if before != after:
                shown.append(Row("align", "accumulator", kept_and_lost(after, before)))
            shown += _placed(each.products, each.placed, unit, names)
            before = _value(each.partials[-1], unit)
        return shown + ending_rows(before, step.result, spec.d_format)

    def any_product(step: acc_e9s12.AccE9s12Step) -> bool:
        return any(x.significand for each in step.passes for x in each.products)

    return step_rows(spec, trace, c, any_product, rows)


def _names(first: int, count: int, each: int) -> Iterator[str]:
    """Yields the names of products, or of their halves'."""
    for k in range(first, first + count):
        yield from (product_name(k) + (f" {_HALVES[i]}" if each > 1 else "") for i in range(each))


def _placed(
    products: tuple[Term, ...], placed: tuple[limbs.Wide, ...], unit: int, names: Iterator[str]
) -> list[Row]:
    """Returns what is kept of each product that is not zero."""
    rows = []
    for product, kept, name in zip(products, placed, names, strict=False):
        exact = scaled(
            -product.significand if product.sign else product.significand, product.exponent - _PLACES
        )
        if exact:
            rows.append(Row("align", name, kept_and_lost(_value(kept, unit), exact)))
    return rows


def _unit(e_max: int, F: int) -> int:
    return e_max - 2 * dpa_e9s12.BIAS - F - dpa_e9s12.BELOW


def _value(x: limbs.Wide, unit: int) -> Fraction:
    return scaled((x.high << limbs.BITS) + x.low, unit)
