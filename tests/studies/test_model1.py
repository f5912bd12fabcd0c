"""Model 1 as it is computed, against rounding by its definition in rationals; and what its scaling promises."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal.analysis.rounding import round_floats
from mmaformal.analysis.scaling import powers, root_below
from mmaformal.studies.narrow_range import DEVICES, TABLE_2_1, FloatArithmetic, Model1

KINDS = [(True, True), (False, True), (True, False)]
#: Which words of a and b are multiplied, in order (4.31).
PAIRS = {1: [(0, 0)], 2: [(0, 0), (0, 1), (1, 0)], 3: [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0)]}
EMULATED = [name for name in TABLE_2_1 if name != "binary64"]


def hard_numbers(arithmetic: FloatArithmetic, count: int) -> NDArray[np.float64]:
    """Numbers of all exponents of the arithmetic and some beyond, ties and their neighbours among them."""
    rng = np.random.default_rng(1)
    exponents = rng.integers(arithmetic.e_min - arithmetic.t - 3, arithmetic.e_max + 2, count)
    significands = (
        rng.integers(1 << arithmetic.t, 2 << arithmetic.t, count) * 2
    )  # one bit too many: half are ties
    nudges = rng.integers(-1, 2, count) * 2.0**-20
    x = np.ldexp(significands / 2.0 ** (arithmetic.t + 1) + nudges, exponents)
    f_min = float(arithmetic.f_min)
    edges = [0.0, f_min, f_min / 2, f_min * 0.75, np.nextafter(f_min / 2, 1), float(arithmetic.f_max)]
    return np.concatenate([x, -x, edges])


@pytest.mark.parametrize(("subnormals", "bounded"), KINDS)
@pytest.mark.parametrize("name", EMULATED)
def test_rounding_is_by_definition(name: str, subnormals: bool, bounded: bool) -> None:
    arithmetic = FloatArithmetic.named(name, subnormals=subnormals, bounded=bounded)
    x = hard_numbers(arithmetic, 400)
    for value, result in zip(x.tolist(), round_floats(x, arithmetic).tolist(), strict=True):
        expected = arithmetic.fl(Fraction(value))
        assert abs(result) == np.inf if expected is None else Fraction(result) == expected, value


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float8_e5m2", "float8_e4m3", "float8_e3m4"])
def test_formats_are_those_of_ml_dtypes(name: str) -> None:
    """`float8_e4m3`, `float8_e3m4` are formats that only ml_dtypes has."""
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    arithmetic = FloatArithmetic.named({"bfloat16": "bf16", "float16": "fp16"}.get(name, name))
    with np.errstate(over="ignore"):
        x = hard_numbers(arithmetic, 2000).astype(np.float32)
        x = x[np.isfinite(x)]
        expected = x.astype(dtype).astype(np.float64)
    np.testing.assert_array_equal(round_floats(x.astype(np.float64), arithmetic), expected)


def test_table_2_1() -> None:
    """The table is as the paper prints it; f_max of fp8-E4M3 is not 2^e_max (2 - 2u), since the largest code is NaN."""
    printed = {
        "binary32": (-126, 127, 24),
        "tf32": (-126, 127, 11),
        "bfloat16": (-126, 127, 8),
        "binary16": (-14, 15, 11),
        "fp8-E4M3": (-6, 8, 4),
        "fp8-E5M2": (-14, 15, 3),
        "fp6-E2M3": (0, 2, 4),
        "fp6-E3M2": (-2, 4, 3),
        "fp4-E2M1": (0, 2, 2),
        "binary64": (-1022, 1023, 53),
    }
    largest = {
        "binary16": 65504,
        "fp8-E4M3": 448,
        "fp8-E5M2": 57344,
        "fp6-E2M3": 7.5,
        "fp6-E3M2": 28,
        "fp4-E2M1": 6,
    }
    for name, (e_min, e_max, t) in printed.items():
        each = FloatArithmetic.named(name)
        assert (each.e_min, each.e_max, each.t) == (e_min, e_max, t)
        assert each.f_max == largest.get(name, Fraction(2) ** e_max * (2 - 2 * each.u))
    for pairs in DEVICES.values():
        for one, other in pairs:
            Model1.of(one, other)


def by_definition(
    model: Model1, A: NDArray[Any], B: NDArray[Any], words: int, theta: Fraction
) -> list[Fraction | None]:
    """The elements of C, in rationals; None where something overflows."""
    u, found = model.input.u, []

    def scale(x: NDArray[Any]) -> Fraction:
        power = Fraction(1)
        largest = max(map(abs, map(Fraction, x.tolist())))
        while largest and power * largest <= theta / 2:
            power *= 2
        while power * largest > theta:
            power /= 2
        return power

    def words_of(x: Fraction) -> list[Fraction]:
        parts: list[Fraction] = []
        for i in range(words):
            word = model.input.fl(
                (x - sum((u**j * part for j, part in enumerate(parts)), Fraction(0))) / u**i
            )
            assert word is not None
            parts.append(word)
        return parts

    for row in A:
        for column in B.T:
            left, right = scale(row), scale(column)
            total: Fraction | None = Fraction(0)
            x = [words_of(left * Fraction(v)) for v in row.tolist()]
            y = [words_of(right * Fraction(v)) for v in column.tolist()]
            for i, j in PAIRS[words]:
                for a, b in zip(x, y, strict=True):
                    product = model.accumulation.fl(a[i] * b[j])
                    if product is None or total is None:
                        total = None
                    else:
                        total = model.accumulation.fl(total + u ** (i + j) * product)
            found.append(None if total is None else total / left / right)
    return found


@pytest.mark.parametrize(("subnormals", "bounded"), KINDS)
@pytest.mark.parametrize(
    ("one", "other", "words"),
    [("e4m3", "fp16", 1), ("e5m2", "fp16", 3), ("fp16", "fp32", 2), ("e2m1", "e5m2", 3), ("bf16", "tf32", 2)],
)
def test_products_are_by_definition(
    one: str, other: str, words: int, subnormals: bool, bounded: bool
) -> None:
    model = Model1.of(one, other, subnormals=subnormals, bounded=bounded)
    rng = np.random.default_rng(2)
    A, B = (10.0 ** rng.uniform(-4, 4, shape) * rng.choice([-1, 1], shape) for shape in ((3, 21), (21, 4)))
    theta = model.safe_theta(21, words) if one == "e2m1" and bounded else model.theta(21)
    product = model.matmul(A, B, words=words, theta=theta)
    expected = by_definition(model, A, B=B, words=words, theta=theta)
    assert None not in expected
    assert [Fraction(x) for x in product.C.reshape(-1).tolist()] == expected


def test_binary64_accumulates_as_the_processor_does() -> None:
    rng = np.random.default_rng(3)
    A, B = rng.integers(-9, 9, (3, 50)) / 8, rng.integers(-9, 9, (50, 2)) / 8
    np.testing.assert_array_equal(Model1.of("bf16", "binary64").matmul(A, B).C, A @ B)


def test_the_published_scaling_overflows_and_the_safe_one_does_not() -> None:
    """Rounded up, an element is more than θ; and every sum may be rounded up."""
    model, x = Model1.of("e5m2", "fp16"), np.full((1, 12), 73.5)
    assert float((x @ x.T)[0, 0]) < 65504
    assert model.matmul(x, x.T).overflowed
    assert not model.matmul(x, x.T, theta=model.safe_theta(12)).overflowed
    model, x = Model1.of("fp16", "fp16"), np.full((1, 3960), 4.0625)
    assert x[0, 0] <= model.theta(3960)
    assert model.matmul(x, x.T).overflowed
    assert not model.matmul(x, x.T, theta=model.safe_theta(3960)).overflowed


@pytest.mark.parametrize("words", [1, 2, 3])
@pytest.mark.parametrize(
    ("one", "other"), [("e5m2", "fp16"), ("e4m3", "fp16"), ("fp16", "fp16"), ("e2m3", "e4m3")]
)
def test_nothing_overflows_with_the_safe_theta(one: str, other: str, words: int) -> None:
    """All elements as large as they may be, and signs as they are worst."""
    for subnormals in (True, False):
        model = Model1.of(one, other, subnormals=subnormals)
        for n in (1, 2, 12, 21, 3960):
            try:
                theta = model.safe_theta(n, words)
            except ValueError:
                assert other == "e4m3" or n == 3960
                continue
            for x in (float(theta), float(theta) * 0.95, float(theta) * 0.51):
                row = np.full((1, n), x)
                assert not model.matmul(row, row.T, words=words, theta=theta).overflowed


def test_a_second_word_may_overflow() -> None:
    """Where the first is 0: g_min/u is more than the largest number of e2m3."""
    model = Model1.of("e2m3", "fp32", subnormals=False)
    assert model.input.g_min / model.input.u > model.input.f_max
    assert model.matmul(np.array([[7.0, 0.499]]), np.array([[7.0], [7.0]]), words=2).overflowed
    with pytest.raises(ValueError, match="no θ keeps 2 words"):
        model.safe_theta(2, 2)


def test_scaling_is_the_largest_power_of_two() -> None:
    theta = root_below(Fraction(65504, 10))
    assert theta**2 <= Fraction(65504, 10) < (theta * (1 + Fraction(1, 1 << 51))) ** 2
    x = np.array([float(theta), np.nextafter(float(theta), 1e9), 1.0, 3e-20, 7e19])
    scales = powers(x, theta)
    for value, scale in zip(x.tolist(), scales.tolist(), strict=True):
        assert theta / 2 < Fraction(value) * Fraction(scale) <= theta
    assert powers(np.zeros(1), theta) == 1


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer bits or a narrower range"):
        Model1.of("fp16", "bf16")
    with pytest.raises(ValueError, match="no format"):
        Model1.of("fp17", "fp32")
    with pytest.raises(ValueError, match="bits of precision"):
        replace(FloatArithmetic.named("fp32"), t=30)
    with pytest.raises(ValueError, match="as it is"):
        FloatArithmetic.named("binary64", subnormals=False)
    with pytest.raises(ValueError, match="no negative numbers"):
        FloatArithmetic.named("ue8m0")
    model = Model1.of("fp16", "fp32")
    with pytest.raises(ValueError, match="do not fit"):
        model.matmul(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="infinities"):
        model.matmul(np.full((1, 1), np.inf), np.ones((1, 1)))
    with pytest.raises(ValueError, match="words"):
        model.matmul(np.ones((1, 1)), np.ones((1, 1)), words=4)
    with pytest.raises(ValueError, match="2\\^400"):
        model.unbounded.matmul(np.array([[1.0, 1e-200]]), np.ones((2, 1)))
