"""Witnesses as C programs: compiled, and run on the unit where this processor has it; Arm's under QEMU."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import armv8_6, hopper, power10, sapphire_rapids, sme
from mmaformal.cli.diff import diff
from mmaformal.cli.running import UsageError
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.intrinsics import CUnavailableError, c_source, unit_of
from mmaformal.recorder.processors import c_program
from mmaformal.recorder.program import run_program
from mmaformal.recorder.rows import RowLayout, read_outputs
from mmaformal.witness import Witness

TILE, PAIR, HALF = (sapphire_rapids[name] for name in ("TDPBF16PS", "VDPBF16PS", "VFMADD231PH"))
DOT, MATRIX = armv8_6["BFDOT"], armv8_6["BFMMLA"]
ONE, SMALL = 0x3F80, 0x3080  # 1, 2^-30

ARM = ["aarch64-linux-gnu-gcc", "-static"], ["qemu-aarch64", "-cpu", "max"]
POWER = ["powerpc64le-linux-gnu-gcc", "-static"], ["qemu-ppc64le", "-cpu", "power10"]


def flags() -> set[str]:
    """Return what this processor has, as Linux calls it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return {word for line in lines if line.startswith(("flags", "Features")) for word in line.split()}


def tools(i: Instruction) -> tuple[list[str], list[str]]:
    """(compiler, what runs the program): on this processor, or under QEMU.  Skips, with the reason, if neither goes."""
    unit = unit_of(i)
    assert unit is not None
    mine = platform.machine() in unit.target
    compiler, emulator = (["gcc"], []) if mine else POWER if unit.target == "__powerpc64__" else ARM
    if not mine and unit.target == "__x86_64__":
        pytest.skip(f"{i.label}: this is no x86 processor")
    for tool in (compiler[0], *emulator[:1]):
        if shutil.which(tool) is None:
            pytest.skip(f"{i.label}: no {tool} here")
    if mine and unit.flag not in flags():
        pytest.skip(f"{i.label}: this processor has no {unit.flag}")
    return compiler, emulator


def compiled(compiler: Sequence[str], source: str, folder: Path) -> Path:
    (folder / "case.c").write_text(source)
    command = [
        *compiler,
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        str(folder / "case"),
        str(folder / "case.c"),
    ]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder / "case"


# ---- one case ----------------------------------------------------------------------------------------------------

PAIRS = [
    (PAIR, DOT, [ONE, SMALL], [ONE, ONE], 0),
    (TILE.configured(2), PAIR, [0x8080, 0], [0x3F00, 0], 0x80000000),
    (hopper["HMMA.1688.F32.BF16"], DOT.chained(8), [ONE, SMALL, *[0] * 6], [ONE, ONE, *[0] * 6], 0),
]


@pytest.mark.parametrize(
    ("x", "y", "a", "b", "c"), PAIRS, ids=lambda x: x.label if isinstance(x, Instruction) else ""
)
def test_a_witness_is_run_by_the_unit(
    x: Instruction, y: Instruction, a: list[int], b: list[int], c: int, tmp_path: Path
) -> None:
    source = Witness.of(x, y, a, b, c).to_c()
    side = x if x is PAIR else y
    compiler, emulator = tools(side)
    run = subprocess.run(
        [*emulator, compiled(compiler, source, tmp_path)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout
    assert f"{side.label}, the unit," in run.stdout
    assert "as its model says" in run.stdout
    assert "wrong" not in run.stdout
    assert f"{x.label:44} predicts" in run.stdout


def test_a_wrong_model_is_told(tmp_path: Path) -> None:
    compiler, emulator = tools(PAIR)
    case = compiled(compiler, c_source([(PAIR, 0)], [ONE, 0], [ONE, 0], 0), tmp_path)
    run = subprocess.run([*emulator, case], capture_output=True, text=True, check=False)
    assert (run.returncode, "its model is wrong" in run.stdout) == (1, True)


OUTER, PAIRS_OF_POWER = sme["FMOPA.F64"], power10["XVBF16GER2NN"]


@pytest.mark.parametrize("i", [TILE, HALF, MATRIX, OUTER, PAIRS_OF_POWER], ids=lambda i: i.name)
def test_each_unit_compiles_here_and_says_if_it_is_not_there(i: Instruction, tmp_path: Path) -> None:
    unit = unit_of(i)
    assert unit is not None
    own = platform.machine() in unit.target
    compiler, emulator = (["gcc"], []) if own else POWER if unit.target == "__powerpc64__" else ARM
    if any(shutil.which(tool) is None for tool in (compiler[0], *emulator[:1])):
        pytest.skip(f"no {compiler[0]} here")
    zeros = [0] * i.k
    d = int(
        i.dot_add(
            np.zeros(i.k, i.a_format.word), np.zeros(i.k, i.b_format.word), np.zeros((), i.c_format.word)
        )
    )
    case = compiled(compiler, c_source([(i, d)], zeros, zeros, 0), tmp_path)
    run = subprocess.run([*emulator, case], capture_output=True, text=True, check=False)
    there = bool(emulator) or unit.flag in flags()
    assert run.returncode == (0 if there else 2), run.stdout
    assert there or f"not run, this processor has no {unit.flag}" in run.stdout


def test_what_has_no_program() -> None:
    zeros = [0] * 16
    with pytest.raises(
        CUnavailableError, match=r"no C program of hopper HMMA\.16816\.F32: it is no unit of a processor"
    ):
        c_source([(hopper["HMMA.16816.F32"], 0)], zeros, zeros, 0)
    with pytest.raises(CUnavailableError):
        c_source([(TILE.replace(L=4), 0)], [0] * 32, [0] * 32, 0)  # no unit anywhere
    with pytest.raises(ValueError, match="do not take the same inputs"):
        c_source([(PAIR, 0), (MATRIX, 0)], [0] * 2, [0] * 2, 0)
    with pytest.raises(ValueError, match=r"a and b have shape \(2,\)"):
        c_source([(PAIR, 0)], [0] * 3, [0] * 2, 0)


def test_the_command_writes_the_program(tmp_path: Path) -> None:
    file = tmp_path / "case.c"
    where = ["a0=0x3f80", "b0=0x3f80", "a1=0x3080", "b1=0x3f80", "c=0x0"]
    pinned = [argument for each in where for argument in ("--where", each)]
    with pytest.raises(SystemExit) as ended:
        diff.main(
            ["sapphire_rapids", "armv8_6", "VDPBF16PS", "BFDOT", "--no-cache", *pinned, "--c", str(file)]
        )
    assert ended.value.code == 0
    assert "unit_1" in file.read_text()


def test_the_command_says_before_it_searches_that_there_is_no_program() -> None:
    with pytest.raises(UsageError, match="--c: no C program of ampere"):
        diff.main(["ampere", "hopper", "HMMA.16816.F32", "--c", "case.c"], standalone_mode=False)


# ---- many cases --------------------------------------------------------------------------------------------------


def some(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...], e: NDArray[Any]) -> NDArray[Any]:
    """Codes near 2^e, and some of any kind."""
    field = np.clip(e + fmt.bias + rng.integers(-2, 3, shape), 0, 2 * fmt.bias)
    sign = rng.integers(0, 2, shape) << fmt.storage_bits - 1
    near = field << fmt.fraction_bits | rng.integers(0, 1 << fmt.fraction_bits, shape) | sign
    anything = rng.integers(0, fmt.codes - 1, shape, np.uint64, endpoint=True)
    return np.where(rng.random(shape) < 0.02, anything, near.view(np.uint64)).astype(fmt.word)


def rows(i: Instruction, count: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Terms near each other; of every size, those about both ends of the range more often; half of them cancel."""
    rng, fmt, d = np.random.default_rng(), i.a_format, i.d_format
    e = rng.choice([0, d.min_exponent, d.max_exponent, *rng.integers(-140, 130, 20)], (count, 1))
    half = rng.integers(-8, 8, (count, i.k)) + e // 2
    a, b = some(rng, fmt, (count, i.k), half), some(rng, fmt, (count, i.k), e - half)
    a[::2, -1], b[::2, -1] = a[::2, 0] ^ fmt.sign_mask, b[::2, 0]
    return a, b, some(rng, i.c_format, (count,), e[:, 0])


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "i", [TILE, TILE.configured(6), PAIR, HALF, DOT, MATRIX, *sme, *power10], ids=lambda i: i.name
)
def test_fresh_outputs_of_the_unit(i: Instruction, count: int, tmp_path: Path) -> None:
    """Every code, NaNs too; of Arm's, an emulator's where this is no Arm processor."""
    tools(i)
    unit = unit_of(i)
    assert unit is not None
    layout = RowLayout(i)
    records = np.zeros(count, layout.dtype)
    records["a"], records["b"], records["c"] = a, b, c = rows(i, count)
    head = f"{layout.title}\n{json.dumps({'rows': count})}\n".encode()
    run_program(c_program(i, unit), [head, records.tobytes()], layout.dtype.itemsize, tmp_path / "out", None)
    found = np.concatenate([block["d"] for block in read_outputs(tmp_path / "out").blocks()])
    wrong = np.flatnonzero(found != i.dot_add(a, b, c))
    assert not len(wrong), [[hex(int(x)) for x in (*a[n], *b[n], c[n], found[n])] for n in wrong[:3]]
    assert len(found) == count
