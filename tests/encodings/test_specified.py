"""Units that a text defines and nobody has run: each against its text in exact rationals (docs/specified.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pytest

from mmaformal import ARCHITECTURES, verify
from mmaformal.architectures.base import SPECIFIED
from mmaformal.encodings import executable
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.solver.answers import Holds

Codes = Sequence[int]


def nearest(x: Fraction, fmt: Format) -> int:
    """Returns the code nearest to x, ties to even, subnormals kept, overflow to infinity; of 0, that of +0."""
    sign, magnitude = (fmt.sign_mask if x < 0 else 0), abs(x)
    if not magnitude:
        return 0
    e = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    e = max(e - (Fraction(2) ** e > magnitude), fmt.min_exponent)
    places = round(magnitude / Fraction(2) ** (e - fmt.fraction_bits))  # Python's ties go to even
    code = places + ((e - fmt.min_exponent) << fmt.fraction_bits)
    assert fmt.infinity is not None
    return sign | min(code, fmt.infinity)


def sign_of(fmt: Format, code: int) -> int:
    return fmt.fields(code)[0]


def products(i: Instruction, a: Codes, b: Codes) -> tuple[set[int], list[tuple[int, Fraction]]] | None:
    """Returns the signs of infinite products, and signs and values of the others; None for a NaN or 0·∞."""
    infinite: set[int] = set()
    finite = []
    for x, y in zip(a, b, strict=True):
        f, g = i.a_format, i.b_format
        sign = sign_of(f, x) ^ sign_of(g, y)
        if f.is_nan(x) or g.is_nan(y):
            return None
        if f.is_infinite(x) or g.is_infinite(y):
            if (f.is_finite(x) and not f.value(x)) or (g.is_finite(y) and not g.value(y)):
                return None
            infinite.add(sign)
        else:
            finite.append((sign, f.value(x) * g.value(y)))
    return infinite, finite


def arm_fp8(i: Instruction, a: Codes, b: Codes, c: int, scale: int = 0) -> int:
    """Returns what the Arm ARM's FP8DotAddFP gives, FPMR.OSM = 0."""
    d = i.d_format
    assert d.infinity is not None
    nan = d.infinity | 1 << (d.fraction_bits - 1)
    found = products(i, a, b)
    if found is None or d.is_nan(c):
        return nan
    infinite, finite = found
    signs = infinite | ({sign_of(d, c)} if d.is_infinite(c) else set())
    if signs:
        return nan if len(signs) == 2 else d.infinity | (d.sign_mask if 1 in signs else 0)
    terms = [(sign_of(d, c), d.value(c)), *finite]
    if not any(value for _, value in terms) and len({sign for sign, _ in terms}) == 1:
        return d.sign_mask if terms[0][0] else 0
    return nearest(d.value(c) + sum(x for _, x in finite) / 2**scale, d)


def cases(i: Instruction, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns codes of all kinds: zeros of both signs, subnormals, infinities and NaNs of few, numbers of many rows."""
    rng, fmt = np.random.default_rng(i.k), i.d_format
    a, b = (rng.integers(0, 256, (rows, i.k)).astype(np.uint8) for _ in range(2))
    for x in (a, b):
        x[rows // 4 :] &= 0xB7  # no largest exponent
        x[rng.random(x.shape) < 0.2] &= 0x83  # zeros and subnormal numbers
    a[:3], b[:3] = 0x80, 0
    c = rng.integers(0, 1 << fmt.storage_bits, rows).astype(fmt.word)
    c[:6] = [fmt.sign_mask, 0, 1, fmt.sign_mask, 1, fmt.sign_mask | 1]
    c[rows // 2 :] = fmt.code("0x1p-3")
    return a, b, c


def differs(
    i: Instruction, text: Callable[[Instruction, Codes, Codes, int], int], rows: int = 300
) -> list[int]:
    a, b, c = cases(i, rows)
    d = i.dot_add(a, b, c)
    lanes = executable.dot_add(
        i.spec, list(a.T.astype(np.int64)), list(b.T.astype(np.int64)), c.astype(np.int64)
    )
    np.testing.assert_array_equal(d.astype(np.int64), lanes.result)
    said = [text(i, list(map(int, x)), list(map(int, y)), int(z)) for x, y, z in zip(a, b, c, strict=True)]
    return [n for n in range(rows) if int(d[n]) != said[n]]


@pytest.mark.parametrize("scale", [0, 1, 6, 15])
@pytest.mark.parametrize("name", ARCHITECTURES["armv9_fp8"].keys())
def test_arm_fp8_is_the_pseudocode(name: str, scale: int) -> None:
    architecture = ARCHITECTURES[f"armv9_fp8@lscale-{scale}" if scale else "armv9_fp8"]
    codes = ARCHITECTURES["armv9_fp8"][name]  # which read them without the scale
    scaled = architecture[name]

    def text(_: Instruction, a: Codes, b: Codes, c: int) -> int:
        return arm_fp8(codes, a, b, c, scale)

    assert not differs(scaled, text)


def test_arm_fp8_known_answers() -> None:
    fdot = ARCHITECTURES["armv9_fp8"]["FDOT.F16.E4M3.E4M3"]
    one, minus_zero = 0x38, 0x80
    assert int(fdot.dot_add([one, one], [one, one], 0x3C00)) == 0x4200  # 1 + 1 + 1
    assert int(fdot.dot_add([minus_zero] * 2, [one] * 2, 0x8000)) == 0x8000
    assert int(fdot.dot_add([minus_zero] * 2, [one] * 2, 0)) == 0
    half = ARCHITECTURES["armv9_fp8@lscale-1"]["FDOT.F16.E4M3.E4M3"]
    assert int(half.dot_add([one, one], [one, one], 0x3C00)) == 0x4000  # 1 + (1 + 1) / 2


def test_ebf16_rounds_a_pair_once() -> None:
    """c = -1, 1·1 + 2^-8·2^-17: fused, then rounded to fp32; with EBF = 0, each product is rounded to odd first."""
    fused, odd = (ARCHITECTURES[name]["BFDOT"] for name in ("armv9_ebf16", "armv8_6"))
    a, b = [0x3F80, 0x3B80], [0x3F80, 0x3700]  # 1, 2^-8; 1, 2^-17
    assert [int(i.dot_add(a, b, 0xBF800000)) for i in (fused, odd)] == [0, 0x34000000]
    assert int(fused.dot_add([1, 0], [0x3F80, 0], 0)) == 0x00010000  # subnormal numbers are kept
    assert int(odd.dot_add([1, 0], [0x3F80, 0], 0)) == 0


@pytest.mark.parametrize(
    "label",
    ["armv9_ebf16 BFDOT", "armv9_fp8 FDOT.F16.E4M3.E4M3"],
)
def test_both_encodings_are_equal(label: str) -> None:
    assert isinstance(verify(label, timeout=200), Holds)


def test_what_is_specified_says_so() -> None:
    for name in ("armv9_ebf16", "armv9_fp8"):
        assert ARCHITECTURES[name].standing == SPECIFIED
        for instruction in ARCHITECTURES[name]:
            assert set(instruction.sources) == set(instruction.parameters.keys()), (
                "a source of every parameter"
            )
    assert "FPMR.OSM = 1" in ARCHITECTURES["armv9_fp8@lscale-3"].unsettled
