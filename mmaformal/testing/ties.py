"""Inputs whose exact sum is a tie: it lies halfway between two neighbouring numbers of d's format."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.inputs import Rows, one
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

Uint64Codes = NDArray[np.uint64]


def tied(spec: DotAdd, n: int, rng: np.random.Generator) -> Rows:
    """Draw n inputs: c is a number of d's format, and products of powers of two are half of its last place.

    That half is one product, or, where there are more, two of a quarter each, at any places; two others may cancel.
    Scales are 1.  Raises ValueError for a unit that has no c of d's format, or reads none.
    """
    if spec.c_format != spec.d_format or not spec.reads_c or spec.is_signed:
        raise ValueError("ties are made of c and half of its last place, and this unit takes no such c")
    a_format, b_format, d = spec.a_format, spec.b_format, spec.d_format
    low, high = (
        a_format.min_exponent + b_format.min_exponent,
        a_format.max_exponent + b_format.max_exponent - 2,
    )
    # The exponent of c, so that half a last place is a product of powers of two.
    first = max(d.min_exponent, low + d.fraction_bits + 2)
    last = min(d.max_exponent - 1, high + d.fraction_bits + 1)
    if first > last:
        raise ValueError(f"no product of {a_format} × {b_format} is half a last place of {d}")
    e = rng.integers(first, last, n, endpoint=True)
    fraction = rng.integers(0, 1 << d.fraction_bits, n)
    sign = rng.integers(0, 2, n)
    c = _code(d, e, fraction, sign)
    a, b = (np.zeros((n, spec.k), np.uint64) for _ in "ab")
    places = np.argsort(rng.random((n, spec.k)), axis=1)
    rows = np.arange(n)
    half, of_two = e - d.fraction_bits - 1, (rng.random(n) < 0.5) & (spec.k > 1)
    signs = rng.integers(0, 2, n)
    for place, there in ((0, np.ones(n, bool)), (min(1, spec.k - 1), of_two)):
        x, y = _powers(a_format, b_format, half - of_two, signs, rng)
        a[rows[there], places[there, place]], b[rows[there], places[there, place]] = x[there], y[there]
    if spec.k > 3:
        cancels = rng.random(n) < 0.5
        x, y = _powers(
            a_format, b_format, np.clip(e + rng.integers(-d.fraction_bits, 1, n), low, high), signs, rng
        )
        for place, flip in ((2, 0), (3, a_format.sign_mask)):
            a[rows[cancels], places[cancels, place]] = x[cancels] ^ np.uint64(flip)
            b[rows[cancels], places[cancels, place]] = y[cancels]
    scale = np.full((n, spec.scales), 0 if spec.scale_format is None else one(spec.scale_format), np.uint64)
    return Rows(a, b, c, scale, scale.copy())


def _powers(
    a: Format, b: Format, e: NDArray[np.int64], sign: NDArray[np.int64], rng: np.random.Generator
) -> tuple[Uint64Codes, Uint64Codes]:
    """Factors 2^x and 2^y, x + y = e, of any split that both formats have."""
    least = np.maximum(a.min_exponent, e - b.max_exponent)
    most = np.minimum(a.max_exponent, e - b.min_exponent)
    x = rng.integers(least, most, endpoint=True)
    zero = np.zeros_like(e)
    return _code(a, x, zero, sign), _code(b, e - x, zero, zero)


def _code(
    fmt: Format, e: NDArray[np.int64], fraction: NDArray[np.int64], sign: NDArray[np.int64]
) -> Uint64Codes:
    word: NDArray[Any] = ((e + fmt.bias) << fmt.fraction_bits) + fraction << fmt.ignored_low_bits
    code: Uint64Codes = (word + sign * fmt.sign_mask).astype(np.uint64)
    return code
