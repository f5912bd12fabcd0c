"""Texts about long inputs and chains fit a screen, and `verbose` has all of it."""

from __future__ import annotations

import pytest

from mmaformal import Different, Fails, Instruction, ampere, hopper
from mmaformal.brief import MOST_LINES, first_rows, places_by_key, places_text, rows_together
from mmaformal.cases.inputs import Codes
from mmaformal.cases.witness import case_text, inputs_text
from mmaformal.shown_stages import explain_case, explain_difference
from mmaformal.witness import Witness

K = 512


def test_places_are_ranges() -> None:
    assert places_text([3]) == "3"
    assert places_text(range(512)) == "0…511"
    assert places_text([0, 1, 5, 7, 8, 9]) == "0…1, 5, 7…9"
    assert places_text(range(0, 512, 2), whole=False) == "0, 2, …, 510"
    many = [x for start in range(0, 100, 10) for x in (start, start + 3)]
    assert places_text(many, whole=False) == "0, 3, 10, 13, 20, … (20 of them)"
    assert places_text(many).count(",") == 19
    assert places_by_key(enumerate("abca")) == {"a": [0, 3], "b": [1], "c": [2]}


def test_products_that_say_the_same_are_one_row() -> None:
    rows = [("", "align", f"a[{k}]·b[{k}]", "0x1p+0") for k in range(5)]
    rows[1:1] = [("", "align", "largest exponent", "0x1p+0")]
    assert [row[2] for row in rows_together(rows, 2)] == [
        "a[0]·b[0]",
        "largest exponent",
        "a[1…4]·b[1…4]",
    ]


def test_of_many_rows_those_that_differ_are_shown() -> None:
    rows = [("≠" if k > 60 else " ", "align", f"a[{k}]·b[{k}]", hex(k)) for k in range(64)]
    told = first_rows([*rows, (" ", "encode", "d", "0x0")], 2)
    assert len(told) == 8 + 1 + 1
    assert [row[2] for row in told if row[0] == "≠"] == [f"a[{k}]·b[{k}]" for k in (61, 62, 63)]
    assert any("56 more rows" in row[2] for row in told)
    assert told[-1][2] == "d"


def chains(k: int) -> tuple[Instruction, Instruction]:
    return ampere["HMMA.16816.F32"].chained(k), hopper["HMMA.16816.F32"].chained(k)


def narrow(k: int) -> tuple[Instruction, Instruction]:
    """The second keeps fewer bits of every product, and so differs almost always."""
    return ampere["HMMA.16816.F32"].chained(k), hopper["HMMA.16816.F32"].replace(F=14).chained(k)


def test_a_long_chain_of_equal_products_fits_a_screen() -> None:
    x, y = chains(K)
    witness = Witness.of(x, y, [0x0690] * K, [0xCBB5] * K, 0x47000000)
    lines = str(witness).splitlines()
    assert len(lines) < 45
    assert any(line.startswith("  a[0…511]  0x0690  ") for line in lines)
    assert witness.summary.startswith("0x1.a4p-14·(-0x1.ed4p+3) [k=0…511] + 0x1p+15 gives ")
    whole = witness.verbose()
    assert whole.count("step ") > 32
    assert str(Different("q", witness, (), (), 0.0)).splitlines()[2:40] == lines[:38]
    assert whole in Different("q", witness, (), (), 0.0).verbose()


@pytest.mark.parametrize("k", [32, 64, 128])
def test_distinct_products_are_cut_short_and_verbose_has_all(k: int) -> None:
    x, y = narrow(k)
    a, b = [0x3C00 + i for i in range(k)], [0x3C00 + 3 * i for i in range(k)]
    witness = Witness.of(x, y, a, b, 0x40000001)
    text, whole = str(witness), witness.verbose()
    assert len(text.splitlines()) <= 2 * MOST_LINES + 25
    assert f"… {k - 8} more products (verbose: all)" in text
    assert f"a[{k - 1}]" not in text
    for i in range(k):
        assert f"  a[{i}]" in whole
    assert explain_case(x, a, b, 0x40000001).count("·b[") == k
    assert explain_case(x, a, b, 0x40000001, whole=False).count("·b[") <= 16
    assert "more step" in explain_case(x, a, b, 0x40000001, whole=False)


def test_the_first_step_that_differs_is_the_one_that_is_shown() -> None:
    x = hopper["HMMA.16816.F32"].chained(128)
    y = hopper["HMMA.16816.F32"].replace(F=14).chained(128)
    a, b = [0x3C00 + 0x100 * (k % 4) for k in range(128)], [0x3C00] * 128
    a[90] = 0x1400  # 2^-10, of which the second keeps nothing
    text = explain_difference(x, y, a, b, 0, whole=False)
    whole = explain_difference(x, y, a, b, 0)
    first = next(line for line in whole.splitlines() if line.startswith("  ≠")).split(":")[0].split()[-1]
    steps = {line[4:].split(":")[0].strip() for line in text.splitlines()[3:] if ": " in line[:16]}
    assert steps == {first}
    assert "7 more steps (verbose: all)" in text


def test_inputs_of_properties_are_told_together_too() -> None:
    spec = hopper["HMMA.16816.F32"].chained(64).spec
    codes = Codes((0x3C00,) * 64, (0x4000,) * 64, 0)
    assert inputs_text(spec, codes)[1:3] == [
        "  a[0…63]     0x3c00  0x1p+0 = 1",
        "  b[0…63]     0x4000  0x1p+1 = 2",
    ]
    assert case_text(spec, codes).startswith("a[0…63]·b[0…63] = 0x1p+0·0x1p+1, c = ")


def test_headlines_say_what_the_answer_is() -> None:
    one = [0x3C00] + [0] * 15
    witness = Witness.of(ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"], one, one, 0xB3000000)
    different = Different("x = y where c = 0x0", witness, (), (), 0.0)
    assert str(different).startswith("Different: x ≠ y where c = 0x0  (0.0 s)")
    assert repr(different).startswith("<Different: x ≠ y")
    assert different.to_json()["question"] == "x = y where c = 0x0"
    fails = Fails("X gives the d of Y for every input", witness, "", 0.0)
    assert str(fails).startswith("Fails: it is not true that X gives the d of Y for every input  (")
    assert str(Fails("X: d is never −0", witness, "", 0.0)).startswith(
        "Fails: not true of X: d is never −0  ("
    )
