"""Recordings of states: what an instruction of Apple AMX made of X, Y and Z, against the model, byte by byte.

An .npz of such rows has `op`, names of instructions (or 16, 32, 64 for fma16, fma32, fma64), `operand` (uint64), `x`,
`y` and `z` before (uint8, of 512, 512 and 4096 bytes a row), and `x_after`, `y_after`, `z_after`, at least one of them.
`generation` (1 to 4, of M1 to M4) is 1 where it is not given; `meta` is a JSON string with the `device`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from mmaformal.apple import NUMBERS, AmxState, execute
from mmaformal.apple.state import SIZES
from mmaformal.display import HtmlText, counted, mismatches_of, short_text
from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.backing import EMULATOR, EMULATORS

StateArrays: TypeAlias = dict[str, NDArray[np.generic]]

_KNOWN = (*NUMBERS, "set", "clr")
_NAMES = {"op", "operand", "z"}


@dataclass(frozen=True, repr=False)
class StatesReport(HtmlText):
    """The result of checking a recording of states."""

    path: Path
    device: str | None
    counts: Counter[str]  #: rows of each instruction
    mismatches: int
    first_row: int | None  #: the first row that is not the model's, counted from 0
    first: str  #: what is not alike there

    @property
    def rows(self) -> int:
        return self.counts.total()

    @property
    def exit_code(self) -> int:
        return 1 if self.mismatches else 0

    def columns(self) -> tuple[str, ...]:
        names = f"apple_amx {', '.join(sorted(self.counts))}"
        return names, counted(self.rows, "state"), mismatches_of(self.mismatches, self.rows)

    @property
    def evidence(self) -> str:
        """Return what is behind the model, and whose that is."""
        return f"{EMULATOR}: {EMULATORS['apple_amx']}"

    @property
    def note(self) -> str:
        """Return it in words."""
        return f"(behind the model: {self.evidence})"

    def __str__(self) -> str:
        """Return one line, and the first row that differs, where there is one."""
        line = "   ".join((self.path.name, *self.columns(), self.note))
        return f"{line}\n  {self.first}" if self.mismatches else line

    def __repr__(self) -> str:
        return short_text(self, self.path.name, ", ".join(self.columns()))

    def to_json(self) -> dict[str, object]:
        """Return the report as what `json.dumps` takes."""
        return {
            "file": str(self.path),
            "status": "mismatch" if self.mismatches else "match",
            "gpu": self.device,
            "architecture": "apple_amx",
            "instruction": ", ".join(sorted(self.counts)),
            "evidence": self.evidence,
            "rows": self.rows,
            "mismatches": self.mismatches,
            "first_mismatching_row": self.first_row,
            "first_mismatch": self.first or None,
        }


def holds_states(path: Path) -> bool:
    """Return whether a file is an .npz of states, by the names of its arrays; one that cannot be read is not."""
    try:
        with ZipFile(path) as found:
            return {name.removesuffix(".npy") for name in found.namelist()} >= _NAMES
    except (OSError, BadZipFile):
        return False


def check_states(path: Path) -> StatesReport:
    """Run every row's instruction on its state, and compare all bytes that the file has of the state after.

    Raises RecordingError where the arrays are no recording of states.
    """
    arrays, device = _read(path)
    counts: Counter[str] = Counter()
    mismatches, first_row, first = 0, None, ""
    for row in range(len(arrays["op"])):
        name = _instruction(arrays["op"][row], path)
        before = AmxState(*(arrays[side][row].tobytes() for side in SIZES))
        generation = int(arrays["generation"][row]) if "generation" in arrays else 1
        try:
            after = execute(before, name, int(arrays["operand"][row]), generation)
        except ValueError as error:
            raise RecordingError(path, f"row {row}: {error}") from None
        counts[name] += 1
        found = _difference(arrays, row, after)
        if found:
            mismatches += 1
            if first_row is None:
                first_row, first = row, f"row {row}: {name} {int(arrays['operand'][row]):#018x}: {found}"
    return StatesReport(path, device, counts, mismatches, first_row, first)


def _read(path: Path) -> tuple[StateArrays, str | None]:
    with np.load(path, allow_pickle=False) as found:
        arrays: StateArrays = {name: found[name] for name in found.files}
    meta = arrays.pop("meta", None)
    try:
        told = json.loads(str(meta)) if meta is not None else {}
    except ValueError:
        raise RecordingError(path, "meta is no JSON") from None
    if missing := [name for name in ("op", "operand", *SIZES) if name not in arrays]:
        raise RecordingError(path, f"no array {missing[0]!r}: states have op, operand, x, y, z")
    if not any(f"{side}_after" in arrays for side in SIZES):
        raise RecordingError(path, "no state after: neither x_after, y_after nor z_after")
    rows = len(arrays["op"])
    for name, array in arrays.items():
        if len(array) != rows:
            raise RecordingError(path, f"{name} has {len(array)} rows, not {rows}")
        side = name.removesuffix("_after")
        if side in SIZES and (array.dtype != np.uint8 or array.shape[1:] != (SIZES[side],)):
            raise RecordingError(
                path, f"{name} has {SIZES[side]} bytes in each row, not {array[0].size} {array.dtype}"
            )
    device = told.get("device") if isinstance(told, dict) else None
    return arrays, device if isinstance(device, str) else None


def _instruction(op: np.generic, path: Path) -> str:
    value = op.item()
    name = f"fma{value}" if value in (16, 32, 64) else value
    if name not in _KNOWN:
        raise RecordingError(path, f"no AMX instruction {value!r} here; there are {', '.join(_KNOWN)}")
    return str(name)


def _difference(arrays: StateArrays, row: int, after: AmxState) -> str:
    """Return the first byte that is not the model's, in words; nothing if none is."""
    for side in SIZES:
        if f"{side}_after" not in arrays:
            continue
        mine = np.frombuffer(getattr(after, side), np.uint8)
        theirs = arrays[f"{side}_after"][row]
        if wrong := np.flatnonzero(mine != theirs).tolist():
            place, byte = divmod(wrong[0], 64)
            return (
                f"{len(wrong)} bytes of {side} differ; {side} row {place}, byte {byte}: "
                f"recorded {int(theirs[wrong[0]]):#04x}, modelled {int(mine[wrong[0]]):#04x}"
            )
    return ""
