"""The rows of a recording that a model gets wrong, block by block, by what explains each: the work of `mismatches`.

Blocks go to the workers of an executor, if there is one, and what is found of them is put together in their order.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from contextlib import closing
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.codes import exponent_field, is_finite, is_nan, is_zero
from mmaformal.cases.run import quick_results
from mmaformal.executors import each_in_order
from mmaformal.instruction import Instruction
from mmaformal.queries.chance import Some
from mmaformal.queries.elimination import RecordedRows, rows_differ
from mmaformal.recordings.check import Mismatch, row_sizes
from mmaformal.recordings.read import Recording
from mmaformal.rounding import Conversion
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

T = TypeVar("T")
#: what is said of a mismatch, and the change that explains it
MismatchKind: TypeAlias = tuple[str, tuple[str, object] | None]

#: Rows that changes are tried on: mismatches, and as many that match.
TRIED = 4096

#: Meanings of parameters: the stage, and what of it.
STAGES = {
    "F": "alignment: bits kept",
    "e_zero": "alignment: exponent of zero",
    "cut": "alignment: how bits are cut off",
    "dot_bits": "sum of products: bits kept",
    "sum_bits": "sum with c: bits kept",
    "c_reach": "sum with c: where c is dropped",
    "addition": "addition of c: rounding",
    "rho": "output rounding",
    "detects_zeros": "alignment: zero products",
    "minus_zero": "signs: of a sum of zeros",
    "L": "products of a step",
    "accumulator_bits": "accumulator: its bits",
    "N": "products of a step",
    "D": "products in all",
    "G": "products of a group",
    "order": "order of products",
    "product_order": "order of products",
    "pair": "output rounding: of a pair of products",
    "negate_pair": "signs: of a pair of products",
    "operands": "conversion of operands",
    "flush_inputs": "conversion of operands: subnormal ones",
    "nan": "special values: which NaN",
    "tiny": "output rounding: when a result is tiny, and flushed",
    "inputs_first": "special values: infinities among inputs",
    "skip_zero_products": "special values: zero products",
}


def stage_of(name: str, value: object, was: object) -> str:
    """The stage that a parameter is about."""
    if name == "rho" and isinstance(value, Conversion) and isinstance(was, Conversion):
        rounded = [(x.format, x.fraction_bits, x.rounding) for x in (value, was)]
        if rounded[0] == rounded[1]:
            return "sign of an exact zero"
    return STAGES[name]


class RecordingRows:
    """The rows of a recording, as a model takes them, in blocks for an executor, if there is one."""

    def __init__(self, recording: Recording, model: Instruction, executor: Executor | None) -> None:
        self.recording, self.model, self.spec, self.executor = recording, model, model.spec, executor
        self.types = Types.of(self.spec)
        self.seen = recording.rows  #: those that were read in time

    def over(self, function: Callable[..., T], *given: object) -> Generator[T, None, None]:
        """Yield the function of the model, each block and its first row, and what is given, in the order of blocks."""
        parts = ((self.spec, first, rows, *given) for first, rows in self.blocks())
        return each_in_order(self.executor, function, parts)

    def blocks(self) -> Iterator[tuple[int, RecordedRows]]:
        """The first row of a block, and the block."""
        done = 0
        for block in self.recording.blocks():
            if done >= self.seen:
                break
            yield done, RecordedRows.of(block, self.types, self.spec.k)
            done += len(block.d)

    def some(self, until: float) -> Some:
        """Rows that the model gets wrong, and rows that it gets right, those of the file's beginning.

        What is read until then, in `time.monotonic`, is all that counts from now on.
        """
        found: tuple[list[RecordedRows], list[RecordedRows]] = [], []
        counts, seen = [0, 0], 0
        with closing(self.over(_halves)) as blocks:
            for rows, halves in blocks:
                for i, (count, few) in enumerate(halves):
                    counts[i] += count
                    found[i].append(few.at(slice(TRIED - sum(map(len, found[i])))))
                seen += rows
                if time.monotonic() > until:
                    break
        self.seen = seen
        return Some(RecordedRows.join(found[0]), RecordedRows.join(found[1]), *counts)

    def any_wrong(self, spec: DotAdd) -> bool:
        with closing(self.over(_is_wrong, spec)) as blocks:
            return any(blocks)

    def groups(
        self, changes: dict[str, object], causes: bool
    ) -> tuple[dict[MismatchKind, Smallest], Counter[tuple[str, object]]]:
        """The mismatching rows, each by the first change that explains it alone, by all, or by what is seen; and how
        many rows a change spoils, unless the changes together explain every row (`causes`)."""
        spoils: Counter[tuple[str, object]] = Counter()
        kinds: dict[MismatchKind, Smallest] = {}
        possible = list(self._possible(changes))
        for mine, each in self.over(_grouped, possible, changes, causes):
            spoils.update(mine)
            for kind, smallest in each.items():
                kinds.setdefault(kind, Smallest()).join(smallest)
        return kinds, spoils

    def _possible(self, changes: dict[str, object]) -> Iterator[tuple[str, object]]:
        """The changes that make sense alone."""
        for name, value in changes.items():
            try:
                self.spec.replace(**{name: value})
            except ValueError:
                continue
            yield name, value


# ---- of a block, in a worker -----------------------------------------------------------------------------------------


def _halves(model: DotAdd, first: int, rows: RecordedRows) -> tuple[int, list[tuple[int, RecordedRows]]]:
    """How many rows there are; of those that are wrong, and of the others: how many, and the first of them."""
    wrong = rows_differ(model, quick_results(model, rows.rows), rows.d)
    halves = [np.nonzero(which)[0] for which in (wrong, ~wrong)]
    return len(rows), [(len(each), rows.at(each[:TRIED])) for each in halves]


def _is_wrong(model: DotAdd, first: int, rows: RecordedRows, spec: DotAdd) -> bool:
    """Whether another model gets a row wrong."""
    return bool(rows.differ(spec).any())


def _grouped(
    model: DotAdd,
    first: int,
    block: RecordedRows,
    possible: list[tuple[str, object]],
    changes: dict[str, object],
    causes: bool,
) -> tuple[Counter[tuple[str, object]], dict[MismatchKind, Smallest]]:
    """How many rows each possible change spoils, and the mismatching rows by what explains them."""
    spoils: Counter[tuple[str, object]] = Counter()
    kinds: dict[MismatchKind, Smallest] = {}
    modelled = quick_results(model, block.rows)
    wrong = rows_differ(model, modelled, block.d)
    where = np.nonzero(wrong)[0]
    right, rows, gives = block.at(np.nonzero(~wrong)[0]), block.at(where), modelled[where]
    left = np.ones(len(where), np.bool_)

    def take(kind: MismatchKind, which: NDArray[np.bool_]) -> None:
        chosen = np.nonzero(left & which)[0]
        left[chosen] = False
        if len(chosen):
            kinds.setdefault(kind, Smallest()).add(
                model, first + where[chosen], rows.at(chosen), gives[chosen]
            )

    for name, value in possible:
        spec = model.replace(**{name: value})
        if not causes:
            spoils[name, value] += int(right.differ(spec).sum())
        kind = stage_of(name, value, None if name == "product_order" else model.parameters[name])
        take((kind, (name, value)), ~rows.differ(spec))
    if len(changes) > 1:
        take(("several of these together", None), ~rows.differ(model.replace(**changes)))
    for seen, which in _seen(model, rows.d, gives):
        take((f"unexplained: {seen}", None), which)
    return spoils, kinds


class Smallest:
    """The smallest of some mismatching rows, and how many there are."""

    def __init__(self) -> None:
        self.count, self.size, self.mismatch = 0, tuple[int, ...](), None

    count: int
    size: tuple[int, ...]
    mismatch: Mismatch | None

    def add(
        self, spec: DotAdd, numbers: NDArray[np.intp], rows: RecordedRows, gives: NDArray[np.uint64]
    ) -> None:
        self.count += len(numbers)
        x = rows.rows
        sizes = row_sizes(spec, *(side.astype(np.int64) for side in (x.a, x.b, x.c)))
        i = int(np.lexsort(sizes.T[::-1])[0])
        size = tuple(map(int, sizes[i]))
        if self.mismatch is None or size < self.size:
            case, recorded = rows.one(i)
            self.size = size
            scales, place = (case.scale_a, case.scale_b), int(numbers[i])
            self.mismatch = Mismatch(place, case.a, case.b, case.c, recorded, int(gives[i]), *scales)

    def join(self, after: Smallest) -> None:
        """Add those of rows that come after these."""
        self.count += after.count
        if self.mismatch is None or after.size < self.size:
            self.size, self.mismatch = after.size, after.mismatch


def _seen(
    spec: DotAdd, recorded: NDArray[np.uint64], modelled: NDArray[np.uint64]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Kinds of rows by their two results alone, the first that fits to be taken."""
    d = spec.d_format
    x, y = (codes.astype(np.int64) for codes in (recorded, modelled))

    def of(test: Callable[..., object], codes: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(test(codes, d), np.bool_)

    yield "another NaN", of(is_nan, x) & of(is_nan, y)
    yield "a special value", ~of(is_finite, x) | ~of(is_finite, y)
    yield "the sign of zero", of(is_zero, x) & of(is_zero, y)
    tiny = [(np.asarray(exponent_field(codes, d)) == 0) & ~of(is_zero, codes) for codes in (x, y)]
    yield "a subnormal result", tiny[0] | tiny[1]
    same_sign = (x ^ y) & d.sign_mask == 0
    yield "one unit in the last place", same_sign & (np.abs(x - y) == 1 << d.ignored_low_bits)
    yield "more than one unit in the last place", np.ones(len(x), np.bool_)
