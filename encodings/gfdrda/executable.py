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
    decode,
    encode,
    maximum,
    quiet_nan,
    select_special,
    shift_right,
)
from mmaformal.encodings.executable.chain import looped
from mmaformal.encodings.fdrda.executable import (
    Dot,
    FdrdaStep,
    add_c,
    dot_product,
    products_and_specials,
    round_total,
)
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.spec import DotAdd


def add_dots(even: Dot, odd: Dot, parameters: Gfdrda) -> Dot:
    """The two sums aligned to the larger exponent and added."""
    e_max = maximum(even.e_max, odd.e_max)
    aligned = tuple(shift_right(dot.total, e_max - dot.e_max, parameters.cut) for dot in (even, odd))
    return Dot(e_max, aligned, sum(aligned))


def step(spec: DotAdd, parameters: Gfdrda, a: Sequence[Lane], b: Sequence[Lane], c: Lane) -> FdrdaStep:
    a_operands = tuple(decode(x, spec.a_format.layout) for x in a)
    b_operands = tuple(decode(x, spec.b_format.layout) for x in b)
    c_operand = decode(c, spec.c_format.layout)
    products, special = products_and_specials(spec, parameters, a_operands, b_operands, c_operand)
    bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    even = dot_product(products[0::2], bits, parameters.F)
    odd = dot_product(products[1::2], bits, parameters.F)
    dot = add_dots(even, odd, parameters)
    e_max, cut_dot, cut_c, total = add_c(spec, parameters, dot, c_operand, parameters.c_reach)
    cut_total, rounded = round_total(parameters, total, e_max)
    rho = parameters.rho
    result = select_special(special, encode(rounded, rho), rho, quiet_nan(rho.format))
    return FdrdaStep(
        a_operands,
        b_operands,
        c=c_operand,
        special=special,
        products=products,
        dots=(even, odd),
        dot=dot,
        e_max=e_max,
        cut_dot=cut_dot,
        cut_c=cut_c,
        total=total,
        cut_total=cut_total,
        rounded=rounded,
        result=result,
    )


dot_add = looped(lambda spec, a, b, c, stages: step(spec, spec.parameters_as(Gfdrda), a, b, c))
