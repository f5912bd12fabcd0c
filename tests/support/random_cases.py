"""Random cases of any unit, and what `dot_add` gives for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import Codes
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.spec import DotAdd


def code(fmt: Format, rng: random.Random) -> int:
    """A code: any, or one of those that matter."""
    kind = rng.random()
    if kind < 0.35:
        return rng.randrange(fmt.codes)
    low = fmt.ignored_low_bits
    top = (1 << fmt.exponent_bits) - 1
    field = rng.choice(
        (0, 0, 1, fmt.bias, fmt.bias, fmt.bias + 1, fmt.bias - 1, top - 1, top, rng.randint(0, top))
    )
    ones = (1 << fmt.fraction_bits) - 1
    fraction = (
        rng.choice((0, 0, 1, ones, ones >> 1, 1 << max(fmt.fraction_bits - 1, 0), rng.randint(0, ones)))
        & ones
    )
    found = (min(max(field, 0), top) << fmt.fraction_bits | fraction) << low
    return (found | (fmt.sign_mask if rng.random() < 0.5 else 0)) % fmt.codes


def cases(spec: DotAdd, rng: random.Random, count: int) -> list[Codes]:
    """Holds cases of all distributions."""
    return generate(spec, count, rng.getrandbits(32)).cases()


def columns(spec: DotAdd, given: Sequence[Codes]) -> list[np.ndarray[Any, Any]]:
    arrays = [
        np.array([x.a for x in given], spec.a_format.word),
        np.array([x.b for x in given], spec.b_format.word),
        np.array([x.c for x in given], spec.c_format.word),
    ]
    if spec.scale_format is not None:
        arrays += [
            np.array([getattr(x, s) for x in given], spec.scale_format.word) for s in ("scale_a", "scale_b")
        ]
    return arrays


def run(unit: Instruction, given: Sequence[Codes]) -> list[int]:
    return [int(d) for d in unit.dot_add(*columns(unit.spec, given))]


def same(spec: DotAdd, x: int, y: int) -> bool:
    return x == y or (not spec.nan_is_canonical and spec.d_format.is_nan(x) and spec.d_format.is_nan(y))


def value(fmt: Format, x: int) -> Fraction | float | None:
    """The number, an infinity, or None for a NaN."""
    if fmt.is_nan(x):
        return None
    if fmt.is_infinite(x):
        return float("-inf") if x & fmt.sign_mask else float("inf")
    return fmt.value(x)
