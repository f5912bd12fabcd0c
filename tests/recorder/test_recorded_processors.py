"""Recording from units of processors: this machine's own where it has one, Arm's under QEMU, AMX's emulated."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import mmaformal
from mmaformal import (
    armv8_6,
    cdna3,
    hopper,
    intrinsics,
    power10,
    rtx_blackwell,
    sapphire_rapids,
    sme,
    volta,
)
from mmaformal.cli.record import record as command
from mmaformal.cli.running import UsageError
from mmaformal.instruction import Instruction
from mmaformal.recorder import RecorderError, from_outputs, program_of, record, write_program
from mmaformal.recorder.processors import c_program
from mmaformal.recorder.program import program_source
from mmaformal.recorder.rows import RowLayout, read_outputs, stream
from mmaformal.recordings import RecordingError, check, read

TILE, PAIR, HALF = (sapphire_rapids[name] for name in ("TDPBF16PS", "VDPBF16PS", "VFMADD231PH"))
DOT, MATRIX = armv8_6["BFDOT"], armv8_6["BFMMLA"]
UNITS = [TILE, sapphire_rapids["TDPBF16PS.K6"], PAIR, HALF, DOT, MATRIX, *sme, *power10]
X86 = [i for i in UNITS if i.architecture == "sapphire_rapids"]

NO_GCC = pytest.mark.skipif(
    shutil.which("gcc") is None or platform.machine() != "x86_64", reason="no gcc for x86-64 here"
)


def recorded_or_skipped(i: Instruction, path: Path, rows: int) -> Any:
    try:
        return record(i, path, rows=rows, seed=1)
    except RecorderError as error:
        pytest.skip(str(error))


def lines_of_files(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


# ---- recordings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("i", UNITS, ids=lambda i: i.name)
def test_the_units_own_rows_match_its_model(i: Instruction, rows: int, tmp_path: Path) -> None:
    recording = recorded_or_skipped(i, tmp_path / "rows.npz", rows)
    assert (recording.rows, recording.terms, recording.instruction) == (rows, i.k, i)
    report = check(read(tmp_path / "rows.npz"))
    assert (report.rows, report.mismatches) == (rows, 0), report.smallest
    assert lines_of_files(tmp_path) == ["rows.npz"]


@NO_GCC
def test_a_unit_that_computes_something_else_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ("sapphire_rapids", "VDPBF16PS")
    swapped = intrinsics.UNITS[key].run.replace(
        "{a[0], a[1]}, B[32] = {b[0], b[1]}", "{a[1], a[0]}, B[32] = {b[1], b[0]}"
    )
    monkeypatch.setitem(intrinsics.UNITS, key, replace(intrinsics.UNITS[key], run=swapped))
    recording = recorded_or_skipped(PAIR, tmp_path / "rows.npz", 20_000)
    assert check(recording).mismatches > 100


def test_what_ran_is_said(tmp_path: Path) -> None:
    recording = recorded_or_skipped(DOT, tmp_path / "rows.npz", 10)
    emulated = platform.machine() not in ("aarch64", "arm64")
    assert ("an emulator, not hardware" in recording.gpu) == emulated
    assert recording.meta["device"] if emulated else recording.gpu
    assert recording.meta["seed"] == 1


# ---- rows ------------------------------------------------------------------------------------------------------


def joined(pieces: Iterator[bytes]) -> tuple[bytes, bytes]:
    return next(pieces), b"".join(pieces)


def test_rows_are_drawn_alike_and_with_every_mood() -> None:
    head, many = joined(stream(PAIR, 40_000, 3))
    assert head == b'mmaformal rows of sapphire_rapids VDPBF16PS\n{"rows": 40000, "seed": 3}\n'
    _, few = joined(stream(PAIR, 500, 3))
    assert many[: len(few)] == few != joined(stream(PAIR, 500, 4))[1]
    records = np.frombuffer(many, RowLayout(PAIR).dtype)
    assert len(records) == 40_000
    assert not records["d"].any()
    a, one = records["a"], PAIR.a_format
    assert any(one.is_nan(int(code)) for code in a[:2000, 0])
    assert (a[:2000] == one.infinity).any()
    assert (a[:2000] == 0).any()


@pytest.mark.parametrize("name", ["DMMA.884", "HMMA.16816.F16", "HMMA.1688.F32.TF32"])
@pytest.mark.skipif(shutil.which("cc") is None, reason="no cc here")
def test_c_has_the_rows_as_numpy_has_them(name: str, tmp_path: Path) -> None:
    layout = RowLayout(hopper[name])
    offsets = ", ".join(f"offsetof(struct Row, {each.name})" for each in layout.fields)
    text = "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n" + layout.c_struct
    text += f"int main(void) {{ size_t x[] = {{sizeof(struct Row), {offsets}}};"
    text += ' for (int i = 0; i < (int)(sizeof x / sizeof *x); ++i) printf("%zu ", x[i]); }'
    (tmp_path / "x.c").write_text(text)
    subprocess.run(["cc", "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    found = subprocess.run([tmp_path / "x"], capture_output=True, text=True, check=True).stdout
    numpys = [layout.dtype.itemsize, *(layout.dtype.fields[each.name][1] for each in layout.fields)]
    assert [int(x) for x in found.split()] == numpys


# ---- carried to another machine --------------------------------------------------------------------------------


@NO_GCC
@pytest.mark.parametrize("i", X86, ids=lambda i: i.name)
def test_each_program_compiles_without_a_warning(i: Instruction, tmp_path: Path) -> None:
    carried = write_program(i, tmp_path / "new", rows=10, compiler="gcc")
    assert carried.command.startswith("gcc -O2 -o record ")
    strict = carried.command.replace("gcc ", "gcc -Wall -Wextra -Werror ", 1)
    done = subprocess.run(
        strict, shell=True, cwd=tmp_path / "new", capture_output=True, text=True, check=False
    )
    if done.returncode:
        unit = intrinsics.unit_of(i)
        assert unit is not None
        assert done.stderr.strip() == f"{i.label}: this processor has no {unit.flag}"
        return
    back = from_outputs(tmp_path / "new" / carried.outputs, tmp_path / "back.npz")
    assert (back.rows, check(back).mismatches) == (10, 0)


def outputs_of(i: Instruction, folder: Path, rows: int = 100) -> Path:
    """Write what the program would write, d being the model's, and return the file."""
    head, body = joined(stream(i, rows, 0))
    records = np.frombuffer(body, RowLayout(i).dtype).copy()
    scales = [records[name] for name in ("scale_a", "scale_b")[: 2 * bool(i.spec.scales)]]
    records["d"] = i.dot_add(records["a"], records["b"], records["c"], *scales)
    path = folder / "out"
    path.write_bytes(head + b'{"device": "some device"}\n' + records.tobytes())
    return path


def test_outputs_become_a_recording(tmp_path: Path) -> None:
    recording = from_outputs(outputs_of(MATRIX, tmp_path), tmp_path / "back.npz")
    assert (recording.gpu, recording.rows, recording.path) == ("some device", 100, tmp_path / "back.npz")
    assert check(recording).mismatches == 0


@pytest.mark.parametrize("suffix", [".npz", ".csv", pytest.param(".parquet", marks=pytest.mark.parquet)])
@pytest.mark.parametrize(
    "i",
    [
        rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
        rtx_blackwell["QMMA.SF.16832.F32.E4M3.E2M3.E8"],
        hopper["QGMMA.64x8x32.F16.E4M3.E5M2"],
        hopper["mma.m16n8k32.f32.e5m2.e4m3.f32"],
        hopper["HGMMA.64x24x16.F16"],
        hopper["DMMA.884"],
        volta["HMMA.884.F32.F16"],
        cdna3["v_mfma_f32_16x16x32_fp8_bf8"],
        sapphire_rapids["TDPBF16PS.K6"],
    ],
    ids=lambda i: i.name,
)
def test_a_recording_of_any_types_says_what_it_is_of(i: Instruction, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"back{suffix}"
    from_outputs(outputs_of(i, tmp_path), path)
    recording = read(path)
    assert (recording.instruction, recording.rows) == (i, 100)
    assert check(recording).mismatches == 0


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaformal.recorder.units.find_spec", lambda _: None)
    with pytest.raises(RecorderError, match=r"x\.parquet needs pyarrow: pip install"):
        record(PAIR, tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda x: x[:-1], "100 were asked for: the program did not end"),
        (lambda x: x + b"\0", "were asked for"),
        (lambda x: b"", "first three lines are not there"),
        (lambda x: b"x" * 9000, "first three lines are not there"),
        (lambda x: b"nothing\n" + x, "no output of a recorder's program"),
        (lambda x: x.replace(b"BFMMLA", b"BFMMLB", 1), "which no table has"),
        (lambda x: x.replace(b'{"device"', b'["device"', 1), "is no JSON object"),
        (lambda x: x.replace(b"armv8_6 BFMMLA", b"hopper DMMA.884", 1), "were asked for"),
    ],
)
def test_damaged_outputs_are_refused(change: Any, why: str, tmp_path: Path) -> None:
    path = outputs_of(MATRIX, tmp_path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(RecordingError, match=why):
        from_outputs(path, tmp_path / "back.npz")
    assert lines_of_files(tmp_path) == ["out"]


# ---- AMX, emulated ---------------------------------------------------------------------------------------------

#: Tiles as Intel's manual has them ("TDPBF16PS", "Operation"), but for the arithmetic: whole numbers modulo 2^32, each
#: product with the weight of its place, so that one that is misplaced changes the result.
_TILES = """
static uint8_t config[64];
static uint32_t tile[3][16][16];
static int rows_of(int t) { return config[48 + t]; }
static int bytes_of(int t) { return config[16 + 2 * t] | config[17 + 2 * t] << 8; }
static void emulated_loadconfig(const void *from) { memcpy(config, from, 64); }
static void emulated_release(void) { memset(config, 0, 64); }
static void emulated_loadd(int t, const void *from, int stride) {
    memset(tile[t], 0, sizeof tile[t]);
    for (int r = 0; r < rows_of(t); ++r) memcpy(tile[t][r], (const char *)from + r * stride, bytes_of(t));
}
static void emulated_stored(int t, void *to, int stride) {
    for (int r = 0; r < rows_of(t); ++r) memcpy((char *)to + r * stride, tile[t][r], bytes_of(t));
}
static void emulated_dpbf16ps(int d, int a, int b) {
    for (int m = 0; m < rows_of(d); ++m)
        for (int k = 0; k < bytes_of(a) / 4; ++k)
            for (int n = 0; n < bytes_of(d) / 4; ++n)
                for (int half = 0; half < 2; ++half)
                    tile[d][m][n] += (2 * k + half + 1) * (tile[a][m][k] >> 16 * half & 0xFFFF)
                                     * (tile[b][k][n] >> 16 * half & 0xFFFF);
}
"""


@NO_GCC
@pytest.mark.parametrize("i", [TILE, sapphire_rapids["TDPBF16PS.K6"]], ids=lambda i: i.name)
def test_operands_reach_their_places_in_tiles(i: Instruction, tmp_path: Path) -> None:
    unit = intrinsics.unit_of(i)
    assert unit is not None
    text = c_program(i, unit, "gcc", here=False).source
    assert (text.count("_tile_"), text.count("if (!(has_tiles()))")) == (7, 1)
    headers, unit_text = text.split("enum { K", 1)
    unit_text = unit_text.replace("_tile_", "emulated_").replace("if (!(has_tiles()))", "if (0)")
    (tmp_path / "x.c").write_text(f"{headers}\n{_TILES}\nenum {{ K{unit_text}")
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    with (tmp_path / "out").open("wb") as out:
        subprocess.run([tmp_path / "x"], input=b"".join(stream(i, 9000, 0)), stdout=out, check=True)
    outputs = read_outputs(tmp_path / "out")
    records = np.concatenate([*outputs.blocks()])
    a, b, c = (records[name].astype(np.uint64) for name in "abc")
    weights = np.arange(1, i.k + 1, dtype=np.uint64)
    expected: NDArray[np.uint64] = (c + (weights * a * b).sum(axis=1, dtype=np.uint64)) & np.uint64(
        0xFFFFFFFF
    )
    assert (records["d"] == expected).all()
    assert (weights * a * b).any()


# ---- what is missing -------------------------------------------------------------------------------------------


def test_what_is_missing_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    with pytest.raises(
        RecorderError, match="VDPBF16PS needs a C compiler, and there is no gcc or cc or clang here"
    ):
        record(PAIR, tmp_path / "x.npz")
    with pytest.raises(RecorderError, match="no aarch64-linux-gnu-gcc and no qemu-aarch64 here"):
        record(DOT, tmp_path / "x.npz")
    with pytest.raises(RecorderError, match="no compiler 'clang -O3' here"):
        record(PAIR, tmp_path / "x.npz", compiler="clang -O3")
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    with pytest.raises(RecorderError, match="VDPBF16PS needs an x86-64 processor: this one is aarch64"):
        record(PAIR, tmp_path / "x.npz")
    assert lines_of_files(tmp_path) == []


@pytest.mark.parametrize("i", [PAIR.chained(4), PAIR.replace(k=4), TILE.replace(L=4)], ids=lambda i: i.name)
def test_what_nothing_runs_has_no_program(i: Instruction) -> None:
    with pytest.raises(RecorderError, match="is no instruction of the tables"):
        program_of(i)


@NO_GCC
def test_what_the_compiler_or_the_program_says_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(
        RecorderError, match=r"gcc cannot compile it: .*unrecognized command-line option .-fnonsense"
    ):
        record(PAIR, tmp_path / "x.npz", compiler="gcc -fnonsense")
    tile = intrinsics.unit_of(TILE)
    assert tile is not None
    text = program_source(RowLayout(PAIR), headers="", unit=_FAILS, block=16)
    (tmp_path / "x.c").write_text(text)
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", tmp_path / "x", tmp_path / "x.c"], check=True)
    for rows, why in (
        (b"other rows\n", "stdin is no file of rows"),
        (b"".join(stream(PAIR, 9, 0)), "it broke"),
    ):
        done = subprocess.run([tmp_path / "x"], input=rows, capture_output=True, check=False)
        assert (done.returncode, why.encode() in done.stderr) == (2, True)


_FAILS = """
static const char *prepare(char *device, size_t size) { (void)device, (void)size; return 0; }
static const char *run(struct Row *rows, int n) { (void)rows; return n ? "it broke" : 0; }
"""


def test_nothing_is_left_of_what_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary, folder = tmp_path / "temporary", tmp_path / "folder"
    temporary.mkdir(), folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    recorded_or_skipped(PAIR, folder / "x.npz", 10)
    before = (folder / "x.npz").read_bytes()

    def interrupt(line: str) -> None:
        if not line.startswith("0 "):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(PAIR, folder / "x.npz", rows=100_000, progress=interrupt)
    monkeypatch.setattr("mmaformal.recorder.writing.read", lambda *_, **__: interrupt("1 of 10 rows"))
    with pytest.raises(KeyboardInterrupt):
        record(PAIR, folder / "x.npz", rows=10)
    assert (lines_of_files(folder), lines_of_files(temporary)) == (["x.npz"], [])
    assert (folder / "x.npz").read_bytes() == before


@pytest.mark.parametrize(("rows", "seed"), [(0, 0), (10**9 + 1, 0), (1, -1), (1, 1 << 63)])
def test_what_cannot_be_drawn_is_refused(rows: int, seed: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"rows is|seed is"):
        record(PAIR, tmp_path / "x.npz", rows=rows, seed=seed)


# ---- the command -----------------------------------------------------------------------------------------------


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert command.main(list(words), standalone_mode=False) == 0
    return capsys.readouterr().out


def test_the_command_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded_or_skipped(PAIR, tmp_path / "x.npz", 1)
    out = str(tmp_path / "y.npz")
    assert f"{out}: 500 rows of sapphire_rapids VDPBF16PS, from " in told(
        capsys, "VDPBF16PS", "--rows", "500", "--out", out
    )
    found = json.loads(
        told(capsys, "vdpbf16ps", "--arch", "sapphire_rapids", "--rows", "5", "--out", out, "--json")
    )
    assert (found["rows"], found["instruction"]) == (5, "sapphire_rapids VDPBF16PS")


def test_the_command_writes_a_program_and_reads_its_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = told(capsys, "BFMMLA", "--rows", "7", "--source", str(tmp_path / "new"))
    assert "there:  cc -O2 -o record BFMMLA.c && ./record < BFMMLA.rows > BFMMLA.out" in text
    assert "here:   mmaformal record --from BFMMLA.out --out BFMMLA.npz" in text
    assert lines_of_files(tmp_path / "new") == ["BFMMLA.c", "BFMMLA.rows"]
    out = str(tmp_path / "back.npz")
    assert "100 rows of armv8_6 BFMMLA, from some device" in told(
        capsys, "--from", str(outputs_of(MATRIX, tmp_path)), "--out", out
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["BFDOT"], "--out FILE.npz says where"),
        ([], "which INSTRUCTION"),
        (["HMMA.16816.F32", "--out", "x.npz"], "is on ampere, ada, hopper, .*--arch A says which"),
        (["BFDOT", "--from", "x"], "INSTRUCTION and --from: one of them"),
        (["BFDOT", "--rows", "0"], "of 1 or more"),
    ],
)
def test_wrong_use(words: list[str], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        command.main(words, standalone_mode=False)


def test_other_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(mmaformal.UnknownInstructionError, match="no architecture has an instruction 'NONE'"):
        command.main(["NONE"], standalone_mode=False)
    with pytest.raises(ValueError, match=r"written as \.npz, \.parquet or \.csv, not x\.h5"):
        command.main(["BFDOT", "--out", str(tmp_path / "x.h5")], standalone_mode=False)
