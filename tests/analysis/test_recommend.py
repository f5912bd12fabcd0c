"""Scalings that are recommended: nothing overflows, no error exceeds its bound, and less is lost than without."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import Instruction, blackwell, cdna2, cdna3, hopper, matmul, rtx_blackwell
from mmaformal.analysis.arithmetic import FloatArithmetic
from mmaformal.analysis.recommend import element_bounds, recommend_scaling, thetas
from mmaformal.analysis.units import Unit

SOME = [
    hopper["HMMA.16816.F16"],
    hopper["QGMMA.64x8x32.F32.E4M3.E4M3"],
    blackwell["UTCQMMA.F32.E5M2.E2M3"],
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    cdna3["v_mfma_f32_32x32x8_f16"],
    cdna2["v_mfma_f64_16x16x4f64"],
]


def matrices(kind: str, n: int = 130) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(7)
    A, B = rng.uniform(-1, 1, (4, n)), rng.uniform(-1, 1, (n, 5))
    if kind == "rows apart":
        return A * 10.0 ** np.array([[-8], [0], [6], [-3]]), B * 10.0 ** np.array([[3, -9, 0, 7, 1]])
    if kind == "elements apart":
        return np.sign(A) * 10.0 ** (10 * A), np.sign(B) * 10.0 ** (10 * B)
    return A, B


@pytest.mark.parametrize("kind", ["near 1", "rows apart", "elements apart"])
@pytest.mark.parametrize("instruction", SOME, ids=lambda i: i.label)
def test_nothing_overflows_and_no_error_exceeds_its_bound(instruction: Instruction, kind: str) -> None:
    A, B = matrices(kind)
    A[1] = 0
    found = recommend_scaling(A, B, instruction)
    each = found.scaled
    assert not each.overflows
    assert (each.error <= each.bound).all()
    exact = np.array([[float(sum(map(Fraction, (r * c).tolist()))) for c in B.T] for r in A[:1]])
    np.testing.assert_allclose(exact[0], (A @ B)[0], rtol=1e-6)
    for scales, x in ((each.row_scales, A), (each.column_scales, B.T)):
        assert (np.frexp(scales)[0] == 0.5).all(), "powers of two"
        assert scales.shape == x.shape[:1]
    if kind != "near 1" and instruction.a_format.exponent_bits <= 5:
        assert found.unscaled.overflows
        assert "not scaled  overflows" in str(found)


def test_the_largest_elements_do_not_overflow() -> None:
    """All of them θ, of one sign."""
    for instruction in (*SOME[:5], hopper["HMMA.16816.F32.BF16"]):
        for n in (1, 40, 1000):
            one, other = thetas(Unit.of(instruction), n)
            assert FloatArithmetic.of(instruction.a_format).fl(one) == one
            assert FloatArithmetic.of(instruction.b_format).fl(other) == other
            A, B = np.full((1, n), float(one)), np.full((n, 1), float(other))
            assert not recommend_scaling(A, B, instruction).scaled.overflows


def test_small_numbers_are_saved_from_underflow() -> None:
    A, B = (1e-5 * x for x in matrices("near 1"))
    found = recommend_scaling(A, B, hopper["HMMA.16816.F32"])
    assert found.scaled.error.max() * 5 < found.unscaled.error.max()
    assert found.scaled.bound.max() * 5 < found.unscaled.bound.max()
    assert "not scaled  error" in str(found)


def test_the_bound_of_given_operands() -> None:
    A, B = (x.astype(np.float16) for x in matrices("near 1"))
    instruction = hopper["HMMA.16816.F32"]
    off = np.abs(matmul(A, B, instruction=instruction) - A.astype(np.float64) @ B.astype(np.float64))
    most = element_bounds(A, B, instruction)
    assert (off <= most).all()
    assert (most < 1e-3).all()


def test_a_unit_that_takes_subnormal_numbers_for_zero() -> None:
    A, B = matrices("near 1")
    found = recommend_scaling(A, B, cdna2["v_mfma_f32_16x16x16f16"])
    for outcome in (found.unscaled, found.scaled):
        assert (outcome.error <= outcome.bound).all()


def test_what_is_refused() -> None:
    A, _ = matrices("near 1")
    with pytest.raises(ValueError, match="do not fit"):
        recommend_scaling(A, A, SOME[0])
    with pytest.raises(ValueError, match="no scaling keeps"):
        thetas(Unit.of(SOME[0]), 10**9)
