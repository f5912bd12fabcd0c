"""Errors against exact arithmetic: what `sample` says is what Python's fractions say."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_kernels import random_codes

from mmaformal import Instruction, cdna2, cdna3, hopper, matmul, rtx_blackwell
from mmaformal.statistics import Errors, joined, plot, sample

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
    both = joined([one, one])
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
