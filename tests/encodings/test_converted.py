"""Factors of narrower formats, converted exactly: what the unit gives of the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mmaformal import Different, Holds, Instruction, ampere, emulation, find_difference, hopper
from mmaformal.architectures.emulations import converted, in_one_format
from mmaformal.cuda_programs import cuda_program
from mmaformal.formats import Format, bf16, e4m3, e5m2, fp16, fp32
from mmaformal.mma import CudaUnavailableError
from mmaformal.queries.find_difference import IncomparableError
from mmaformal.queries.verify import verify
from mmaformal.shown_stages import explain_case
from mmaformal.witness import Witness

HMMA = hopper["HMMA.1688.F32"]
QGMMA = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]


def as_fp16(codes: np.ndarray, fmt: Format) -> np.ndarray:
    """Return the numbers in fp16, by NumPy and ml_dtypes; of NaNs the one that conversions give."""
    numbers = codes.view(fmt.dtype).astype(np.float16)
    return np.where(np.isnan(numbers), np.uint16(0x7E00), numbers.view(np.uint16))


@pytest.mark.parametrize("rows", [1, 300])  # NumPy's lanes, and kernels
@pytest.mark.parametrize(("a", "b"), [(e4m3, e4m3), (e4m3, e5m2), (e5m2, fp16)])
@settings(max_examples=10)
@given(data=st.data())
def test_the_result_is_the_units_of_the_same_numbers(
    rows: int, a: Format, b: Format, data: st.DataObject
) -> None:
    unit = converted(HMMA, a=a, b=b)
    x, y = (
        data.draw(arrays.arrays(fmt.word, (rows, 8), elements=st.integers(0, fmt.codes - 1), fill=st.just(0)))
        for fmt in (a, b)
    )
    c = data.draw(arrays.arrays(np.uint32, rows, elements=st.integers(0, 2**32 - 1), fill=st.just(0)))
    wide = (codes if fmt is fp16 else as_fp16(codes, fmt) for codes, fmt in ((x, a), (y, b)))
    np.testing.assert_array_equal(unit.dot_add(x, y, c), HMMA.dot_add(*wide, c))


@pytest.mark.parametrize("fmt", [e4m3, e5m2], ids=str)
def test_every_code_is_converted_to_its_number(fmt: Format) -> None:
    codes = np.zeros((256, 8), np.uint8)
    codes[:, 0] = np.arange(256)
    one = np.zeros(8, np.uint8)
    one[0] = fmt.code("1")
    d = converted(HMMA, a=fmt, b=fmt).dot_add(codes, one, np.zeros(256, np.uint32))
    for code, result in zip(range(256), d.tolist(), strict=True):
        if fmt.is_finite(code):
            assert fp32.value(result) == fmt.value(code)
        else:
            assert (fp32.is_nan(result), fp32.is_infinite(result)) == (
                fmt.is_nan(code),
                fmt.is_infinite(code),
            )


def test_the_wider_one_is_converted_to_the_narrower_ones_formats() -> None:
    for x, y, at in ((QGMMA, HMMA.chained(32), 1), (HMMA.chained(32), QGMMA, 0)):
        pair = in_one_format(x, y)
        assert pair[at] == converted(HMMA, a="e4m3", b="e4m3").chained(32)
        assert pair[1 - at] == QGMMA
    same = HMMA, ampere["HMMA.1688.F32"]
    assert in_one_format(*same) == same
    apart = HMMA, hopper["HMMA.1688.F32.BF16"]  # neither has all numbers of the other
    assert in_one_format(*apart) == apart
    with pytest.raises(IncomparableError):
        find_difference(*apart)


def test_it_is_spelled_as_it_is_called() -> None:
    unit = converted(HMMA, a=e4m3, b=e5m2)
    assert unit == emulation[unit.name]
    assert unit.name == "converted(hopper HMMA.1688.F32, a=e4m3, b=e5m2)"
    for wrong in ("a=e4m3", "a=e9m9, b=e4m3", "a=fp32, b=fp32", "a=4, b=4"):
        assert f"converted(hopper HMMA.1688.F32, {wrong})" not in emulation


@pytest.mark.parametrize("fmt", [bf16, fp32], ids=str)
def test_formats_that_the_unit_does_not_hold_are_refused(fmt: Format) -> None:
    with pytest.raises(ValueError, match="that the unit's formats hold"):
        converted(HMMA, a=fmt, b=e4m3)


def test_a_conversion_is_told() -> None:
    unit = converted(HMMA, a="e4m3", b="e4m3")
    told = explain_case(unit, [0x39] + [0] * 7, [0x38] + [0] * 7, 0)
    assert "convert     a[0]       0x3c80  0x1.2p+0 = 1.125" in told


def test_no_program_is_written_that_another_instruction_would_run() -> None:
    unit = converted(hopper["HMMA.16816.F32"], a="e4m3", b="e4m3").chained(32)  # mma.m16n8k32.e4m3 is another
    with pytest.raises(CudaUnavailableError, match="a program over an instruction"):
        cuda_program([(unit, 0)], [0] * 32, [0] * 32, 0)


def small(unit: Instruction) -> Instruction:
    """Return the unit with two products, so that a question takes a second."""
    return replace(unit, name=f"{unit.name}.K2", spec=unit.spec.replace(k=2, L=2), aliases=())


def test_a_witness_is_of_the_narrower_format() -> None:
    x, y = in_one_format(small(QGMMA), small(HMMA))
    ones = [e4m3.code("1"), 0]
    witness = Witness.of(x, y, ones, ones, fp32.code("0x1p-20"))
    assert witness.results == (fp32.code("1"), fp32.code("0x1.00001p+0"))
    assert witness.rerun() == witness.results


@pytest.mark.slow
def test_fp8_of_one_unit_differs_from_fp16_of_another() -> None:
    answer = find_difference(small(QGMMA), small(HMMA), where="gemm")
    assert isinstance(answer, Different)
    witness = answer.witness
    assert (witness.x.a_format, witness.y.a_format) == (e4m3, e4m3)
    assert witness.rerun() == witness.results
    wide = [as_fp16(each, e4m3) for each in (witness.a, witness.b)]
    assert int(small(HMMA).dot_add(*wide, witness.c)) == witness.results[1]


@pytest.mark.slow
def test_both_encodings_of_a_conversion_are_equal() -> None:
    assert isinstance(verify(converted(HMMA, a="e4m3", b="e5m2")), Holds)


def test_a_subnormal_of_fp8_is_normal_in_fp16_and_loses_less() -> None:
    """2^-9 has exponent -6 in e4m3, -9 in fp16: with F = 40 the unit keeps c = -2^-47 beside the latter alone."""
    x, y = in_one_format(small(QGMMA.replace(F=40, rho="RZ-FP32")), small(HMMA.replace(F=40)))
    witness = Witness.of(x, y, [e4m3.code("0x1p-9"), 0], [e4m3.code("1"), 0], fp32.code("-0x1p-47"))
    assert witness.results == (fp32.code("0x1p-9"), fp32.code("0x1p-9") - 1)
