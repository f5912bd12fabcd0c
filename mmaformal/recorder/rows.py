"""Rows on their way to a unit and back.

A stream of rows is two lines and then row after row, each a dot product-add whose d is 0:

    mmaformal rows of sapphire_rapids VDPBF16PS
    {"rows": 1000000, "seed": 0}

A program that has the unit copies it with d filled in, and adds a third line, a JSON object that says what it ran on
(`device`).  So what comes back is whole: the inputs need not be made again to be believed.

A row is a C struct of words, aligned as C aligns them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import IO, Any, get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES
from mmaformal.cases.generate import Distribution, generate
from mmaformal.display import ShortRepr
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.recordings.archive import RecordingError, short

_TITLE = "mmaformal rows of "
#: Longer lines than a program's buffer takes are none of ours.
MOST_LINE = 4096
#: Rows drawn at a time, at first and at most; from one time to the next twice as many.
_FIRST_DRAWN, _DRAWN = 1 << 10, 1 << 15
_BLOCK_ROWS = 1 << 14
_LARGEST_SEED = 1 << 63
MOST_ROWS = 10**9


@dataclass(frozen=True)
class Field(ShortRepr):
    """One member of a row."""

    name: str
    fmt: Format
    count: int  #: of its elements; 0: it is no array

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.count,) if self.count else ()

    @property
    def c_type(self) -> str:
        return f"{self.fmt.word}_t"


@dataclass(frozen=True)
class RowLayout(ShortRepr):
    """The rows of an instruction."""

    instruction: Instruction

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        i, spec = self.instruction, self.instruction.spec
        fields = [Field("c", i.c_format, 0), Field("d", i.d_format, 0)]
        fields += [Field("a", i.a_format, i.k), Field("b", i.b_format, i.k)]
        if spec.scale_format is not None:
            fields += [Field(f"scale_{x}", spec.scale_format, spec.scales) for x in "ab"]
        return tuple(fields)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype([(each.name, each.fmt.word, each.shape) for each in self.fields], align=True)

    @property
    def c_struct(self) -> str:
        members = (f"    {x.c_type} {x.name}{f'[{x.count}]' if x.count else ''};" for x in self.fields)
        return "\n".join(["struct Row {", *members, "};"])

    @property
    def title(self) -> str:
        """The first line, without its end."""
        return _TITLE + self.instruction.label


def stream(instruction: Instruction, rows: int, seed: int) -> Iterator[bytes]:
    """The lines, then the rows in pieces, d being 0.

    Random cases of all distributions, as many of each (`mmaformal.cases.generate`).  The first rows of more are the
    same.
    """
    layout = RowLayout(instruction)
    yield f"{layout.title}\n{json.dumps({'rows': rows, 'seed': seed})}\n".encode()
    for number in count():
        drawn = min(_FIRST_DRAWN << number, _DRAWN)
        yield _draw(layout, drawn, (seed, number))[:rows].tobytes()
        rows -= drawn
        if rows <= 0:
            return


def _draw(layout: RowLayout, rows: int, seeds: tuple[int, int]) -> NDArray[Any]:
    """Rows of all distributions, in any order."""
    (seed,) = np.random.SeedSequence(seeds).generate_state(1, np.uint64).tolist()
    drawn = generate(layout.instruction.spec, rows, seed, get_args(Distribution))
    records = np.zeros(rows, layout.dtype)
    for each in layout.fields:
        if each.name != "d":
            records[each.name] = getattr(drawn, each.name)
    shuffled: NDArray[Any] = np.random.default_rng(seed).permutation(records)
    return shuffled


def check_request(rows: int, seed: int) -> None:
    """Raise ValueError unless so many rows can be drawn from this seed."""
    if not 1 <= rows <= MOST_ROWS:
        raise ValueError(f"rows is {rows}; 1 to {MOST_ROWS:,} can be recorded")
    check_seed(seed)


def check_seed(seed: int) -> None:
    """Raise ValueError unless random numbers can be drawn from it."""
    if not 0 <= seed < _LARGEST_SEED:
        raise ValueError(f"seed is {seed}; it is 0 or more, and below 2^63")


# ---- back ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Outputs(ShortRepr):
    """A file that a program wrote: the rows with d, and what was said of them."""

    path: Path
    layout: RowLayout
    rows: int
    asked: dict[str, object]  #: the second line
    ran_on: dict[str, object]  #: the third
    start: int  #: where rows begin

    def blocks(self) -> Iterator[NDArray[Any]]:
        """The rows as records, some at a time."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            left = self.rows
            while left:
                found = np.fromfile(file, self.layout.dtype, min(left, _BLOCK_ROWS))
                if not len(found):
                    raise RecordingError(self.path, "has changed while it was read: read it again")
                left -= len(found)
                yield found


def read_outputs(path: Path) -> Outputs:
    """Read what a program wrote.  Raises RecordingError if it is not whole, or not of a program of ours."""
    with path.open("rb") as file:
        title = _line(file, path)
        name = title.removeprefix(_TITLE)
        if name == title:
            raise RecordingError(
                path, "no output of a recorder's program: its first line is not 'mmaformal rows of …'"
            )
        layout = RowLayout(_instruction(name, path))
        asked, ran_on = _object(file, path), _object(file, path)
        start = file.tell()
        size = file.seek(0, 2) - start
    rows, rest = divmod(size, layout.dtype.itemsize)
    if asked.get("rows") != rows or rest:
        raise RecordingError(
            path,
            f"{rows:,} rows of {layout.dtype.itemsize} bytes are here, but {short(asked.get('rows'))} were asked for: "
            "the program did not end, or the copy is not whole",
        )
    return Outputs(path, layout, rows, asked, ran_on, start)


def _line(file: IO[bytes], path: Path) -> str:
    line = file.readline(MOST_LINE)
    if not line.endswith(b"\n"):
        raise RecordingError(path, "no output of a recorder's program: its first three lines are not there")
    return line[:-1].decode(errors="replace").rstrip("\r")


def _object(file: IO[bytes], path: Path) -> dict[str, object]:
    text = _line(file, path)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise RecordingError(path, f"{short(text)} is no JSON object, as the program writes it")
    return found


def _instruction(label: str, path: Path) -> Instruction:
    architecture, _, name = label.partition(" ")
    if architecture not in ARCHITECTURES or name not in ARCHITECTURES[architecture]:
        raise RecordingError(path, f"rows of {short(label)}, which no table has")
    return ARCHITECTURES[architecture][name]
