"""Reading a file of recorded hardware outputs.

A recording is an `.npz` of one dot product-add per row:

- `a`, `b`: (rows, terms), bit patterns in the input format, as its unsigned words (uint16 for fp16);
- `c`, `d`: (rows,), bit patterns in the output format (c in the instruction's c format where that differs);
- `meta`: a JSON object with `architecture`, `instruction` (null: the `ptx` name says which), `input_format`,
  `output_format`, `terms`; `ptx`, `gpu` and anything else are optional.

There is no place in it for block scales, nor for two input formats (a recording of an instruction with
two leaves `input_format` out, and is checked by naming the instruction).

Positions of the instruction beyond `terms` were +0.  Files come from strangers and may be large: nothing is
ever unpickled, sizes are judged before anything is read, and the arrays are read in blocks of rows.
"""

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
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES, UnknownInstructionError
from mmaformal.display import html_table, html_title, short_repr, short_text
from mmaformal.formats import FORMATS, Format
from mmaformal.instruction import Instruction
from mmaformal.recordings.names import look_up

_BLOCK_ROWS = 1 << 14
_MOST_TERMS = 256  # no matrix instruction, sparse ones included, has a longer K
_META_BYTES = 1 << 20
#: What np.save writes for plain arrays; in the longer headers of later ones a small file can claim gigabytes.
_NPY_VERSION = (1, 0)
#: An array stored column by column has to be held whole to be read by rows.
_COLUMN_ORDER_BYTES = 1 << 28
_MESSAGE_CHARACTERS = 600

_META_FIELDS = ("architecture", "instruction", "input_format", "output_format", "terms")

#: What zipfile raises besides BadZipFile; RuntimeError: encrypted, or a compression it does not have
_ZIP_DAMAGE = (EOFError, OSError, RuntimeError, ValueError, lzma.LZMAError, struct.error, zlib.error)
#: What parsing an .npy header raises: numpy.lib.format, ast.literal_eval and the tokenizer it falls back on
_HEADER_DAMAGE = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError)


class RecordingError(ValueError):
    """A recording that cannot be checked; one line: which file, what is wrong with it, what to do."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        reason = " ".join(reason.split())
        self.reason = reason if len(reason) <= _MESSAGE_CHARACTERS else reason[:_MESSAGE_CHARACTERS] + " …"
        super().__init__(f"{path}: {self.reason}")


class Block(NamedTuple):
    """Consecutive rows as native unsigned words: a, b of shape (rows, terms); c, d of shape (rows,)."""

    a: NDArray[Any]
    b: NDArray[Any]
    c: NDArray[Any]
    d: NDArray[Any]

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True, repr=False)
class Recording:
    """A well-formed recording: what its meta says, and access to its rows.  The rows stay in the file."""

    path: Path
    gpu: str | None
    architecture: str
    instruction_name: str | None  #: as recorded; None where the PTX instruction is lowered to several
    ptx: str | None
    instruction: Instruction | None  #: the model of it; None: not modelled yet
    a_format: Format
    b_format: Format
    c_format: Format
    d_format: Format
    rows: int
    terms: int  #: recorded products per row; positions of the instruction beyond them were +0
    meta: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """The name it is looked up by: the instruction's, or the PTX one where there is none."""
        return self.instruction_name or self.ptx or ""

    @property
    def label(self) -> str:
        return self.instruction.label if self.instruction else f"{self.architecture} {self.name}"

    def __repr__(self) -> str:
        return short_text(self, str(self.path), f"{self.label}, {self._size}")

    def _repr_html_(self) -> str:
        told = {"gpu": self.gpu or "", "instruction": self.label, "ptx": self.ptx or "", "data": self._size}
        told |= {name: str(getattr(self, f"{name}_format")) for name in "abcd"}
        return html_title("Recording", str(self.path)) + html_table(("", ""), list(told.items()))

    @property
    def _size(self) -> str:
        return f"{self.rows:,} rows of {self.terms} products"

    def blocks(self, rows: int = _BLOCK_ROWS) -> Iterator[Block]:
        """All rows in order, at most `rows` at a time; memory is bounded by one block.

        Raises RecordingError if the file has changed since it was read.
        """
        with _reading(self.path) as archive, ExitStack() as stack:
            columns = []
            for name, (shape, fmt) in self._layout().items():
                stream, header = stack.enter_context(_array(archive, name, self.path))
                if header.shape != shape:
                    raise RecordingError(self.path, f"{name} has changed while it was read: read it again")
                columns.append(_column(stream, header, name, fmt, rows, self.path))
            yield from map(Block._make, zip(*columns, strict=True))

    def load(self) -> Block:
        """All rows at once; takes as much memory as the arrays do.  Raises as `blocks`."""
        return next(self.blocks(self.rows))

    def _layout(self) -> dict[str, tuple[tuple[int, ...], Format]]:
        products, single = (self.rows, self.terms), (self.rows,)
        return {
            "a": (products, self.a_format),
            "b": (products, self.b_format),
            "c": (single, self.c_format),
            "d": (single, self.d_format),
        }


def read(path: str | Path, *, architecture: str | None = None, instruction: str | None = None) -> Recording:
    """Read and verify a recording; see the module's docstring for the layout.

    The whole file is gone through once, so that what `read` returns is sound: checksums, lengths, and codes
    of formats that do not fill their words.

    architecture, instruction: names that replace those in the meta; where both are given, the meta may be
    missing, and where `instruction` is, the formats and terms may be, and are taken from the instruction and
    the arrays.

    `Recording.instruction` is None for an instruction that no table has yet; how that is told from a wrong
    name is `names.look_up`'s to say.  Raises RecordingError for everything else that keeps a file from being
    checked.
    """
    path = Path(path)
    with _reading(path) as archive:
        headers = {}
        for name in ("a", "b", "c", "d"):
            with _array(archive, name, path) as (_, headers[name]):
                pass
        meta = _meta(archive, path, required=architecture is None or instruction is None)
    if architecture is not None:
        meta["architecture"] = architecture
    if instruction is not None:
        meta["instruction"] = instruction

    missing = [name for name in _META_FIELDS if name not in meta]
    vouched = {"input_format", "output_format", "terms"} if instruction is not None else set()
    if lacking := [name for name in missing if name not in vouched]:
        hint = {
            "architecture": "--arch names it for this run",
            "instruction": "--instruction names it for this run; null means that ptx does",
        }.get(lacking[0], "add it to the JSON")
        raise RecordingError(path, f"meta lacks {', '.join(map(repr, lacking))}: {hint}")
    model = _resolve(meta, path, overridden=instruction is not None)
    a_format, b_format, c_format, d_format = _formats(meta, model, path)

    recording = Recording(
        path=path,
        gpu=_text(meta, "gpu", path),
        architecture=meta["architecture"],
        instruction_name=meta["instruction"],
        ptx=_text(meta, "ptx", path),
        instruction=model,
        a_format=a_format,
        b_format=b_format,
        c_format=c_format,
        d_format=d_format,
        rows=headers["d"].shape[0] if headers["d"].shape else 0,
        terms=headers["a"].shape[-1] if headers["a"].shape else 0,
        meta=meta,
    )
    _verify_headers(recording, headers)
    if model is not None:
        require_fit(recording, model)
    for _ in recording.blocks():
        pass
    return recording


def require_fit(recording: Recording, instruction: Instruction) -> None:
    """Raises RecordingError unless the recording has the instruction's types and at most its K terms, and the
    instruction takes no block scales."""
    for what in ("a", "b", "c", "d"):
        recorded: Format = getattr(recording, f"{what}_format")
        modelled: Format = getattr(instruction, f"{what}_format")
        if recorded is not modelled:
            raise RecordingError(
                recording.path,
                f"{what} is recorded as {recorded}, but {instruction.label} takes {instruction.spec.types}: "
                "correct the formats or the instruction in meta",
            )
    if instruction.spec.scale_format is not None:
        raise RecordingError(
            recording.path, f"{instruction.label} takes block scales, for which a recording has no place"
        )
    if recording.terms > instruction.k:
        raise RecordingError(
            recording.path,
            f"{recording.terms} terms per row, but {instruction.label} has K = {instruction.k}: record one "
            f"instruction per row, or name the one that was issued",
        )


# ---- meta --------------------------------------------------------------------------------------------------


def _meta(archive: zipfile.ZipFile, path: Path, *, required: bool) -> dict[str, Any]:
    if "meta.npy" not in archive.namelist():
        if not required:
            return {}
        raise RecordingError(
            path,
            "no array 'meta', the JSON that says what was recorded: add it, or give --arch and --instruction",
        )
    with _array(archive, "meta", path) as (stream, header):
        _refuse_objects(header, "meta", path)
        if header.dtype.kind not in "US" or math.prod(header.shape) != 1:
            raise RecordingError(
                path,
                f"meta is {header.dtype} of shape {header.shape}, not one string: save json.dumps(meta)",
            )
        if header.bytes > _META_BYTES:
            raise RecordingError(
                path, f"meta has {header.bytes} bytes; a description has at most {_META_BYTES}"
            )
        data = _take(stream, header.bytes, "meta", path)
    try:
        item = np.frombuffer(data, header.dtype)[0] if data else ""
        meta = json.loads(item.decode() if isinstance(item, bytes) else str(item))
    except (ValueError, RecursionError) as error:
        raise RecordingError(path, f"meta is not JSON ({error}): save json.dumps(meta)") from None
    if not isinstance(meta, dict):
        raise RecordingError(
            path, f"meta is the JSON {_short(meta)}, not an object with {', '.join(_META_FIELDS)}"
        )
    return meta


def _text(meta: Mapping[str, Any], name: str, path: Path) -> str | None:
    value = meta.get(name)
    if value is not None and not isinstance(value, str):
        raise RecordingError(path, f"meta has {name!r}: {_short(value)}, which is not a string")
    return value


def _resolve(meta: Mapping[str, Any], path: Path, *, overridden: bool) -> Instruction | None:
    """The model of the instruction that meta names; None where there is none yet."""
    architecture_name = _text(meta, "architecture", path)
    if architecture_name is None or architecture_name not in ARCHITECTURES:
        raise RecordingError(
            path, f"no architecture {_short(architecture_name)}; there are {', '.join(ARCHITECTURES)}"
        )
    architecture = ARCHITECTURES[architecture_name]
    sass, ptx = _text(meta, "instruction", path), _text(meta, "ptx", path)
    name = ptx if sass is None else sass
    if name is None:
        raise RecordingError(path, "meta has a null instruction and no 'ptx' to go by: give one of them")
    if candidates := architecture.of_opcode(name):
        name = _with_types(name, candidates, meta, path)
    try:
        instruction = look_up(architecture, name)
    except UnknownInstructionError as error:
        raise RecordingError(path, str(error)) from None
    if instruction is None or overridden or ptx is None or ptx not in architecture:
        return instruction
    if architecture[ptx] != instruction:
        raise RecordingError(
            path,
            f"meta contradicts itself: instruction is {instruction.name}, but ptx is that of "
            f"{architecture[ptx].name}; correct one of them",
        )
    return instruction


def _with_types(opcode: str, candidates: tuple[Instruction, ...], meta: Mapping[str, Any], path: Path) -> str:
    """The name of the one instruction of this opcode that has the formats of meta, without block scales."""
    fits = [
        each.name
        for each in candidates
        if each.spec.scale_format is None
        and each.a_format.name == each.b_format.name == meta.get("input_format")
        and each.d_format.name == meta.get("output_format")
    ]
    if len(fits) != 1:
        shown = ", ".join(each.name for each in candidates[:4])
        raise RecordingError(
            path,
            f"{opcode} takes its types from a descriptor, and meta's formats do not say which it is: name it "
            f"with its types, as in {shown}",
        )
    return fits[0]


def _formats(
    meta: Mapping[str, Any], instruction: Instruction | None, path: Path
) -> tuple[Format, Format, Format, Format]:
    """The formats of a, b, c, d.  c is of d's type, unless the instruction is known to differ."""
    named: dict[str, Format] = {}
    for name in ("input_format", "output_format"):
        if name in meta:
            text = meta[name]
            if not isinstance(text, str) or text not in FORMATS:
                raise RecordingError(
                    path, f"meta has {name!r}: {_short(text)}; formats are {', '.join(FORMATS)}"
                )
            named[name] = FORMATS[text]
    if instruction is None:
        if len(named) < 2:
            raise RecordingError(
                path, "meta lacks its formats, and the instruction is not modelled yet: add them"
            )
        given, result = named["input_format"], named["output_format"]
        return given, given, result, result
    d_format = named.get("output_format", instruction.d_format)
    return (
        named.get("input_format", instruction.a_format),
        named.get("input_format", instruction.b_format),
        instruction.c_format if d_format is instruction.d_format else d_format,
        d_format,
    )


def _short(value: object) -> str:
    return reprlib.repr(value)


# ---- arrays ------------------------------------------------------------------------------------------------


class _Header(NamedTuple):
    shape: tuple[int, ...]
    by_columns: bool
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


@contextmanager
def _reading(path: Path) -> Iterator[zipfile.ZipFile]:
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


@contextmanager
def _array(archive: zipfile.ZipFile, name: str, path: Path) -> Iterator[tuple[IO[bytes], _Header]]:
    """An array's data stream and header, whose sizes are judged before a byte of data is read."""
    member = f"{name}.npy"
    if member not in archive.namelist():
        raise RecordingError(path, f"no array {name!r}: a recording has a, b, c, d and meta")
    with archive.open(member) as stream:
        try:
            version = npy.read_magic(stream)
            if version != _NPY_VERSION:
                raise ValueError(f"version {version}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it is parsed as Python, and its oddities would be warned of
                header = _Header(*npy.read_array_header_1_0(stream))
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


def _refuse_objects(header: _Header, name: str, path: Path) -> None:
    if header.dtype.hasobject:
        raise RecordingError(
            path, f"{name} holds pickled Python objects, which are never loaded: save plain arrays"
        )


def _verify_headers(recording: Recording, headers: Mapping[str, _Header]) -> None:
    path, rows, terms = recording.path, recording.rows, recording.terms
    for name, (shape, fmt) in recording._layout().items():
        header = headers[name]
        _refuse_objects(header, name, path)
        if header.dtype.kind != "u" or header.dtype.itemsize != fmt.word.itemsize:
            same_size = header.dtype.kind in "fiV" and header.dtype.itemsize == fmt.word.itemsize
            remedy = f"{name}.view(np.{fmt.word})" if same_size else f"{name}'s bit patterns as {fmt.word}"
            raise RecordingError(
                path, f"{name} is {header.dtype}, but {fmt} bit patterns are {fmt.word}: save {remedy}"
            )
        if len(header.shape) != len(shape):
            wanted = "(rows, terms)" if len(shape) == 2 else "(rows,)"
            raise RecordingError(path, f"{name} has shape {header.shape}, but needs {wanted}")
    if rows == 0:
        raise RecordingError(path, "no rows, so nothing that could be checked")
    for name, (shape, _) in recording._layout().items():
        if headers[name].shape != shape:
            raise RecordingError(
                path,
                f"{name} has shape {headers[name].shape}, but with d {headers['d'].shape} and "
                f"a {headers['a'].shape} it needs {shape}",
            )
    if not 1 <= terms <= _MOST_TERMS:
        raise RecordingError(
            path, f"a has shape {headers['a'].shape}, (rows, terms): {terms} terms are no instruction's K"
        )
    declared = recording.meta.get("terms", terms)
    if declared != terms:
        raise RecordingError(
            path, f"meta has 'terms': {_short(declared)}, but a has shape {headers['a'].shape}"
        )
    for name in ("a", "b"):
        if headers[name].by_columns and headers[name].bytes > _COLUMN_ORDER_BYTES:
            raise RecordingError(
                path,
                f"{name} is stored column by column, too large to be read by rows: "
                f"save np.ascontiguousarray({name})",
            )


def _take(stream: IO[bytes], size: int, name: str, path: Path) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise RecordingError(path, f"{name} ends before its last row: copy or save it again")
    return data


def _column(
    stream: IO[bytes], header: _Header, name: str, fmt: Format, block_rows: int, path: Path
) -> Iterator[NDArray[Any]]:
    """The rows of one array, `block_rows` at a time, as native words; every code exists in its format."""
    rows = header.shape[0]
    row_bytes = header.bytes // rows
    whole = None
    if header.by_columns and len(header.shape) > 1:
        data = _take(stream, header.bytes, name, path)
        whole = np.frombuffer(data, header.dtype).reshape(header.shape, order="F")
    for start in range(0, rows, block_rows):
        count = min(block_rows, rows - start)
        if whole is None:
            data = _take(stream, count * row_bytes, name, path)
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
