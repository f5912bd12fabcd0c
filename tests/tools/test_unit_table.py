"""Bounds of units against results of all kinds: none is exceeded, wrong ones are; and runs are resumed."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
import unit_table
from unit_table import Row, main, measure, rows, table

from mmaformal import Instruction, cdna2, cdna3, hopper, rtx_blackwell
from mmaformal.analysis import operands
from mmaformal.analysis.units import SumStage, Unit


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operands, "SIDE", 16)


SOME = [
    hopper["HMMA.16816.F32"],
    hopper["HMMA.1688.F16"],
    cdna3["v_mfma_f32_32x32x4_2b_f16"],
    cdna2["v_mfma_f32_16x16x4f32"],
    rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
]


@pytest.mark.parametrize("instruction", SOME, ids=lambda i: i.label)
def test_errors_are_within_bounds_and_come_near(instruction: Instruction) -> None:
    row = measure(instruction, 1000)
    assert row.results >= 1000
    assert 0.2 < row.nearest <= 1
    made = row.nearest_made
    assert (made is None) == (row.algorithm == "sfma")
    assert made is None or 0 < made <= 1


@pytest.mark.parametrize("instruction", [SOME[0], SOME[2]], ids=lambda i: i.label)
def test_a_bound_that_is_too_small_is_exceeded(
    monkeypatch: pytest.MonkeyPatch, instruction: Instruction
) -> None:
    """The unit's step is taken to lose nothing before it rounds."""
    whole = Unit.of

    def smaller(i: Instruction) -> Unit:
        return Unit(i, tuple(SumStage(Fraction(0), s.F, s.rho, s.products) for s in whole(i).stages))

    monkeypatch.setattr(unit_table.Unit, "of", smaller)
    row = measure(instruction, 1000)
    assert max(row.nearest, row.nearest_made or 0) > 1


def test_runs_are_resumed_and_summed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(unit_table, "instructions", lambda: SOME[:2])
    file, out = tmp_path / "rows.jsonl", tmp_path / "table.md"
    run = rows(file, 100)
    first = next(run)
    run.close()
    monkeypatch.setattr(unit_table, "measure", lambda i, n: replace(first, instruction=i.label, nearest=1.5))
    assert main(["--elements", "100", "--rows", str(file), "--out", str(out)]) == 1
    assert "**1 exceed their bounds**" in capsys.readouterr().out
    text = out.read_text()
    assert text.count("| hopper HMMA") == 2
    again = list(rows(file, 100))
    assert [row.nearest for row in again] == [first.nearest, 1.5]
    assert isinstance(again[0], Row)
    assert table(again) == text
