"""Numerical properties: what is proved holds, what fails has a witness, and a broken model makes each proof fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
import z3
from lossless_table import TABLE_I
from support import exact as reference
from support.exact import exact_sum
from support.rounded_once import examine
from support.settling import one_bit_less, settled
from support.slow import slow

from mmaformal import ampere, blackwell, cdna1, cdna2, cdna3, datapath, hopper, volta
from mmaformal.cases.generate import generate
from mmaformal.cases.run import run
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings.fda import smt as fda
from mmaformal.encodings.sfma import smt as sfma
from mmaformal.encodings.smt import blocks, ieee, stages
from mmaformal.facts import exact_steps
from mmaformal.formats import Format, bf16, e2m1, e4m3, fp16, fp32
from mmaformal.instruction import Instruction
from mmaformal.proof.composition import Composing
from mmaformal.proof.definitions import (
    is_correct,
    is_faithful,
    is_rounded,
    rounds_around,
    rounds_between,
)
from mmaformal.proof.kernel import NotProvedError
from mmaformal.queries import exactness, lossless_width, rounding
from mmaformal.rounding import (
    DETERMINISTIC,
    IEEE_FP16,
    IEEE_FP32,
    RNE_FP16,
    RZ_E8M13,
    RZ_FP32,
    Conversion,
    Rounding,
)
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio
from mmaformal.theory.additions import AdditionFacts


@pytest.fixture
def proving() -> Iterator[Composing]:
    with Portfolio(["bitwuzla"]) as portfolio:
        yield Composing(Asker(portfolio, 60.0))


#: A small model of each fused kind: quick, and with every stage.
SMALL = hopper["HMMA.1688.F16"].replace(k=2, L=2, e_zero=None)
CDNA3 = cdna3["v_mfma_f32_32x32x4_2b_f16"]


# ---- definitions -----------------------------------------------------------------------------------------------------

CONVERSIONS = [RZ_FP32, RZ_E8M13, RNE_FP16, IEEE_FP32]
CONVERSIONS += [
    Conversion(f"{x.name}-FP16", fp16, 10, x) for x in DETERMINISTIC if x.name not in ("RZ", "RNE")
]
CONVERSIONS += [
    Conversion.named(f"{name}-FP16")
    for name in ("SA3.5", "SA1.0", "SB2.1", "SB4.15", "SC3.4", "SC3.3", "SC1.1")
]


def numbers(rho: Conversion, count: int) -> list[tuple[int, int]]:
    """(m, t): numbers m · 2^t near ρ's boundaries, its subnormals and its overflow among them."""
    rng, out = random.Random(1), []
    fmt, keep = rho.format, rho.fraction_bits
    for _ in range(count):
        exponent = rng.choice((fmt.min_exponent - keep - 2, fmt.min_exponent, 0, fmt.max_exponent))
        m = rng.choice((1 << keep, (2 << keep) - 1, rng.getrandbits(keep) | 1 << keep, rng.getrandbits(3)))
        extra = rng.randint(0, 4)
        m = (m << extra) + rng.choice((0, 1, (1 << extra) >> 1, (1 << extra) - 1))
        out.append((m, exponent - keep - extra + rng.randint(-1, 1)))
    return out


@pytest.mark.parametrize("rho", CONVERSIONS, ids=str)
def test_rounding_by_definition_is_that_of_the_reference(rho: Conversion) -> None:
    for (m, t), sign in product(numbers(rho, 150), (1, -1)):
        value = sign * m * Fraction(2) ** t
        code = reference.convert(value, rho)
        assert is_correct(code, value, rho)
        assert is_faithful(code, value, rho)
        for other in (code + 1, code - 1, code ^ 1 << (rho.format.fraction_bits - rho.fraction_bits)):
            if 0 <= other - (code & rho.format.sign_mask) < rho.format.sign_mask and other != code:
                assert not is_correct(other, value, rho)


@pytest.mark.parametrize("rho", CONVERSIONS, ids=str)
def test_the_claim_about_terms_is_the_definition(rho: Conversion) -> None:
    for (m, t), sign in product(numbers(rho, 30), (1, -1)):
        if sign < 0 and rho.rounding not in (Rounding.RD, Rounding.RU):
            continue
        value = sign * m * Fraction(2) ** t
        code = reference.convert(value, rho) & ~rho.format.sign_mask

        def correct(magnitude: int, x: Fraction) -> bool:
            return is_correct(magnitude | (rho.format.sign_mask if x < 0 else 0), x, rho)

        for other in (code, code + (1 << rho.format.fraction_bits - rho.fraction_bits), max(code - 1, 0)):
            terms = z3.BitVecVal(m, 34), z3.BitVecVal(t, 12), z3.BitVecVal(other, rho.format.storage_bits)
            said = z3.is_true(z3.simplify(is_rounded(*terms, rho, z3.BoolVal(sign < 0))))
            assert said == correct(other, value)
            around = z3.is_true(z3.simplify(rounds_between(*terms, rho, z3.BoolVal(sign < 0))))
            inner = [
                (m + part) * Fraction(2) ** t for part in (Fraction(1, 1 << 60), 1 - Fraction(1, 1 << 60))
            ]
            assert around == all(correct(other, sign * x) for x in inner)
            if m:
                around = z3.is_true(z3.simplify(rounds_around(*terms, rho, z3.BoolVal(sign < 0))))
                inner = [
                    (m + part) * Fraction(2) ** t
                    for part in (-1 + Fraction(1, 1 << 60), 1 - Fraction(1, 1 << 60))
                ]
                assert around == all(correct(other, sign * x) for x in inner)


def test_faithful_is_one_of_two_neighbours() -> None:
    one, above = 0x3F800000, 0x3F800001
    between = 1 + Fraction(1, 1 << 25)
    assert is_faithful(one, between, RZ_FP32)
    assert is_faithful(above, between, RZ_FP32)
    assert not is_faithful(above + 1, between, RZ_FP32)
    assert not is_faithful(above, Fraction(1), RZ_FP32)
    assert not is_faithful(one, -between, RZ_FP32)


# ---- rounding --------------------------------------------------------------------------------------------------------


def sfma_step(proving: Composing, rho: Conversion = IEEE_FP16) -> None:
    """sfma in a small format, which no instruction has."""
    fmt = rho.format
    step = sfma.step(rho, *(z3.BitVec(name, fmt.storage_bits) for name in "abc"))
    exact_steps.prove_sticky(proving, exact_steps.sfma_terms(proving, step, rho))


def test_an_fma_is_correctly_rounded(proving: Composing) -> None:
    sfma_step(proving)
    assert len(proving.obligations) > 10


def test_an_fma_without_a_sticky_bit_is_not(proving: Composing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "sticky_shift_right", blocks.shift_right)
    with pytest.raises(NotProvedError, match="does not hold"):
        sfma_step(proving)


def test_an_fma_of_one_place_less_is_not(proving: Composing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sfma, "frame_bits", lambda precision: 2 * precision)
    with pytest.raises(NotProvedError, match="does not hold"):
        sfma_step(proving)


def _add_of_fp16() -> AdditionFacts:
    x, y = z3.BitVecs("x y", 16)
    return AdditionFacts(x, y, ieee.add(x, y, IEEE_FP16, blocks.quiet_nan(fp16)).result, IEEE_FP16)


def test_an_addition_is_correctly_rounded_and_a_coarser_one_is_not(
    proving: Composing, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_of_fp16().prove_rounded(proving)
    monkeypatch.setattr(ieee, "sticky_shift_right", blocks.shift_right)
    with pytest.raises(NotProvedError, match="does not hold"):
        _add_of_fp16().prove_rounded(proving)


@pytest.mark.parametrize(
    "instruction",
    [ampere["HMMA.16816.F32"], cdna3["v_mfma_f32_16x16x32_bf8_bf8"], cdna2["v_mfma_f32_32x32x4f16"]],
    ids=str,
)
@pytest.mark.parametrize(
    ("prop", "judge"), [(rounding.CORRECT, is_correct), (rounding.FAITHFUL, is_faithful)]
)
def test_fused_units_round_neither_correctly_nor_faithfully(
    instruction: Instruction, prop: Any, judge: Callable[..., bool]
) -> None:
    answer = settled(prop, instruction)
    assert isinstance(answer, Fails)
    witness = answer.witness
    assert isinstance(witness, CaseWitness)
    x = exact_sum(instruction.spec, witness.codes)
    assert x is not None
    assert list(witness.results) == run(instruction, [witness.codes])
    assert not judge(witness.results[0], x, instruction.spec.parameters.last_rounding)
    assert "exact" in str(answer)


# ---- exactness -------------------------------------------------------------------------------------------------------

ONE_OF_EACH = [
    volta["HMMA.884.F32.F16"],
    ampere["HMMA.16816.F32"],
    hopper["QGMMA.64x8x32.F16.E5M2.E4M3"],
    hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"],
    blackwell["UTCQMMA.SF.F32.E2M1.E5M2.E8"],
    blackwell["UTCOMMA.F32.E2M1.E2M1.UE4M3.4X"],
    cdna1["v_mfma_f32_32x32x8f16"],
    cdna1["v_mfma_f32_32x32x2f32"],
    cdna2["v_mfma_f32_32x32x4f16"],
    cdna3["v_mfma_f32_16x16x8_xf32"],
    cdna3["v_mfma_f32_16x16x32_bf8_bf8"],
]


@pytest.mark.parametrize("instruction", ONE_OF_EACH, ids=str)
def test_the_conditions_suffice_on_codes(instruction: Instruction) -> None:
    spec = instruction.spec
    cases = generate(spec, 60, 11, ["numbers"]).cases()
    said = []
    for codes, d in zip(cases, run(instruction, cases), strict=True):
        x = exact_sum(spec, codes)
        assert x is not None
        found = examine(instruction, codes)
        said.append(found)
        assert not found.once or is_correct(d, x, spec.parameters.last_rounding)
        assert not found.exact or spec.d_format.value(d) == x
    assert any(each.exact for each in said)
    assert any(each.once for each in said)
    assert spec.parameters.step_products == spec.k or not all(each.once for each in said)


@pytest.mark.parametrize("instruction", [SMALL, CDNA3], ids=str)
def test_exactness_is_proved(instruction: Instruction) -> None:
    answer = settled(exactness.PROPERTY, instruction)
    assert isinstance(answer, Holds)
    assert any("by definition" in each.statement for each in answer.proof.obligations)


def test_exactness_of_pairwise_sums_of_narrow_formats() -> None:
    # Their exponents need fewer bits than those of the products' fp32.
    narrow = cdna2["f32_32x32x4bf16"].replace(k=2, a_format=e2m1, b_format=e2m1)
    assert isinstance(settled(exactness.PROPERTY, narrow), Holds)


@pytest.mark.parametrize("broken", ["alignment", "rounding", "sum", "maximum"])
def test_exactness_of_a_broken_model_is_not(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if broken == "alignment":
        monkeypatch.setattr(stages, "align", one_bit_less(stages.align))
    elif broken == "rounding":
        up = replace(RNE_FP16, rounding=Rounding.RZ)
        whole = stages.normalise_and_round
        monkeypatch.setattr(
            stages, "normalise_and_round", lambda total, e, ex, F, rho, low: whole(total, e, ex, F, up, low)
        )
    elif broken == "sum":
        bits = fda.sum_bits
        monkeypatch.setattr(fda, "sum_bits", lambda p: bits(p) - 1)
    else:
        monkeypatch.setattr(stages, "maximum", lambda xs: xs[0])
    answer = settled(exactness.PROPERTY, SMALL)
    assert isinstance(answer, Unknown)
    assert "does not hold" in answer.why


# ---- lossless width --------------------------------------------------------------------------------------------------


def test_the_lossless_width_is_proved_and_tight(proving: Composing, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = blackwell["UTCQMMA.F16.E2M1.E2M1"].replace(k=4, L=4)
    assert lossless_width.lossless_width_of(e2m1, e2m1, fp16).F == 28
    assert isinstance(settled(lossless_width.PROPERTY, narrow.replace(F=28)), Holds)
    fails = settled(lossless_width.PROPERTY, narrow.replace(F=27))
    assert isinstance(fails, Fails)
    assert "28" in fails.question
    for kept, whole in lossless_width.sums_of_steps(narrow.replace(F=27).spec, fails.witness.codes):  # type: ignore[attr-defined]
        assert kept != whole
    monkeypatch.setattr(lossless_width, "align", one_bit_less(blocks.align))
    with pytest.raises(NotProvedError):
        lossless_width.prove_width(proving, e2m1, e2m1, fp16)


def separated(text: str) -> Instruction:
    """A separated dot-add of e2m1 numbers in fp16, so that proofs are short."""
    return datapath[f"sda({text},a=e2m1,dot=RNE-FP16,rho=IEEE-FP16)"]


WIDTHS = {"k=2": 6, "k=1": 2, "k=2,e_zero=9": 11, "k=2,e_zero=fields": 6}


@pytest.mark.parametrize("text", slow(WIDTHS, [each for each in WIDTHS if each != "k=2"]))
def test_the_lossless_width_of_a_separated_dot_add_is_proved_and_tight(text: str) -> None:
    """All products from +0, whose exponent counts too where it is e_zero: table 1's SDA."""
    F = WIDTHS[text]
    answer = settled(lossless_width.PROPERTY, separated(f"{text},frac_bits={F}"))
    assert isinstance(answer, Holds)
    assert answer.number is not None
    assert answer.number.value == F
    fails = settled(lossless_width.PROPERTY, separated(f"{text},frac_bits={F - 1}"))
    assert isinstance(fails, Fails)


def test_a_separated_dot_add_that_cuts_a_bit_too_many_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "align", one_bit_less(blocks.align))
    answer = settled(lossless_width.PROPERTY, separated("k=2,frac_bits=6"))
    assert isinstance(answer, Unknown)
    assert "does not hold" in answer.why


def test_terms_that_need_the_last_bit_are_a_case_where_the_search_finds_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lossless_width, "find_case", lambda *_: None)
    for unit in (separated("k=2,frac_bits=5"), blackwell["UTCQMMA.F16.E2M1.E2M1"].replace(k=4, L=4, F=27)):
        assert isinstance(settled(lossless_width.PROPERTY, unit), Fails)


@pytest.mark.slow
@pytest.mark.parametrize(("fmt", "F"), [("e4m3", 34), ("e2m1", 6)])
def test_what_a_lane_holds_of_table_1_is_built_and_proved(fmt: str, F: int) -> None:
    assert lossless_width.lossless_width_of(Format.named(fmt), Format.named(fmt), None).F == F
    for bits, expected in ((F, Holds), (F - 1, Fails)):
        unit = datapath[f"sda(k=16,frac_bits={bits},a={fmt})"]
        assert isinstance(settled(lossless_width.PROPERTY, unit), expected)


def test_table_1_of_seed_002(proving: Composing) -> None:
    """Where the paper is right, and where its widths are shown to be too few."""
    ours = {
        fmt.name: (
            lossless_width.lossless_width_of(fmt, fmt, None),
            lossless_width.lossless_width_of(fmt, fmt, fp32),
        )
        for fmt, _ in TABLE_I
    }
    widths = {name: (x.data_path, y.data_path) for name, (x, y) in ours.items()}
    assert widths == {
        "bf16": (522, 522),
        "fp16": (80, 181),
        "e5m3": (66, 181),
        "e5m2": (64, 181),
        "e4m3": (36, 167),
        "e2m1": (8, 155),
    }
    for fmt, paper in TABLE_I:
        for width, told in zip(ours[fmt.name], paper or (), strict=False):
            assert lossless_width.loses_at(width, told - lossless_width.INTEGER_BITS) == (
                told < width.data_path
            )
            assert not lossless_width.loses_at(width, width.F)
    for fmt in (e4m3, e2m1):
        lossless_width.prove_width(proving, fmt, fmt, None)
    assert lossless_width.lossless_width_of(bf16, bf16, fp32).low.name == "product"
