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

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES, UnknownInstructionError
from mmaformal.display import html_table, html_title, short_repr, short_text
from mmaformal.formats import FORMATS, Format
from mmaformal.instruction import Instruction
from mmaformal.recordings.archive import (
    Header,
    RecordingError,
    array_of,
    column,
    meta_of,
    reading,
    require_codes,
    short,
)
from mmaformal.recordings.names import look_up

_BLOCK_ROWS = 1 << 14
_MOST_TERMS = 256  # no matrix instruction, sparse ones included, has a longer K
#: An array stored column by column has to be held whole to be read by rows.
_COLUMN_ORDER_BYTES = 1 << 28

_META_FIELDS = ("architecture", "instruction", "input_format", "output_format", "terms")


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
    meta: Mapping[str, object] = field(repr=False)

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
        with reading(self.path) as archive, ExitStack() as stack:
            columns = []
            for name, (shape, fmt) in self._layout().items():
                stream, header = stack.enter_context(array_of(archive, name, self.path))
                if header.shape != shape:
                    raise RecordingError(self.path, f"{name} has changed while it was read: read it again")
                columns.append(column(stream, header, name, fmt, rows, self.path))
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


Progress = Callable[[int, int], None]  #: called with rows done and rows in all


def read(
    path: str | Path,
    *,
    architecture: str | None = None,
    instruction: str | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Read and verify a recording; see the module's docstring for the layout.

    The whole file is gone through once, so that what `read` returns is sound: checksums, lengths, and codes
    of formats that do not fill their words.

    architecture, instruction: names that replace those in the meta; where both are given, the meta may be
    missing, and where `instruction` is, the formats and terms may be, and are taken from the instruction and
    the arrays.

    `Recording.instruction` is None for an instruction that no table has yet; how that is told from a wrong
    name is `names.look_up`'s to say.  progress: called as the file is gone through.

    Raises RecordingError for everything else that keeps a file from being checked.
    """
    path = Path(path)
    with reading(path) as archive:
        headers = {}
        for name in ("a", "b", "c", "d"):
            with array_of(archive, name, path) as (_, headers[name]):
                pass
        meta = meta_of(archive, path, _META_FIELDS, required=architecture is None or instruction is None)
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
        architecture=_text(meta, "architecture", path) or "",
        instruction_name=_text(meta, "instruction", path),
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
    done = 0
    for block in recording.blocks():
        done += len(block.d)
        if progress is not None:
            progress(done, recording.rows)
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


def _text(meta: Mapping[str, object], name: str, path: Path) -> str | None:
    value = meta.get(name)
    if value is not None and not isinstance(value, str):
        raise RecordingError(path, f"meta has {name!r}: {short(value)}, which is not a string")
    return value


def _resolve(meta: Mapping[str, object], path: Path, *, overridden: bool) -> Instruction | None:
    """The model of the instruction that meta names; None where there is none yet."""
    architecture_name = _text(meta, "architecture", path)
    if architecture_name is None or architecture_name not in ARCHITECTURES:
        raise RecordingError(
            path, f"no architecture {short(architecture_name)}; there are {', '.join(ARCHITECTURES)}"
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


def _with_types(
    opcode: str, candidates: tuple[Instruction, ...], meta: Mapping[str, object], path: Path
) -> str:
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
    meta: Mapping[str, object], instruction: Instruction | None, path: Path
) -> tuple[Format, Format, Format, Format]:
    """The formats of a, b, c, d.  c is of d's type, unless the instruction is known to differ."""
    named: dict[str, Format] = {}
    for name in ("input_format", "output_format"):
        if name in meta:
            text = meta[name]
            if not isinstance(text, str) or text not in FORMATS:
                raise RecordingError(
                    path, f"meta has {name!r}: {short(text)}; formats are {', '.join(FORMATS)}"
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


def _verify_headers(recording: Recording, headers: Mapping[str, Header]) -> None:
    path, rows, terms = recording.path, recording.rows, recording.terms
    for name, (shape, fmt) in recording._layout().items():
        header = headers[name]
        require_codes(header, name, fmt, path)
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
            path, f"meta has 'terms': {short(declared)}, but a has shape {headers['a'].shape}"
        )
    for name in ("a", "b"):
        if headers[name].by_columns and headers[name].bytes > _COLUMN_ORDER_BYTES:
            raise RecordingError(
                path,
                f"{name} is stored column by column, too large to be read by rows: "
                f"save np.ascontiguousarray({name})",
            )
