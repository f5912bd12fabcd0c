"""Steps of dpa_e9s12, shown."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

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


def steps(spec: DotAdd, trace: Trace[dpa_e9s12.DpaE9s12Step], c: int) -> Steps:
    """Returns the rows of each step."""
    p = spec.parameters_as(DpaE9s12)

    def rows(number: int, step: dpa_e9s12.DpaE9s12Step) -> list[Row]:
        unit = unit_below(step.e_max, p.accumulator_bits - 3 - dpa_e9s12.carries(len(step.products)))
        names = names_of(number * p.N, p.N, len(step.products) // p.N)
        total = term_value(step.addend, spec.c_format.fraction_bits)
        total += sum(value_of(each, unit) for each in step.placed)
        shown = placed_rows(step.products, step.placed, unit, names)
        return shown + ending_rows(total, step.result, spec.d_format)

    return step_rows(spec, trace, c, lambda step: any(x.significand for x in step.products), rows)


def names_of(first: int, count: int, each: int) -> Iterator[str]:
    """Yields the names of products, or of their halves'."""
    for k in range(first, first + count):
        yield from (product_name(k) + (f" {_HALVES[i]}" if each > 1 else "") for i in range(each))


def placed_rows(
    products: tuple[Term, ...], placed: tuple[limbs.Wide, ...], unit: int, names: Iterator[str]
) -> list[Row]:
    """Returns what is kept of each product that is not zero."""
    rows = []
    for product, kept, name in zip(products, placed, names, strict=False):
        exact = scaled(
            -product.significand if product.sign else product.significand, product.exponent - _PLACES
        )
        if exact:
            rows.append(Row("align", name, kept_and_lost(value_of(kept, unit), exact)))
    return rows


def unit_below(e_max: int, F: int) -> int:
    """Returns the exponent of the last of F places below e_max."""
    return e_max - 2 * dpa_e9s12.BIAS - F - dpa_e9s12.BELOW


def value_of(x: limbs.Wide, unit: int) -> Fraction:
    """Returns a sum of two limbs in units of 2^unit."""
    return scaled((x.high << limbs.BITS) + x.low, unit)
