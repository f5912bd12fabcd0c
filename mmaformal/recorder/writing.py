"""Writing a recording: the columns of a program's rows as an `.npz`, whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mmaformal.display import short_repr
from mmaformal.recorder.rows import Outputs
from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.read import Recording, read

#: Words that are mostly random hardly get smaller, however long one tries.
_LEVEL = 1

_WriteHeader = Callable[[IO[bytes], dict[str, object]], None]


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


def write(outputs: Outputs, path: Path, meta: Mapping[str, object]) -> Recording:
    """The recording of a program's outputs, read again before it takes its place.

    Raises OSError where nothing can be written, RecordingError for rows that are none of the instruction's.
    """
    instruction = outputs.layout.instruction
    columns = {
        each.name: Column(each.fmt.word, (outputs.rows, *each.shape), _pieces(outputs, each.name))
        for each in outputs.layout.fields
    }
    with replacing(path) as new:
        write_archive(new, columns, meta)
        try:
            found = read(new, architecture=instruction.architecture, instruction=instruction.name)
        except RecordingError as error:
            raise RecordingError(outputs.path, error.reason) from None
    return replace(found, path=path)


def _pieces(outputs: Outputs, name: str) -> Iterator[NDArray[Any]]:
    return (block[name] for block in outputs.blocks())


class Column(NamedTuple):
    """An array to write, in pieces."""

    word: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Iterator[NDArray[Any]]

    def __repr__(self) -> str:
        return short_repr(self)


def write_archive(path: Path, columns: Mapping[str, Column], meta: Mapping[str, object]) -> None:
    """An `.npz` of these arrays and of `meta` as JSON."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, column in columns.items():
            header = {"descr": npy.dtype_to_descr(column.word), "fortran_order": False, "shape": column.shape}
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                cast(_WriteHeader, npy.write_array_header_1_0)(member, header)
                for piece in column.pieces:
                    member.write(np.ascontiguousarray(piece, column.word).tobytes())
        with archive.open("meta.npy", "w") as member:
            npy.write_array(member, np.array(json.dumps(dict(meta))), (1, 0))
