"""Apple AMX beside fma: states against an emulator's, as digests, and recordings of states that `check` reads."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.amx_states import COUNT, cases

from mmaformal import check
from mmaformal.apple import NUMBERS, AmxState, execute
from mmaformal.apple import tables as apple_tables
from mmaformal.cli import main
from mmaformal.recordings import check_file
from mmaformal.recordings.backing import STATE_DIGESTS, backing_page
from mmaformal.recordings.check import FileFailure
from mmaformal.recordings.states import StatesReport

#: of each instruction, SHA-256 (its first half) of all states, x, y, z, after `cases`, as the public emulator has them:
#: corsix/amx at 483714bb, compiled for aarch64 by GCC 12.2, FPCR.DN = 1, under qemu-aarch64 7.2, AMX_VER the generation
EMULATED = {
    "fma64": "e018e84c7f55f91778892140ac59c0e1",
    "fma32": "455d85963db3fa98790a41dbb11bbcda",
    "fma16": "baf261bf9d5fd40208e3666bdcf46787",
    "fms64": "2383fa5d7a6d33a79da7e926494efed8",
    "fms32": "c4a805f8b430be49aa3d503a5968d94c",
    "fms16": "c208b6f91ad34cab9873cfb1b3f7285f",
    "mac16": "2c414a6c9301892b2285f464453beca0",
    "vecint": "05875641d8fda348c49650c397a9dca0",
    "vecfp": "1e508265fcf88d73c72d5cd929f3adde",
    "matint": "c172da22bae13f71df829a568dd47ce9",
    "matfp": "71ab83285f89df1027baec98527b27b9",
    "extrh": "6487044667d2e59056dcd9f96346a708",
    "extrv": "96e5508b96521aa33667fbf2b47218a5",
    "genlut": "4dee1b37e52a41e5f53357744a58e14e",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_states_are_the_emulator_s(name: str) -> None:
    digest, changed = hashlib.sha256(), 0
    for operand, generation, before in cases(name):
        after = execute(before, name, operand, generation)
        digest.update(after.x + after.y + after.z)
        changed += after != before
    assert changed > 20, "operands do something"
    assert digest.hexdigest().startswith(EMULATED[name])
    assert STATE_DIGESTS == COUNT
    assert f"| {name} | emulator: corsix/amx, by Peter Cawley |" in backing_page()


# ---- recordings of states --------------------------------------------------------------------------------------------

NAMES = ("vecint", "extrh", "fms32", "genlut", "matfp", "set")


def saved(path: Path, arrays: dict[str, Any]) -> Path:
    np.savez(path, **arrays)
    return path


def recording(path: Path, **changes: Any) -> Path:
    """A file of two states of each of some instructions."""
    rows = [(name, *case) for name in NAMES[:-1] for _, case in zip(range(2), cases(name), strict=False)]
    rows.append(("set", 0, 1, rows[0][3]))
    after = [execute(state, name, operand, generation) for name, operand, generation, state in rows]
    arrays: dict[str, Any] = {
        "op": np.array([row[0] for row in rows]),
        "operand": np.array([row[1] for row in rows], np.uint64),
        "generation": np.array([row[2] for row in rows], np.uint8),
    }
    for side in "xyz":
        arrays[side] = np.array([list(getattr(row[3], side)) for row in rows], np.uint8)
        arrays[f"{side}_after"] = np.array([list(getattr(state, side)) for state in after], np.uint8)
    arrays["meta"] = json.dumps({"device": "a test"})
    arrays |= changes
    return saved(path, {name: value for name, value in arrays.items() if value is not None})


def test_a_recording_of_states_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recording(tmp_path / "states.npz")
    report = check_file(path)
    assert isinstance(report, StatesReport)
    assert (report.rows, report.mismatches, report.exit_code) == (11, 0, 0)
    assert str(report).endswith("(behind the model: emulator: corsix/amx, by Peter Cawley)")
    assert report.to_json()["status"] == "match"
    assert check(path).matches
    assert main(["check", str(path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "apple_amx extrh, fms32, genlut, matfp, set, vecint 11 states 0 mismatches (0.0%)" in said
    assert main(["check", str(path), "--instruction", "HMMA.16816.F32"]) == 2


def test_a_state_that_is_not_the_model_s_is_told(tmp_path: Path) -> None:
    with np.load(recording(tmp_path / "right.npz")) as right:
        z, x = right["z_after"].copy(), right["x_after"].copy()
    z[3, 64 * 5 + 7] ^= 1
    x[8, 2] ^= 0x80
    report = check_file(recording(tmp_path / "wrong.npz", z_after=z, x_after=x))
    assert isinstance(report, StatesReport)
    assert (report.mismatches, report.first_row, report.exit_code) == (2, 3, 1)
    assert "row 3: extrh " in str(report)
    assert "z row 5, byte 7: recorded 0x" in str(report)
    assert not check(tmp_path / "wrong.npz").matches
    assert report.to_json()["first_mismatching_row"] == 3


def test_op_may_be_the_bits_of_an_fma_and_other_registers_stay(tmp_path: Path) -> None:
    before = AmxState(x=bytes(range(256)) * 2)
    after = execute(before, "fma32", 0)
    arrays = {s: np.frombuffer(getattr(before, s), np.uint8)[None] for s in "xyz"}
    arrays |= {"op": np.array([32], np.uint8), "operand": np.array([0], np.uint64)}
    z = np.frombuffer(after.z, np.uint8)[None]
    assert check(saved(tmp_path / "fma.npz", arrays | {"z_after": z})).matches
    arrays["operand"] = np.array([apple_tables.encode("fma32", vector=1)], np.uint64)
    assert check_file(saved(tmp_path / "fma.npz", arrays | {"z_after": z ^ 1})).exit_code == 1


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"op": np.array(["ldx"] * 11)}, "no AMX instruction 'ldx'"),
        ({"op": np.array([17] * 11, np.uint8)}, "no AMX instruction 17"),
        ({"z": np.zeros((11, 64), np.uint8)}, "z has 4096 bytes in each row"),
        ({"z_after": None, "x_after": None, "y_after": None}, "no state after"),
        ({"generation": np.array([5] * 11, np.uint8)}, "a generation is 1 to 4"),
        ({"operand": np.zeros(3, np.uint64)}, "operand has 3 rows, not 11"),
    ],
)
def test_damaged_recordings_are_told(tmp_path: Path, changes: dict[str, object], why: str) -> None:
    report = check_file(recording(tmp_path / "states.npz", **changes))
    assert isinstance(report, FileFailure)
    assert why in str(report)
