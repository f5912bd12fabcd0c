"""Sights of two results that differ, for kinds of differences that no change of a model explains."""

from __future__ import annotations

from collections.abc import Callable

from mmaformal.cases.codes import (
    CodeOrFact,
    Fact,
    both,
    either,
    exponent_field,
    is_finite,
    is_nan,
    is_zero,
    negation,
)
from mmaformal.formats import Format


def _is_subnormal(x: CodeOrFact, d: Format) -> Fact:
    return both(exponent_field(x, d) == 0, negation(is_zero(x, d)))


#: Sights of two results that differ, the first that fits to be taken; the last one always does.
SEEN: dict[str, Callable[[CodeOrFact, CodeOrFact, Format], Fact]] = {
    "another NaN": lambda x, y, d: both(is_nan(x, d), is_nan(y, d)),
    "a special value": lambda x, y, d: negation(both(is_finite(x, d), is_finite(y, d))),
    "the sign of zero": lambda x, y, d: both(is_zero(x, d), is_zero(y, d)),
    "the sign of a number": lambda x, y, d: (x ^ y) == d.sign_mask,
    "a subnormal result": lambda x, y, d: either(_is_subnormal(x, d), _is_subnormal(y, d)),
    "one unit in the last place": lambda x, y, d: either(
        x - y == 1 << d.ignored_low_bits, y - x == 1 << d.ignored_low_bits
    ),
    "more than one unit in the last place": lambda x, y, d: either(x == y, x != y),
}
