"""Products within bounds: elements just inside and just outside, and bounds that are too small."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import hypothesis
import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import Structure, hopper, matmul, replay
from mmaformal.analysis import structure_bounds
from mmaformal.analysis.structure_bounds import StructureBound
from mmaformal.formats import bf16, fp16, fp32
from mmaformal.testing import assert_within, strategies, tolerance
from mmaformal.testing.strategies import DotRow

UNIT = "h100 HMMA.16816.F32"
FP8 = "h100 QGMMA.64x8x32.F32.E4M3.E4M3"


def operands(m: int = 12, k: int = 256, n: int = 10) -> tuple[NDArray[np.float16], ...]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)


def exact(A: NDArray[np.float16], B: NDArray[np.float16], row: int, column: int) -> Fraction:
    return sum(
        (Fraction(float(x)) * Fraction(float(y)) for x, y in zip(A[row], B[:, column], strict=True)),
        Fraction(0),
    )


def own_bound(A: NDArray[np.float16], B: NDArray[np.float16], row: int, column: int, f: Fraction) -> Fraction:
    """f·σ, written down once more, from the definition, in exact fractions."""
    least = Fraction(1, 1 << 14)
    weights = [
        max(abs(Fraction(float(x))), least) * max(abs(Fraction(float(y))), least)
        for x, y in zip(A[row], B[:, column], strict=True)
    ]
    return f * (sum(weights, Fraction(0)) + Fraction(1, 1 << 126))


def test_just_inside_and_just_outside() -> None:
    """The neighbours of the bound in fp32, above and below: one passes, the next does not, and is told."""
    A, B = operands()
    right = matmul(A, B, instruction=UNIT)
    f = (1 + hopper_U()) ** 16 - 1
    for sign in (1, -1):
        edge = exact(A, B, 3, 4) + sign * own_bound(A, B, 3, 4, f)
        near = np.float32(float(edge))
        inside = (
            near
            if (Fraction(float(near)) - edge) * sign <= 0
            else np.nextafter(near, np.float32(-sign * np.inf))
        )
        outside = np.nextafter(inside, np.float32(sign * np.inf))
        D = right.copy()
        D[3, 4] = inside
        found = assert_within(D, A, B, instruction=UNIT)
        assert found.place == (3, 4)
        assert 0.99 < found.used <= 1
        D[3, 4] = outside
        with pytest.raises(AssertionError, match=r"outside of the bound of hopper.*all of row 3, column 4"):
            assert_within(D, A, B, instruction=UNIT)


def hopper_U() -> Fraction:
    """U of a step of 16: n = 16 · (1 − 2^−21) terms lose less than 2^−25 each (tables/unit-bounds.md), cut to 23."""
    stage = StructureBound.of(hopper["HMMA.16816.F32"], 16).unit.stages[0]
    assert stage.F == 25
    assert 15.9 < stage.n < 16
    nu = stage.n / (1 << 25)
    return nu + Fraction(1, 1 << 23) + nu / (1 << 23)


def test_of_a_result_that_is_rounded_once_more() -> None:
    A, B = operands()
    D = matmul(A, B, instruction=UNIT).astype(np.float16)
    found = assert_within(D, A, B, instruction=UNIT)
    assert "2^−11" in found.theorem
    for places, passes in ((2, False), (-2, False), (0, True)):
        E = D.copy()
        E[0, 0] = (D[:1, 0].view(np.int16) + places).astype(np.int16).view(np.float16)[0]
        if passes:
            assert_within(E, A, B, instruction=UNIT)
        else:
            with pytest.raises(AssertionError, match="all of row 0, column 0"):
                assert_within(E, A, B, instruction=UNIT)


def test_of_structures() -> None:
    rng = np.random.default_rng(0)
    A = (1 + rng.random((8, 1024))).astype(ml_dtypes.bfloat16)
    B = (1 + rng.random((1024, 8))).astype(ml_dtypes.bfloat16)
    unit = "h100 HMMA.16816.F32.BF16"
    for structure in (
        Structure.named(unit, block=128),
        Structure.named(unit, lanes=8, order="pairwise"),
        Structure.named(unit, lanes=8, order="halves", d_format="bf16"),
    ):
        D = replay(A, B, structure)
        found = assert_within(D, A, B, structure=structure, d_format=structure.result)
        assert found.used > 0.01


def test_a_chain_is_further_off_than_a_promoted_one_may_be() -> None:
    A, B = positive()
    D = matmul(A, B, instruction=FP8)
    assert_within(D, A, B, instruction=FP8)
    with pytest.raises(AssertionError, match="every element"):
        assert_within(D, A, B, instruction=FP8, promote_every=1)
    assert_within(matmul(A, B, instruction=FP8, promote_every=1), A, B, instruction=FP8, promote_every=1)


def test_what_is_no_number() -> None:
    A, B = operands()
    D = matmul(A, B, instruction=UNIT)
    D[5, 5] = np.inf
    with pytest.raises(AssertionError, match="all of row 5, column 5"):
        assert_within(D, A, B, instruction=UNIT)
    A[5, 0] = np.nan
    assert assert_within(D, A, B, instruction=UNIT).left_out == 10
    A[:] = np.nan
    with pytest.raises(ValueError, match="no bound speaks of them"):
        assert_within(D, A, B, instruction=UNIT)
    # 2^15 · 2 · 16 is above fp16's largest number: an infinite result is not covered, and not refused.
    big = np.full((1, 16), 2.0**15, np.float16)
    two = np.full((16, 2), 2.0, np.float16)
    two[:, 1] = 0
    with np.errstate(over="ignore"):
        D = matmul(big, two, instruction=UNIT).astype(np.float16)
    assert np.isinf(D[0, 0])
    assert assert_within(D, big, two, instruction=UNIT).left_out == 1


def test_bounds_that_are_argued_are_asked_for() -> None:
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((4, 64), (64, 4)))
    unit = "sapphire_rapids VDPBF16PS"
    D = matmul(A, B, instruction=unit)
    with pytest.raises(ValueError, match="argued, not proved"):
        assert_within(D, A, B, instruction=unit)
    assert assert_within(D, A, B, instruction=unit, argued=True).argued
    with pytest.raises(ValueError, match="of one chain"):
        assert_within(D, A, B, structure=Structure.named(unit, block=32), argued=True)


def one_row(unit: str) -> Callable[[DotRow], float]:
    """Returns how much of its bound a row uses; 0 of what is not covered."""

    def used(row: DotRow) -> float:
        A, B, C = row.a[None], row.b[:, None], row.c.reshape(1, 1)
        D = matmul(A, B, C, instruction=unit)
        try:
            return assert_within(D, A, B, C, instruction=unit).used
        except ValueError:
            return 0.0

    return used


@hypothesis.given(strategies.rows(UNIT))
@hypothesis.settings(max_examples=60, deadline=None)
def test_any_row_is_within(row: DotRow) -> None:
    assert one_row(UNIT)(row) <= 1


@pytest.mark.slow
def test_a_bound_that_is_too_small_is_found_by_hypothesis(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fourth of the right one is exceeded by a row that Hypothesis finds."""
    right = structure_bounds.Unit.factor
    monkeypatch.setattr(structure_bounds.Unit, "factor", lambda unit, K: right(unit, K) / 4)
    used = one_row(UNIT)

    def exceeds(row: DotRow) -> bool:
        try:
            return used(row) > 1
        except AssertionError:
            return True

    settings = hypothesis.settings(max_examples=3000, deadline=None, database=None, derandomize=True)
    found = hypothesis.find(strategies.rows(UNIT, finite=True), exceeds, settings=settings)
    assert exceeds(found)


# ---- tolerances ------------------------------------------------------------------------------------------------------


def close(actual: NDArray[np.float64], reference: NDArray[np.float64], atol: float, rtol: float) -> bool:
    return bool((np.abs(actual - reference) <= atol + rtol * np.abs(reference)).all())


def positive(k: int = 4096) -> tuple[NDArray[np.uint8], ...]:
    """Ones and numbers a little above, of one sign: hopper's fp8 loses what it can."""
    rng = np.random.default_rng(0)
    return tuple(rng.integers(0x38, 0x3A, shape).astype(np.uint8) for shape in ((4, k), (k, 4)))


def test_a_tolerance_holds_and_half_does_not() -> None:
    A, B = positive()
    a, b = (x.view(ml_dtypes.float8_e4m3fn).astype(np.float64) for x in (A, B))
    D = np.asarray(matmul(A, B, instruction=FP8)).view(np.float32).astype(np.float64)
    told = tolerance(FP8, A=A, B=B)
    assert close(D, a @ b, **told)
    assert not close(D, a @ b, atol=told.atol / 32, rtol=0)
    assert told.rtol == 0
    looser = tolerance(FP8, 4096, largest=(1.125, 1.125))
    assert looser.atol >= told.atol
    assert "none can" in str(told)


@pytest.mark.parametrize("expected", ["fp64", "rounded"])
@pytest.mark.parametrize("d_format", [fp32, bf16, fp16])
def test_of_rounded_results(expected: str, d_format: object) -> None:
    A, B = operands(k=512)
    reference = A.astype(np.float64) @ B.astype(np.float64)
    structure = Structure.named(UNIT, block=64, d_format=str(d_format))
    dtype = structure.result.dtype
    assert dtype is not None
    D = replay(A, B, structure).view(dtype)
    told = tolerance(structure, A=A, B=B, expected=expected)  # type: ignore[arg-type]
    if expected == "rounded":
        reference = reference.astype(dtype).astype(np.float64)
    assert close(D.astype(np.float64), reference, **told)
    if d_format != fp32:  # of the results nearest to zero atol counts, of the others rtol
        assert not close(D.astype(np.float64) * 1.03, reference, **told)


def test_what_a_tolerance_says() -> None:
    told = tolerance(UNIT, 4096, largest=(1.0, 2.0, 3.0), d_format="bf16")
    assert set(told) == {"atol", "rtol"}
    f = (1 + hopper_U()) ** 256 - 1
    sigma = 4096 * 2 + 3
    assert (
        told.rtol == pytest.approx(2**-9, rel=1e-12) if False else told.rtol == pytest.approx(2**-8, rel=1e-9)
    )
    assert told.atol == pytest.approx((1 + 2**-8) * (float(f) + 4098 * 2**-53) * sigma, rel=1e-6)
    for text in (
        "(the theorem of `mmaformal bound`)",
        "σ ≤ 8195",
        "summed in fp64, in any order",
        "as modelled: hopper HMMA.16816.F32",
    ):
        assert text in str(told)
    assert "do not exclude" in str(tolerance(UNIT, 4096, largest=(60000.0, 60000.0), d_format="fp16"))
    with pytest.raises(ValueError, match="give A and B, or K"):
        tolerance(UNIT, 64)
    with pytest.raises(ValueError, match="there is no tolerance"):
        tolerance(UNIT, 64, largest=(np.inf, 1.0))
    with pytest.raises(ValueError, match="argued, not proved"):
        tolerance("mi250 v_mfma_f32_16x16x16f16", 64, largest=(1.0, 1.0))
    with pytest.raises(ValueError, match="argued, not proved"):
        tolerance("e9s12 DP4ACC8.FP16", 64, largest=(1.0, 1.0))
    assert "(argued, not proved)" in str(tolerance("e9s12 DP4ACC8.FP16", 64, largest=(1.0, 1.0), argued=True))


@pytest.mark.slow
def test_the_bound_that_it_rests_on_is_proved() -> None:
    told = tolerance(Structure.named(UNIT, block=64, d_format="bf16"), 512, largest=(1.0, 1.0))
    answer = told.prove()
    assert answer.verdict == "holds"
    assert float(answer.numbers[0]) >= float(told.bound.f)
