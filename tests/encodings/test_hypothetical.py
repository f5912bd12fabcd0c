"""Hypothetical units: what shipped ones do not show.  Each case here once had a wrong number, word or no answer."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import exact as reference
from support.rounded_once import examine
from support.settling import settled

from mmaformal import ampere, blackwell, cdna1, cdna3, hopper, rtx_blackwell
from mmaformal.cases.inputs import Codes
from mmaformal.cases.run import run_both
from mmaformal.encodings.fdrda import Fdrda
from mmaformal.formats import Format, Specials, e2m1, fp16, fp32, ue4m3
from mmaformal.instruction import Instruction
from mmaformal.kernels.choose import choose_kernel
from mmaformal.proof.composition import Composing
from mmaformal.queries import error_bound, lossless_width, output_range, zero_padding
from mmaformal.rounding import RNE_FP16, RNE_FP32, RZ_E8M13
from mmaformal.shown_stages import explain_case
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import LazyPortfolio
from mmaformal.spec import DotAdd
from mmaformal.statistics import sample


@pytest.mark.parametrize(
    ("instruction", "a", "b", "c"),
    [
        (cdna1["v_mfma_f32_16x16x8bf16"].replace(k=1, L=1, rho=RZ_E8M13), 0x2500, 0x3F81, 0xA500FFFF),
        (cdna1["v_mfma_f32_16x16x8bf16"].replace(k=1, L=1, rho=RZ_E8M13), 0x3F80, 0x3F80, 0xBF800001),
        (cdna1["v_mfma_f32_16x16x16f16"].replace(k=1, L=1, rho=RZ_E8M13), 0x3C00, 0x3C00, 0xBF800001),
        (cdna1["v_mfma_f32_16x16x16f16"].replace(k=1, L=1, rho=RZ_E8M13), 0x0001, 0x0001, 0xA77FFFFF),
    ],
)
def test_an_exact_sum_is_exact_where_c_has_more_bits_than_rho(
    instruction: Instruction, a: int, b: int, c: int
) -> None:
    expected = reference.dot_add(instruction.spec, [a], [b], c)
    assert run_both(instruction, Codes((a,), (b,), c)) == expected
    kernel, d = choose_kernel(instruction.spec), np.array([[c]], np.uint32)
    words = [np.array([[x]], f.word) for x, f in ((a, instruction.a_format), (b, instruction.b_format))]
    kernel.run(kernel.rows(words[0]), kernel.columns(words[1]), d, 0, 1)
    assert int(d[0, 0]) == expected


# ---- lossless width --------------------------------------------------------------------------------------------------


def test_zeros_with_an_exponent_above_all_others_lose_bits_of_what_is_aligned_to_them() -> None:
    narrow = blackwell["UTCQMMA.F32.E2M1.E2M1"].replace(
        k=2, L=2, c_format=fp16, d_format=fp16, rho=RNE_FP16, e_zero=5
    )
    assert int(narrow.replace(F=28).dot_add([0, 0], [0, 0], 1)) == 0  # c = 2^-24 is lost
    assert isinstance(settled(lossless_width.PROPERTY, narrow.replace(F=28)), Fails)
    assert int(narrow.replace(F=29).dot_add([0, 0], [0, 0], 1)) == 1
    answer = settled(lossless_width.PROPERTY, narrow.replace(F=29))
    assert isinstance(answer, Holds)
    assert "F = 29" in answer.question
    assert any("the largest, or e_zero" in o.statement for o in answer.proof.obligations)


@pytest.mark.parametrize("e_zero", [None, -40, 5, 40])
@pytest.mark.parametrize("products", [1, 2])
def test_the_lossless_width_of_a_tiny_unit_is_that_of_all_its_codes(
    products: int, e_zero: int | None
) -> None:
    """Every c, every product of two, and a second one of a few."""
    of = e2m1, e2m1, ue4m3, products, e_zero
    width = lossless_width.lossless_width_of(*of)
    values = [(e2m1.value(x), reference.read(x, e2m1)) for x in range(8)]
    product = {(x[0] * y[0], x[1].exponent + y[1].exponent) for x in values for y in values}
    c = {(ue4m3.value(x), reference.read(x, ue4m3).exponent) for x in range(128) if ue4m3.is_finite(x)}

    def lost(F: int, *terms: tuple[Any, int]) -> bool:
        placed = [(v, e if v or e_zero is None else e_zero) for v, e in terms]
        top = max(e for _, e in placed)
        return any((v * 2**F / Fraction(2) ** top).denominator != 1 for v, _ in placed)

    def loses(F: int) -> bool:
        if products == 1:
            return any(lost(F, p, z) for p in product for z in c)
        few = sorted(c)[:2] + sorted(c)[-1:]
        return any(lost(F, p, q, z) for p in product for q in product for z in few)

    assert not loses(width.F)
    assert loses(width.F - 1)
    with LazyPortfolio() as portfolio:
        assert lossless_width.prove_width(Composing(Asker(portfolio, 60)), *of) == width


# ---- what is said ----------------------------------------------------------------------------------------------------


def test_a_product_of_infinity_and_zero_is_not_told_as_nothing() -> None:
    text = explain_case(hopper["HMMA.16816.F32"], [0x7C00] + [0] * 15, [0] * 16, 0x7FFFFFFF)
    assert "pass" not in text
    assert "NaN" in text
    text = explain_case(hopper["HMMA.16816.F32"], [0] * 16, [0] * 16, 0x7FFFFFFF)
    assert "all products are zero, c passes unchanged" in text


@pytest.mark.parametrize(
    "instruction",
    [
        ampere["DMMA.884"],
        cdna1["v_mfma_f32_16x16x16f16"],
        cdna3["v_mfma_f32_16x16x16_f16"],
        hopper["mma.m16n8k32.f32.e5m2.e5m2.f32"],
    ],
    ids=lambda i: i.algorithm,
)
def test_no_algorithm_tells_infinity_times_zero_as_nothing(instruction: Instruction) -> None:
    infinity, nan = instruction.a_format.infinity, instruction.d_format.codes // 2 - 1
    assert infinity is not None
    k = instruction.k
    a = [infinity] + [0] * (k - 1)
    nan = int(instruction.dot_add(a, [0] * k, nan))  # as a step gives it, so that it enters as it leaves
    first = explain_case(instruction, a, [0] * k, nan).splitlines()[0]
    assert "passes" not in first


def test_a_scale_that_is_no_number_is_not_told_as_nothing() -> None:
    for instruction in (
        rtx_blackwell["QMMA.SF.16832.F32.E3M2.E2M1.E8"],
        blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"],
    ):
        spec, k = instruction.spec, instruction.k
        assert spec.scale_format is not None
        nan = next(x for x in range(256) if spec.scale_format.is_nan(x))
        scales = [nan] + [0x38] * (spec.scales - 1), [0x38] * spec.scales
        assert "passes" not in explain_case(instruction, [0] * k, [0] * k, 0x7FFFFFFF, *scales)


def test_every_number_says_what_is_proved() -> None:
    unit = hopper["HMMA.16816.F32"].replace(k=2, L=2, F=1, c_format=fp16, d_format=fp16, rho=RNE_FP16)
    answer = settled(output_range.EVERY_NUMBER, unit)
    assert isinstance(answer, Fails)
    # A sum may be as large, and larger: it is only never rounded to that number.
    assert "no sum is rounded to the largest finite number" in str(answer)
    assert int(unit.dot_add([0x7BFF] * 2, [0x3C00] * 2, 0)) == fp16.infinity


def test_products_too_wide_to_list_have_an_answer_in_words() -> None:
    wide = cdna3["v_mfma_f32_16x16x16_f16"].replace(a_format="fp32", b_format="tf32")
    answer = settled(error_bound.PROPERTY, wide)
    assert isinstance(answer, Unknown)
    assert "too many to list" in answer.why


# ---- zero padding ----------------------------------------------------------------------------------------------------


def test_padding_of_blocks_whose_sums_are_of_two_widths_has_an_answer() -> None:
    """It is not known of efda in fixed point: its sum of a product less is rounded in a narrower frame."""
    unit = cdna1["v_mfma_f32_16x16x16f16"].replace(k=2, L=2)
    answer = settled(zero_padding.PROPERTY, unit, timeout=5)
    assert isinstance(answer, Unknown), answer
    assert "no lemma relates an interface" in answer.why


def test_padding_of_scaled_groups_of_two_widths_holds() -> None:
    """Stage by stage: a group's sum of a product less is the same number in fewer bits, and so is its term."""
    unit = blackwell["UTCOMMA.F32.E2M1.E2M1.E8.4X"].replace(
        F=19, G=2, L=2, k=2, scale_block=2, scale_format=ue4m3
    )
    assert isinstance(settled(zero_padding.PROPERTY, unit), Holds)


def test_fdrda_takes_a_product_for_infinite_by_its_exponent() -> None:
    """With a bias of 0 a subnormal of exponent 1 times 2^127 is one of 128, though the product is 2^127."""
    wide = Format("wide", 16, 8, 7, 0, Specials.IEEE, None)
    unit = Instruction("X", "test", 16, 8, DotAdd(1, wide, wide, fp32, fp32, Fdrda(24, 1, RNE_FP32)))
    a, b = 0x40, 0x3F80
    assert wide.value(a) * wide.value(b) == 2**127
    assert int(unit.dot_add([a], [b], 0)) == 0x7F800000
    assert not examine(unit, Codes((a,), (b,), 0)).once
    assert examine(unit, Codes((a,), (0x3F00,), 0)).exact
    assert int(unit.dot_add([a], [0x3F00], 0)) == 0x7E800000


def test_dropping_a_small_c_does_not_remove_the_bias_of_rounding_down() -> None:
    """cdna3's fp8, beside which MMA-Sim (§VI-C) says that it does: nearly every c is large enough to be kept."""
    rng = np.random.default_rng(0)
    unit = cdna3["v_mfma_f32_16x16x32_fp8_fp8"]
    A, B = (rng.normal(scale=64, size=s).clip(-240, 240) for s in ((128, unit.k), (unit.k, 128)))
    operands = (
        *(x.astype(ml_dtypes.float8_e4m3fnuz) for x in (A, B)),
        rng.normal(size=(128, 128)).astype(np.float32),
    )

    def bias(one: Instruction) -> tuple[float, float]:
        """The mean deviation from the exact sum, and its standard error."""
        found = sample(one, *operands)
        return found.statistics().bias, float(found.errors.std()) / found.errors.size**0.5

    real, free, toward_zero = (bias(x) for x in (unit, unit.replace(c_reach=4096), unit.replace(cut="RZ")))
    assert real[0] == pytest.approx(free[0], rel=0.01)
    assert real[0] < -10 * real[1]
    assert abs(toward_zero[0]) < 4 * toward_zero[1]
