"""The sums of efda, and the case with the largest numbers."""

from __future__ import annotations

from mmaformal.cases.inputs import Codes
from mmaformal.encodings.efda import smt as efda
from mmaformal.facts.sums import (
    Sum,
    largest_product,
    sum_of_two,
)
from mmaformal.formats import Format
from mmaformal.proof.encoding_links import summands
from mmaformal.spec import DotAdd


def sums_of(spec: DotAdd, step: efda.FixedStep | efda.SortedStep) -> list[Sum]:
    if isinstance(step, efda.SortedStep):
        return [
            sum_of_two(step, "two of three sorted terms", step.partial),
            sum_of_two(step, "that and the third", step.sum),
        ]
    highest = spec.a_format.max_exponent + spec.b_format.max_exponent
    lowest = spec.a_format.min_exponent + spec.b_format.min_exponent
    bound = largest_product(spec) << (highest - lowest)
    count = len(step.placed)
    return [Sum("products", step.dot, tuple(summands(step.dot, count)), (bound,) * count, (), step)]


def largest_numbers(spec: DotAdd) -> Codes:
    """Every a and b the largest number, c = 0: the sum is in fixed point."""
    return Codes((_largest(spec.a_format),) * spec.k, (_largest(spec.b_format),) * spec.k, 0)


def _largest(fmt: Format) -> int:
    """The code of the largest number."""
    code = (1 << (fmt.exponent_bits + fmt.fraction_bits)) - 1
    while not fmt.is_finite(code << fmt.ignored_low_bits):  # at most the fractions of one exponent
        code = code - 1 if fmt.infinity is None else (fmt.infinity >> fmt.ignored_low_bits) - 1
    return code << fmt.ignored_low_bits
