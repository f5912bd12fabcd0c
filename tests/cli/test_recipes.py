"""Recipes for a witness or a case: a person writes it down, looks at its bits, gives decimals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_cli import EASY_DIFF, run

from mmaformal import hopper
from mmaformal.recordings import check, read

RUN = ["run", "hopper", "HMMA.16816.F32", "--pad", "--b", "1"]


def test_a_decimal_is_rounded_with_a_note_and_both_neighbours(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, *RUN, "--a", "0.1")
    assert (status, err) == (0, "")
    assert out.splitlines()[:3] == [
        "--a: 0.1 is not a value of fp16",
        "  rounded to the nearest: 0x2e66  0x1.998p-4 = 0.0999755859375",
        "  its other neighbour: 0x2e67  0x1.99cp-4 = 0.10003662109375",
    ]


def test_rounded_decimals_are_said_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(run(capsys, *RUN, "--a", "0.1", "--json")[1])
    assert told["d"] == "0x3dccc000"
    assert "0x2e66" in told["rounded"][0]


@pytest.mark.parametrize("word", ["1e6", "-65505", "one", "0x1ffff", "1e-9999"])
def test_what_has_no_nearest_number_is_refused_in_a_line(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, *RUN, "--a", word)
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert word in err


def test_bits_are_drawn_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, *RUN, "--a", "1", "--c", "0xb2800001", "--bits")
    assert status == 0
    assert "0 01111 0000000000" in out
    assert "  c          -.........................." + "|" + "1" in out


def test_a_witness_is_a_recording_of_one_row(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "case.npz"
    status, out, _ = run(capsys, *EASY_DIFF, "--npz", str(file))
    assert status == 0
    assert "ampere HMMA.1688.F32" in out
    recording = read(file)
    assert recording.rows == 1
    assert "no hardware was run" in str(recording.meta["source"])
    assert run(capsys, "check", str(file))[0] == 0
    assert run(capsys, "check", str(file), "--arch", "hopper", "--instruction", "HMMA.1688.F32")[0] == 1
    assert check(recording).mismatches == 0


def test_a_changed_instruction_cannot_be_named_by_a_recording(tmp_path: Path) -> None:
    from mmaformal.recordings.write import write_rows

    unit = hopper["HMMA.16816.F32"].chained(32)
    with pytest.raises(ValueError, match="not chained"):
        write_rows(unit, {}, tmp_path / "x.npz", {})


def test_python_ints_that_are_meant_as_numbers_are_refused() -> None:
    unit = hopper["HMMA.16816.F32"]
    with pytest.raises(ValueError, match=r"write 1\.0.*np\.uint16"):
        unit.dot_add([1] * 16, [1] * 16, 0)
    ones = np.ones(16, np.uint16)
    assert unit.dot_add(ones, ones, 0) == np.float32(2**-44).view(
        np.uint32
    )  # bit patterns in an array are taken
    assert unit.dot_add([1] * 16, [0x3C00] * 16, 0) == 0x35800000


def test_tables_are_printed_as_csv_and_latex(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run(capsys, "list", "volta", "--csv")
    assert status == 0
    assert out.startswith("architecture,instruction,")
    assert "\nvolta,HMMA.884.F32.F32," in out
    assert run(capsys, "list", "volta", "--latex")[1].startswith("\\begin{tabular}")
    assert run(capsys, "list", "--devices", "--csv")[0] == 0
