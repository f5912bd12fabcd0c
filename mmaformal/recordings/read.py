"""Reading a file of recorded hardware outputs, whichever way it is stored (`mmaformal.recordings.layouts`).

A recording has one dot product-add per row:

- `a`, `b`: (rows, terms), bit patterns in the input format;
- `c`, `d`: (rows,), bit patterns in the output format (c in the instruction's c format where that differs);
- `scale_a`, `scale_b`: (rows, K / block), for an instruction with block scales;
- `meta`: a JSON object with `architecture`, `instruction` (null: the `ptx` name says which), `input_format`,
  `output_format`, `terms`; `ptx`, `gpu` or `device`, `driver`, `source` and anything else are optional.  `a_format` and
  `b_format` stand in place of `input_format` where they differ, and `c_format` where c has another than d;
  `scale_format` and `scale_block` are those of the instruction, if it is modelled.

Positions of the instruction beyond `terms` were +0.  Files come from strangers and may be large: rows are read in
blocks, and what is wrong is told with the number of its row, from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from mmaformal.display import counted, html_table, html_title, short_repr, short_text
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.recordings.archive import RecordingError, short
from mmaformal.recordings.layouts import ARRAYS, SCALES, Arrays, Description, Wanted, layout, layout_of
from mmaformal.recordings.schema import formats_of, lacking, recorded_unit, text_of

_BLOCK_ROWS = 1 << 14
_MOST_TERMS = 256  # no matrix instruction, sparse ones included, has a longer K

RowsRead = Callable[[int, int], None]  #: called with rows done and rows in all


class RowBlock(NamedTuple):
    """Consecutive rows as native unsigned words: a, b of shape (rows, terms); c, d of shape (rows,)."""

    a: NDArray[Any]
    b: NDArray[Any]
    c: NDArray[Any]
    d: NDArray[Any]
    scale_a: NDArray[Any] | None = None  #: (rows, K / block), if there are block scales
    scale_b: NDArray[Any] | None = None

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
    layout: str = "npz"  #: how it is stored
    scale_format: Format | None = None  #: of block scales, if it has them
    scales: int = 0  #: how many a row has of each side

    @property
    def name(self) -> str:
        """The name it is looked up by: the instruction's, or the PTX one where there is none."""
        return self.instruction_name or self.ptx or ""

    @property
    def label(self) -> str:
        if self.instruction is not None:
            return self.instruction.label
        return f"{self.architecture} {self.name}".strip() or "an unnamed unit"

    def __repr__(self) -> str:
        return short_text(self, str(self.path), f"{self.label}, {self._size}")

    def _repr_html_(self) -> str:
        told = {"gpu": self.gpu or "", "instruction": self.label, "ptx": self.ptx or "", "data": self._size}
        told |= {name: str(getattr(self, f"{name}_format")) for name in "abcd"}
        return html_title("Recording", str(self.path)) + html_table(("", ""), list(told.items()))

    @property
    def _size(self) -> str:
        return f"{counted(self.rows, 'row')} of {counted(self.terms, 'product')}"

    def blocks(self, rows: int = _BLOCK_ROWS) -> Iterator[RowBlock]:
        """All rows in order, at most `rows` at a time; memory is bounded by one block.

        Raises RecordingError if the file has changed since it was read.
        """
        return (RowBlock(**arrays) for arrays in self.arrays(rows))

    def arrays(self, rows: int = _BLOCK_ROWS) -> Iterator[Arrays]:
        """Yield the blocks of rows as arrays by their names."""
        return layout(self.layout).pieces(self.path, self.wanted, rows)

    def load(self) -> RowBlock:
        """All rows at once; takes as much memory as the arrays do.  Raises as `blocks`."""
        return next(self.blocks(self.rows))

    @property
    def wanted(self) -> dict[str, Wanted]:
        """The shape and format of each of its arrays, by name."""
        products, single = (self.rows, self.terms), (self.rows,)
        found = {
            "a": Wanted(products, self.a_format),
            "b": Wanted(products, self.b_format),
            "c": Wanted(single, self.c_format),
            "d": Wanted(single, self.d_format),
        }
        if self.scale_format is not None:
            found |= {name: Wanted((self.rows, self.scales), self.scale_format) for name in SCALES}
        return found


def read(
    path: str | Path,
    *,
    architecture: str | None = None,
    instruction: str | None = None,
    modelled: bool = True,
    progress: RowsRead | None = None,
) -> Recording:
    """Read and verify a recording; see the module's docstring for what it has.

    The whole file is gone through once, so that what `read` returns is sound: checksums, lengths, and codes
    of formats that do not fill their words.

    architecture, instruction: names that replace those in the meta; where both are given, the meta may be
    missing, and where `instruction` is, the formats and terms may be, and are taken from the instruction and
    the arrays.

    `Recording.instruction` is None for an instruction that no table has yet; how that is told from a wrong
    name is `names.look_up`'s to say.  modelled: False for rows that need no model, whose architecture and instruction
    may have any names or none; where they are not those of a table, meta has to have the formats.
    progress: called as the file is gone through.

    Raises RecordingError for everything else that keeps a file from being checked.
    """
    path = Path(path)
    kind = layout_of(path)
    told = layout(kind).describe(path)
    meta = _meta(told, kind, path, architecture, instruction, modelled)
    model = recorded_unit(meta, path, overridden=instruction is not None, modelled=modelled)
    formats = formats_of(meta, model, path)
    scaled = any(name in told.shapes for name in SCALES)
    recording = Recording(
        path=path,
        gpu=text_of(meta, "gpu", path) or text_of(meta, "device", path),
        architecture=text_of(meta, "architecture", path) or "",
        instruction_name=text_of(meta, "instruction", path),
        ptx=text_of(meta, "ptx", path),
        instruction=model,
        a_format=formats.a,
        b_format=formats.b,
        c_format=formats.c,
        d_format=formats.d,
        rows=told.shapes["d"][0] if told.shapes["d"] else 0,
        terms=told.shapes["a"][-1] if told.shapes["a"] else 0,
        meta=meta,
        layout=kind,
        scale_format=formats.scale if scaled else None,
        scales=(told.shapes.get("scale_a") or (0,))[-1],
    )
    if scaled and formats.scale is None:
        hint = f"{model.label} takes none" if model is not None else "meta lacks 'scale_format'"
        raise RecordingError(path, f"there are block scales, but {hint}: remove them or correct meta")
    _verify_shapes(recording, told.shapes)
    if model is not None and modelled:
        require_fit(recording, model)
    _go_through(recording, progress)
    return recording


def _go_through(recording: Recording, progress: RowsRead | None) -> None:
    """Read all rows once; what is not sound about one raises RecordingError."""
    done = 0
    for arrays in recording.arrays():
        done += len(arrays["d"])
        if progress is not None:
            progress(done, recording.rows)


def _meta(
    told: Description,
    kind: str,
    path: Path,
    architecture: str | None,
    instruction: str | None,
    modelled: bool,
) -> dict[str, object]:
    """Return the meta that file and caller say, the caller first.  Raises RecordingError if both say too little."""
    if told.meta is None and (architecture is None or instruction is None):
        raise RecordingError(
            path,
            f"no {layout(kind).META}, the JSON that says what was recorded: add it, or give --arch and --instruction",
        )
    meta = dict(told.meta or {})
    if architecture is not None:
        meta["architecture"] = architecture
    if instruction is not None:
        meta["instruction"] = instruction
    for name in ("driver", "source"):
        text_of(meta, name, path)
    vouched = {"input_format", "output_format", "terms"} if instruction is not None else set()
    if not modelled:
        vouched |= {"architecture", "instruction", "terms"}
    if missing := lacking(meta, vouched):
        hint = {
            "architecture": f"--arch names it for this run{_of_device(meta)}",
            "instruction": "--instruction names it for this run; null means that ptx does",
        }.get(missing[0], "add it to the JSON")
        raise RecordingError(path, f"meta lacks {', '.join(map(repr, missing))}: {hint}")
    return meta


def _of_device(meta: Mapping[str, object]) -> str:
    """Returns what to add where the device is named, and no architecture is known of it."""
    return f" (none is known of the device {short(meta['gpu'])})" if isinstance(meta.get("gpu"), str) else ""


def require_fit(recording: Recording, instruction: Instruction) -> None:
    """Raises RecordingError unless the recording has the instruction's types, at most its K terms, and its scales."""
    for what in ("a", "b", "c", "d"):
        recorded: Format = getattr(recording, f"{what}_format")
        modelled: Format = getattr(instruction, f"{what}_format")
        if recorded is not modelled:
            raise RecordingError(
                recording.path,
                f"{what} is recorded as {recorded}, but {instruction.label} takes {instruction.spec.types}: "
                "correct the formats or the instruction in meta",
            )
    if recording.terms > instruction.k:
        raise RecordingError(
            recording.path,
            f"{recording.terms} terms per row, but {instruction.label} has K = {instruction.k}: record one "
            f"instruction per row, or name the one that was issued",
        )
    spec = instruction.spec
    if recording.scale_format is not spec.scale_format:
        there = f"are {recording.scale_format}" if recording.scale_format is not None else "are not there"
        takes = "takes none"
        if spec.scale_format is not None:
            takes = f"takes {spec.scale_format}, one per {spec.scale_block} products"
        raise RecordingError(
            recording.path,
            f"block scales {there}, and {instruction.label} {takes}: scale_a and scale_b are (rows, {spec.scales})",
        )
    if recording.scales != spec.scales:
        raise RecordingError(
            recording.path,
            f"{recording.scales} block scales per row, but {instruction.label} has {spec.scales} of each side, one per "
            f"{spec.scale_block} products of its {spec.k}",
        )


def _verify_shapes(recording: Recording, shapes: Mapping[str, tuple[int, ...]]) -> None:
    path, rows, terms = recording.path, recording.rows, recording.terms
    wanted = recording.wanted
    for name, (shape, _) in wanted.items():
        if name not in shapes:
            raise RecordingError(path, f"no {name}, but there is its other side: add it")
        if len(shapes[name]) != len(shape):
            each = (
                "(rows,)" if len(shape) == 1 else "(rows, terms)" if name in ARRAYS else "(rows, K / block)"
            )
            raise RecordingError(path, f"{name} has shape {shapes[name]}, but needs {each}")
    if rows == 0:
        raise RecordingError(path, "no rows, so nothing that could be checked")
    for name, (shape, _) in wanted.items():
        if shapes[name] != shape:
            raise RecordingError(
                path,
                f"{name} has shape {shapes[name]}, but with d {shapes['d']} and a {shapes['a']} it needs {shape}",
            )
    if not 1 <= terms <= _MOST_TERMS:
        raise RecordingError(
            path, f"a has shape {shapes['a']}, (rows, terms): {terms} terms are no instruction's K"
        )
    declared = recording.meta.get("terms", terms)
    if declared != terms:
        raise RecordingError(path, f"meta has 'terms': {short(declared)}, but a has shape {shapes['a']}")
