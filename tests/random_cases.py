"""Random cases of any unit: codes at which something happens; what a unit gives for them; and exact sums."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import exact
import numpy as np

from mmaformal.algorithms import DotAdd
from mmaformal.cases.inputs import Codes
from mmaformal.formats import Format
from mmaformal.instruction import Instruction

# ---- cases -----------------------------------------------------------------------------------------------------------


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
    """Few products or all, cancelling, near c or far from it, with special values now and then."""
    out = []
    for _ in range(count):
        busy = [k for k in range(spec.k) if rng.random() < rng.choice((0.2, 0.7, 1.0))]
        a, b = [0] * spec.k, [0] * spec.k
        for k in busy:
            a[k], b[k] = code(spec.a_format, rng), code(spec.b_format, rng)
            if k and busy[0] != k and rng.random() < 0.3:  # the opposite of another
                a[k], b[k] = a[busy[0]] ^ spec.a_format.sign_mask, b[busy[0]]
        if rng.random() < 0.2:  # zeros of other signs and factors
            k = rng.randrange(spec.k)
            a[k], b[k] = spec.a_format.sign_mask, code(spec.b_format, rng)
        c = code(spec.c_format, rng)
        scales: tuple[tuple[int, ...], ...] = ((), ())
        if spec.scale_format is not None:
            near = rng.random() < 0.7
            one = spec.scale_format.bias << spec.scale_format.fraction_bits
            scales = tuple(
                tuple(
                    min(max(one + rng.randint(-9, 9), 0), spec.scale_format.codes - 1)
                    if near
                    else code(spec.scale_format, rng)
                    for _ in range(spec.scales)
                )
                for _ in "ab"
            )
        if rng.random() < 0.3:
            c = opposite_of_products(spec, Codes(tuple(a), tuple(b), 0, *scales), rng) or c
        out.append(Codes(tuple(a), tuple(b), c, *scales))
    return out


def total(spec: DotAdd, x: Codes) -> Fraction | None:
    """The exact sum; None where an input is no number."""
    named = [(y, spec.a_format) for y in x.a] + [(y, spec.b_format) for y in x.b] + [(x.c, spec.c_format)]
    if spec.scale_format is not None:
        named += [(y, spec.scale_format) for y in (*x.scale_a, *x.scale_b)]
    if not all(f.is_finite(y) for y, f in named):
        return None
    value = spec.c_format.value(x.c)
    for k, (u, v) in enumerate(zip(x.a, x.b, strict=True)):
        product = spec.a_format.value(u) * spec.b_format.value(v)
        if spec.scale_format is not None:
            i = k // spec.scale_block
            product *= spec.scale_format.value(x.scale_a[i]) * spec.scale_format.value(x.scale_b[i])
        value += product
    return value


def opposite_of_products(spec: DotAdd, x: Codes, rng: random.Random) -> int | None:
    """A c near the opposite of the products' sum."""
    value, fmt = total(spec, x), spec.c_format
    if not value or not fmt.signed or not fmt.has_zero:
        return None
    field = min(max(exact.exponent_of(value) + fmt.bias, 0), (1 << fmt.exponent_bits) - 2)
    unit = Fraction(2) ** (max(field, 1) - fmt.bias - fmt.fraction_bits)
    significand = min(int(abs(value) / unit), (2 << fmt.fraction_bits) - 1) - (
        (1 << fmt.fraction_bits) if field else 0
    )
    near = (field << fmt.fraction_bits) + max(significand, 0) + rng.choice((0, 0, 1, -1))
    found = (max(near, 0) << fmt.ignored_low_bits) | (fmt.sign_mask if value > 0 else 0)
    return found if found < fmt.codes else None


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
