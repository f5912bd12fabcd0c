"""Steps of acc_e9s12, shown."""

from __future__ import annotations

from fractions import Fraction

from mmaformal.encodings.acc_e9s12 import AccE9s12
from mmaformal.encodings.acc_e9s12 import executable as acc_e9s12
from mmaformal.encodings.dpa_e9s12.renderer import names_of, placed_rows, unit_below, value_of
from mmaformal.encodings.executable.blocks import Trace
from mmaformal.renderers.rows import (
    Row,
    Steps,
    ending_rows,
    kept_and_lost,
    step_rows,
)
from mmaformal.spec import DotAdd


def steps(spec: DotAdd, trace: Trace[acc_e9s12.AccE9s12Step], c: int) -> Steps:
    """Returns the rows of each step, all passes."""
    p = spec.parameters_as(AccE9s12)

    def rows(number: int, step: acc_e9s12.AccE9s12Step) -> list[Row]:
        names = iter(["c high", "c low", *names_of(number * p.D, p.D, len(step.passes[-1].products) // p.N)])
        shown, before = list[Row](), Fraction(0)
        for each in step.passes:
            unit = unit_below(each.e_max, p.accumulator_bits - 3 - p.carries(spec))
            after = value_of(each.before, unit)  # bits of what is accumulated may be lost before a pass
            if before != after:
                shown.append(Row("align", "accumulator", kept_and_lost(after, before)))
            shown += placed_rows(each.products, each.placed, unit, names)
            before = value_of(each.partials[-1], unit)
        return shown + ending_rows(before, step.result, spec.d_format)

    def any_product(step: acc_e9s12.AccE9s12Step) -> bool:
        return any(x.significand for each in step.passes for x in each.products)

    return step_rows(spec, trace, c, any_product, rows)
