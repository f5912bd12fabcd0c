"""How recordings are stored: a file for each layout, found by its name.

Each has

- `describe(path)`: what the file says of itself, and the shapes of its arrays, before any row is read;
- `pieces(path, wanted, rows)`: all rows in order, at most `rows` at a time, as arrays of native words by their names;
- `META`: where what it says of itself stands, for an error;
- `save(path, wanted, meta, blocks)`, if recordings can be written so (`mmaformal.recordings.write`).

All raise RecordingError for whatever is wrong, with the number of the row, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import short_repr
from mmaformal.formats import Format
from mmaformal.recordings.archive import RecordingError

#: The arrays of a recording; scales only where there are block scales.
ARRAYS = ("a", "b", "c", "d")
SCALES = ("scale_a", "scale_b")

Arrays = dict[str, NDArray[Any]]


class Description(NamedTuple):
    """A file's own word: its meta, and the shapes of its arrays."""

    meta: dict[str, object] | None  #: None: nothing
    shapes: dict[str, tuple[int, ...]]

    def __repr__(self) -> str:
        return short_repr(self)


class Wanted(NamedTuple):
    """The shape and format that an array has to have."""

    shape: tuple[int, ...]
    fmt: Format

    def __repr__(self) -> str:
        return short_repr(self)


class LayoutFunctions(Protocol):
    """The functions of a layout's file."""

    META: str

    def describe(self, path: Path) -> Description: ...
    def pieces(self, path: Path, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Arrays]: ...


Save = Callable[[Path, Mapping[str, Wanted], Mapping[str, object], Callable[[], Iterator[Arrays]]], None]

_BY_SUFFIX = {
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".txt": "hextext",
    ".safetensors": "tensors",
    ".pt": "tensors",
    ".pth": "tensors",
}
_BY_BEGINNING = {b"PK\x03\x04": "npz", b"PAR1": "parquet"}


def layout_of(path: Path) -> str:
    """The name of a file's layout: by its suffix, else by how it begins; a folder is one of text files."""
    if path.suffix.lower() in _BY_SUFFIX:
        return _BY_SUFFIX[path.suffix.lower()]
    if path.is_dir():
        return "hextext"
    try:
        with path.open("rb") as stream:
            beginning = stream.read(4)
    except OSError as error:
        raise RecordingError(path, f"cannot be read: {error.strerror}") from None
    for known, name in _BY_BEGINNING.items():
        if beginning.startswith(known):
            return name
    raise RecordingError(path, f"no recording by its name or its beginning: {', '.join(_BY_SUFFIX)} are read")


def layout(name: str) -> LayoutFunctions:
    """The layout of a name."""
    return cast(LayoutFunctions, import_module(f"{__name__}.{name}"))


def saver(path: Path) -> Save:
    """Return what writes a file of this name.  Raises ValueError where nothing does."""
    name = _BY_SUFFIX.get(path.suffix.lower(), "")
    save: Save | None = getattr(layout(name), "save", None) if name else None
    if save is None:
        raise ValueError(f"recordings are written as .npz, .parquet or .csv, not {path.name}")
    return save


def require_range(codes: NDArray[Any], name: str, fmt: Format, first_row: int, path: Path) -> NDArray[Any]:
    """Integers as codes of a format, in its words.  Raises RecordingError for the first that is none."""
    outside = codes < 0 if codes.dtype.kind == "i" else np.zeros(codes.shape, bool)
    if fmt.storage_bits < 8 * codes.dtype.itemsize:
        outside = outside | (codes >= fmt.codes)
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        value = int(codes[where])
        raise RecordingError(
            path,
            f"{name} holds {value if value < 0 else hex(value)} in row {first_row + where[0]}, but {fmt} codes are "
            f"0 to {fmt.codes - 1:#x}",
        )
    return np.ascontiguousarray(codes.astype(fmt.word, copy=False))
