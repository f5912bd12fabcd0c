"""CSV: a row per line, bit patterns in hexadecimal, with or without `0x`.

    # {"architecture": "ampere", "instruction": "HMMA.16816.F32", …, "rows": 3000}
    a0,a1,…,b0,b1,…,c,d
    3c00,bc01,…,3f800000,40000000

Lines that begin with `#` before the header are one JSON object, what was recorded.  Columns may stand in any order;
`scale_a0`, … and `scale_b0`, … are those of block scales.  If the object has `rows`, so many have to follow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from mmaformal.recordings.archive import RecordingError, meta_from, short
from mmaformal.recordings.layouts import ARRAYS, SCALES, Arrays, Description, Wanted

META = "line of '#' and a JSON object"
#: A longer line is none of ours: 4 × 256 codes of 64 bits.
_LINE = 1 << 15
_DIGITS = re.compile(r"(?:0[xX])?[0-9a-fA-F]{1,16}")
_MOST_COLUMNS = 1030


@contextmanager
def lines_of(path: Path) -> Iterator[Iterator[tuple[int, str]]]:
    """The numbers of a text file's lines, from 1, and the lines without their ends."""
    try:
        with path.open("rb") as stream:
            yield _lines(stream, path)
    except OSError as error:
        raise RecordingError(path, f"cannot be read: {error.strerror}") from None


def _lines(stream: IO[bytes], path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    while line := stream.readline(_LINE):
        number += 1
        if len(line) == _LINE:
            raise RecordingError(
                path, f"line {number} has more than {_LINE} characters: it is no table of codes"
            )
        try:
            yield number, line.decode("ascii").rstrip("\r\n")
        except UnicodeDecodeError:
            raise RecordingError(
                path, f"line {number} is no ASCII text: save the codes as hexadecimal"
            ) from None


class _Head(NamedTuple):
    """The head of a file, which stands before the rows: meta and the names of columns."""

    meta: dict[str, object] | None
    names: list[str]


def _head(lines: Iterator[tuple[int, str]], path: Path) -> _Head:
    """Goes past the header."""
    told = []
    for _, line in lines:
        if line.startswith("#"):
            told.append(line[1:])
        elif line.strip():
            names = [each.strip().strip('"') for each in line.split(",")]
            return _Head(meta_from("".join(told).encode(), path) if told else None, names)
    raise RecordingError(path, "no header: its first line names the columns, a0,a1,…,b0,b1,…,c,d")


def _places(names: list[str], path: Path) -> dict[str, list[int]]:
    """For each array the columns of its elements, in order."""
    found: dict[str, dict[int, int]] = {}
    if len(names) > _MOST_COLUMNS:
        raise RecordingError(path, f"{len(names)} columns are no dot product-add's")
    for place, name in enumerate(names):
        array, digits = re.fullmatch(r"(.*?)(\d{0,4})", name).groups()  # type: ignore[union-attr]
        single = array in ("c", "d")
        if array not in (*ARRAYS, *SCALES) or bool(digits) == single:
            raise RecordingError(
                path, f"a column {short(name)}: there are a0, a1, …, b0, b1, …, c, d: remove it"
            )
        if found.setdefault(array, {}).setdefault(int(digits or 0), place) != place:
            raise RecordingError(path, f"two columns {short(name)}: remove one")
    for array in ARRAYS:
        if array not in found:
            column = array if array in ("c", "d") else f"{array}0"
            raise RecordingError(path, f"no column {column!r}: a recording has a0, a1, …, b0, b1, …, c, d")
    for array, places in found.items():
        if sorted(places) != list(range(len(places))):
            missing = min(set(range(len(places))) - set(places))
            raise RecordingError(path, f"no column '{array}{missing}', but a later one of {array}: add it")
    return {array: [places[i] for i in range(len(places))] for array, places in found.items()}


def describe(path: Path) -> Description:
    with lines_of(path) as lines:
        meta, names = _head(lines, path)
        places = _places(names, path)
        rows = sum(1 for _, line in lines if line.strip())
    if meta is not None and meta.get("rows", rows) != rows:
        raise RecordingError(
            path, f"meta has 'rows': {short(meta['rows'])}, but {rows} are there: copy or save it again"
        )
    shapes: dict[str, tuple[int, ...]] = {
        array: (rows,) if array in ("c", "d") else (rows, len(each)) for array, each in places.items()
    }
    return Description(meta, shapes)


def pieces(path: Path, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Arrays]:
    with lines_of(path) as lines:
        _, names = _head(lines, path)
        places = _places(names, path)
        formats = {place: wanted[array].fmt for array in wanted for place in places[array]}
        limits = [formats[place].codes if place in formats else 0 for place in range(len(names))]
        table: list[list[int]] = []
        start = 0
        for number, line in lines:
            if not line.strip():
                continue
            where = f"line {number} (row {start + len(table)})"
            table.append(_codes(line, names, limits, wanted, where, path))
            if len(table) == rows:
                yield _arrays(table, places, wanted)
                start += len(table)
                table = []
        if table:
            yield _arrays(table, places, wanted)
            start += len(table)
    if start != wanted["d"].shape[0]:
        raise RecordingError(path, "it has changed while it was read: read it again")


def _codes(
    line: str, names: list[str], limits: list[int], wanted: Mapping[str, Wanted], where: str, path: Path
) -> list[int]:
    """The codes of a line."""
    words = line.split(",")
    if len(words) != len(names):
        raise RecordingError(path, f"{where} has {len(words)} values, but there are {len(names)} columns")
    try:
        codes = [int(word, 16) for word in words]
    except ValueError:
        codes = []
    good = codes and all(0 <= code < limit or not limit for code, limit in zip(codes, limits, strict=True))
    if good and "_" not in line and "+" not in line:
        return codes
    for word, name, limit in zip(words, names, limits, strict=True):
        if not _DIGITS.fullmatch(word.strip()):
            raise RecordingError(path, f"{where}: {name} is {short(word.strip())}, no hexadecimal code")
        if limit and int(word, 16) >= limit:
            fmt = wanted[name.rstrip("0123456789")].fmt
            raise RecordingError(
                path, f"{where}: {name} is {int(word, 16):#x}, but {fmt} codes are 0 to {limit - 1:#x}"
            )
    return codes


def _arrays(table: list[list[int]], places: Mapping[str, list[int]], wanted: Mapping[str, Wanted]) -> Arrays:
    whole = np.array(table, np.uint64)
    return {
        array: np.ascontiguousarray(
            whole[:, places[array]] if len(shape) > 1 else whole[:, places[array][0]], fmt.word
        )
        for array, (shape, fmt) in wanted.items()
    }


# ---- writing -------------------------------------------------------------------------------------------------------


def save(
    path: Path,
    wanted: Mapping[str, Wanted],
    meta: Mapping[str, object],
    blocks: Callable[[], Iterator[Arrays]],
) -> None:
    names: list[str] = []
    for array, (shape, _) in wanted.items():
        names += [array] if len(shape) == 1 else [f"{array}{k}" for k in range(shape[1])]
    digits = [-(-fmt.storage_bits // 4) for shape, fmt in wanted.values() for _ in range((*shape, 1)[1])]
    line = ",".join(f"%0{each}x" for each in digits) + "\n"
    with path.open("w", encoding="ascii", newline="\n") as stream:
        stream.write(f"# {json.dumps(dict(meta) | {'rows': wanted['d'].shape[0]})}\n{','.join(names)}\n")
        for block in blocks():
            sides = [block[array].reshape(len(block["d"]), -1).tolist() for array in wanted]
            stream.writelines(
                line % tuple(x for part in row for x in part) for row in zip(*sides, strict=True)
            )
