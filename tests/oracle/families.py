"""Families of dot product-adds that drive a matrix unit into its corners: inputs only, no unit's arithmetic.

Uniformly random bits hardly ever cancel, tie, or meet at the last kept bit of an alignment, so each family
aims at one such thing.  A family knows the operands' formats and K, but no architecture's parameters: where a
corner depends on one (F, e_zero), the family spreads over the range in which it must lie.

    operands = Operands(fp16, fp16, fp32, fp32, k=16)
    cases = generate("cancellation", operands, n=1000, seed=0)
    cases.a.shape, cases.b.shape, cases.c.shape        # (1000, 16), (1000, 16), (1000,)

Everything is a bit pattern in the format's unsigned word.  The same name, operands, n and seed give the same
cases (as far as NumPy keeps its bit generator's streams between versions).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.formats import Format, Specials

Codes = NDArray[Any]  #: bit patterns: unsigned, in the word of their format once they leave this file
Integers = NDArray[np.int64]
Scales = tuple["Codes | None", "Codes | None"]


@dataclass(frozen=True)
class Operands:
    """The operands of a dot product-add: the formats, K, and block scales if it has them.

    `scale_blocks` is the number of scales per side, each for K / scale_blocks consecutive elements.
    """

    a: Format
    b: Format
    c: Format
    d: Format
    k: int
    scale: Format | None = None
    scale_blocks: int = 0

    def __post_init__(self) -> None:
        if (self.scale is None) != (self.scale_blocks == 0):
            raise ValueError("block scales need both their format and their number")
        if self.scale_blocks and self.k % self.scale_blocks:
            raise ValueError(f"K = {self.k} is not a multiple of {self.scale_blocks} blocks")


@dataclass(frozen=True)
class Cases:
    """n dot product-adds: a, b of shape (n, K), c of (n,), scales of (n, blocks) or None."""

    a: Codes
    b: Codes
    c: Codes
    scale_a: Codes | None = None
    scale_b: Codes | None = None

    def __len__(self) -> int:
        return len(self.c)


# ---- codes -------------------------------------------------------------------------------------------------


def _magnitude_mask(fmt: Format) -> int:
    bits = fmt.exponent_bits + fmt.fraction_bits
    return ((1 << bits) - 1) << fmt.ignored_low_bits


def _largest(fmt: Format) -> int:
    """The code of the largest finite number."""
    if fmt.infinity is not None:
        return fmt.infinity - (1 << fmt.ignored_low_bits)
    top_is_nan = fmt.specials == Specials.FN or not fmt.has_zero
    return _magnitude_mask(fmt) - (1 if top_is_nan else 0)


def _values(fmt: Format, codes: Codes) -> NDArray[np.float64]:
    """Values as float64, exact; ignored bits are ignored."""
    word = codes.astype(np.uint64) >> np.uint64(fmt.ignored_low_bits)
    values: NDArray[np.float64]
    if fmt.dtype is not None:
        kept = (word << np.uint64(fmt.ignored_low_bits)).astype(fmt.word)
        values = kept.view(fmt.dtype).astype(np.float64)
        return values
    field = (word >> np.uint64(fmt.fraction_bits)) & np.uint64((1 << fmt.exponent_bits) - 1)
    fraction = word & np.uint64((1 << fmt.fraction_bits) - 1)
    significand = fraction.astype(np.float64) + np.where(field > 0, float(1 << fmt.fraction_bits), 0.0)
    values = np.ldexp(significand, np.maximum(field.astype(np.int64), 1) - fmt.bias - fmt.fraction_bits)
    return values


def _finite(fmt: Format, codes: Codes) -> Codes:
    """Infinities and NaNs replaced by a finite neighbour, everything else as it is."""
    codes = codes.astype(np.uint64)
    if fmt.specials == Specials.IEEE:
        lowest_exponent_bit = 1 << (fmt.fraction_bits + fmt.ignored_low_bits)
        exponent_mask = ((1 << fmt.exponent_bits) - 1) * lowest_exponent_bit
        special = (codes & np.uint64(exponent_mask)) == np.uint64(exponent_mask)
        return np.where(special, codes ^ np.uint64(lowest_exponent_bit), codes)
    if fmt.specials == Specials.FN or not fmt.has_zero:
        mask = np.uint64(_magnitude_mask(fmt))
        return np.where((codes & mask) == mask, codes ^ np.uint64(1), codes)
    if fmt.specials == Specials.FNUZ:
        return np.where(codes == np.uint64(fmt.sign_mask), np.uint64(0), codes)
    return codes


def _random_bits(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Codes:
    return rng.integers(0, fmt.codes - 1, shape, np.uint64, endpoint=True)


def _ignored_bits(rng: np.random.Generator, fmt: Format, codes: Codes) -> Codes:
    """Random values in the bits the unit must ignore, in half of the codes."""
    ignored = (1 << fmt.ignored_low_bits) - 1
    if not fmt.signed and fmt.has_zero:
        ignored |= 1 << (fmt.storage_bits - 1)
    if not ignored:
        return codes
    noise = _random_bits(rng, fmt, codes.shape) & np.uint64(ignored)
    noisy: Codes = codes.astype(np.uint64) | np.where(rng.random(codes.shape) < 0.5, noise, np.uint64(0))
    return noisy


def _compose(rng: np.random.Generator, fmt: Format, sign: Any, field: Any, fraction: Any) -> Codes:
    word = np.asarray(field).astype(np.uint64) << np.uint64(fmt.fraction_bits)
    word = (word | np.asarray(fraction).astype(np.uint64)) << np.uint64(fmt.ignored_low_bits)
    word = word | np.where(np.asarray(sign) == 1, np.uint64(fmt.sign_mask), np.uint64(0))
    if fmt.specials == Specials.FNUZ:
        word = np.where(word == np.uint64(fmt.sign_mask), np.uint64(0), word)
    return _ignored_bits(rng, fmt, word)


def _negated(fmt: Format, codes: Codes) -> Codes:
    return _finite(fmt, codes.astype(np.uint64) ^ np.uint64(fmt.sign_mask))


def _nudged(fmt: Format, codes: Codes, ulps: Any) -> Codes:
    """The finite codes some ulps larger or smaller in magnitude, stopping short of zero and of infinity."""
    step = 1 << fmt.ignored_low_bits
    mask = _magnitude_mask(fmt)
    magnitude = (codes.astype(np.uint64) & np.uint64(mask)).astype(np.int64)
    moved: Codes = np.clip(magnitude + np.asarray(ulps) * step, step, _largest(fmt)).astype(np.uint64)
    moved |= codes.astype(np.uint64) & np.uint64(fmt.sign_mask)
    return moved


def _random_signs(rng: np.random.Generator, shape: tuple[int, ...]) -> Integers:
    return rng.integers(0, 2, shape)


def _zeros(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Codes:
    """±0, at random."""
    return _compose(rng, fmt, _random_signs(rng, shape), np.zeros(shape), np.zeros(shape))


def _subnormals(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Codes:
    """Nonzero subnormals; the smallest number of a format that has none (ue8m0)."""
    fraction = rng.integers(min(1, fmt.fraction_bits), 1 << fmt.fraction_bits, shape)
    return _compose(rng, fmt, _random_signs(rng, shape), np.zeros(shape), fraction)


def _of_exponent(rng: np.random.Generator, fmt: Format, exponent: Integers) -> Codes:
    """Finite numbers of the given exponent (of their fields), the first axis being cases.

    At the least exponent half are subnormal.  Per case the significands are random, all ones, all zeros, or
    one bit.
    """
    shape = exponent.shape
    exponent = np.clip(exponent, fmt.min_exponent, fmt.max_exponent)
    field = exponent - fmt.min_exponent + (1 if fmt.has_zero else 0)
    if fmt.has_zero:
        subnormal = (exponent == fmt.min_exponent) & (rng.random(shape) < 0.5)
        field = np.where(subnormal, 0, field)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, shape)
    if fmt.fraction_bits:
        ones = (1 << fmt.fraction_bits) - 1
        one_bit = 1 << rng.integers(0, fmt.fraction_bits, shape)
        style = rng.choice(4, (shape[0], *[1] * (len(shape) - 1)), p=[0.55, 0.15, 0.15, 0.15])
        fraction = np.choose(style, [fraction, np.full(shape, ones), np.zeros_like(fraction), one_bit])
    return _finite(fmt, _compose(rng, fmt, _random_signs(rng, shape), field, fraction))


def _powers(rng: np.random.Generator, fmt: Format, exponent: Integers) -> Codes:
    """±2^exponent, subnormal ones included; clipped to the format's range."""
    exponent = np.clip(exponent, fmt.min_exponent - fmt.fraction_bits, fmt.max_exponent)
    below = np.maximum(fmt.min_exponent - exponent, 0)
    field = np.where(below > 0, 0, exponent - fmt.min_exponent + (1 if fmt.has_zero else 0))
    fraction = np.where(below > 0, (1 << fmt.fraction_bits) >> below, 0)
    return _compose(rng, fmt, _random_signs(rng, exponent.shape), field, fraction)


def _nearest(fmt: Format, values: NDArray[np.float64]) -> Codes:
    """Values rounded to the format, saturating; ignored low bits hold what float32 has there."""
    assert fmt.dtype is not None
    limit = float(_values(fmt, np.array([_largest(fmt)], np.uint64))[0])
    codes: Codes = np.clip(values, -limit, limit).astype(fmt.dtype).view(fmt.word)
    return _finite(fmt, codes)


# ---- dot product-adds of given product exponents -----------------------------------------------------------


def _least(fmt: Format, powers: bool) -> int:
    """Least exponent to draw: of the fields, or of subnormal powers of two too."""
    return fmt.min_exponent - (fmt.fraction_bits if powers and fmt.has_zero else 0)


def _product_range(x: Format, y: Format, powers: bool = False) -> tuple[int, int]:
    """Least and largest exponent of a product."""
    return _least(x, powers) + _least(y, powers), x.max_exponent + y.max_exponent


def _term_range(operands: Operands) -> tuple[int, int]:
    """Return the least and largest exponent of a product, with the scales' exponents added."""
    low, high = _product_range(operands.a, operands.b)
    if operands.scale is not None:
        scale_low, scale_high = _product_range(operands.scale, operands.scale)
        low, high = low + scale_low, high + scale_high
    return low, high


def _factors(
    rng: np.random.Generator, total: Integers, x: Format, y: Format, powers: bool = False
) -> tuple[Codes, Codes]:
    """Two numbers whose exponents add up to `total` (clipped to what they can), or two such powers of two."""
    total = np.clip(total, *_product_range(x, y, powers))
    low = np.maximum(_least(x, powers), total - y.max_exponent)
    high = np.minimum(x.max_exponent, total - _least(y, powers))
    first = rng.integers(low, high, endpoint=True)
    make = _powers if powers else _of_exponent
    return make(rng, x, first), make(rng, y, total - first)


def _unit_scales(rng: np.random.Generator, operands: Operands, n: int, spread: int) -> Scales:
    """Scales 2^-spread … 2^spread, powers of two."""
    if operands.scale is None:
        return None, None
    exponent = rng.integers(-spread, spread, (2, n, operands.scale_blocks), endpoint=True)
    return _powers(rng, operands.scale, exponent[0]), _powers(rng, operands.scale, exponent[1])


def _aimed(
    rng: np.random.Generator, operands: Operands, exponent: Integers, powers: bool = False
) -> tuple[Codes, Codes, Codes | None, Codes | None]:
    """a, b and their scales; the scaled products have the given exponents, (n, K), as nearly as they can.

    The scales of a block are chosen for its first product.
    """
    n, k = exponent.shape
    scales: Scales = (None, None)
    if operands.scale is not None:
        first = exponent.reshape(n, operands.scale_blocks, -1)[..., 0]
        low, high = _product_range(operands.a, operands.b, powers)
        total = first - rng.integers(low, high, first.shape, endpoint=True)
        total = np.clip(total, *_product_range(operands.scale, operands.scale))
        scales = _factors(rng, total, operands.scale, operands.scale)
        exponent = exponent - np.repeat(total, k // operands.scale_blocks, axis=1)
    return *_factors(rng, exponent, operands.a, operands.b, powers), *scales


def _window(
    rng: np.random.Generator, operands: Operands, n: int, widths: list[int]
) -> tuple[Integers, Integers]:
    """Per case a range [low, high] of term exponents, (n, 1) each: one of the widths, somewhere in reach."""
    least, most = _term_range(operands)
    width = np.minimum(rng.choice(widths, (n, 1)), most - least)
    low = rng.integers(least, most - width, endpoint=True)
    return low, low + width


def _shuffled(rng: np.random.Generator, a: Codes, b: Codes) -> tuple[Codes, Codes]:
    """The products of each case in a random order."""
    order = np.argsort(rng.random(a.shape), axis=1)
    return np.take_along_axis(a, order, 1), np.take_along_axis(b, order, 1)


def _packed(operands: Operands, a: Any, b: Any, c: Any, scale_a: Any = None, scale_b: Any = None) -> Cases:
    scale = operands.scale
    return Cases(
        a.astype(operands.a.word),
        b.astype(operands.b.word),
        c.astype(operands.c.word),
        None if scale is None else scale_a.astype(scale.word),
        None if scale is None else scale_b.astype(scale.word),
    )


def _sums(
    operands: Operands, a: Codes, b: Codes, scale_a: Codes | None, scale_b: Codes | None
) -> NDArray[np.float64]:
    """Σ a_k·b_k in float64: near enough to aim c at it (fp64 products may overflow)."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = _values(operands.a, a) * _values(operands.b, b)
        if operands.scale is not None and scale_a is not None and scale_b is not None:
            scale = _values(operands.scale, scale_a) * _values(operands.scale, scale_b)
            products = products * np.repeat(scale, operands.k // operands.scale_blocks, axis=1)
        sums: NDArray[np.float64] = np.nan_to_num(products.sum(axis=1))
    return sums


# ---- the families ------------------------------------------------------------------------------------------


def _bits(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Uniformly random codes, special values included."""
    shape, scales = (n, operands.k), (n, operands.scale_blocks)
    return _packed(
        operands,
        _random_bits(rng, operands.a, shape),
        _random_bits(rng, operands.b, shape),
        _random_bits(rng, operands.c, (n,)),
        operands.scale and _random_bits(rng, operands.scale, scales),
        operands.scale and _random_bits(rng, operands.scale, scales),
    )


def _finite_bits(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Uniformly random codes of finite numbers."""
    raw = _bits(rng, operands, n)
    return _packed(
        operands,
        _finite(operands.a, raw.a),
        _finite(operands.b, raw.b),
        _finite(operands.c, raw.c),
        operands.scale and _finite(operands.scale, np.asarray(raw.scale_a)),
        operands.scale and _finite(operands.scale, np.asarray(raw.scale_b)),
    )


def _normal(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """N(0, 1)."""
    shape = (n, operands.k)
    return _packed(
        operands,
        _nearest(operands.a, rng.standard_normal(shape)),
        _nearest(operands.b, rng.standard_normal(shape)),
        _nearest(operands.c, rng.standard_normal(n)),
        *_unit_scales(rng, operands, n, spread=3),
    )


def _dnn(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """N(0, 1) + Bernoulli(0.001) · N(0, 100), 100 the variance: activations with outliers."""

    def draw(shape: tuple[int, ...]) -> NDArray[np.float64]:
        outliers = 10 * rng.standard_normal(shape) * (rng.random(shape) < 0.001)
        values: NDArray[np.float64] = rng.standard_normal(shape) + outliers
        return values

    shape = (n, operands.k)
    return _packed(
        operands,
        _nearest(operands.a, draw(shape)),
        _nearest(operands.b, draw(shape)),
        _nearest(operands.c, draw((n,))),
        *_unit_scales(rng, operands, n, spread=3),
    )


def _cancellation(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Products that cancel in pairs, exactly or but for an ulp of a factor, large pairs among small ones; and
    a c that cancels the sum but for a few of its ulps."""
    low, high = _window(rng, operands, n, [2, 10, 24, 40])
    exponent = rng.integers(low, high, (n, operands.k), endpoint=True)
    a, b, scale_a, scale_b = _aimed(rng, operands, exponent)

    # Products 2j and 2j+1 cancel from the first pair on, from the second (so that something large is left for
    # c to cancel), or not at all.
    first_pair = rng.integers(0, 3, (n, 1))
    first_pair[first_pair == 2] = operands.k
    pairs = operands.k // 2
    paired = np.arange(pairs) >= first_pair
    even, odd = slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)
    mirror = _negated(operands.a, a[:, even])
    nudge = rng.choice([-1, 0, 0, 1], (n, pairs))
    mirror = np.where(nudge != 0, _nudged(operands.a, mirror, nudge), mirror)
    a[:, odd] = np.where(paired, mirror, a[:, odd])
    b[:, odd] = np.where(paired, b[:, even], b[:, odd])

    opposite = _nearest(operands.c, -_sums(operands, a, b, scale_a, scale_b))
    opposite = _nudged(operands.c, opposite, rng.integers(-3, 4, n))
    small = _of_exponent(rng, operands.c, rng.integers(low[:, 0] - 30, high[:, 0] + 1))
    c = np.choose(rng.choice(3, n, p=[0.6, 0.3, 0.1]), [opposite, small, _zeros(rng, operands.c, (n,))])

    mixed_a, mixed_b = _shuffled(rng, a, b)
    shuffle = rng.random((n, 1)) < 0.5
    return _packed(
        operands, np.where(shuffle, mixed_a, a), np.where(shuffle, mixed_b, b), c, scale_a, scale_b
    )


def _all_subnormal(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Every number a nonzero subnormal."""
    shape, scales = (n, operands.k), (n, operands.scale_blocks)
    return _packed(
        operands,
        _subnormals(rng, operands.a, shape),
        _subnormals(rng, operands.b, shape),
        _subnormals(rng, operands.c, (n,)),
        operands.scale and _subnormals(rng, operands.scale, scales),
        operands.scale and _subnormals(rng, operands.scale, scales),
    )


def _subnormal_heavy(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Six factors in ten subnormal, the others of any exponent; c subnormal or as small as the products."""
    shape = (n, operands.k)

    def side(fmt: Format) -> Codes:
        other = _of_exponent(rng, fmt, rng.integers(fmt.min_exponent, fmt.max_exponent, shape, endpoint=True))
        return np.where(rng.random(shape) < 0.6, _subnormals(rng, fmt, shape), other)

    least, _ = _product_range(operands.a, operands.b)
    near = _of_exponent(rng, operands.c, rng.integers(least - 24, least + 24, n))
    c = np.where(rng.random(n) < 0.5, _subnormals(rng, operands.c, (n,)), near)
    return _packed(operands, side(operands.a), side(operands.b), c, *_unit_scales(rng, operands, n, spread=8))


def _signed_zeros(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """±0 everywhere, or nearly, or in half of the places."""
    shape = (n, operands.k)
    low, high = _window(rng, operands, n, [0, 20, 60])
    a, b, scale_a, scale_b = _aimed(rng, operands, rng.integers(low, high, shape, endpoint=True))
    share = rng.choice([1.0, 0.9, 0.5], (n, 1))
    a = np.where(rng.random(shape) < share, _zeros(rng, operands.a, shape), a)
    b = np.where(rng.random(shape) < share / 2, _zeros(rng, operands.b, shape), b)
    c = np.where(rng.random(n) < 0.3, _subnormals(rng, operands.c, (n,)), _zeros(rng, operands.c, (n,)))
    near = _of_exponent(rng, operands.c, rng.integers(low - 30, high + 30, endpoint=True)[:, 0])
    c = np.where(rng.random(n) < 0.2, near, c)
    return _packed(operands, a, b, c, scale_a, scale_b)


def special_codes(fmt: Format) -> list[int]:
    """±0, ±smallest, ±1, ±largest, and the infinities and NaNs the format has (quiet and signalling)."""
    fraction_one = 1 << fmt.ignored_low_bits
    if not fmt.has_zero:
        return [0, fmt.bias, _largest(fmt), _magnitude_mask(fmt)]
    one = fmt.bias << (fmt.fraction_bits + fmt.ignored_low_bits)
    magnitudes = [0, fraction_one, one, _largest(fmt)]
    if fmt.infinity is not None:
        quiet = fmt.infinity | (1 << (fmt.fraction_bits - 1 + fmt.ignored_low_bits))
        magnitudes += [fmt.infinity, fmt.infinity + fraction_one, quiet]
        if fmt.ignored_low_bits:
            magnitudes.append(fmt.infinity + 1)  # a NaN of the word, an infinity of the format
    elif fmt.specials == Specials.FN:
        magnitudes.append(_magnitude_mask(fmt))
    if not fmt.signed:
        return magnitudes + [code | 1 << (fmt.storage_bits - 1) for code in magnitudes]
    return magnitudes + [code | fmt.sign_mask for code in magnitudes]  # of FNUZ, −0 is the NaN


def _specials(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Every triple of special codes for a product and c; other products zero, ordinary, or special too."""
    shape = (n, operands.k)
    of_a, of_b, of_c = (
        np.array(special_codes(fmt), np.uint64) for fmt in (operands.a, operands.b, operands.c)
    )
    triples = len(of_a) * len(of_b) * len(of_c)
    index = np.concatenate([rng.permutation(triples) for _ in range(-(-n // triples))])[:n]

    low, high = _window(rng, operands, n, [8])
    aimed_a, aimed_b, scale_a, scale_b = _aimed(rng, operands, rng.integers(low, high, shape, endpoint=True))
    background = rng.integers(0, 3, (n, 1))
    a = np.choose(background, [_zeros(rng, operands.a, shape), aimed_a, aimed_a])
    b = np.choose(background, [_zeros(rng, operands.b, shape), aimed_b, aimed_b])
    more = (background == 2) & (rng.random(shape) < 2 / operands.k)
    a = np.where(more, rng.choice(of_a, shape), a)
    b = np.where(more, rng.choice(of_b, shape), b)

    place = rng.integers(0, operands.k, n)
    rows = np.arange(n)
    a[rows, place] = of_a[index % len(of_a)]
    b[rows, place] = of_b[index // len(of_a) % len(of_b)]
    c = of_c[index // (len(of_a) * len(of_b))]
    if operands.scale is not None and scale_a is not None and scale_b is not None:
        codes = np.array(special_codes(operands.scale), np.uint64)
        scales = (n, operands.scale_blocks)
        special = rng.random(scales) < 0.3
        scale_a = np.where(special, rng.choice(codes, scales), scale_a)
        scale_b = np.where(special & (rng.random(scales) < 0.5), rng.choice(codes, scales), scale_b)
    return _packed(operands, a, b, c, scale_a, scale_b)


def _overflow(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Products and c about as large as the largest output, in half of the cases all of one sign."""
    shape = (n, operands.k)
    top = operands.d.max_exponent
    exponent = rng.integers(top - 8, top + 2, shape, endpoint=True)
    exponent = np.where(rng.random(shape) < rng.choice([0.0, 0.5, 0.9], (n, 1)), exponent - 30, exponent)
    a, b, scale_a, scale_b = _aimed(rng, operands, exponent)
    c = _of_exponent(rng, operands.c, operands.c.max_exponent - rng.choice([0, 0, 0, 1, 2, 5, 12, 25], n))
    one_sign = rng.random((n, 1)) < 0.5
    sign_a = np.where(_random_signs(rng, (n, 1)) == 1, np.uint64(operands.a.sign_mask), np.uint64(0))
    sign_c = np.where(sign_a != 0, np.uint64(operands.c.sign_mask), np.uint64(0))[:, 0]
    a = np.where(one_sign, a & ~np.uint64(operands.a.sign_mask) | sign_a, a)
    b = np.where(one_sign, b & ~np.uint64(operands.b.sign_mask), b)
    c = np.where(one_sign[:, 0], c & ~np.uint64(operands.c.sign_mask) | sign_c, c)
    return _packed(operands, _finite(operands.a, a), b, c, scale_a, scale_b)


def _underflow(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Products about and below the smallest output, many factors zero, c zero, subnormal or small: where the
    exponent of an exact zero decides how much of a tiny product is kept."""
    shape = (n, operands.k)
    bottom = operands.d.min_exponent
    exponent = rng.integers(bottom - 45, bottom + 4, shape, endpoint=True)
    a, b, scale_a, scale_b = _aimed(rng, operands, exponent)
    zero = rng.random(shape) < rng.choice([0.0, 0.3, 0.8], (n, 1))
    a = np.where(zero, _zeros(rng, operands.a, shape), a)
    least = operands.c.min_exponent
    small = _of_exponent(rng, operands.c, rng.integers(least, least + 8, n))
    c = np.choose(
        rng.integers(0, 4, n),
        [_zeros(rng, operands.c, (n,))] * 2 + [_subnormals(rng, operands.c, (n,)), small],
    )
    return _packed(operands, a, b, c, scale_a, scale_b)


def _exponents(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Exponents spread evenly over a window, 4 wide to the whole range: terms end about the last kept bit."""
    low, high = _window(rng, operands, n, [4, 12, 28, 40, 60, 10_000])
    a, b, scale_a, scale_b = _aimed(rng, operands, rng.integers(low, high, (n, operands.k), endpoint=True))
    c = _of_exponent(rng, operands.c, rng.integers(low, high, endpoint=True)[:, 0])
    return _packed(operands, a, b, c, scale_a, scale_b)


def _ties(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """A number of random significand (c, or a product), half an ulp of the output, and something far below,
    of either sign: the sum is a tie or just beside one.  In some the half ulp is a bit or more off; in some the
    number is a power of two and the half ulp that of the binade below."""
    shape = (n, operands.k)
    half_ulp = operands.d.fraction_bits + rng.choice([1, 1, 1, 1, 0, 2, 3, -9], n)
    power = rng.random(n) < 0.3
    half_ulp = np.where(power, operands.d.fraction_bits + 2, half_ulp)
    tie = rng.integers(*_product_range(operands.a, operands.b, powers=True), n, endpoint=True)
    # A base out of c's reach is moved into it; the tie then follows where the products can.
    base = np.clip(tie + half_ulp, operands.c.min_exponent, operands.c.max_exponent)
    tie = base - half_ulp

    exponent = tie[:, None] - rng.integers(1, 31, shape)
    exponent[:, 0] = tie
    a, b = _factors(rng, exponent, operands.a, operands.b, powers=True)
    used = rng.random(shape) < np.array([0.9, 0.7, *[0.1] * operands.k])[: operands.k]
    a = np.where(used, a, _zeros(rng, operands.a, shape))
    b = np.where(used, b, _zeros(rng, operands.b, shape))

    in_c = rng.random(n) < 0.7
    a[:, -1] = np.where(in_c, a[:, -1], _of_exponent(rng, operands.a, base - base // 2))
    b[:, -1] = np.where(in_c, b[:, -1], _powers(rng, operands.b, base // 2))
    c = np.where(power, _powers(rng, operands.c, base), _of_exponent(rng, operands.c, base))
    c = np.where(in_c, c, _zeros(rng, operands.c, (n,)))
    a, b = _shuffled(rng, a, b)
    return _packed(operands, a, b, c, *_unit_scales(rng, operands, n, spread=0))


def _smallest(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """Half of the smallest output or a few times it, and a power of two up to 35 places below; all else exact
    zeros, whose exponent then decides whether the small one is kept."""
    shape = (n, operands.k)
    ulp = operands.d.min_exponent - operands.d.fraction_bits
    exponent = ulp + rng.choice([-1, -1, -1, 0, 1, 2, 3], shape)
    # Where there are several blocks, the small one stands first in its own: its scales are chosen for it.
    place = operands.k // operands.scale_blocks if operands.scale_blocks > 1 else 1
    likelihood = np.where(np.arange(operands.k) == 0, 1.0, 0.5 / operands.k)
    if operands.k > 1:
        exponent[:, place] = ulp - rng.integers(1, 36, n)
        likelihood[place] = 0.9
    a, b, scale_a, scale_b = _aimed(rng, operands, exponent, powers=True)
    used = rng.random(shape) < likelihood
    a = np.where(used, a, _zeros(rng, operands.a, shape))
    b = np.where(used, b, _zeros(rng, operands.b, shape))
    if operands.scale is None:
        a, b = _shuffled(rng, a, b)
    tiny = _powers(rng, operands.c, np.full(n, operands.c.min_exponent - operands.c.fraction_bits))
    c = np.where(rng.random(n) < 0.85, _zeros(rng, operands.c, (n,)), tiny)
    return _packed(operands, a, b, c, scale_a, scale_b)


def _sparse(rng: np.random.Generator, operands: Operands, n: int) -> Cases:
    """At most four powers of two among zeros: what a person would try first."""
    shape = (n, operands.k)
    low, high = _window(rng, operands, n, [0, 2, 26, 36, 10_000])
    exponent = rng.integers(low, high, shape, endpoint=True)
    a, b, scale_a, scale_b = _aimed(rng, operands, exponent, powers=True)
    used = np.arange(operands.k) < rng.integers(0, min(4, operands.k), (n, 1), endpoint=True)
    a = np.where(used, a, _zeros(rng, operands.a, shape))
    b = np.where(used, b, _zeros(rng, operands.b, shape))
    a, b = _shuffled(rng, a, b)
    power = _powers(rng, operands.c, rng.integers(low, high, endpoint=True)[:, 0])
    c = np.where(rng.random(n) < 0.5, _zeros(rng, operands.c, (n,)), power)
    return _packed(operands, a, b, c, scale_a, scale_b)


FAMILIES: dict[str, Callable[[np.random.Generator, Operands, int], Cases]] = {
    "bits": _bits,
    "finite_bits": _finite_bits,
    "normal": _normal,
    "dnn": _dnn,
    "cancellation": _cancellation,
    "all_subnormal": _all_subnormal,
    "subnormal_heavy": _subnormal_heavy,
    "signed_zeros": _signed_zeros,
    "specials": _specials,
    "overflow": _overflow,
    "underflow": _underflow,
    "exponents": _exponents,
    "ties": _ties,
    "smallest": _smallest,
    "sparse": _sparse,
}


def generate(family: str, operands: Operands, n: int, seed: int) -> Cases:
    """n cases of one family.

    Raises KeyError for an unknown family, ValueError for n < 1.
    """
    if n < 1:
        raise ValueError(f"a family needs at least one case, not {n}")
    rng = np.random.default_rng([seed, zlib.crc32(f"{family} {operands}".encode())])
    return FAMILIES[family](rng, operands, n)
