"""`.npz`: NumPy's archive of arrays, uncompressed or not.

- `a`, `b`: (rows, terms), bit patterns as unsigned words of their formats (uint16 for fp16);
- `c`, `d`: (rows,);
- `scale_a`, `scale_b`: (rows, K / block), for an instruction with block scales;
- `meta`: one string, a JSON object.

Nothing is ever unpickled, and sizes are judged before anything is read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mmaformal.display import short_repr
from mmaformal.recordings.archive import (
    Header,
    RecordingError,
    array_of,
    column,
    meta_of,
    open_archive,
    refuse_objects,
    require_codes,
)
from mmaformal.recordings.layouts import ARRAYS, SCALES, Arrays, Description, Wanted

META = "array 'meta'"
#: An array stored column by column has to be held whole to be read by rows.
_COLUMN_ORDER_BYTES = 1 << 28
#: Words that are mostly random hardly get smaller, however long one tries.
_LEVEL = 1

_WriteHeader = Callable[[IO[bytes], dict[str, object]], None]


def describe(path: Path) -> Description:
    shapes = {}
    with open_archive(path) as archive:
        there = archive.namelist()
        for name in (*ARRAYS, *(each for each in SCALES if f"{each}.npy" in there)):
            with array_of(archive, name, path) as (_, header):
                refuse_objects(header, name, path)
                shapes[name] = header.shape
        return Description(meta_of(archive, path), shapes)


def pieces(path: Path, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Arrays]:
    with open_archive(path) as archive, ExitStack() as stack:
        columns = []
        for name, (shape, fmt) in wanted.items():
            stream, header = stack.enter_context(array_of(archive, name, path))
            require_codes(header, name, fmt, path)
            if header.shape != shape:
                raise RecordingError(path, f"{name} has changed while it was read: read it again")
            _require_rows(header, name, path)
            columns.append(column(stream, header, name, fmt, rows, path))
        for arrays in zip(*columns, strict=True):
            yield dict(zip(wanted, arrays, strict=True))


def _require_rows(header: Header, name: str, path: Path) -> None:
    if header.by_columns and len(header.shape) > 1 and header.bytes > _COLUMN_ORDER_BYTES:
        raise RecordingError(
            path,
            f"{name} is stored column by column, too large to be read by rows: "
            f"save np.ascontiguousarray({name})",
        )


# ---- writing -------------------------------------------------------------------------------------------------------


class NpzColumn(NamedTuple):
    """An array to write, in pieces."""

    word: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Iterator[NDArray[Any]]

    def __repr__(self) -> str:
        return short_repr(self)


def write_archive(path: Path, columns: Mapping[str, NpzColumn], meta: Mapping[str, object]) -> None:
    """An `.npz` of these arrays and of `meta` as JSON."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
        for name, each in columns.items():
            descr: object = npy.dtype_to_descr(each.word)
            header: dict[str, object] = {"descr": descr, "fortran_order": False, "shape": each.shape}
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                cast(_WriteHeader, npy.write_array_header_1_0)(member, header)
                for piece in each.pieces:
                    member.write(np.ascontiguousarray(piece, each.word).tobytes())
        with archive.open("meta.npy", "w") as member:
            npy.write_array(member, np.array(json.dumps(dict(meta))), (1, 0))


def save(
    path: Path,
    wanted: Mapping[str, Wanted],
    meta: Mapping[str, object],
    blocks: Callable[[], Iterator[Arrays]],
) -> None:
    def one(name: str) -> Iterator[NDArray[Any]]:
        return (block[name] for block in blocks())

    columns = {name: NpzColumn(fmt.word, shape, one(name)) for name, (shape, fmt) in wanted.items()}
    write_archive(path, columns, meta)
