"""Steps that round an exact sum once, shown: efda and ffma."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from mmaformal.encodings.efda import executable as executable_efda
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.encodings.ffma import executable as executable_ffma
from mmaformal.renderers.rows import (
    Row,
    Steps,
    ending_rows,
    hex_text,
    product_name,
    shown_steps,
    term_value,
)
from mmaformal.spec import DotAdd

#: The products of a step, and c, as numbers.
Numbers = Callable[[Any], tuple[Sequence[Fraction], Fraction]]


def _exact(spec: DotAdd, trace: Trace[Any], c: int, numbers: Numbers, zeros: bool) -> Steps:
    """Returns the products of each step, those that are zero too with `zeros`, and how their sum with c is rounded."""

    def rows(n: int, step: Any) -> list[Row]:
        products, addend = numbers(step)
        first = n * len(products)
        shown = [
            Row("multiply", product_name(first + i), hex_text(x))
            for i, x in enumerate(products)
            if x or zeros
        ]
        return shown + ending_rows(sum(products, addend), step.result, spec.d_format)

    return shown_steps(spec, trace, c, lambda step: any(numbers(step)[0]), rows)


def efda(spec: DotAdd, trace: Trace[executable_efda.EfdaStep], c: int) -> Steps:
    """Returns the rows of each step."""
    places = spec.a_format.fraction_bits + spec.b_format.fraction_bits

    def numbers(step: executable_efda.EfdaStep) -> tuple[Sequence[Fraction], Fraction]:
        products = [term_value(x, places) for x in step.products]
        return products, term_value(step.addend, spec.c_format.fraction_bits)

    return _exact(spec, trace, c, numbers, zeros=False)


def ffma(spec: DotAdd, trace: Trace[executable_ffma.Step], c: int) -> Steps:
    """Returns the rows of each step."""
    places = spec.a_format.fraction_bits + spec.b_format.fraction_bits

    def numbers(step: executable_ffma.Step) -> tuple[Sequence[Fraction], Fraction]:
        return [term_value(step.product, places)], term_value(step.addend, spec.c_format.fraction_bits)

    return _exact(spec, trace, c, numbers, zeros=True)
