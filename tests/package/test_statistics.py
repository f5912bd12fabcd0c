"""Errors against exact arithmetic: what `sample` says is what Python's fractions say."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.kernel_runs import random_codes

from mmaformal import Instruction, cdna2, cdna3, hopper, matmul, rtx_blackwell, statistics
from mmaformal.formats import fp16
from mmaformal.statistics import Errors, join_samples, plot, sample

INSTRUCTIONS = [
    hopper["HMMA.16816.F32"],
    hopper["HMMA.16816.F16"],
    hopper["HMMA.1688.F32.TF32"],
    cdna2["f32_16x16x4f32"],
    cdna2["f64_16x16x4f64"],
    rtx_blackwell["QMMA.SF.16832.F32.E5M2.E3M2.E8"],
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
]


@pytest.mark.parametrize("i", INSTRUCTIONS, ids=lambda i: i.label)
def test_errors_are_those_of_exact_rational_arithmetic(i: Instruction) -> None:
    """Random bits: any exponent, and special values here and there."""
    rng = np.random.default_rng(list(i.label.encode()))
    m, n, k = 6, 5, min(i.k, 8) if i.spec.scale_format is None else i.k
    A, B, C = (
        random_codes(rng, f, s) for f, s in ((i.a_format, (m, k)), (i.b_format, (k, n)), (i.c_format, (m, n)))
    )
    scales: dict[str, Any] = {}
    factors = np.full((2, max(m, n), k), Fraction(1))
    fmt = i.spec.scale_format
    if fmt is not None:
        blocks = k // i.spec.scale_block
        scales = {
            "scale_a": random_codes(rng, fmt, (m, blocks)),
            "scale_b": random_codes(rng, fmt, (blocks, n)),
        }
        for side, codes in enumerate((scales["scale_a"], scales["scale_b"].T)):
            for row, col in np.ndindex(codes.shape):
                code = int(codes[row, col])
                value = fmt.value(code) if fmt.is_finite(code) else None
                factors[side, row, col * i.spec.scale_block : (col + 1) * i.spec.scale_block] = value
    found = sample(i, A, B, C, **scales)
    D = matmul(A, B, C, instruction=i, **scales)
    finite = 0
    for row, col in np.ndindex(m, n):
        codes = [(i.a_format, x) for x in A[row]] + [(i.b_format, x) for x in B[:, col]]
        codes += [(i.c_format, C[row, col]), (i.d_format, D[row, col])]
        factor = [*factors[0, row], *factors[1, col]]
        if not all(f.is_finite(int(x)) for f, x in codes) or None in factor:
            assert np.isnan(found.errors[row, col])
            continue
        finite += 1
        exact = i.c_format.value(int(C[row, col]))
        for q in range(k):
            x, y = i.a_format.value(int(A[row, q])), i.b_format.value(int(B[q, col]))
            exact += x * y * factors[0, row, q] * factors[1, col, q]
        assert found.exact[row, col] == float(exact)
        assert found.errors[row, col] == float(i.d_format.value(int(D[row, col])) - exact)
    assert finite >= 3


def test_statistics_of_known_errors() -> None:
    i = hopper["HMMA.16816.F32"]
    exact = np.array([1.0, 2.0, 3.0, 0.0, np.nan])
    errors = np.array([2.0**-23, -(2.0**-22), 0.0, 2.0**-149, np.nan])
    s = Errors(i.d_format, exact + errors, exact, errors).statistics()
    assert (s.count, s.special) == (4, 1)
    assert s.max_ulp == 1  # one ulp each of 1, 2 and 0
    assert s.bias_ulp == pytest.approx(1 / 4)
    assert s.bias == pytest.approx(-(2.0**-23) / 4)
    assert s.mse == pytest.approx(5 * 2.0**-46 / 4)
    assert s.variance_of_squared_error == pytest.approx(np.var([2.0**-46, 2.0**-44, 0, 0]))
    assert s.exact == 0.25
    assert s.variance_retention_ratio == pytest.approx(1)
    assert "bias_ulp" in str(s)


def test_a_coarse_unit_loses_variance_and_rounding_toward_zero_is_seen() -> None:
    rng = np.random.default_rng(0)
    i = hopper["HMMA.16816.F32"]
    A, B = (np.abs(rng.normal(size=s)).astype(np.float16) for s in ((40, 64), (64, 50)))
    fine = sample(i, A, B).statistics()
    coarse = sample(i.replace(F=4), A, B).statistics()
    assert fine.mse < coarse.mse / 1e6
    assert coarse.bias < -coarse.mean_absolute * 0.99
    assert coarse.variance_retention_ratio != pytest.approx(1, abs=1e-4)
    assert sample(i, A, B, promote_every=1).statistics().mse != fine.mse


def test_samples_join_and_are_drawn(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    i = cdna3["f32_32x32x8_f16"]
    A, B = (rng.normal(size=s).astype(np.float16) for s in ((20, 8), (8, 30)))
    one = sample(i, A, B)
    both = join_samples([one, one])
    assert both.statistics().count == 1200
    assert both.statistics().bias == pytest.approx(one.statistics().bias)
    pytest.importorskip("matplotlib")
    plot({"cdna3": one, "again": both}, tmp_path / "errors.png")
    assert (tmp_path / "errors.png").read_bytes()[:4] == b"\x89PNG"


def test_a_result_of_elsewhere_can_be_judged() -> None:
    rng = np.random.default_rng(0)
    i = hopper["HMMA.16816.F32"]
    A, B = (rng.normal(size=s).astype(np.float16) for s in ((3, 32), (32, 4)))
    nearest = (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float32)
    assert sample(i, A, B, D=nearest).statistics().max_ulp <= 0.5 + 1e-6
    with pytest.raises(ValueError, match="do not fit"):
        sample(i, A, B, D=nearest[:2])


# ---- extremes ------------------------------------------------------------------------------------------------------


def as_float(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def root(x: Fraction) -> Fraction:
    """√x to 60 bits."""
    shift = 2 * max(0, 120 - (x.numerator.bit_length() - x.denominator.bit_length()) // 2 + 1)
    return Fraction(math.isqrt(int(x * 2**shift)), 2 ** (shift // 2))


def moments(x: list[Fraction]) -> tuple[Fraction, Fraction]:
    mean = sum(x, Fraction(0)) / len(x)
    return mean, sum(((y - mean) ** 2 for y in x), Fraction(0)) / len(x)


def expected(errors: list[Fraction], exact: list[Fraction], results: list[Fraction]) -> dict[str, float]:
    squares = [e * e for e in errors]
    mse, spread = moments(squares)
    mean_square, variance = moments([x * x for x in exact])[0], moments(exact)[1]
    return {
        "bias": as_float(moments(errors)[0]),
        "mean_absolute": as_float(moments([abs(e) for e in errors])[0]),
        "mse": as_float(mse),
        "variance_of_squared_error": as_float(spread),
        "variance_retention_ratio": as_float(moments(results)[1] / variance) if variance else math.nan,
        "relative": as_float(root(mse / mean_square)) if mean_square else math.nan,
    }


#: magnitudes at the ends of what fp64 and fp32 hold, as exponents of two
ENDS = [(1000, 0), (0, -60), (-500, -560), (-1000, -1060), (520, -520), (127, 100), (-126, -149)]


@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize("i", [cdna2["f64_16x16x4f64"], cdna2["f32_16x16x4f32"]], ids=lambda i: i.label)
def test_statistics_at_the_ends_of_formats(i: Instruction, ends: tuple[int, int]) -> None:
    """x² of fp64 overflowed: a relative error of 0 where it is 2e-200, and NaN elsewhere."""
    rng = np.random.default_rng(5)
    top, low = (
        min(max(e, i.c_format.min_exponent - i.c_format.fraction_bits), i.c_format.max_exponent) for e in ends
    )
    A = np.ldexp(rng.uniform(-1, 1, (6, 4)), [top, low, low, low]).astype(i.a_format.dtype)
    B = np.ones((4, 3), i.b_format.dtype)
    sampled = sample(i, A, B)
    D = matmul(A, B, instruction=i)
    exact = [sum((Fraction(float(x)) for x in row), Fraction(0)) for row in A for _ in range(3)]
    results = [Fraction(float(d)) for d in D.reshape(-1)]
    errors = [d - x for d, x in zip(results, exact, strict=True)]
    for mine, true in ((sampled.exact, exact), (sampled.errors, errors)):
        assert mine.reshape(-1).tolist() == [float(x) for x in true]
    statistics = sampled.statistics()
    for name, wanted in expected(errors, exact, results).items():
        assert getattr(statistics, name) == pytest.approx(wanted, rel=1e-9, abs=0.0, nan_ok=True), name
    assert math.isfinite(statistics.max_ulp)


def test_the_relative_error_of_one_large_and_small_numbers() -> None:
    i, A = cdna2["f64_16x16x4f64"], np.array([[1e200, 1, 1, 1 / 3]])
    s = sample(i, A, np.ones((4, 1))).statistics()
    assert s.relative == pytest.approx(7 / 3 / 1e200)
    assert s.bias == -7 / 3
    assert s.mse == pytest.approx(49 / 9)


def test_an_exact_result_beyond_float64_is_its_largest_number() -> None:
    """d = max where ρ cuts; the exact sum is nearer to 2^1024, which float64 has not."""
    i = cdna2["f64_16x16x4f64"].replace(k=1, rho="RZ-FP64")
    largest = np.finfo(np.float64).max
    sampled = sample(i, np.array([[largest]]), np.ones((1, 1)), np.array([[2.0**970 * 0.75]]))
    assert sampled.exact == largest
    assert sampled.errors == -(2.0**970) * 0.75
    assert math.isfinite(sampled.statistics().relative)


def test_errors_below_the_least_normal_number_are_rounded_once() -> None:
    """Errors of fp64 sums of products far below 2^-1074: multiples of it, and ties, told from what is beside them."""
    i = cdna2["f64_16x16x4f64"].replace(k=4)
    cases = [(high, k) for high in (0, 2**52, 2**53, 3 * 2**52, 2**54) for k in (1, 2, 3, 5, 6, 9)]
    for high, k in cases:
        for more in (0.0, 2.0**-700, -(2.0**-700)):
            A = np.array([[high * 2.0**-540, k * 2.0**-540, 2.0**-500, 0]])
            B = np.array([[2.0**-536], [2.0**-536], [more], [0]])
            found = sample(i, A, B)
            exact = sum(
                Fraction(x) * Fraction(y) for x, y in zip(A[0].tolist(), B[:, 0].tolist(), strict=True)
            )
            assert found.exact == float(exact)
            assert found.errors == float(Fraction(float(matmul(A, B, instruction=i)[0, 0])) - exact)


def test_numbers_that_fit_a_lane_have_the_same_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums in one word, and in limbs."""
    rng = np.random.default_rng(3)
    for i in (hopper["HMMA.16816.F32"], hopper["HMMA.16816.F16"], hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]):
        A, B = (rng.standard_normal(shape).astype(i.a_format.dtype) for shape in ((40, 50), (50, 30)))
        C = rng.standard_normal((40, 30)).astype(i.c_format.dtype)
        took = []
        with monkeypatch.context() as patch:
            lanes = statistics._in_lanes
            patch.setattr(
                statistics, "_in_lanes", lambda *x, lanes=lanes, took=took: took.append(lanes(*x)) or took[-1]
            )
            in_lanes = sample(i, A, B, C if i.k > 16 or i.d_format == fp16 else None)
            patch.setattr(statistics, "_in_lanes", lambda *_: None)
            in_limbs = sample(i, A, B, C if i.k > 16 or i.d_format == fp16 else None)
        assert took[0] is not None
        assert np.array_equal(in_lanes.errors, in_limbs.errors)
        assert np.array_equal(in_lanes.exact, in_limbs.exact)
        assert np.array_equal(in_lanes.results, in_limbs.results)
