"""Random cases at which something happens: few products or many, near each other, cancelling, extreme, special.

A distribution is a way to draw cases.  Each user names the distributions that serve it; `generate` draws as many of
each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.codes import exponent, is_finite, is_zero
from mmaformal.cases.inputs import Rows, one
from mmaformal.cases.run import results
from mmaformal.formats import Format
from mmaformal.spec import DotAdd

Array = NDArray[Any]

Distribution = Literal[
    "near",  # products near each other and c, equal or cancelling, few or many; now and then anything
    "sparse",  # the same, at most three, and c = 0
    "numbers",  # one to three products or K equal ones, and c: finite, simple and extreme
    "bits",  # any codes at all
    "equal",  # K equal products
    "special",  # one product, and perhaps c, a special value or next to one
    "least",  # results near the least there are
    "largest",  # and near the largest
    "opposite",  # c the opposite of what the products give, or next to it
    "edge",  # as near, nonzero products before the others, and c so large that they are cut off, or not quite
    "tiny",  # the least normal number, as a product or c, and a product that takes less than its last place away
    "subnormal",  # one product at most, of a subnormal factor, or c subnormal, or both
    "cancel",  # a large product cancels another or c, at any two places; the other terms are far below
]
_NAMED: tuple[Distribution, ...] = ("edge", "tiny", "subnormal", "cancel")
#: Those that are drawn if none is named.
DISTRIBUTIONS: tuple[Distribution, ...] = tuple(
    distribution for distribution in get_args(Distribution) if distribution not in _NAMED
)


class Takes(Protocol):
    """Models that inputs can be drawn for; or types alone, for which all distributions but `opposite` can be drawn."""

    @property
    def a_format(self) -> Format: ...
    @property
    def b_format(self) -> Format: ...
    @property
    def c_format(self) -> Format: ...
    @property
    def d_format(self) -> Format: ...
    @property
    def k(self) -> int: ...
    @property
    def scale_format(self) -> Format | None: ...
    @property
    def scales(self) -> int: ...


def generate(
    spec: Takes, count: int, seed: int = 0, distributions: Sequence[Distribution] = DISTRIBUTIONS
) -> Rows:
    """`count` cases, of each distribution as many."""
    rng = np.random.default_rng(seed)
    shares = [len(range(i, count, len(distributions))) for i in range(len(distributions))]
    drawn = [
        _DRAWS[distribution](_Draw(spec, n, rng))
        for distribution, n in zip(distributions, shares, strict=True)
        if n
    ]
    return Rows.join(drawn)


class _Draw:
    """Draws codes for `n` cases."""

    def __init__(self, spec: Takes, n: int, rng: np.random.Generator) -> None:
        self.spec, self.n, self.rng = spec, n, rng
        self.products = n, spec.k

    def rows(self, part: float) -> Array:
        """Some of the cases."""
        return self.rng.random(self.n) < part

    def exponent(self, fmt: Format) -> Array:
        """One of a format, for each case."""
        return self.rng.integers(fmt.min_exponent, fmt.max_exponent, (self.n, 1), endpoint=True)

    def fields(self, fmt: Format, field: Array, fractions: Sequence[int]) -> Array:
        """Codes of these exponent fields, of one of these trailing significands or any, of any sign."""
        shape, ones = field.shape, (1 << fmt.fraction_bits) - 1
        any_fraction = self.rng.integers(0, ones, shape, endpoint=True, dtype=np.uint64)
        which = self.rng.integers(0, len(fractions) + 1, shape)
        chosen = np.choose(which, [*(np.uint64(x & ones) for x in fractions), any_fraction])
        word = ((field.astype(np.uint64) << np.uint64(fmt.fraction_bits)) + chosen) << np.uint64(
            fmt.ignored_low_bits
        )
        signs: Array = self.rng.integers(0, 2, shape).astype(np.uint64) * np.uint64(fmt.sign_mask)
        codes: Array = word | signs
        return codes

    def near(self, fmt: Format, exponent: Array) -> Array:
        """Codes whose exponents are near these."""
        field = exponent + fmt.bias + self.rng.choice([0, 0, 0, 0, -1, 1, -2, 2], exponent.shape)
        top = (1 << fmt.exponent_bits) - 1 - (fmt.infinity is not None)
        return self.fields(fmt, np.clip(field, 0, top), (0, 1, (1 << fmt.fraction_bits) - 1))

    def number(self, fmt: Format, near: Array | None, shape: tuple[int, ...]) -> Array:
        """Codes of numbers: simple and extreme ones; those of `near` near these exponents."""
        top, ones = fmt.max_exponent + fmt.bias, (1 << fmt.fraction_bits) - 1
        anywhere = self.rng.integers(0, top, shape, endpoint=True)
        field = np.choose(self.rng.integers(0, 7, shape), [0, 0, 1, top - 1, top, anywhere, anywhere])
        if near is not None:
            close = near + fmt.bias + self.rng.choice([0, 0, 0, 1, -1, 2, -2], shape)
            field = np.where(near == _ANYWHERE, field, close)
        fractions = (0, 0, 1, ones, max(ones - 1, 0), (ones + 1) // 2)
        codes = self.fields(fmt, np.clip(field, 0, top), fractions)
        return np.where(is_finite(codes, fmt), codes, np.uint64(one(fmt)))

    def anything(self, fmt: Format, shape: tuple[int, ...]) -> Array:
        return self.rng.integers(0, fmt.codes, shape, dtype=np.uint64)

    def special(self, fmt: Format, shape: tuple[int, ...]) -> Array:
        """Zeros, infinities, NaNs, the largest and the least numbers."""
        top, infinity = fmt.codes - 1, fmt.infinity or fmt.codes - 1
        some = [0, 1, top, infinity, infinity - 1, infinity + 1, fmt.sign_mask]
        codes = np.choose(
            self.rng.integers(0, 8, shape), [*(np.uint64(x) for x in some), self.anything(fmt, shape)]
        )
        signs = self.rng.integers(0, 2, shape).astype(np.uint64) * np.uint64(fmt.sign_mask)
        found: Array = (codes ^ signs) & np.uint64(top)
        return found

    def zero(self, fmt: Format, shape: tuple[int, ...]) -> Array:
        """Zeros of any sign; a format without −0 has none."""
        minus = np.uint64(0 if fmt.is_nan(fmt.sign_mask) else fmt.sign_mask)
        return self.rng.integers(0, 2, shape).astype(np.uint64) * minus

    def scales(self, spread: int, part: float) -> tuple[Array, Array]:
        """In a part of the cases scales near 1, elsewhere 1."""
        fmt, shape = self.spec.scale_format, (self.n, self.spec.scales)
        if fmt is None:
            return np.zeros((self.n, 0), np.uint64), np.zeros((self.n, 0), np.uint64)
        some = self.rows(part)[:, None]
        sides = [self.near(fmt, self.rng.integers(-spread, spread, shape)) for _ in "ab"]
        a, b = (np.where(some, side, np.uint64(one(fmt))) for side in sides)
        return a, b

    def places(self, most: Array) -> Array:
        """Say of each product whether it is off: none of the few of its case, at least one, that are drawn to be on."""
        rank: Array = np.argsort(np.argsort(self.rng.random(self.products), axis=1), axis=1)
        few = self.rng.integers(1, np.minimum(most, self.spec.k), endpoint=True)
        return rank >= few[:, None]


_ANYWHERE = -(1 << 20)  # an exponent that stands for any


# ---- distributions --------------------------------------------------------------------------------------------------


def _near(
    draw: _Draw,
    exponents: tuple[Array, Array] | None = None,
    sparse: bool = False,
    offsets: Sequence[int] = (0, 1, 2, 4, 12, 24, -24, 30, -30, 99),
) -> Rows:
    spec, rng, n, K = draw.spec, draw.rng, draw.n, draw.spec.k
    e_a, e_b = exponents or (draw.exponent(spec.a_format), draw.exponent(spec.b_format))
    far = rng.integers(-60, 60, (n, K)) * (rng.random((n, K)) < 0.1)
    a, b = draw.near(spec.a_format, e_a + far), draw.near(spec.b_format, e_b + np.zeros_like(far))
    offset = rng.choice(offsets, n)
    offset = np.where(offset == 99, rng.integers(-90, 90, n), offset)
    c = draw.near(spec.c_format, e_a[:, 0] + e_b[:, 0] + offset)
    if K > 1:  # every other product the one before, or its negative
        rows, even, odd = draw.rows(0.4)[:, None], slice(0, K - 1, 2), slice(1, K, 2)
        signs = np.uint64(spec.a_format.sign_mask) * rng.integers(0, 2, (n, 1)).astype(np.uint64)
        a[:, odd] = np.where(rows, a[:, even] ^ signs, a[:, odd])
        b[:, odd] = np.where(rows, b[:, even], b[:, odd])
    off = draw.places(rng.choice([1, 2, 3] if sparse else [1, 2, 3, 4, K], n))
    one_side = rng.integers(0, 3, (n, K))
    a = np.where(off & (one_side != 1), draw.zero(spec.a_format, (n, K)), a)
    b = np.where(off & (one_side != 2), draw.zero(spec.b_format, (n, K)), b)
    c = np.where(draw.rows(1.0 if sparse else 0.3), draw.zero(spec.c_format, (n,)), c)
    anything = rng.random((n, K)) < 0.01
    a = np.where(anything, draw.anything(spec.a_format, (n, K)), a)
    b = np.where(anything & (one_side == 0), draw.anything(spec.b_format, (n, K)), b)
    c = np.where(draw.rows(0.0 if sparse else 0.03), draw.anything(spec.c_format, (n,)), c)
    return Rows(a, b, c, *draw.scales(8, 0.5))


def _sparse(draw: _Draw) -> Rows:
    return _near(draw, sparse=True)


def _edge(draw: _Draw) -> Rows:
    """With many products, a few at random places are seldom where a relation exchanges some."""
    spec = draw.spec
    F = getattr(spec.parameters, "F", None) if isinstance(spec, DotAdd) else None
    places = F if isinstance(F, int) else spec.d_format.fraction_bits + 1
    rows = _near(draw, offsets=range(places - 2, places + 4))
    zero = is_zero(rows.a, spec.a_format) | is_zero(rows.b, spec.b_format)
    order = np.argsort(zero, axis=1, kind="stable")
    a, b = (np.take_along_axis(side, order, axis=1) for side in (rows.a, rows.b))
    return replace(rows, a=a, b=b)


def _numbers(draw: _Draw) -> Rows:
    spec, rng, n, K = draw.spec, draw.rng, draw.n, draw.spec.k
    a_format, b_format = spec.a_format, spec.b_format
    e_a, e_b = draw.exponent(a_format), draw.exponent(b_format)
    close = rng.random((n, K)) < 0.5
    a = draw.number(a_format, np.where(close, e_a, _ANYWHERE), (n, K))
    b = draw.number(b_format, np.where(close, e_b, _ANYWHERE), (n, K))
    order = rng.random((n, K))  # a few places are enough, and easier to compare
    order[:, [k for k in range(K) if k not in (0, 1, K // 2, K - 1)]] += 1
    ranked = np.argsort(order, axis=1)
    first, second = ranked[:, :1], ranked[:, min(1, K - 1) : min(1, K - 1) + 1]
    first_a, first_b = np.take_along_axis(a, first, 1), np.take_along_axis(b, first, 1)
    if K > 1:
        cancel = draw.rows(0.7)[:, None]
        opposite = np.where(
            is_finite(first_a ^ np.uint64(a_format.sign_mask), a_format),
            first_a ^ np.uint64(a_format.sign_mask),
            first_a,
        )
        np.put_along_axis(a, second, np.where(cancel, opposite, np.take_along_axis(a, second, 1)), 1)
        np.put_along_axis(b, second, np.where(cancel, first_b, np.take_along_axis(b, second, 1)), 1)
    few = rng.choice([1, 2, 2, 3], n)[:, None]
    off, all_equal = np.argsort(ranked, axis=1) >= few, draw.rows(0.15)[:, None]
    a, b = (
        np.where(all_equal, side_first, np.where(off, np.uint64(0), side))
        for side, side_first in ((a, first_a), (b, first_b))
    )
    near_c = np.where(draw.rows(0.4), e_a[:, 0] + e_b[:, 0], _ANYWHERE)
    c = np.where(draw.rows(0.25), np.uint64(0), draw.number(spec.c_format, near_c, (n,)))
    scales = draw.scales(6, 0.3)
    return Rows(a, b, c, *scales)


def _bits(draw: _Draw) -> Rows:
    spec, n = draw.spec, draw.n
    scales = [
        draw.anything(spec.scale_format, (n, spec.scales)) if spec.scale_format else side
        for side in draw.scales(1, 0)
    ]
    sides = draw.anything(spec.a_format, (n, spec.k)), draw.anything(spec.b_format, (n, spec.k))
    return Rows(*sides, draw.anything(spec.c_format, (n,)), *scales)


def _dense(draw: _Draw) -> Rows:
    """K products near each other."""
    spec, rng, n = draw.spec, draw.rng, draw.n
    e_a, e_b = draw.exponent(spec.a_format), draw.exponent(spec.b_format)
    none = np.zeros(draw.products, np.int64)
    offset = rng.choice([0, 1, 2, 24, -24, 99], n)
    offset = np.where(offset == 99, rng.integers(-60, 60, n), offset)
    return Rows(
        draw.near(spec.a_format, e_a + none),
        draw.near(spec.b_format, e_b + none),
        draw.near(spec.c_format, e_a[:, 0] + e_b[:, 0] + offset),
        *draw.scales(8, 1.0),
    )


def _equal(draw: _Draw) -> Rows:
    rows = _dense(draw)
    a, b = (np.repeat(side[:, :1], draw.spec.k, axis=1) for side in (rows.a, rows.b))
    return Rows(a, b, rows.c, rows.scale_a, rows.scale_b)


def _special(draw: _Draw) -> Rows:
    spec, n, rows = draw.spec, draw.n, _dense(draw)
    place = draw.rng.integers(0, spec.k, (n, 1))
    for side, fmt in ((rows.a, spec.a_format), (rows.b, spec.b_format)):
        np.put_along_axis(side, place, draw.special(fmt, (n, 1)), 1)
    c = np.where(draw.rows(0.5), rows.c, draw.special(spec.c_format, (n,)))
    scales = [rows.scale_a, rows.scale_b]
    if spec.scale_format is not None:
        for i, side in enumerate(scales):
            some = draw.rng.random(side.shape) < 0.1
            scales[i] = np.where(some, draw.special(spec.scale_format, side.shape), side)
    return Rows(rows.a, rows.b, c, *scales)


def _of_exponent(draw: _Draw, exponent: Array) -> Rows:
    """Products whose exponents are near these, one for each case."""
    a, b = draw.spec.a_format, draw.spec.b_format
    e_a = draw.rng.integers(exponent - b.max_exponent, exponent - b.min_exponent, endpoint=True)
    e_a = np.clip(e_a, a.min_exponent, a.max_exponent)
    return _near(draw, (e_a, np.clip(exponent - e_a, b.min_exponent, b.max_exponent)))


def _least(draw: _Draw) -> Rows:
    d = draw.spec.d_format
    return _of_exponent(draw, d.min_exponent - d.fraction_bits + draw.rng.integers(-8, 9, (draw.n, 1)))


def _tiny(draw: _Draw) -> Rows:
    spec, rng, n = draw.spec, draw.rng, draw.n
    d, rows = spec.d_format, np.arange(n)
    a, b = (np.zeros((n, spec.k), np.uint64) for _ in "ab")
    places = np.argsort(rng.random(draw.products), axis=1)
    for place, below in ((0, np.zeros(n, np.int64)), (-1, d.fraction_bits + rng.integers(0, 5, n))):
        exponent = d.min_exponent - below
        e_a = exponent // 2 + rng.integers(-9, 10, n)
        for side, fmt, e in ((a, spec.a_format, e_a), (b, spec.b_format, exponent - e_a)):
            field = np.clip(e + fmt.bias, 1, fmt.max_exponent + fmt.bias)
            side[rows, places[:, place]] = draw.fields(fmt, field, (0, 0, 0))
    field = np.full(n, max(1, d.min_exponent + spec.c_format.bias))
    c = np.where(draw.rows(0.5), draw.fields(spec.c_format, field, (0, 0, 0)), np.uint64(0))
    if spec.k > 1:
        a[rows, places[:, 0]] *= c == 0
    return Rows(a, b, c, *draw.scales(1, 0.0))


def _largest(draw: _Draw) -> Rows:
    return _of_exponent(draw, draw.spec.d_format.max_exponent - draw.rng.integers(-1, 4, (draw.n, 1)))


def _subnormal(draw: _Draw) -> Rows:
    spec, rng, n = draw.spec, draw.rng, draw.n
    place, rows = rng.integers(0, spec.k, n), np.arange(n)
    a, b = (np.zeros((n, spec.k), np.uint64) for _ in "ab")
    which = rng.integers(0, 4, n)  # no product; a is subnormal, or b, or neither
    for side, fmt, mine in ((a, spec.a_format, 1), (b, spec.b_format, 2)):
        field = np.where(which == mine, 0, draw.exponent(fmt)[:, 0] + fmt.bias)
        side[rows, place] = np.where(which == 0, np.uint64(0), draw.fields(fmt, field, (1,)))
    e = exponent(a[rows, place], spec.a_format) + exponent(b[rows, place], spec.b_format)
    close = np.clip(e + rng.integers(-24, 3, n), spec.c_format.min_exponent, spec.c_format.max_exponent)
    field = np.where(draw.rows(0.5), 0, close + spec.c_format.bias)
    c = np.where(draw.rows(0.25) & (which != 0), np.uint64(0), draw.fields(spec.c_format, field, (1,)))
    return Rows(a, b, c, *draw.scales(1, 0.0))


def _cancel(draw: _Draw) -> Rows:
    """Where c takes part in it, both are powers of two, or nearly: they leave nothing, or c's own last places."""
    spec, rng, n, K = draw.spec, draw.rng, draw.n, draw.spec.k
    e_a, e_b = draw.exponent(spec.a_format), draw.exponent(spec.b_format)
    below = rng.integers(0, 2 * spec.d_format.fraction_bits + 8, (n, K))
    a, b = draw.near(spec.a_format, e_a - below // 2), draw.near(spec.b_format, e_b - (below - below // 2))
    off = draw.places(rng.choice([2, 3, 4, K], n))
    a = np.where(off, draw.zero(spec.a_format, (n, K)), a)
    c = draw.near(spec.c_format, e_a[:, 0] + e_b[:, 0] - rng.integers(0, 40, n))
    c = np.where(draw.rows(0.4), draw.zero(spec.c_format, (n,)), c)
    with_c = draw.rows(0.3 if K > 1 else 1.0)
    places = np.argsort(rng.random((n, K)), axis=1)
    rows, first, second = np.arange(n), places[:, 0], places[:, min(1, K - 1)]
    pair = [draw.near(spec.a_format, e_a)[:, 0], draw.near(spec.b_format, e_b)[:, 0]]
    for i, (fmt, e) in enumerate(((spec.a_format, e_a), (spec.b_format, e_b))):
        pair[i] = np.where(with_c, draw.fields(fmt, e[:, 0] + fmt.bias, (0,)), pair[i])
    a[rows, first], b[rows, first] = pair
    a[rows, second] = np.where(with_c, a[rows, second], pair[0] ^ np.uint64(spec.a_format.sign_mask))
    b[rows, second] = np.where(with_c, b[rows, second], pair[1])
    fmt, e = spec.c_format, np.clip(e_a + e_b, spec.c_format.min_exponent, spec.c_format.max_exponent)
    return Rows(a, b, np.where(with_c, draw.fields(fmt, e[:, 0] + fmt.bias, (0,)), c), *draw.scales(1, 0.0))


def _opposite(draw: _Draw) -> Rows:
    spec, rows = draw.spec, _near(draw)
    if not isinstance(spec, DotAdd) or spec.c_format != spec.d_format:
        return rows
    d = results(spec, Rows(rows.a, rows.b, np.zeros_like(rows.c), rows.scale_a, rows.scale_b).codes)
    next_to = draw.rng.choice([0, 0, 1, -1], draw.n) << spec.c_format.ignored_low_bits
    c = ((d ^ np.uint64(spec.c_format.sign_mask)).astype(np.int64) + next_to).astype(np.uint64)
    return Rows(rows.a, rows.b, c & np.uint64(spec.c_format.codes - 1), rows.scale_a, rows.scale_b)


_DRAWS: dict[Distribution, Callable[[_Draw], Rows]] = {
    "near": _near,
    "sparse": _sparse,
    "edge": _edge,
    "numbers": _numbers,
    "bits": _bits,
    "equal": _equal,
    "special": _special,
    "least": _least,
    "tiny": _tiny,
    "largest": _largest,
    "opposite": _opposite,
    "subnormal": _subnormal,
    "cancel": _cancel,
}
