"""Reading `.npz` files of strangers: nothing is ever unpickled, sizes are judged before anything is read, and every way
in which that can fail is a RecordingError of one line."""

from __future__ import annotations

import json
import lzma
import math
import reprlib
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mmaformal.formats import Format

_META_BYTES = 1 << 20
#: Fields that meta has to say of a recording, unless the caller does.
META_FIELDS = ("architecture", "instruction", "input_format", "output_format", "terms")
#: The version that np.save writes for plain arrays; with longer headers of later ones a small file can claim gigabytes.
_NPY_VERSION = (1, 0)
_MESSAGE_CHARACTERS = 600
#: Errors that zipfile raises besides BadZipFile; RuntimeError: encrypted, or a compression it does not have
_ZIP_DAMAGE = (EOFError, OSError, RuntimeError, ValueError, lzma.LZMAError, struct.error, zlib.error)
#: Errors of parsing an .npy header: numpy.lib.format, ast.literal_eval and the tokenizer it falls back on
_HEADER_DAMAGE = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError)


class RecordingError(ValueError):
    """A recording that cannot be checked; one line: which file, what is wrong with it, what to do."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        reason = " ".join(reason.split())
        self.reason = reason if len(reason) <= _MESSAGE_CHARACTERS else reason[:_MESSAGE_CHARACTERS] + " …"
        super().__init__(f"{path}: {self.reason}")


def meta_of(archive: zipfile.ZipFile, path: Path) -> dict[str, object] | None:
    """The JSON object `meta`; None where there is none."""
    if "meta.npy" not in archive.namelist():
        return None
    with array_of(archive, "meta", path) as (stream, header):
        refuse_objects(header, "meta", path)
        if header.dtype.kind not in "US" or math.prod(header.shape) != 1:
            raise RecordingError(
                path,
                f"meta is {header.dtype} of shape {header.shape}, not one string: save json.dumps(meta)",
            )
        if header.bytes > _META_BYTES:
            raise RecordingError(
                path, f"meta has {header.bytes} bytes; a description has at most {_META_BYTES}"
            )
        data = take(stream, header.bytes, "meta", path)
    try:
        item = np.frombuffer(data, header.dtype)[0] if data else ""
        text = item if isinstance(item, bytes) else str(item).encode()
    except ValueError as error:
        raise RecordingError(path, f"meta is not JSON ({error}): save json.dumps(meta)") from None
    return meta_from(text, path)


def meta_from(text: bytes, path: Path) -> dict[str, object]:
    """A JSON object as it stands in a file."""
    try:
        meta = json.loads(text.decode())
    except (ValueError, RecursionError) as error:
        raise RecordingError(path, f"meta is not JSON ({error}): save json.dumps(meta)") from None
    if not isinstance(meta, dict):
        raise RecordingError(
            path, f"meta is the JSON {short(meta)}, not an object with {', '.join(META_FIELDS)}"
        )
    return meta


def short(value: object) -> str:
    return reprlib.repr(value)


class Header(NamedTuple):
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive, with every way in which reading it can fail turned into a RecordingError."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except RecordingError:
        raise
    except zipfile.BadZipFile as error:
        raise RecordingError(
            path, f"not a complete .npz archive ({error}): copy or save it again with np.savez_compressed"
        ) from None
    except _ZIP_DAMAGE as error:
        if (
            isinstance(error, OSError) and error.filename is not None
        ):  # from opening it, not from what is in it
            raise RecordingError(path, f"cannot be read: {error.strerror}") from None
        reason = str(error) or type(error).__name__
        raise RecordingError(path, f"damaged ({reason}): copy or save it again") from None


def _other_layout(missing: str, members: Sequence[str]) -> str:
    """Say what the file was to have, and which command reads it if it has what the other kind of recording has."""
    product = missing.isupper()
    other = "diagnose" if product else "diagnose-gemm"
    hint = f"; `mmaformal {other}` is for what this one has" if f"{missing.swapcase()}.npy" in members else ""
    return f"a {'product has A, B, D' if product else 'recording has a, b, c, d'} and meta{hint}"


@contextmanager
def array_of(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[tuple[IO[bytes], Header]]:
    """An array's data stream and header, whose sizes are judged before a byte of data is read."""
    member = f"{name}.npy"
    if member not in archive.namelist():
        raise RecordingError(path, f"no array {name!r}: {_other_layout(name, archive.namelist())}")
    with archive.open(member) as stream:
        try:
            version = npy.read_magic(stream)
            if version != _NPY_VERSION:
                raise ValueError(f"version {version}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it is parsed as Python, and its oddities would be warned of
                header = Header(*npy.read_array_header_1_0(stream))
        except _HEADER_DAMAGE as error:
            reason = str(error)[:100]
            raise RecordingError(
                path, f"{name} is no plain .npy array ({reason}): save it again with np.savez_compressed"
            ) from None
        stored = archive.getinfo(member).file_size - stream.tell()
        if not header.dtype.hasobject and header.bytes != stored:
            raise RecordingError(
                path,
                f"{name} is {header.dtype} of shape {header.shape}, {header.bytes} bytes, but {stored} are "
                "stored: copy or save it again",
            )
        yield stream, header


def refuse_objects(header: Header, name: str, path: Path) -> None:
    if header.dtype.hasobject:
        raise RecordingError(
            path, f"{name} holds pickled Python objects, which are never loaded: save plain arrays"
        )


def require_codes(header: Header, name: str, fmt: Format, path: Path) -> None:
    """Raises RecordingError unless an array holds words of a format."""
    refuse_objects(header, name, path)
    if header.dtype.kind != "u" or header.dtype.itemsize != fmt.word.itemsize:
        same_size = header.dtype.kind in "fiV" and header.dtype.itemsize == fmt.word.itemsize
        remedy = f"{name}.view(np.{fmt.word})" if same_size else f"{name}'s bit patterns as {fmt.word}"
        raise RecordingError(
            path, f"{name} is {header.dtype}, but {fmt} bit patterns are {fmt.word}: save {remedy}"
        )


def take(stream: IO[bytes], size: int, name: str, path: Path) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise RecordingError(path, f"{name} ends before its last row: copy or save it again")
    return data


def column(
    stream: IO[bytes], header: Header, name: str, fmt: Format, block_rows: int, path: Path
) -> Iterator[NDArray[Any]]:
    """The rows of one array, `block_rows` at a time, as native words; every code exists in its format."""
    rows = header.shape[0]
    row_bytes = header.bytes // rows
    whole = None
    if header.by_columns and len(header.shape) > 1:
        data = take(stream, header.bytes, name, path)
        whole = np.frombuffer(data, header.dtype).reshape(header.shape, order="F")
    for start in range(0, rows, block_rows):
        count = min(block_rows, rows - start)
        if whole is None:
            data = take(stream, count * row_bytes, name, path)
            codes = np.frombuffer(data, header.dtype).reshape(count, *header.shape[1:])
        else:
            codes = whole[start : start + count]
        if fmt.storage_bits < fmt.word_bits and (outside := codes >= fmt.codes).any():
            where = tuple(int(i) for i in np.argwhere(outside)[0])
            raise RecordingError(
                path,
                f"{name} holds {int(codes[where]):#x} in row {start + where[0]}, but {fmt} codes are "
                f"0 to {fmt.codes - 1:#x}",
            )
        yield np.ascontiguousarray(codes, fmt.word)
