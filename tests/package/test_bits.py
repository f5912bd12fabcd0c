"""Bits drawn: the digits are the numbers', and the cut is where the model cuts."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmaformal import ampere, hopper
from mmaformal.bits import code_bits, draw_alignment, draw_codes
from mmaformal.formats import FORMATS, Format, e4m3, fp16, fp32, ue8m0


@pytest.mark.parametrize(
    ("fmt", "code", "bits"),
    [
        (fp16, 0x3C01, "0 01111 0000000001"),
        (e4m3, 0xFE, "1 1111 110"),
        (fp32, 0xB3000000, "1 01100110 00000000000000000000000"),
        (ue8m0, 0x7F, "01111111"),
    ],
)
def test_bits_of_a_code(fmt: Format, code: int, bits: str) -> None:
    assert code_bits(code, fmt) == bits


@given(st.sampled_from([f for f in FORMATS.values() if f.storage_bits <= 32]), st.data())
def test_bits_of_a_code_are_all_its_bits(fmt: Format, data: st.DataObject) -> None:
    code = data.draw(st.integers(0, fmt.codes - 1))
    assert int(code_bits(code, fmt).replace(" ", ""), 2) == code


@pytest.mark.parametrize(("model", "kept", "cut"), [(ampere, 24, "1"), (hopper, 25, "")])
def test_what_is_cut_off_stands_right_of_the_bar(model: object, kept: int, cut: str) -> None:
    ones = [0x3C00] + [0] * 15
    one, c = draw_alignment(model["HMMA.16816.F32"], ones, ones, 0xB3000000).splitlines()[1:]  # type: ignore[index]
    assert one.split() == ["a[0]·b[0]", "+1" + "0" * kept + "|"]
    drawn = "." * (kept + 1) if cut else "." * kept + "1"
    assert c.split() == ["c", f"-{drawn}|{cut}"]


@given(st.lists(st.integers(0, 0x7BFF), min_size=4, max_size=4), st.integers(0, 0x4F000000))
def test_digits_drawn_are_those_of_the_terms(a: list[int], c: int) -> None:
    unit = hopper["HMMA.16816.F32"]
    codes = a + [0] * 12
    drawn = draw_alignment(unit, codes, [0x3C00] * 16, c).splitlines()
    if not drawn:  # a step without products leaves c as it is, and is not told
        assert not any(codes)
        return
    place = int(drawn[0].split("2^")[1].split()[0])
    terms = {f"a[{k}]·b[{k}]": fp16.value(x) for k, x in enumerate(codes)} | {"c": fp32.value(c)}
    for line in drawn[1:]:
        label, digits = line.split()
        kept, cut = digits.lstrip("+-").replace(".", "0").split("|")
        value = Fraction(int(kept or "0", 2)) * Fraction(2) ** place
        rest = cut.rstrip("…")
        value += Fraction(int(rest or "0", 2)) * Fraction(2) ** (place - len(rest))
        assert value == terms[label] or (cut.endswith("…") and value < terms[label])


def test_operands_that_are_zero_are_not_drawn() -> None:
    lines = draw_codes(hopper["HMMA.16816.F32"], [0x3C00] + [0] * 15, [0] * 16, 0).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["a[0]", "c"]
