"""The telling of computations adds up: every number in it is exact, and together they are the computation."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmaformal import (
    Instruction,
    ada,
    ampere,
    blackwell,
    cdna1,
    cdna2,
    cdna3,
    hopper,
    rtx_blackwell,
    turing,
    volta,
)
from mmaformal.encodings import executable
from mmaformal.formats import FORMATS, Format, bf16, e5m2, fp16, fp32, hex_float
from mmaformal.renderers import renderer_of
from mmaformal.renderers.rows import Row
from mmaformal.shown_stages import (
    decimal_text,
    exact_dot_add,
    explain_case,
    explain_difference,
    number_text,
    ulps_apart,
)

KINDS = [
    volta["HMMA.884.F32.F16"],
    turing["HMMA.1688.F16"],
    ampere["HMMA.16816.F32"],
    ampere["HMMA.1688.F32.TF32"],
    hopper.revision("paper-v1")["HMMA.16816.F16"],
    ada["QMMA.16832.F32.E4M3.E5M2"],
    hopper["mma.m16n8k32.f16.e5m2.e4m3.f16"],
    blackwell["UTCQMMA.F32.E3M2.E2M1"],
    rtx_blackwell["QMMA.SF.16832.F32.E4M3.E5M2.E8"].chained(64),
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
    cdna1["f32_32x32x8f16"],
    cdna2["f32_32x32x4bf16"],
    cdna3["f32_32x32x8_f16"],
    cdna3["f32_32x32x16_bf8_fp8"],
]
NUMBER = r"-?0x[0-9a-f.]+p[+-]\d+"
KEPT = re.compile(rf"({NUMBER})(?:  \(lost ({NUMBER})\))?")


def number(text: str) -> Fraction:
    """A hexadecimal float of any size, exactly."""
    match = re.fullmatch(r"(-?)0x([0-9a-f]+)\.?([0-9a-f]*)p([+-]\d+)", text)
    assert match, text
    sign, whole, tail, exponent = match.groups()
    return (
        (-1 if sign else 1) * Fraction(int(whole + tail, 16), 16 ** len(tail)) * Fraction(2) ** int(exponent)
    )


def code_near_one(fmt: Format, rng: random.Random) -> int:
    """Mostly of exponents that meet in a sum; some zeros, some of any size."""
    if rng.random() < 0.3 and fmt.has_zero:
        return 0
    while True:
        code = rng.randrange(fmt.codes)
        exponent = fmt.fields(code)[1] - fmt.bias
        if fmt.is_finite(code) and (abs(exponent) <= 20 or rng.random() < 0.02):
            return code


def case(i: Instruction, rng: random.Random) -> list[list[int] | int]:
    spec = i.spec
    made: list[list[int] | int] = [
        [code_near_one(f, rng) for _ in range(i.k)] for f in (i.a_format, i.b_format)
    ]
    made.append(code_near_one(i.c_format, rng))
    if spec.scale_format is not None:
        made += [[code_near_one(spec.scale_format, rng) for _ in range(spec.scales)] for _ in "ab"]
    return made


def steps_of(i: Instruction, codes: list[list[int] | int]) -> list[list[Row]]:
    """The rows of each step that is not idle."""
    a, b, c, *scales = codes
    trace = executable.dot_add(i.spec, a, b, c, *scales)  # type: ignore[arg-type]
    return [step.rows for step in renderer_of(i.spec)(i.spec, trace, c) if not step.passes_c]  # type: ignore[arg-type]


def exact_products(i: Instruction, codes: list[list[int] | int]) -> list[Fraction]:
    a, b, _, *scales = codes
    assert isinstance(a, list)
    assert isinstance(b, list)
    products = [i.a_format.value(x) * i.b_format.value(y) for x, y in zip(a, b, strict=True)]
    for side in scales:
        assert isinstance(side, list)
        assert i.spec.scale_format is not None
        products = [
            p * i.spec.scale_format.value(side[k // i.spec.scale_block]) for k, p in enumerate(products)
        ]
    return products


def kept_and_lost(text: str) -> tuple[Fraction, Fraction]:
    match = KEPT.fullmatch(text)
    assert match, text
    return number(match[1]), number(match[2]) if match[2] else Fraction(0)


@pytest.mark.parametrize("i", [i for i in KINDS if i.algorithm != "gps"], ids=lambda i: i.label)
def test_what_is_kept_and_what_is_lost_is_what_there_was(i: Instruction) -> None:
    rng = random.Random(i.label)
    told, lost_some = 0, 0
    for _ in range(40):
        codes = case(i, rng)
        products = exact_products(i, codes)
        steps = steps_of(i, codes)
        assert steps or not any(products)
        for rows in steps:
            for row in rows:
                product = re.fullmatch(r"a\[(\d+)\]·b\[\1\]", row.label)
                group = re.fullmatch(r"group (\d+)…(\d+)", row.label)
                if product:
                    exact = products[int(product[1])]
                elif group:
                    exact = sum(products[int(group[1]) : int(group[2]) + 1], Fraction(0))
                elif row.label == "c" and len(steps) == 1:  # in a later step c is the last one's result
                    exact = i.c_format.value(codes[2])  # type: ignore[arg-type]
                else:
                    continue
                kept, lost = kept_and_lost(row.text)
                told += 1
                lost_some += lost != 0
                assert kept + lost == exact, f"{row}"
    assert told > 40
    assert lost_some or i.algorithm in ("efda", "lowered")


def test_products_that_are_rounded_one_by_one_say_what_is_lost() -> None:
    i = cdna2["f32_32x32x4bf16"]
    rng = random.Random(i.label)
    told = 0
    for _ in range(40):
        codes = case(i, rng)
        products = exact_products(i, codes)
        for rows in steps_of(i, codes):
            for row in rows:
                if row.stage == "multiply":
                    told += 1
                    code, lost = re.fullmatch(
                        rf"(0x[0-9a-f]{{8}})  .*?(?:\(lost ({NUMBER})\))?", row.text
                    ).groups()  # type: ignore[union-attr]
                    k = int(row.label[2 : row.label.index("]")])
                    assert fp32.value(int(code, 16)) + (number(lost) if lost else 0) == products[k]
    assert told > 40


@pytest.mark.parametrize("i", [k for k in KINDS if k.algorithm in ("fda", "gdfs")], ids=lambda i: i.label)
def test_what_is_kept_adds_up_to_the_sum_and_the_sum_to_the_result(i: Instruction) -> None:
    rng = random.Random(i.label)
    rounded = 0
    for _ in range(40):
        for rows in steps_of(i, case(i, rng)):
            text = {row.label: row.text for row in rows}
            kept = [row for row in rows if row.stage == "align" and row.label != "largest exponent"]
            assert number(text["sum"]) == sum(kept_and_lost(row.text)[0] for row in kept)
            code = int(text["d"].split()[0], 16)
            if i.d_format.is_finite(code):
                away = text["rounded away"]
                rounded += away != "nothing"
                away_value = Fraction(0) if away == "nothing" else number(away)
                assert i.d_format.value(code) + away_value == number(text["sum"])
            else:
                assert text["overflow"] == "to infinity"
    assert rounded


PAIRS = [
    (ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"]),
    (ampere["HMMA.1688.F32"], hopper["HMMA.1688.F32"]),
    (hopper["HMMA.16816.F32"], hopper.revision("paper-v1")["HMMA.16816.F32"]),
    (ada["QMMA.16832.F32.E4M3.E4M3"], hopper["mma.m16n8k32.f32.e4m3.e4m3.f32"]),
    (cdna1["f32_32x32x8f16"], cdna2["f32_32x32x8f16"]),
]


@pytest.mark.parametrize(("x", "y"), PAIRS, ids=lambda i: i.label)
def test_a_difference_is_marked_where_it_is(x: Instruction, y: Instruction) -> None:
    rng = random.Random(x.label)
    parted = 0
    for _ in range(60):
        codes = case(x, rng)
        results = [int(i.dot_add(*codes)) for i in (x, y)]  # type: ignore[arg-type]
        text = explain_difference(x, y, *codes)  # type: ignore[arg-type]
        for result in results:
            assert f"{result:#0{2 + x.d_format.storage_bits // 4}x}" in text
        assert text.startswith("where they part: ")
        if "one step" in text.splitlines()[0]:
            continue
        marked = [line for line in text.splitlines() if line.startswith("  ≠ ")]
        if results[0] != results[1]:
            parted += 1
            assert marked
            assert "d " in marked[-1]
            stage, _, label = text.splitlines()[0].removeprefix("where they part: ").partition(", ")
            assert stage in marked[0] or x.algorithm != y.algorithm
            assert label
    assert parted or "one step" in text.splitlines()[0] or "paper" in y.architecture


def test_idle_steps_are_named_not_told() -> None:
    i = volta["HMMA.884.F32.F32"].chained(12)
    a, b = [0] * 12, [0] * 12
    a[5] = b[5] = fp16.code("1")
    lines = explain_case(i, a, b, fp32.code("2")).splitlines()
    assert lines[0] == "step 1 of 3: all products are zero, c passes unchanged"
    assert lines[1] == "step 2 of 3:"
    assert lines[-1] == "step 3 of 3: all products are zero, c passes unchanged"
    assert "0x40400000  0x1.8p+1 = 3" in lines[-2]


# ---- numbers


@given(st.integers(-(2**70), 2**70), st.integers(-200, 200))
def test_texts_of_numbers_are_exact_or_say_not(significand: int, exponent: int) -> None:
    value = significand * Fraction(2) ** exponent
    assert number(hex_float(value)) == value
    decimal = decimal_text(value)
    told = Fraction(Decimal(decimal.removeprefix("≈")))
    assert (told == value) == (not decimal.startswith("≈"))
    assert abs(told - value) <= abs(value) / 10**16
    assert number_text(value).startswith(hex_float(value) + (" ≈" if told != value else " = "))


@pytest.mark.parametrize("fmt", [fp16, bf16, e5m2, fp32], ids=str)
def test_ulps_count_the_numbers_between(fmt: Format) -> None:
    rng = random.Random(fmt.name)
    infinity = fmt.infinity
    assert infinity is not None
    in_order = (
        [*(code | fmt.sign_mask for code in range(infinity, 0, -1)), 0, *range(1, infinity + 1)]
        if (fmt.storage_bits <= 16)
        else [*(code | fmt.sign_mask for code in range(50, 0, -1)), 0, *range(1, 50)]
    )
    for _ in range(500):
        x, y = rng.randrange(len(in_order)), rng.randrange(len(in_order))
        assert ulps_apart(in_order[x], in_order[y], fmt) == abs(x - y)
    assert ulps_apart(0, fmt.sign_mask, fmt) == 0
    assert ulps_apart(infinity + 1, 0, fmt) is None
    assert ulps_apart(0, infinity + 1 | fmt.sign_mask, fmt) is None


@settings(max_examples=100)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.booleans())
def test_one_ulp_is_the_next_number(x: float, up: bool) -> None:
    start = np.float32(x)
    with np.errstate(over="ignore", under="ignore"):
        after = np.nextafter(start, np.float32(np.inf if up else -np.inf))
    codes = [int(v.view(np.uint32)) for v in (start, after)]
    assert ulps_apart(*codes, fp32) == 1


@pytest.mark.parametrize("i", KINDS, ids=lambda i: i.label)
def test_the_exact_value_is_exact_and_there_is_none_of_infinities_and_nans(i: Instruction) -> None:
    rng = random.Random(i.label)
    for _ in range(20):
        codes = case(i, rng)
        expected = sum(exact_products(i, codes)) + i.c_format.value(codes[2])  # type: ignore[arg-type]
        assert exact_dot_add(i.spec, *codes) == expected  # type: ignore[arg-type]
    for place, fmt in enumerate((i.a_format, i.b_format, i.c_format, *[i.spec.scale_format] * 2)):
        specials = (0x7F, 0xFF, 0x80, 0x7F80, 0x7C00, 0x7F800000, 0x7FC00000)
        for special in specials if fmt is not None else ():
            if place >= len(codes) or special >= fmt.codes or fmt.is_finite(special):
                continue
            other = [list(x) if isinstance(x, list) else x for x in codes]
            if isinstance(other[place], list):
                other[place][-1] = special  # type: ignore[index]
            else:
                other[place] = special
            assert exact_dot_add(i.spec, *other) is None  # type: ignore[arg-type]
            assert explain_case(i, *other)  # type: ignore[arg-type]


def test_every_format_has_its_numbers_told() -> None:
    for fmt in FORMATS.values():
        for code in range(0, fmt.codes, max(1, fmt.codes // 97)):
            if fmt.is_finite(code) and fmt.value(code):
                assert number(hex_float(fmt.value(code))) == fmt.value(code)
