"""Checking a recording against a model: how many rows the model gets wrong, and the smallest of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from dataclasses import replace as changed
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import HtmlText, ShortRepr, mismatches_of, short_text
from mmaformal.encodings.executable.blocks import decode
from mmaformal.executors import each_in_order
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows as kernels
from mmaformal.recordings.archive import RecordingError
from mmaformal.recordings.backing import HARDWARE, backing
from mmaformal.recordings.read import Recording, RowBlock, RowsRead, read, require_fit
from mmaformal.recordings.states import StatesReport, check_states, holds_states
from mmaformal.renamed import new_names
from mmaformal.solver.deadline import Deadline, check_time, checked_timeout
from mmaformal.spec import DotAdd

#: The widest formats, in bits, of which the parts of every code are kept.
_TABLE_BITS = 16


class NotModelledError(LookupError):
    """The recorded instruction is in no table yet."""


@dataclass(frozen=True, repr=False)
class Mismatch(ShortRepr):
    """A row whose recorded d is not the model's; codes, with a and b of all K positions."""

    row: int  #: counted from 0
    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    recorded: int
    modelled: int
    scale_a: tuple[int, ...] = ()
    scale_b: tuple[int, ...] = ()

    def text(self, instruction: Instruction) -> str:
        """Several lines: the row in hexadecimal, both results also as exact values."""
        spec = instruction.spec
        results = [
            f"{who} d = {_hex(d, spec.d_format)} ({spec.d_format.text(d)})"
            for who, d in (("recorded", self.recorded), ("modelled", self.modelled))
        ]
        return "\n".join(
            [
                f"smallest mismatching row: {self.row}",
                "a = " + " ".join(_hex(x, spec.a_format) for x in self.a),
                "b = " + " ".join(_hex(x, spec.b_format) for x in self.b),
                f"c = {_hex(self.c, spec.c_format)}",
                *(f"{name} = {' '.join(codes)}" for name, codes in self._scales(spec).items()),
                *results,
            ]
        )

    def to_json(self, instruction: Instruction) -> dict[str, object]:
        """Codes as hexadecimal strings, since JSON numbers need not hold 64 bits."""
        spec = instruction.spec
        return {
            "row": self.row,
            "a": [_hex(x, spec.a_format) for x in self.a],
            "b": [_hex(x, spec.b_format) for x in self.b],
            "c": _hex(self.c, spec.c_format),
            "recorded": _hex(self.recorded, spec.d_format),
            "modelled": _hex(self.modelled, spec.d_format),
        } | self._scales(spec)

    def _scales(self, spec: DotAdd) -> dict[str, list[str]]:
        """The codes of block scales, if there are any."""
        if spec.scale_format is None:
            return {}
        fmt = spec.scale_format
        sides = {"scale_a": self.scale_a, "scale_b": self.scale_b}
        return {name: [_hex(x, fmt) for x in codes] for name, codes in sides.items()}


@dataclass(frozen=True, repr=False)
class CheckReport(HtmlText):
    """The report of checking one recording."""

    recording: Recording
    instruction: Instruction  #: the model it was checked against
    rows: int
    mismatches: int
    smallest: Mismatch | None  #: of the mismatching rows, the least by `row_sizes`, then the first
    first_row: int | None  #: the first mismatching row, counted from 0

    @property
    def path(self) -> Path:
        return self.recording.path

    @property
    def rate(self) -> float:
        return self.mismatches / self.rows

    @property
    def exit_code(self) -> int:
        return 1 if self.mismatches else 0

    @property
    def evidence(self) -> str:
        """The kind of evidence behind the model, and whose that is; empty for what is no row of the tables."""
        backed = backing(self.instruction)
        return "" if backed is None else f"{backed.kind}: {backed.whose}" if backed.whose else backed.kind

    @property
    def note(self) -> str:
        """The evidence behind the model, in words, where that is not hardware; empty otherwise."""
        return f"(behind the model: {self.evidence})" if self.evidence not in ("", HARDWARE) else ""

    def columns(self) -> tuple[str, ...]:
        return self.instruction.label, _rows(self.rows), mismatches_of(self.mismatches, self.rows)

    def __str__(self) -> str:
        """One line, and the smallest mismatching row where there is one."""
        line = "   ".join((self.path.name, *self.columns(), *([self.note] if self.note else [])))
        if self.smallest is None:
            return line
        return "\n  ".join([line, *self.smallest.text(self.instruction).splitlines()])

    def __repr__(self) -> str:
        return short_text(self, self.path.name, ", ".join(self.columns()))

    def to_json(self) -> dict[str, object]:
        """The report as what `json.dumps` takes."""
        return {
            "file": str(self.path),
            "status": "mismatch" if self.mismatches else "match",
            "gpu": self.recording.gpu,
            "architecture": self.instruction.architecture,
            "instruction": self.instruction.name,
            "evidence": self.evidence,
            "rows": self.rows,
            "terms": self.recording.terms,
            "mismatches": self.mismatches,
            "rate": self.rate,
            "first_mismatching_row": self.first_row,
            "smallest_mismatch": self.smallest.to_json(self.instruction) if self.smallest else None,
        }


@dataclass(frozen=True, repr=False)
class NotModelled(HtmlText):
    """A well-formed recording of an instruction that no table has yet: nothing could be checked."""

    recording: Recording
    exit_code: ClassVar[int] = 0

    @property
    def path(self) -> Path:
        return self.recording.path

    def columns(self) -> tuple[str, ...]:
        return self.recording.label, _rows(self.recording.rows), "not modelled yet, not checked"

    def __str__(self) -> str:
        return "   ".join((self.path.name, *self.columns()))

    def __repr__(self) -> str:
        return short_text(self, self.path.name, ", ".join(self.columns()))

    def to_json(self) -> dict[str, object]:
        return {
            "file": str(self.path),
            "status": "not modelled",
            "gpu": self.recording.gpu,
            "architecture": self.recording.architecture,
            "instruction": self.recording.name,
            "rows": self.recording.rows,
            "terms": self.recording.terms,
        }


@dataclass(frozen=True, repr=False)
class FileFailure(HtmlText):
    """A file that could not be checked, and why, in one line."""

    path: Path
    reason: str
    exit_code: ClassVar[int] = 2

    def columns(self) -> tuple[str, ...]:
        return (f"error: {self.reason}",)

    def __str__(self) -> str:
        return "   ".join((self.path.name, *self.columns()))

    def __repr__(self) -> str:
        return short_text(self, self.path.name, ", ".join(self.columns()))

    def to_json(self) -> dict[str, object]:
        return {"file": str(self.path), "status": "error", "reason": self.reason}


FileOutcome = CheckReport | StatesReport | NotModelled | FileFailure


def check(
    recording: Recording,
    instruction: Instruction | None = None,
    *,
    executor: Executor | None = None,
    progress: RowsRead | None = None,
) -> CheckReport:
    """Evaluate every row with `instruction`, by default the model of the one recorded.

    Positions beyond the recorded terms are +0.  Results are compared bit by bit; where the algorithm leaves
    the payload of a NaN open (`DotAdd.nan_is_canonical` is false), any two NaNs are equal.  Memory is bounded
    by one block of rows, or some for each worker of an `executor`, which take the blocks among each other
    (`mmaformal.executors`).  progress: called after each block with rows done and rows in all.

    Raises NotModelledError if there is no model, RecordingError if the recording does not fit the
    instruction, LostWorkerError.
    """
    instruction = instruction or recording.instruction
    if instruction is None:
        raise NotModelledError(f"{recording.path}: {recording.label} is not modelled yet")
    require_fit(recording, instruction)

    threads = kernels.processors() if executor is None else 1
    compiled = threads if recording.rows * instruction.k >= kernels.MANY else 0
    total = _Checked()
    parts = ((instruction, compiled, block) for block in recording.blocks())
    for each in each_in_order(executor, _checked, parts):
        total += each
        if progress is not None:
            progress(total.rows, recording.rows)
    return CheckReport(recording, instruction, total.rows, total.mismatches, total.smallest, total.first_row)


@dataclass(frozen=True, repr=False)
class _Checked(ShortRepr):
    """Rows that were checked, one after the other: of two, `x + y`, those of y come after those of x."""

    rows: int = 0
    mismatches: int = 0
    smallest: Mismatch | None = None
    size: tuple[int, ...] = ()  #: of the smallest
    first_row: int | None = None

    def __add__(self, after: _Checked) -> _Checked:
        smallest, size, first = self.smallest, self.size, self.first_row
        if after.smallest is not None and (smallest is None or after.size < size):
            smallest, size = changed(after.smallest, row=self.rows + after.smallest.row), after.size
        if first is None and after.first_row is not None:
            first = self.rows + after.first_row
        return _Checked(self.rows + after.rows, self.mismatches + after.mismatches, smallest, size, first)


def _checked(instruction: Instruction, threads: int, block: RowBlock) -> _Checked:
    """Check a block of rows, by compiled rows in so many threads; 0: by `Instruction.dot_add`."""
    block = _padded(block, instruction.k)
    evaluate = instruction.dot_add
    if threads:
        evaluate = partial(kernels.dot_add, instruction.spec, threads=threads)
    scales = {} if block.scale_a is None else {"scale_a": block.scale_a, "scale_b": block.scale_b}
    modelled = evaluate(block.a, block.b, block.c, **scales)
    wrong = np.flatnonzero(_differ(block.d, modelled, instruction.spec))
    if not wrong.size:
        return _Checked(len(block.d))
    sizes = row_sizes(instruction.spec, block.a[wrong], block.b[wrong], block.c[wrong])
    best = int(np.lexsort(sizes.T[::-1])[0])
    i = int(wrong[best])
    smallest = Mismatch(
        row=i,
        a=tuple(map(int, block.a[i])),
        b=tuple(map(int, block.b[i])),
        c=int(block.c[i]),
        recorded=int(block.d[i]),
        modelled=int(modelled[i]),
        **{name: tuple(map(int, each[i])) for name, each in scales.items() if each is not None},
    )
    size = tuple(int(x) for x in sizes[best])
    return _Checked(len(block.d), int(wrong.size), smallest, size, int(wrong[0]))


def check_file(
    path: str | Path,
    *,
    architecture: str | None = None,
    instruction: str | None = None,
    replace: Mapping[str, object] | None = None,
    timeout: float | None = None,
    executor: Executor | None = None,
    reading: RowsRead | None = None,
    progress: RowsRead | None = None,
) -> FileOutcome:
    """Read and check one file; whatever is wrong with it is the outcome, not an exception.

    architecture, instruction: as for `read`.  replace: parameters of the algorithm to change, as a
    hypothesis to test (`{"F": 23}`).  timeout: seconds, after which it is not checked.  executor: whose workers check
    blocks of rows.  reading: called as the file is gone through, before rows are checked.
    A recording of states (`states`) names its instructions itself, and takes none of these.

    Raises LostWorkerError.
    """
    if timeout is not None:
        with Deadline(timeout):
            return check_file(
                path,
                architecture=architecture,
                instruction=instruction,
                replace=replace,
                executor=executor,
                reading=reading,
                progress=progress,
            )
        return FileFailure(Path(path), "not checked when the time was up: give it more with --timeout")
    try:
        if Path(path).suffix == ".npz" and holds_states(Path(path)):
            if architecture or instruction or replace:
                return FileFailure(
                    Path(path), "a recording of states names its instructions, which have no parameters"
                )
            return check_states(Path(path))
        recording = read(path, architecture=architecture, instruction=instruction, progress=reading)
        if recording.instruction is None:
            return NotModelled(recording)
        check_time()
        model = _hypothesis(recording.instruction, replace or {})
        return check(recording, model, executor=executor, progress=progress)
    except RecordingError as error:
        return FileFailure(error.path, error.reason)
    except _HypothesisError as error:
        return FileFailure(Path(path), str(error))


def check_files(
    paths: Sequence[str | Path],
    *,
    architecture: str | None = None,
    instruction: str | None = None,
    replace: Mapping[str, object] | None = None,
    timeout: float | None = None,
    executor: Executor | None = None,
    progress: Callable[[str], None] | None = None,
) -> list[FileOutcome]:
    """Return `check_file` of each path, in order; a file that fails does not keep the others from it.

    timeout: seconds for all of them.  progress: called with a line of text.
    """
    start, found = time.monotonic(), list[FileOutcome]()
    limit = None if timeout is None else checked_timeout(timeout)
    for path in paths:
        how = partial(check_file, path, architecture=architecture, instruction=instruction, replace=replace)
        left = None if limit is None else max(start + limit - time.monotonic(), 0.0)
        name = Path(path).name
        reading, checking = (_lines(progress, name, what) for what in ("rows read", "rows"))
        found.append(how(timeout=left, executor=executor, reading=reading, progress=checking))
    return found


def _lines(progress: Callable[[str], None] | None, name: str, what: str) -> RowsRead | None:
    """Returns a function of numbers of rows that calls `progress` with a line of text."""
    if progress is None:
        return None
    return lambda done, rows: progress(f"{name}: {done:,} of {rows:,} {what}")


def exit_code(outcomes: Sequence[FileOutcome]) -> int:
    """0: every file that has a model matches it; 1: some rows do not; 2: some files could not be checked."""
    return max((outcome.exit_code for outcome in outcomes), default=0)


class _HypothesisError(ValueError):
    """The parameters to replace make no sense for an instruction."""


def _hypothesis(instruction: Instruction, changes: Mapping[str, object]) -> Instruction:
    parameters = instruction.parameters
    kinds = get_type_hints(type(parameters))
    changes = new_names(changes, parameters.renamed, instruction.algorithm)
    for name, value in changes.items():
        if name not in parameters.keys():  # noqa: SIM118
            raise _HypothesisError(
                f"{instruction.label} is {instruction.algorithm}, which has no parameter {name!r}: "
                f"it has {', '.join(parameters.keys())}"
            )
        if type(value) not in (get_args(kinds[name]) or (kinds[name],)):
            raise _HypothesisError(
                f"{name} of {instruction.label} is {parameters[name]}, and cannot be {value}"
            )
    try:
        return instruction.replace(**changes) if changes else instruction
    except (TypeError, ValueError) as error:
        raise _HypothesisError(f"{instruction.label}: {error}") from None


# ---- rows --------------------------------------------------------------------------------------------------


def row_sizes(spec: DotAdd, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[np.int64]:
    """How large each row is as an example to look at, as a key to be compared lexicographically.

    a, b: codes of shape (rows, K); c: (rows,).  Returns shape (rows, 4):

    0. nonzero products, those that are not of a zero and a number (0·∞ and 0·NaN are none);
    1. 1 if c is nonzero;
    2. bits set in the trailing significands of the factors of nonzero products and of c;
    3. the sum of |exponent| over the same factors and c if it is nonzero, each exponent that of the fields.
    """
    a_parts, b_parts, c_part = (
        _parts(codes, fmt) for codes, fmt in ((a, spec.a_format), (b, spec.b_format), (c, spec.c_format))
    )
    special = ~a_parts.finite | ~b_parts.finite
    product = special | (a_parts.nonzero & b_parts.nonzero)
    c_nonzero = c_part.nonzero
    bits = (product * (a_parts.bits + b_parts.bits)).sum(axis=1) + c_part.bits
    exponents = (product * (a_parts.exponent + b_parts.exponent)).sum(axis=1) + c_part.exponent
    return np.stack([product.sum(axis=1), c_nonzero.astype(np.int64), bits, exponents], axis=1)


class _Parts(NamedTuple):
    """Measures of codes: whether nonzero, whether finite, the bits set in the trailing significand, and |exponent|
    (0 for a zero)."""

    nonzero: NDArray[np.bool_]
    finite: NDArray[np.bool_]
    bits: NDArray[np.int64]
    exponent: NDArray[np.int64]


def _parts(codes: NDArray[Any], fmt: Format) -> _Parts:
    if fmt.storage_bits <= _TABLE_BITS and codes.size > fmt.codes:
        nonzero, finite, bits, exponent = _table(fmt)
        return _Parts(nonzero.take(codes), finite.take(codes), bits.take(codes), exponent.take(codes))
    operand = decode(codes.astype(np.int64), fmt.layout)
    trailing = codes.astype(np.uint64) >> np.uint64(fmt.ignored_low_bits)
    bits = np.zeros(codes.shape, np.int64)
    for i in range(fmt.fraction_bits):
        bits += ((trailing >> np.uint64(i)) & np.uint64(1)).astype(np.int64)
    finite = ~(operand.infinite | operand.nan)
    nonzero = ~finite | (operand.significand != 0)
    return _Parts(nonzero, finite, bits, nonzero * np.abs(operand.exponent))


@lru_cache(maxsize=16)
def _table(fmt: Format) -> _Parts:
    return _parts(np.arange(fmt.codes), fmt)


def _differ(recorded: NDArray[Any], modelled: NDArray[Any], spec: DotAdd) -> NDArray[np.bool_]:
    different: NDArray[np.bool_] = recorded != modelled
    if not spec.nan_is_canonical:
        nan = [decode(d.astype(np.int64), spec.d_format.layout).nan for d in (recorded, modelled)]
        different &= ~(nan[0] & nan[1])
    return different


def _padded(block: RowBlock, k: int) -> RowBlock:
    """The block with a and b filled up to K positions; 0 is the code of +0 in every format of a factor."""
    missing = ((0, 0), (0, k - block.a.shape[1]))
    if missing[1] == (0, 0):
        return block
    return block._replace(a=np.pad(block.a, missing), b=np.pad(block.b, missing))


# ---- text --------------------------------------------------------------------------------------------------


def _hex(code: int, fmt: Format) -> str:
    return f"0x{code:0{-(-fmt.storage_bits // 4)}x}"


def _rows(rows: int) -> str:
    return f"{rows} row" if rows == 1 else f"{rows} rows"
