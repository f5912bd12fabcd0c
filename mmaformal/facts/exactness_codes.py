"""The conditions of exactness on codes, in rationals: what the algorithms' own ones are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

from mmaformal.cases.inputs import Codes
from mmaformal.formats import Format, fp32
from mmaformal.rounding import IEEE_FP32, Conversion
from mmaformal.spec import DotAdd
from mmaformal.theory.rounded_trees import Shape, not_below


class Rounding(NamedTuple):
    """One rounding of a computation in which each one before is exact."""

    whole: bool  #: whether nothing is cut off before
    exact: Fraction  #: what is rounded then
    rho: Conversion


#: All of a computation, in order.
Roundings = Iterator[Rounding]

Number = tuple[Fraction, int]  #: a value and the exponent it is aligned by


def lowest_bit(x: Fraction) -> int:
    """The exponent of the lowest set bit of a dyadic number that is not 0."""
    numerator = abs(x.numerator)
    return (numerator & -numerator).bit_length() - x.denominator.bit_length()


def has_no_bit_below(x: Fraction, exponent: int) -> bool:
    return x == 0 or lowest_bit(x) >= exponent


def total(terms: Sequence[Number]) -> Fraction:
    return sum((value for value, _ in terms), Fraction(0))


def exponent_of(code: int, fmt: Format) -> int:
    field = fmt.fields(code)[1]
    return (max(field, 1) if fmt.has_zero else field) - fmt.bias


def products(spec: DotAdd, codes: Codes) -> list[Number]:
    """Each with the exponent of its factors' fields, and of its scales'."""
    return [_product(spec, codes, k) for k in range(spec.k)]


def _product(spec: DotAdd, codes: Codes, k: int) -> Number:
    value = spec.a_format.value(codes.a[k]) * spec.b_format.value(codes.b[k])
    exponent = exponent_of(codes.a[k], spec.a_format) + exponent_of(codes.b[k], spec.b_format)
    if spec.scale_format is not None:
        for scale in (codes.scale_a[k // spec.scale_block], codes.scale_b[k // spec.scale_block]):
            value *= spec.scale_format.value(scale)
            exponent += exponent_of(scale, spec.scale_format)
    return value, exponent


def addend(c: Fraction, fmt: Format) -> Number:
    """c, which may be an exact result of a step, and its exponent."""
    if not c:
        return c, fmt.min_exponent
    top = abs(c.numerator).bit_length() - c.denominator.bit_length()
    top = top if abs(c) >= Fraction(2) ** top else top - 1
    return c, max(top, fmt.min_exponent)


def aligned(terms: Sequence[Number], F: int, e_zero: int | None) -> bool:
    """Whether no term has a bit below 2^(e_max - F).

    A zero counts with e_zero or the exponent of its fields, whichever is larger: that may only say no.
    """
    e_max = max(e if value or e_zero is None else max(e, e_zero) for value, e in terms)
    return all(has_no_bit_below(value, e_max - F) for value, _ in terms)


def roundings_of_steps(
    spec: DotAdd, codes: Codes, loses_nothing: Callable[[int, list[Number], Number], bool]
) -> Roundings:
    """Yield the roundings of a chain of steps that round once: `loses_nothing` says of the place of a step's first
    product, its products, and its c, whether all are added exactly."""
    terms, L = products(spec, codes), spec.parameters.step_products
    c = spec.c_format.value(codes.c)
    for start in range(0, spec.k, L):
        part = terms[start : start + L]
        whole = loses_nothing(start, part, addend(c, spec.c_format))
        c += total(part)
        yield Rounding(whole, c, spec.parameters.last_rounding)


def roundings_of_trees(spec: DotAdd, codes: Codes, shape: Shape, *, numbers: bool) -> Roundings:
    """Yield the roundings of a chain of trees (`theory/rounded_trees.py`); with the products, if they are `numbers`."""
    terms, L, rho = products(spec, codes), spec.parameters.step_products, spec.parameters.last_rounding
    c = spec.c_format.value(codes.c)
    fine = not_below(c, fp32)
    for start in range(0, spec.k, L):
        sides = ((codes.a, spec.a_format), (codes.b, spec.b_format))
        factors = [(fmt.value(side[k]), fmt) for side, fmt in sides for k in range(start, start + L)]
        fine = fine and all(not_below(x, fmt) for x, fmt in factors)
        values = [x for x, _ in terms[start : start + L]]
        for x, y in shape:
            values.append(values[x] + (0 if y is None else values[y]))
        c += values[-1]
        for i, value in enumerate((*values, c)):
            if i < L and not numbers:
                continue
            fine = fine and not_below(value, fp32)
            yield Rounding(fine, value, rho if i >= L else IEEE_FP32)
