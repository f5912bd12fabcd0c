"""The table of formats against ml_dtypes, NumPy and the standards' own numbers; conversions; packing."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmaformal.encodings.executable import blocks
from mmaformal.formats import (
    FORMATS,
    Format,
    bf16,
    e2m1,
    e2m3,
    e3m2,
    e4m3,
    e4m3fnuz,
    e5m2,
    e5m2fnuz,
    fp16,
    fp32,
    fp64,
    hex_float,
    tf32,
    ue4m3,
    ue8m0,
)
from mmaformal.packing import from_containers, pack_nibbles, to_containers, unpack_nibbles
from mmaformal.rounding import IEEE_FP16, IEEE_FP32, IEEE_FP64, RNE_FP16, RZ_FP32, Conversion

SMALL = [fmt for fmt in FORMATS.values() if fmt.storage_bits <= 16]


def numbers(fmt: Format) -> np.ndarray:
    """The number of every code, as ml_dtypes has it, in fp64."""
    if fmt is ue4m3:
        codes = np.arange(256, dtype=np.uint8) & 0x7F
        return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
    assert fmt.dtype is not None
    with np.errstate(invalid="ignore"):  # signalling NaNs of bf16
        return np.arange(fmt.codes, dtype=fmt.word).view(fmt.dtype).astype(np.float64)


def some_codes(fmt: Format) -> list[int]:
    """Every code of few bits; of 16, every 13th and those where the exponent changes."""
    if fmt.storage_bits <= 8:
        return [*range(fmt.codes)]
    edges = range(0, fmt.codes, 1 << fmt.fraction_bits)
    return sorted({*range(0, fmt.codes, 13), *edges, *(x + 1 for x in edges), *(x - 1 for x in edges if x)})


@pytest.mark.parametrize(
    ("fmt", "codes"),
    [pytest.param(fmt, some_codes(fmt), id=str(fmt)) for fmt in SMALL]
    + [
        pytest.param(fmt, range(fmt.codes), id=f"all of {fmt}", marks=pytest.mark.slow)
        for fmt in (fp16, bf16)
    ],
)
def test_every_code_is_what_ml_dtypes_says(fmt: Format, codes: Sequence[int]) -> None:
    known = numbers(fmt)
    for code in codes:
        number = known[code]
        assert fmt.is_nan(code) == np.isnan(number)
        assert fmt.is_infinite(code) == np.isinf(number)
        assert fmt.is_finite(code) == np.isfinite(number)
        if np.isfinite(number):
            assert fmt.value(code) == Fraction(float(number))
            assert float.fromhex(fmt.text(code)) == number
            assert fmt.text(code).startswith("-") == np.signbit(number)


@pytest.mark.parametrize("fmt", SMALL, ids=str)
def test_every_code_is_decoded_to_its_number(fmt: Format) -> None:
    wanted = numbers(fmt)
    x = blocks.decode(np.arange(fmt.codes), fmt.layout)
    np.testing.assert_array_equal(x.nan, np.isnan(wanted))
    np.testing.assert_array_equal(x.infinite, np.isinf(wanted))
    finite = np.isfinite(wanted)
    decoded = np.ldexp(x.significand.astype(np.float64), x.exponent - fmt.fraction_bits) * (1 - 2 * x.sign)
    np.testing.assert_array_equal(decoded[finite], wanted[finite])
    np.testing.assert_array_equal(np.signbit(decoded[finite]), np.signbit(wanted[finite]))
    assert x.exponent[finite].min() == fmt.min_exponent
    assert x.exponent[finite].max() == fmt.max_exponent
    assert x.significand[finite].max() < 2 ** (fmt.fraction_bits + 1)


@given(st.integers(0, 2**64 - 1))
def test_fp64_and_fp32_are_the_machines(code: int) -> None:
    for fmt, letters in ((fp64, "Qd"), (fp32, "If")):
        part = code % fmt.codes
        number = struct.unpack("<" + letters[1], struct.pack("<" + letters[0], part))[0]
        x = blocks.decode(part, fmt.layout)
        assert fmt.is_nan(part) == x.nan == bool(np.isnan(number))
        assert fmt.is_infinite(part) == x.infinite == bool(np.isinf(number))
        if np.isfinite(number):
            assert fmt.value(part) == Fraction(number)
            magnitude = Fraction(x.significand) * Fraction(2) ** (x.exponent - fmt.fraction_bits)
            assert (-1) ** x.sign * magnitude == Fraction(number)
            assert fmt.text(part) == hex_float(Fraction(number), negative_zero=bool(np.signbit(number)))


@given(st.integers(0, 2**32 - 1))
def test_tf32_ignores_its_low_13_bits(code: int) -> None:
    kept = code & ~0x1FFF
    assert tf32.fields(code) == tf32.fields(kept)
    assert tf32.is_nan(code) == fp32.is_nan(kept)
    if fp32.is_finite(kept):
        assert tf32.value(code) == fp32.value(kept)


def test_a_tf32_nan_can_be_an_infinity() -> None:
    assert fp32.is_nan(0x7F800001)
    assert tf32.is_infinite(0x7F800001)
    assert tf32.text(0x7F800001) == "inf"


def test_the_numbers_that_the_specifications_print() -> None:
    assert [float(e2m1.value(code)) for code in range(8)] == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    largest = {
        e4m3: 448,
        e5m2: 57344,
        e4m3fnuz: 240,
        e5m2fnuz: 57344,
        e3m2: 28,
        e2m3: 7.5,
        e2m1: 6,
        fp16: 65504,
    }
    for fmt, number in largest.items():
        assert max(fmt.value(code) for code in range(fmt.codes) if fmt.is_finite(code)) == number
    assert ue8m0.value(0) == Fraction(1, 2**127)
    assert [fmt.name for fmt in SMALL if any(fmt.is_infinite(code) for code in range(fmt.codes))] == [
        "bf16",
        "fp16",
        "e5m2",
    ]
    nans = {
        fmt.name: [c for c in range(fmt.codes) if fmt.is_nan(c)] for fmt in SMALL if fmt.storage_bits <= 8
    }
    assert nans == {
        "e5m2": [0x7D, 0x7E, 0x7F, 0xFD, 0xFE, 0xFF],
        "e4m3": [0x7F, 0xFF],
        "e5m2fnuz": [0x80],
        "e4m3fnuz": [0x80],
        "e3m2": [],
        "e2m3": [],
        "e2m1": [],
        "ue8m0": [0xFF],
        "ue4m3": [0x7F, 0xFF],
    }


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=str)
def test_codes_that_do_not_exist_are_refused(fmt: Format) -> None:
    for code in (-1, fmt.codes):
        with pytest.raises(ValueError, match=f"{fmt.name} has no code"):
            fmt.value(code)


def test_what_is_no_number_has_no_value() -> None:
    with pytest.raises(ValueError, match="fp16 0x7c00 is inf, not a number"):
        fp16.value(0x7C00)
    with pytest.raises(ValueError, match="is not a binary fraction"):
        hex_float(Fraction(1, 3))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_hex_float_is_read_back(x: float) -> None:
    assert float.fromhex(hex_float(Fraction(x))) == x


def test_hex_float_has_no_range() -> None:
    assert hex_float(Fraction(3, 2**1200)) == "0x1.8p-1199"
    assert hex_float(-(Fraction(2) ** 2000)) == "-0x1p+2000"


# ---- conversion to a format and back -----------------------------------------------------------------------


def converted(value: Fraction, rho: Conversion) -> int:
    """The code that the executable stages give for a number."""
    unit = value.denominator.bit_length() - 1
    total = value.numerator
    while total and total % 2 == 0:
        total, unit = total // 2, unit - 1
    return int(blocks.encode(blocks.normalise_and_round(total, -unit, rho), rho)) % rho.format.codes


@pytest.mark.parametrize("rho", [IEEE_FP16, RNE_FP16], ids=str)
def test_every_fp16_number_converts_to_its_own_code(rho: Conversion) -> None:
    codes = np.arange(fp16.codes)
    x = blocks.decode(codes, fp16.layout)
    unit = x.exponent - fp16.fraction_bits - 20  # 20 zeros more at the end make no difference
    rounded = blocks.normalise_and_round(blocks.signed(x.sign, x.significand << 20), unit, rho)
    own = ~x.nan & ~x.infinite & (x.significand != 0)
    np.testing.assert_array_equal(blocks.encode(rounded, rho)[own], codes[own])


@given(st.integers(0, 2**64 - 1))
def test_every_wider_number_converts_to_its_own_code(code: int) -> None:
    for fmt, rho in ((fp32, IEEE_FP32), (fp32, RZ_FP32), (fp64, IEEE_FP64)):
        part = code % fmt.codes
        if fmt.is_finite(part) and fmt.value(part):
            assert converted(fmt.value(part), rho) == part


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_conversion_from_fp64_is_monotone_and_numpys(x: int, y: int) -> None:
    """Positive fp64 numbers in order give fp32 and fp16 codes in order, those that NumPy gives."""
    low, high = sorted((x, y))
    for rho in (IEEE_FP32, IEEE_FP16):
        codes = []
        for code in (low, high):
            if not fp64.is_finite(code):
                return
            codes.append(converted(fp64.value(code), rho) if fp64.value(code) else 0)
            with np.errstate(over="ignore", under="ignore"):
                number = np.uint64(code).view(np.float64).astype(rho.format.dtype)
            assert codes[-1] == number.view(rho.format.word)
        assert codes[0] <= codes[1]


# ---- packing -----------------------------------------------------------------------------------------------


def test_nibbles_in_both_orders() -> None:
    codes = np.array([[0x1, 0x2, 0x3, 0xF]], np.uint8)
    assert pack_nibbles(codes, e2m1, "low-first").tolist() == [[0x21, 0xF3]]
    assert pack_nibbles(codes, e2m1, "high-first").tolist() == [[0x12, 0x3F]]
    assert pack_nibbles(codes.view(ml_dtypes.float4_e2m1fn), e2m1, "low-first").tolist() == [[0x21, 0xF3]]
    for order in ("low-first", "high-first"):
        assert np.array_equal(unpack_nibbles(pack_nibbles(codes, e2m1, order), e2m1, order), codes)


def test_containers_hold_fp6_low_and_fp4_in_bits_5_to_2() -> None:
    assert to_containers([0x3F, 0x21], e3m2).tolist() == [0x3F, 0x21]
    assert to_containers([0xF, 0x1], e2m1).tolist() == [0x3C, 0x04]
    for fmt in (e3m2, e2m3, e2m1):
        codes = np.arange(fmt.codes, dtype=np.uint8)
        assert np.array_equal(from_containers(to_containers(codes, fmt), fmt), codes)
        assert np.array_equal(from_containers(to_containers(codes, fmt) | 0xC0, fmt), codes)


def test_packing_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="even number of codes"):
        pack_nibbles([1, 2, 3], e2m1, "low-first")
    with pytest.raises(ValueError, match="no e2m1 code"):
        pack_nibbles([1, 16], e2m1, "low-first")
    with pytest.raises(ValueError, match="only 4-bit codes"):
        pack_nibbles([1, 2], e3m2, "low-first")
    with pytest.raises(ValueError, match='"low-first" or "high-first", not \'little\''):
        unpack_nibbles(np.zeros(2, np.uint8), e2m1, "little")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no dimension"):
        unpack_nibbles(np.uint8(3), e2m1, "low-first")
    with pytest.raises(TypeError, match="bytes, uint8, not uint16"):
        unpack_nibbles(np.zeros(2, np.uint16), e2m1, "low-first")
    with pytest.raises(ValueError, match="e4m3 has 8 bits"):
        to_containers([1], e4m3)
    with pytest.raises(ValueError, match="no e2m3 code"):
        to_containers([64], e2m3)
    with pytest.raises(ValueError, match="bf16 has 16 bits"):
        from_containers(np.zeros(2, np.uint8), bf16)


@pytest.mark.parametrize(
    "text",
    [
        "1e999999999",
        "-1e-999999999",
        "1E+99999999999999999999",
        "0x1p999999999",
        "0x1p-999999999999",
        "1" * 100_000,
        "0." + "0" * 100_000 + "1",
        "0x" + "f" * 100_000,
        "1" * 1500,
        "9e4999",
        "0x1p",
        "0x",
        "0x.p1",
        "1e",
        "0x1.g",
        "1/0",
        "0x1p1/2",
    ],
    ids=lambda text: text[:12],
)
def test_numbers_beyond_every_format_are_refused_at_once(text: str) -> None:
    start = time.monotonic()
    for fmt in (fp64, fp16):
        with pytest.raises(ValueError) as error:  # noqa: PT011 - which words is looked at below
            fmt.code(text)
        assert len(str(error.value)) < 200
        assert "\n" not in str(error.value)
    assert time.monotonic() - start < 5  # not hours


def test_hexadecimal_floats_are_not_rounded() -> None:
    assert fp64.code("0x1.0000000000001p0") == 0x3FF0000000000001
    with pytest.raises(ValueError, match="not a value of fp64"):
        fp64.code("0x1.00000000000001p0")  # one place more than fp64 has
    assert fp64.code("-0x.8p1") == fp64.code("-1")
    assert fp64.code("0x1p-1074") == 1
    assert fp32.code("1e0") == 0x3F800000
    assert fp32.code("0e9") == 0
