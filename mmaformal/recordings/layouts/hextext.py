"""Text files of one operand each, as the validation data of MATLAB-tensor-core has them (Khattak and Mikaitis).

    a_H100_fp16.txt   a line per row: its products' a, hexadecimal words with spaces between
    b_H100_fp16.txt   the same of b
    c_H100_fp32.txt   a line per row: a binary word
    d_H100_fp32.txt   the same, what was returned; the type in its name is d's

The files are those of one folder; their names say the device and the types.  A word of 32 bits is the number as fp32,
as that data has all of them: a and b are rounded to their types and c to d's, to nearest even, as its CUDA programs do.
A word of as many bits as the type has is its code.  No name says an instruction: `meta.json` in the folder may, a JSON
object, or --instruction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES
from mmaformal.display import ShortRepr, short_repr
from mmaformal.formats import FORMATS
from mmaformal.recordings.archive import RecordingError, meta_from, short
from mmaformal.recordings.layouts import ARRAYS, Arrays, Description, Wanted
from mmaformal.recordings.layouts.csv import lines_of

META = "file meta.json beside it"
_NAME = re.compile(r"(?P<array>[abcd])_(?P<device>.+)_(?P<fmt>[A-Za-z0-9-]+)\.txt")
_FORMATS = {"bfloat16": "bf16", "tensorfloat32": "tf32", "fp8-e4m3": "e4m3", "fp8-e5m2": "e5m2"}
_META_BYTES = 1 << 20
_WIDE = 32  #: bits of a number as fp32


class _Files(NamedTuple):
    """The files of a recording, and what their names say."""

    paths: dict[str, Path]
    device: str
    types: dict[str, str]

    def __repr__(self) -> str:
        return short_repr(self)


def _files(path: Path) -> _Files:
    """The four files of a folder, or those that one of them belongs to."""
    folder = path if path.is_dir() else path.parent
    try:
        there = sorted(folder.iterdir())
        named = [(each, found) for each in there if (found := _NAME.fullmatch(each.name))]
    except OSError as error:
        raise RecordingError(path, f"cannot be read: {error.strerror}") from None
    own = None if path.is_dir() else _NAME.fullmatch(path.name)
    if not path.is_dir() and own is None:
        raise RecordingError(path, "a text file of one operand is named as d_H100_fp32.txt: rename it")
    if not path.is_dir() and not path.exists():
        raise RecordingError(path, "cannot be read: No such file or directory")
    paths: dict[str, Path] = {}
    types: dict[str, str] = {}
    device = own["device"] if own else ""
    for array in ARRAYS:
        fits = [x for x in named if x[1]["array"] == array and (not device or x[1]["device"] == device)]
        if own and own["array"] == array:
            fits = [x for x in fits if x[0].name == path.name]
        if len(fits) != 1:
            have = f"has {', '.join(x[0].name for x in fits)}: name the one of d" if fits else "has none"
            raise RecordingError(path, f"one file {array}_DEVICE_TYPE.txt is needed, and the folder {have}")
        (file, found) = fits[0]
        device = device or found["device"]
        paths[array] = file
        types[array] = _FORMATS.get(found["fmt"].lower(), found["fmt"].lower())
    return _Files(paths, device, types)


def describe(path: Path) -> Description:
    files = _files(path)
    for array in ARRAYS:
        if files.types[array] not in FORMATS:
            raise RecordingError(
                path, f"{files.paths[array].name} names no type: there are {', '.join(FORMATS)}"
            )
    meta: dict[str, object] = {
        "gpu": files.device,
        "input_format": files.types["a"],
        "output_format": files.types["d"],
    }
    if files.types["b"] != files.types["a"]:
        del meta["input_format"]
        meta |= {"a_format": files.types["a"], "b_format": files.types["b"]}
    if (architecture := ARCHITECTURES.canonical(files.device)) is not None:
        meta["architecture"] = architecture
    own = files.paths["d"].parent / "meta.json"
    if own.exists():
        if own.stat().st_size > _META_BYTES:
            raise RecordingError(path, f"meta.json has more than {_META_BYTES} bytes")
        meta |= meta_from(own.read_bytes(), path)
    shapes: dict[str, tuple[int, ...]] = {}
    for array in ARRAYS:
        rows, terms = 0, 1
        with lines_of(files.paths[array]) as lines:
            for _, line in lines:
                if line.strip():
                    terms = len(line.split()) if rows == 0 else terms
                    rows += 1
        shapes[array] = (rows,) if array in "cd" else (rows, terms)
    meta.setdefault("terms", shapes["a"][1])
    return Description(meta, shapes)


class _Column(ShortRepr):
    """One operand's file."""

    def __init__(self, array: str, lines: Iterator[tuple[int, str]], wanted: Wanted, path: Path) -> None:
        self.array, self.wanted, self.path, self.row = array, wanted, path, 0
        self.lines = ((number, line) for number, line in lines if line.strip())
        self.base, self.bits = (2, 1) if array in "cd" else (16, 4)

    def next(self, rows: int) -> NDArray[np.uint64]:
        """Codes of some rows."""
        table: list[list[int]] = []
        for number, line in islice(self.lines, rows):
            where = f"{self.path.name}, line {number} (row {self.row + len(table)})"
            table.append([self._code(word, where) for word in self._words(line, where)])
        self.row += len(table)
        codes = np.array(table, self.wanted.fmt.word)
        return codes if len(self.wanted.shape) > 1 else codes.reshape(-1)

    def _words(self, line: str, where: str) -> list[str]:
        words, terms = line.split(), (*self.wanted.shape, 1)[1]
        if len(words) != terms:
            raise RecordingError(self.path, f"{where} has {len(words)} words, and {terms} are needed")
        return words

    def _code(self, word: str, where: str) -> int:
        fmt = self.wanted.fmt
        digits = word[2:] if self.base == 16 and word[:2] in ("0x", "0X") else word
        try:
            code = int(digits, self.base)
        except ValueError:
            kind = "hexadecimal" if self.base == 16 else "binary"
            raise RecordingError(self.path, f"{where}: {short(word)} is no {kind} word") from None
        if len(digits) * self.bits == _WIDE != fmt.storage_bits:
            return self._rounded(code, where)
        if len(digits) != -(-fmt.storage_bits // self.bits) or not 0 <= code < fmt.codes:
            raise RecordingError(
                self.path, f"{where}: {short(word)} is a word neither of {fmt} nor of fp32, by its length"
            )
        return code

    def _rounded(self, code: int, where: str) -> int:
        """The code nearest to a number of fp32."""
        fmt = self.wanted.fmt
        if fmt.dtype is None or fmt.storage_bits > _WIDE:
            raise RecordingError(self.path, f"{where}: numbers are fp32, which {fmt} codes cannot be made of")
        number = np.array(code, np.uint32).view(np.float32)
        with np.errstate(all="ignore"):
            near = number.astype(fmt.dtype)
        rounded = int(near.view(fmt.word))
        if np.isfinite(number) and not fmt.is_finite(rounded):
            raise RecordingError(self.path, f"{where}: {float(number):g} is more than {fmt} holds")
        return rounded


def pieces(path: Path, wanted: Mapping[str, Wanted], rows: int) -> Iterator[Arrays]:
    files = _files(path)
    with ExitStack() as stack:
        columns = {
            array: _Column(
                array, stack.enter_context(lines_of(files.paths[array])), wanted[array], files.paths[array]
            )
            for array in wanted
        }
        done, whole = 0, wanted["d"].shape[0]
        while done < whole:
            arrays = {array: column.next(rows) for array, column in columns.items()}
            done += len(arrays["d"])
            if len({len(each) for each in arrays.values()}) != 1 or not len(arrays["d"]):
                raise RecordingError(path, "it has changed while it was read: read it again")
            yield arrays
