"""The largest error of one element of Model 1, over all real x and y: how near the componentwise bound (3.23) it comes.

Let x and y be n real numbers each, X = max |x_k| and Y = max |y_k| in θ/2 … θ, where the scaling (3.4) puts them by
factors of 1; v_k = x_k·y_k, e = s - Σ v_k the error of the sum s that is computed, and K·Σ|v_k| + N·X·Y a bound of |e|.
Which x and y come nearest to it is a question about finitely many:

- s is a function of what x_k and y_k are rounded to.  These given, x_k and y_k lie in intervals, and |e| less its bound
  is convex in each of them that is less than X or Y; and in X, if all x_k that are X move with it, and in Y.  So it is
  largest where each is an end of its interval, or is X or Y; and where these are ends of intervals, or θ/2, or θ.
- X and Y given, e - K·Σ|v_k| is s and for each product -v_k - K|v_k|; and -e - K·Σ|v_k| is -s and for each product
  v_k - K|v_k|.  Of all products before that lead to one sum, those matter that have added most to either, and whether
  one of them has x_k = X, one y_k = Y.  So from the sums of k products follow those of k + 1, one number for each.

What is found is a supremum: at the end of an interval x_k may be rounded to the other side.  `Worst.x`, `Worst.y` lie
inside by a little, and are run.  Numbers here are binary64, some of them rounded: a ratio is good to about 10^-9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mmaformal.analysis.arithmetic import FloatArithmetic
from mmaformal.analysis.rounding import WIDTH, Floats, add_rounded_products, round_floats
from mmaformal.checked import integer
from mmaformal.display import ShortRepr
from mmaformal.formats import exponent_of
from mmaformal.studies.narrow_range.bounds import Componentwise, Symbols, epsilon
from mmaformal.studies.narrow_range.model import Model1

#: Numbers of an input format and sums of an accumulation format up to which everything is gone through.
_MOST_NUMBERS, _MOST_PRODUCTS = 300, 2000

#: How far inside an interval an input is that is to be rounded as the interval says, relative to itself.
_INSIDE = 2.0**-30


@dataclass(frozen=True, repr=False)
class Worst(ShortRepr):
    """The inputs that come nearest to the bound."""

    model: Model1
    n: int
    theta: Fraction
    ratio: float  #: |e| over its bound, the largest there is
    x: Floats
    y: Floats
    measured: float  #: |e| over its bound, of x and y
    overflow: bool  #: whether there are inputs with which a sum overflows; they are left out


@dataclass(frozen=True)
class _Products:
    """Rounded products, and the x and y with which each adds most to e and to -e.

    `at` says of which of x and y they are X and Y: bit 0 and bit 1.  A product stands there once for each.
    """

    rounded: Floats
    at: NDArray[np.int64]
    gains: NDArray[np.float64]  #: (2, count): of -v - K|v|, and of v - K|v|
    factors: NDArray[np.float64]  #: (2, count, 4): those x and y, and what they are rounded to
    overflow: bool


@dataclass(frozen=True)
class _Sums:
    """Sums of some products; for either sign the most that those can have added, and which was the last of them."""

    sums: Floats
    at: NDArray[np.int64]  #: whether one of the products had x = X, one had y = Y
    most: NDArray[np.float64]  #: (2, count)
    last: NDArray[np.int64]  #: (2, count)
    before: NDArray[np.int64]  #: (2, count): of which sum of one product less
    overflow: bool


def worst_case(model: Model1, n: int, theta: Fraction | None = None) -> Worst:
    """Return the largest error over all real x and y of n elements, scaled to θ: that of (3.2) unless it is given.

    Raises ValueError for formats with too many numbers: an input format of up to 8 bits, and sums of few bits.
    """
    if integer(n, "n") < 1:
        raise ValueError(f"n is 1 or more, not {n}")
    limit = model.theta(n) if theta is None else theta
    bound = epsilon(Symbols.of(model, n, theta=limit))
    cells = intervals(model.input, limit)
    if len(cells) > _MOST_NUMBERS:
        raise ValueError(f"{model.input} has too many numbers to go through, {len(cells)} up to θ")
    K, N = float(bound.inner), float(bound.norms)
    ends = np.unique(np.concatenate([cells[:, 1:].ravel(), [float(limit) / 2, float(limit)]]))
    ends = ends[(ends >= float(limit) / 2) & (ends <= float(limit))]
    ratio, best, overflow = 0.0, np.zeros((n, 4)), False
    improved = True
    while improved:  # the bound is lowered to the largest ratio found, until nothing exceeds it
        improved = False
        for X, Y in ((X, Y) for X in ends for Y in ends if X <= Y):
            for anywhere in (True, False):  # as many are not nearer wherever their largest x and y are
                found, e, sigma, overflowed = _most(model, cells, (X, Y), K=ratio * K, n=n, anywhere=anywhere)
                overflow |= overflowed
                if e <= ratio * (K * sigma + N * X * Y) * (1 + 1e-9):
                    break
            else:
                ratio, best, improved = e / (K * sigma + N * X * Y), found, True
    x, y = (best[:, i] + (best[:, i + 2] - best[:, i]) * _INSIDE for i in (0, 1))
    return Worst(model, n, limit, ratio, x, y, _measured(model, x, y=y, bound=bound), overflow)


def intervals(arithmetic: FloatArithmetic, limit: Fraction) -> NDArray[np.float64]:
    """The numbers from 0 to θ, with the ends of what is rounded to each, none above θ: rows (number, low, high)."""
    numbers = [Fraction(0)]
    while numbers[-1] < arithmetic.f_max and len(numbers) <= _MOST_NUMBERS:
        numbers.append(_next(arithmetic, numbers[-1]))
    middles = [(one + other) / 2 for one, other in pairwise(numbers)]
    ends = [Fraction(0), *middles, numbers[-1]]
    rows = [(x, low, high) for x, low, high in zip(numbers, ends, ends[1:], strict=False) if low <= limit]
    return np.array([(x, low, min(high, limit)) for x, low, high in rows], np.float64)


def _next(arithmetic: FloatArithmetic, x: Fraction) -> Fraction:
    """The number after x, which is at least 0 and less than the largest one."""
    if x < arithmetic.f_min:
        return x + arithmetic.step
    place = 2 * arithmetic.u * Fraction(2) ** exponent_of(x)
    return x + place


def _products(
    model: Model1, cells: NDArray[np.float64], limits: tuple[float, float], K: float, anywhere: bool
) -> _Products:
    """All that two factors up to X and Y can give; `anywhere`: as if all of them were X and Y."""
    x_number, x, x_at = _ends(cells, limits[0])
    y_number, y, y_at = _ends(cells, limits[1])
    many = len(x), len(y)
    left = np.repeat(np.arange(many[0]), many[1])
    right = np.tile(np.arange(many[1]), many[0])
    p = round_floats(x_number[left] * y_number[right], model.accumulation)
    kept = np.isfinite(p)
    p, left, right = p[kept], left[kept], right[kept]
    v, at = x[left] * y[right], x_at[left] + 2 * y_at[right]
    at = np.full_like(at, 3) if anywhere else at
    gains = np.array([-(1 + K) * v, (1 - K) * v])
    factors = np.stack([x[left], y[right], x_number[left], y_number[right]], -1)
    # Negative ones the other way about; x has their sign.
    p, at = np.concatenate([p, -p]), np.tile(at, 2)
    gains = np.concatenate([gains, gains[::-1]], axis=1)
    factors = np.concatenate([factors, factors * [-1, 1, -1, 1]])
    values, group, at = _grouped(p, at)
    picked = np.stack([_largest(group, gain, len(values)) for gain in gains])
    most = np.take_along_axis(gains, picked, axis=1)
    return _Products(values, at, most, factors[picked], not kept.all())


def _ends(cells: NDArray[np.float64], limit: float) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Numbers with each end of their intervals, none above the limit; and whether that is the limit."""
    below = cells[cells[:, 1] <= limit]
    ends = np.concatenate([below[:, 1], np.minimum(below[:, 2], limit)])
    return np.tile(below[:, 0], 2), ends, (ends == limit).astype(np.int64)


def _grouped(x: Floats, at: NDArray[np.int64]) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """The different (x, at), with the group that each belongs to: (x, groups, at)."""
    values, place = np.unique(x, return_inverse=True)
    keys, group = np.unique(place * 4 + at, return_inverse=True)
    return values[keys // 4], group, keys % 4


def _largest(group: NDArray[np.int64], value: Floats, count: int) -> NDArray[np.int64]:
    """The index of the largest value of each group."""
    order = np.lexsort((value, group))
    last = np.searchsorted(group[order], np.arange(count), side="right") - 1
    found: NDArray[np.int64] = order[last]
    return found


def _levels(model: Model1, products: _Products, n: int) -> Iterator[_Sums]:
    """The sums of 0, 1, … n products."""
    nothing = np.zeros((2, 1), np.int64)
    now = _Sums(np.zeros(1), nothing[0], np.zeros((2, 1)), nothing, nothing, products.overflow)
    yield now
    count = len(products.rounded)
    for _ in range(n):
        sums = round_floats(now.sums[:, None] + products.rounded, model.accumulation).ravel()
        kept = np.nonzero(np.isfinite(sums))[0]
        values, group, at = _grouped(sums[kept], (now.at[:, None] | products.at).ravel()[kept])
        most = (now.most[:, :, None] + products.gains[:, None, :]).reshape(2, -1)[:, kept]
        picked = np.stack([_largest(group, each, len(values)) for each in most])
        origin, lost = kept[picked], len(kept) < len(sums)
        most = np.take_along_axis(most, picked, axis=1)
        now = _Sums(values, at, most, origin % count, origin // count, now.overflow or lost)
        yield now


def _most(
    model: Model1, cells: NDArray[np.float64], limits: tuple[float, float], K: float, n: int, anywhere: bool
) -> tuple[NDArray[np.float64], float, float, bool]:
    """The inputs with the most of |e| - K·σ: (x, y and what they are rounded to, |e|, σ, whether others overflow).

    `anywhere`: of all that are at most X and Y, not only those that reach both.
    """
    products = _products(model, cells, limits, K=K, anywhere=anywhere)
    if len(np.unique(products.rounded)) > _MOST_PRODUCTS:
        raise ValueError(f"{model} has too many products to go through, {len(products.rounded)}")
    levels = list(_levels(model, products, n))
    last = levels[-1]
    whole = np.where(last.at == 3, np.stack([last.sums, -last.sums]) + last.most, -np.inf)
    sign, at = np.unravel_index(int(whole.argmax()), whole.shape)
    if whole[sign, at] == -np.inf:  # what is not infinite has no x of X, or no y of Y
        return np.zeros((n, 4)), 0.0, 0.0, last.overflow
    total, place = float(last.sums[at]), int(at)
    factors = np.empty((n, 4))
    for k, level in zip(range(n - 1, -1, -1), levels[:0:-1], strict=True):
        factors[k] = products.factors[sign, level.last[sign, place]]
        place = int(level.before[sign, place])
    v = factors[:, 0] * factors[:, 1]
    return factors, float(abs(total - v.sum())), float(np.abs(v).sum()), last.overflow


def _measured(model: Model1, x: Floats, y: Floats, bound: Componentwise) -> float:
    """|e| over its bound, of x and y as they are."""
    total = np.zeros((1, WIDTH))
    one, other = round_floats(x, model.input), np.zeros((len(y), WIDTH))
    other[:, 0] = round_floats(y, model.input)
    add_rounded_products(one[None], other, total, 1.0, model.accumulation)
    v = [Fraction(a) * Fraction(b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    largest = Fraction(float(np.abs(x).max())) * Fraction(float(np.abs(y).max()))
    e = abs(Fraction(float(total[0, 0])) - sum(v, Fraction(0)))
    return float(e / (bound.inner * sum(map(abs, v), Fraction(0)) + bound.norms * largest))
