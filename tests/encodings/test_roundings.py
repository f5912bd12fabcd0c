"""Every rounding that can be written is computed: in both encodings, against exact arithmetic, and proved equal.

That kernels compute it too is in test_kernels.py; validation of what users make, in test_checks.py.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from support import exact

from mmaformal import Instruction, cdna1, cdna2, cdna3, hopper, rtx_blackwell
from mmaformal.cases.generate import generate
from mmaformal.cases.run import both_results
from mmaformal.formats import Format, bf16, e5m2, fp16, fp32
from mmaformal.queries.verify import verify
from mmaformal.rounding import DETERMINISTIC, Conversion, Rounding
from mmaformal.solver.answers import Holds
from mmaformal.spec import DotAdd


def rho_of(fmt: Format, rounding: Rounding, bits: int | None = None, signed_zero: bool = False) -> Conversion:
    kept = fmt.fraction_bits if bits is None else bits
    return Conversion(f"{rounding.name}-{fmt}-{kept}", fmt, kept, rounding, signed_zero)


#: one instruction for each algorithm that has a ρ, and for each way of summing
UNITS = [
    hopper["HMMA.16816.F32"].replace(k=4, L=4),
    hopper["HMMA.16816.F16"].replace(k=4, L=2),
    cdna3["f32_32x32x8_f16"].replace(k=2, L=2),
    cdna3["f32_16x16x32_fp8_bf8"].replace(k=4, L=4),
    cdna1["f32_16x16x16f16"].replace(k=4),
    cdna1["f32_16x16x8bf16"].replace(k=2),
    cdna2["f32_16x16x4f32"].replace(k=2),
    cdna2["f64_16x16x4f64"].replace(k=1),
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"].replace(k=16, L=16, scale_block=16),
    hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"].replace(k=4, L=2, order=(0, 2, 1, 3)),
]


def rounding_as(i: Instruction, rounding: Rounding) -> Instruction:
    rho = rho_of(i.d_format, rounding, signed_zero=i.algorithm == "sfma")
    lowered = {"addition": rho} if i.algorithm == "lowered" else {}
    return i.replace(rho=rho, **lowered, name=f"{i.name} {rounding.name}")


def assert_both_encodings_are_exact(spec: DotAdd, count: int) -> None:
    rows = generate(spec, count)
    for each, got in zip(rows.cases(), both_results(spec, rows), strict=True):
        wanted = exact.dot_add(spec, each.a, each.b, each.c, each.scale_a, each.scale_b)
        for result in got:
            both_nan = not spec.nan_is_canonical and spec.d_format.is_nan(result)
            assert result == wanted or (both_nan and spec.d_format.is_nan(wanted)), (each, got, hex(wanted))


@pytest.mark.parametrize("rounding", DETERMINISTIC, ids=lambda r: r.name)
@pytest.mark.parametrize("i", UNITS, ids=lambda i: i.label)
@pytest.mark.parametrize("cases", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_both_encodings_round_as_exact_arithmetic_does(
    i: Instruction, rounding: Rounding, cases: int
) -> None:
    assert_both_encodings_are_exact(rounding_as(i, rounding).spec, cases // 3 if i.k > 4 else cases)


@pytest.mark.parametrize("rounding", DETERMINISTIC, ids=lambda r: r.name)
@pytest.mark.parametrize(("fmt", "bits"), [(bf16, 7), (e5m2, 2), (fp16, 6), (fp32, 1)], ids=str)
def test_outputs_of_other_formats_and_fewer_bits(fmt: Format, bits: int, rounding: Rounding) -> None:
    i = hopper["HMMA.16816.F16"].replace(
        k=2, L=2, c_format=fmt, d_format=fmt, rho=rho_of(fmt, rounding, bits)
    )
    assert_both_encodings_are_exact(i.spec, 200)


def test_rounding_down_is_down() -> None:
    """−1 − 2^−24, which was cut toward zero."""
    i = cdna1["f32_16x16x8bf16"].replace(k=1, L=1, rho=rho_of(fp32, Rounding.RD))
    a, b, c = np.array([0xB380], np.uint16), np.array([0x3F80], np.uint16), np.uint32(0xBF800000)
    assert i.dot_add(a, b, c) == 0xBF800001


#: ρ(±x) for x just above the largest fp16, twice as far, at the half of the last place, and at 2^16
OVERFLOW = {
    Rounding.RZ: ("7bff", "fbff", "7bff", "fbff", "7c00", "fc00"),
    Rounding.RNE: ("7bff", "fbff", "7c00", "fc00", "7c00", "fc00"),
    Rounding.RNA: ("7bff", "fbff", "7c00", "fc00", "7c00", "fc00"),
    Rounding.RD: ("7bff", "fc00", "7bff", "fc00", "7c00", "fc00"),
    Rounding.RU: ("7c00", "fbff", "7c00", "fbff", "7c00", "fc00"),
    Rounding.RO: ("7bff", "fbff", "7bff", "fbff", "7c00", "fc00"),
}


@pytest.mark.parametrize("rounding", DETERMINISTIC, ids=lambda r: r.name)
def test_overflow_is_what_is_rounded_to_the_next_binade(rounding: Rounding) -> None:
    """`Conversion` says it: not IEEE 754's, which gives the largest number where a rounding is toward zero."""
    i = hopper["HMMA.16816.F16"].replace(k=2, L=2, F=30, rho=rho_of(fp16, rounding))
    largest = 0x7BFF  # 65504; its last place is 32
    found = []
    for more in (1, 16, 32):
        for sign in (0, 0x8000):
            a = np.array([0x3C00 | sign, 0], np.uint16)
            b = np.array([fp16.code(str(more)), 0], np.uint16)
            found.append(f"{int(i.dot_add(a, b, np.uint16(largest | sign))):04x}")
    assert tuple(found) == OVERFLOW[rounding]


@pytest.mark.parametrize("rounding", [Rounding.RU, Rounding.RO], ids=lambda r: r.name)
def test_encodings_are_proved_equal(rounding: Rounding) -> None:
    i = hopper["QGMMA.64x8x32.F16.E4M3.E4M3"].replace(k=1, L=1, rho=rho_of(fp16, rounding))
    assert isinstance(verify(i), Holds)


@pytest.mark.slow
@pytest.mark.parametrize("rounding", DETERMINISTIC, ids=lambda r: r.name)
@pytest.mark.parametrize("i", UNITS, ids=lambda i: i.label)
def test_encodings_are_proved_equal_for_every_algorithm(i: Instruction, rounding: Rounding) -> None:
    assert isinstance(verify(rounding_as(i, rounding)), Holds)


def test_exact_arithmetic_rounds_by_the_definitions() -> None:
    """tests/support/exact.py itself, on numbers where each rounding differs."""
    x, integers = Fraction(5, 2), {}
    for rounding in DETERMINISTIC:
        integers[rounding.name] = [
            int(exact.cut(y, 0, rounding)) for y in (x, -x, x + 1, Fraction(9, 4), -4 * x / 5)
        ]
    assert integers == {
        "RZ": [2, -2, 3, 2, -2],
        "RNE": [2, -2, 4, 2, -2],
        "RNA": [3, -3, 4, 2, -2],
        "RD": [2, -3, 3, 2, -2],
        "RU": [3, -2, 4, 3, -2],
        "RO": [3, -3, 3, 3, -2],
    }
