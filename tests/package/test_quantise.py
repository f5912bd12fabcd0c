"""Rounding to a format, against its exact definition and other libraries' casts; block scales by the letter."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

from mmaformal import hopper, rtx_blackwell
from mmaformal.formats import FORMATS, Format, e2m1, e4m3, fp16, fp32, ue4m3, ue8m0
from mmaformal.kernels.conversion import largest_code, round_to
from mmaformal.quantise import largest_number, quantise, scaling_of

H = hopper["HMMA.16816.F32"]
FP8 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]
MX = rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"]
NV = rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"]

ELEMENTS = [fmt for fmt in FORMATS.values() if fmt.has_zero]
NARROW = [fmt for fmt in ELEMENTS if fmt.storage_bits <= 8]


def codes_of_numbers(fmt: Format) -> list[int]:
    return [code for code in range(fmt.codes) if fmt.is_finite(code) and not code & fmt.sign_mask]


@pytest.mark.parametrize("fmt", NARROW, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_between_two_go_to_the_nearer_and_ties_to_the_even_code(fmt: Format, dtype: type) -> None:
    numbers = [fmt.value(code) for code in codes_of_numbers(fmt) if code <= largest_code(fmt)]
    x, wanted = [], []
    for code, (low, high) in enumerate(pairwise(numbers)):
        middle = (low + high) / 2
        little = (high - low) / 64
        x += [low, middle - little, middle, middle + little]
        wanted += [code, code, code if code % 2 == 0 else code + 1, code + 1]
    given = np.array([[float(each) for each in x]], dtype)
    assert round_to(given, fmt, saturate=True).tolist() == [wanted]
    if fmt.signed:
        negative = [0 if code == 0 and fmt.name.endswith("fnuz") else code | fmt.sign_mask for code in wanted]
        assert round_to(-given, fmt, saturate=True).tolist() == [negative]


@pytest.mark.parametrize("fmt", [f for f in ELEMENTS if f.dtype is not None and f.name != "tf32"], ids=str)
def test_casts_of_numpy_and_ml_dtypes(fmt: Format) -> None:
    """Both round alike from float32, from which ml_dtypes rounds once."""
    rng = np.random.default_rng(0)
    x = (rng.standard_normal((4, 20000)) * 2.0 ** rng.integers(-30, 20, (4, 20000))).astype(np.float32)
    x[0, :4] = np.inf, -np.inf, 0.0, -0.0
    largest = largest_number(fmt)
    if fmt.specials.name == "NONE":
        x = np.clip(x, -largest, largest)
    with np.errstate(over="ignore"):
        wanted = x.astype(fmt.dtype)
    found = round_to(x, fmt, saturate=False).view(fmt.dtype)
    assert np.array_equal(found.astype(float), wanted.astype(float), equal_nan=True)
    number = ~np.isnan(wanted.astype(float))
    assert (np.signbit(found)[number] == np.signbit(wanted)[number]).all()


def test_float64_is_rounded_once() -> None:
    """1 + 2^-8 + 2^-40 is above the tie of bf16 that a detour by fp32 makes it."""
    x = np.array([[1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 - 2.0**-40]])
    assert round_to(x, FORMATS["bf16"], saturate=False).tolist() == [[0x3F81, 0x3F80, 0x3F80]]
    assert round_to(x, FORMATS["tf32"], saturate=False)[0, 0] & 0x1FFF == 0
    assert round_to(x, FORMATS["fp64"], saturate=False).view(np.float64).tolist() == x.tolist()
    assert round_to(np.array([[1 + 2.0**-24 + 2.0**-50]]), fp32, saturate=False)[0, 0] == 0x3F800001


def test_what_is_too_large() -> None:
    x = np.array([[1e30, -1e30, np.inf, np.nan]], np.float32)
    assert round_to(x, fp16, saturate=False).tolist() == [[0x7C00, 0xFC00, 0x7C00, 0x7FFF]]
    assert round_to(x, fp16, saturate=True).tolist() == [[0x7BFF, 0xFBFF, 0x7C00, 0x7FFF]]
    assert round_to(x, e4m3, saturate=True).tolist() == [[0x7E, 0xFE, 0x7F, 0x7F]]
    assert round_to(x, e4m3, saturate=False).tolist() == [[0x7F, 0xFF, 0x7F, 0x7F]]
    assert round_to(x, e2m1, saturate=True).tolist() == [[7, 15, 7, 7]]
    with pytest.raises(ValueError, match="no zero"):
        round_to(x, ue8m0, saturate=True)


def test_scales_of_the_whole_and_of_rows() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((5, 40)).astype(np.float32) * np.float32(2.0) ** np.arange(5)[:, None]
    x = x.astype(np.float32)
    whole, rows = quantise(x, FP8, "a", "tensor"), quantise(x, FP8, "a", "row")
    assert whole.factor is not None
    assert rows.factor is not None
    assert whole.factor == np.float32(np.abs(x).max().astype(np.float64) / 448)
    assert (rows.factor == (np.abs(x).max(axis=1).astype(np.float64) / 448).astype(np.float32)).all()
    for q in (whole, rows):
        wanted = (x.astype(np.float64) / q.factor[:, None]).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
        assert (q.codes == wanted.view(np.uint8)).mean() > 0.999  # ml_dtypes rounds twice
    assert (quantise(np.zeros((2, 3), np.float32), FP8, "a").codes == 0).all()
    assert quantise(x, H, "a").factor is None
    assert (quantise(x, H, "a").codes == x.astype(np.float16).view(np.uint16)).all()


def test_mx_scales_are_powers_of_two_of_the_largest_magnitude() -> None:
    """OCP MX v1.0, §6.3: 2^(⌊log2 m⌋ − 8) for e4m3, whose largest number is 1.75·2^8."""
    x = np.zeros((1, 70), np.float32)
    x[0, [0, 31, 32, 64, 69]] = 3.9, -1.0, 2.0**-20, 448.0, 0.5
    q = quantise(x, MX, "a")
    assert q.scales is not None
    assert q.factor is None
    assert q.scales.tolist() == [[127 + 1 - 8, 127 - 20 - 8, 127 + 8 - 8]]
    decoded = q.codes.view(ml_dtypes.float8_e4m3fn).astype(float) * 2.0 ** (
        np.repeat(q.scales.astype(int), 32, axis=1)[:, :70] - 127
    )
    assert decoded[0, 0] == 3.5  # 3.9 · 2^7 is more than the largest number, 448, which the rule allows for
    assert np.allclose(decoded[0, 1:], x[0, 1:], rtol=2.0**-4)


def test_nvfp4_scales_are_numbers_of_ue4m3_under_a_factor() -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal((3, 50)).astype(np.float32)
    x[1, 16:32] = 0.0
    q = quantise(x, NV, "a")
    assert q.scales is not None
    assert q.factor is not None
    assert q.scales.shape == (3, 4)
    assert q.factor == np.float32(np.abs(x).max().astype(np.float64) / 6 / 448)
    assert q.scales.max() == 0x7E
    assert q.scales[1, 1] == 0
    block = np.abs(x[0, :16]).max().astype(np.float64)
    assert q.scales[0, 0] == round_to(np.array([[block / 6 / q.factor[0]]]), ue4m3, saturate=True)[0, 0]
    scale = float(ue4m3.value(int(q.scales[0, 0]))) * q.factor[0]
    for number, code in zip(x[0, :16], q.codes[0, :16], strict=True):
        nearest = min(abs(abs(float(number)) / scale - float(e2m1.value(c))) for c in range(8))
        assert abs(abs(float(number)) / scale - abs(float(e2m1.value(int(code))))) == nearest


def test_what_is_not_finite_stays_so() -> None:
    x = np.ones((2, 32), np.float32)
    x[0, 3] = np.nan
    assert quantise(x, FP8, "a").codes[0, 3] == 0x7F
    four = rtx_blackwell["QMMA.16832.F32.E2M1.E2M1"]
    factor = quantise(x, four, "a").factor
    assert factor is not None
    assert np.isnan(factor).tolist() == [True, False]
    scales = quantise(x, NV, "a").scales
    assert scales is not None
    assert [ue4m3.is_nan(int(code)) for code in scales[0]] == [True, False]


def test_which_scaling() -> None:
    assert [scaling_of(i) for i in (H, FP8, MX, NV)] == ["none", "tensor", "block", "block"]
    for i, wanted in ((H, "block"), (MX, "tensor"), (H, "both")):
        with pytest.raises(ValueError, match="scal"):
            scaling_of(i, wanted)
    with pytest.raises(TypeError, match="float32 or float64"):
        quantise(np.ones((2, 2), np.float16), H, "a")


def test_exact_values() -> None:
    """The largest number, by the format's definition."""
    for fmt in NARROW:
        top = max(fmt.value(code) for code in codes_of_numbers(fmt))
        assert Fraction(largest_number(fmt)) == top
