"""Rows aimed at a model's corners: their exact sums are where they are said to be."""

from __future__ import annotations

from fractions import Fraction

import pytest

from mmaformal import datapath, hopper
from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.aimed import (
    KINDS_OF_ROWS,
    at_ends_of_formats,
    at_limits,
    at_ties,
    special_in_each_place,
    toward_zero,
)
from mmaformal.cases.inputs import Codes
from mmaformal.formats import FORMATS, Format
from mmaformal.instruction import Instruction
from mmaformal.shown_stages import exact_dot_add

UNITS = {
    "exact": datapath["exact(k=2,a=bf16,rho=IEEE-FP32)"],
    "fma": datapath["fma(k=1,a=fp32,rho=IEEE-FP32)"],
    "half": datapath["fda(k=4,frac_bits=13,a=e2m1,rho=RNE-FP16)"],
    "hopper": hopper["HMMA.16816.F32"],
}


def _sum(unit: Instruction, x: Codes) -> Fraction:
    exact = exact_dot_add(unit.spec, x.a, x.b, x.c, x.scale_a, x.scale_b)
    assert exact is not None
    return exact


def _from_half(value: Fraction, d: Format) -> Fraction:
    """How far a sum is from a multiple of half a unit in the last place of d, in these units."""
    if not value:
        return Fraction(0)
    size, exponent = abs(value), d.min_exponent
    while Fraction(2) ** (exponent + 1) <= size and exponent < d.max_exponent:
        exponent += 1
    halves = 2 * size / Fraction(2) ** (exponent - d.fraction_bits)
    return abs(halves - round(halves)) / 2


@pytest.mark.parametrize("name", UNITS)
def test_most_sums_are_at_ties_or_next_to_them(name: str) -> None:
    unit = UNITS[name]
    away = [_from_half(_sum(unit, x), unit.d_format) for x in at_ties(unit.spec, 300, 1).cases()]
    assert sum(x == 0 for x in away) > 30
    if unit.k > 1 and name != "half":  # of e2m1, no product is that small
        assert sum(0 < x < Fraction(1, 1 << 8) for x in away) > 20
    assert sum(x <= Fraction(1, 4) for x in away) > 240


@pytest.mark.parametrize("name", ["exact", "fma"])
def test_sums_reach_both_ends_of_d(name: str) -> None:
    unit = UNITS[name]
    d = unit.d_format
    top = d.value(d.largest) + Fraction(2) ** (d.max_exponent - d.fraction_bits - 1)
    least, sums = Fraction(2) ** d.min_exponent, [_sum(unit, x) for x in at_limits(unit.spec, 400, 2).cases()]
    for end in (top, least, least - Fraction(2) ** (d.min_exponent - d.fraction_bits - 1)):
        near = [abs(x) - end for x in sums if abs(abs(x) - end) * (1 << d.fraction_bits + 2) <= end]
        assert any(x < 0 for x in near)
        assert any(x == 0 for x in near)
        assert any(x > 0 for x in near)


def test_each_special_value_is_in_each_place() -> None:
    unit = UNITS["exact"]
    rows = special_in_each_place(unit.spec, 600, 0)
    for side, fmt in ((rows.a[:, 0], unit.a_format), (rows.b[:, 1], unit.b_format), (rows.c, unit.c_format)):
        codes = set(map(int, side))
        assert fmt.infinity is not None
        assert {0, fmt.sign_mask, fmt.infinity, fmt.infinity ^ fmt.sign_mask, fmt.largest, 1} <= codes
        assert any(map(fmt.is_nan, codes))


def test_ends_of_formats_meet() -> None:
    unit = UNITS["fma"]
    rows = at_ends_of_formats(unit.spec, 2000, 0)
    normal = 1 << 23
    assert any((int(a), int(c)) == (normal, normal - 1) for a, c in zip(rows.a[:, 0], rows.c, strict=True))


@pytest.mark.parametrize("name", KINDS_OF_ROWS)
@pytest.mark.parametrize(
    "unit",
    [
        "datapath integer(k=2,a=uint4,b=int4,c=int8,clamp=1,group=2,inner=8)",
        "rtx_blackwell OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
        "hopper QGMMA.64x8x32.F32.E4M3.E4M3",
        "cdna3 v_mfma_f32_32x32x16_bf8_bf8",
    ],
)
def test_codes_are_codes(name: str, unit: str) -> None:
    spec = instruction_meant(unit).spec
    rows = KINDS_OF_ROWS[name](spec, 80, 0)
    sides = [(rows.a, spec.a_format), (rows.b, spec.b_format), (rows.c, spec.c_format)]
    if spec.scale_format is not None:
        sides += [(rows.scale_a, spec.scale_format), (rows.scale_b, spec.scale_format)]
    assert len(rows) == 80
    for side, fmt in sides:
        assert int(side.max()) < fmt.codes


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "e2m3", "e4m3fnuz", "int8", "uint4"])
def test_toward_zero_is_the_nearest_number_not_beyond(name: str) -> None:
    fmt = FORMATS[name]
    numbers = {fmt.value(code) for code in range(fmt.codes) if fmt.is_finite(code)}
    for tenth in range(-5000, 5000, 7):
        value = Fraction(tenth, 10) * fmt.value(fmt.largest) / 450
        inside = [x for x in numbers if abs(x) <= abs(value) and x * value >= 0]
        assert fmt.value(toward_zero(fmt, value)) == max(inside, key=abs)
