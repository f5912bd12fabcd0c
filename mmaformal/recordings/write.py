"""Writing recordings: whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES
from mmaformal.instruction import Instruction
from mmaformal.recordings.layouts import Wanted, layout_of, saver
from mmaformal.recordings.read import Recording
from mmaformal.recordings.schema import meta_of_unit


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside `path` that takes its place in the end; if anything fails, Ctrl-C too, nothing is left."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    new = Path(name)
    try:
        yield new
        new.chmod(0o666 & ~_umask())
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_rows(
    instruction: Instruction, rows: Mapping[str, NDArray[Any]], path: str | Path, meta: Mapping[str, object]
) -> None:
    """Write rows of an instruction, codes by the names of their arrays, as a recording; `meta` is added to its meta.

    Raises ValueError for another suffix than `.npz`, `.parquet` and `.csv`, and for an instruction that no recording
    can name: a chain, or one with changed parameters.
    """
    path = Path(path)
    architecture = ARCHITECTURES.get(instruction.architecture)
    if (
        architecture is None
        or instruction.name not in architecture
        or architecture[instruction.name] != instruction
    ):
        raise ValueError(
            f"a recording names an instruction of an architecture, which {instruction.label} is not: "
            "write a case of the instruction itself, unchanged and not chained"
        )
    wanted = {name: Wanted(codes.shape, instruction.format_of(name)) for name, codes in rows.items()}
    save = saver(path)
    with replacing(path) as new:
        save(new, wanted, {**meta_of_unit(instruction), **meta}, lambda: iter([dict(rows)]))


def write(recording: Recording, path: str | Path) -> Recording:
    """The recording in another file, by its suffix `.npz`, `.parquet` or `.csv`; as the recording of that file.

    Memory is bounded by one block of rows.  The file is there once it is whole, in place of one that was there before.

    Raises ValueError for another suffix, RecordingError for a file that has changed since it was read, OSError where
    nothing can be written, ImportError for Parquet without pyarrow.
    """
    path = Path(path)
    save = saver(path)
    meta = {name: value for name, value in recording.meta.items() if name != "rows"}
    with replacing(path) as new:
        save(new, recording.wanted, meta, recording.arrays)
    return replace(recording, path=path, layout=layout_of(path), meta=meta)
