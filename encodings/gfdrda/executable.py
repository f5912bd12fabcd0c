"""gfdrda, grouped fdrda, executable.  Specification: semantics §3; MMA-Sim §IV-H (GFDRDA) and §IV-I.

As fdrda, with two changes:

- the products of even index and those of odd index are aligned and summed apart, each group to its own largest
  exponent, F fractional bits kept, toward zero; then the two sums are aligned to the larger of the two, with F
  fractional bits, down, and added;
- a c whose exponent is below `e_max - c_reach` becomes 0 instead of being rounded down.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.executable.blocks import (
    Lane,
    Term,
    maximum,
    shift_right,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.fdrda.executable import (
    Dot,
    FdrdaStep,
    dot_product,
    step_of_sums,
)
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.spec import DotAdd


def add_dots(even: Dot, odd: Dot, parameters: Gfdrda) -> Dot:
    """The two sums aligned to the larger exponent and added."""
    e_max = maximum(even.e_max, odd.e_max)
    aligned = tuple(shift_right(dot.total, e_max - dot.e_max, parameters.cut) for dot in (even, odd))
    return Dot(e_max, aligned, sum(aligned))


def step(spec: DotAdd, parameters: Gfdrda, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> FdrdaStep:
    def sums(products: Sequence[Term], bits: int) -> tuple[tuple[Dot, ...], Dot]:
        even, odd = (dot_product(part, bits, parameters.F) for part in (products[0::2], products[1::2]))
        return (even, odd), add_dots(even, odd, parameters)

    return step_of_sums(spec, parameters, a, b, c, sums, parameters.c_reach)


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Gfdrda), a, b, c))
