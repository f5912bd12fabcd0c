"""Where does a model differ from what was recorded, in which stage, by the smallest example?

    found = mismatches("rows.npz")              # against the instruction that was recorded
    print(found)                # found.groups: mismatching rows by the change of the model that explains them
    found.groups[0].answer      # the smallest input on which the model, and the model so changed, differ

A change is another value of one parameter (`mmaformal.spaces.variants`).  The changes that make most rows right are
taken, one after the other, until no row is wrong or no change makes fewer wrong.  Changes that together explain every
row are the causes.  Others are candidates, told with the rows that they mend and those that they spoil, and are told at
all only if they mend more than chance would (`mmaformal.queries.chance`).  What no change explains is grouped by what
is seen.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.known import known_as
from mmaformal.cases.codes import exponent_field, is_finite, is_nan, is_zero
from mmaformal.cases.inputs import plain_codes
from mmaformal.cases.run import results
from mmaformal.checked import Progress, caller
from mmaformal.display import ShortRepr, counted, minimality_lines
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.listing import change_text
from mmaformal.queries.chance import Some, beyond_chance
from mmaformal.queries.classes import values_text
from mmaformal.queries.elimination import RecordedRows, rows_differ, tabled
from mmaformal.queries.find_difference import find_difference
from mmaformal.recordings.check import Mismatch, NotModelledError, row_sizes
from mmaformal.recordings.read import Recording, read, require_fit
from mmaformal.renamed import names
from mmaformal.result import Result
from mmaformal.rounding import Conversion
from mmaformal.solver.answers import Answer, Different
from mmaformal.solver.deadline import Deadline, checked_timeout
from mmaformal.spaces import variants
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd, parameter_text

#: Rows that changes are tried on: mismatches, and as many that match.
TRIED = 4096
#: Rows of each that the changes are put in an order by.
_FEW, _BEST = 48, 24
#: Seconds for one smallest input.
_EACH = 60.0
#: Shares of the time that is left, for reading the rows, trying changes, and looking for what else explains them.
_READING, _DESCENDING, _AROUND = 0.4, 0.6, 0.5

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


#: Columns of a table on the smallest row of a group.
_OF_THE_SMALLEST = "row", "recorded", "modelled"


@dataclass(frozen=True, repr=False)
class MismatchGroup(ShortRepr):
    """Mismatching rows of one kind."""

    kind: str  #: the stage and what of it, or what is seen
    rows: int
    smallest: Mismatch
    change: tuple[str, object] | None = None  #: the parameter and its value that explain them
    answer: Answer | None = None  #: the model against the model so changed
    spoils: int = 0  #: rows that the model gets right, and the model so changed wrong
    cause: bool = False  #: whether the changes together explain every row; if not, this one is a candidate

    @property
    def explained(self) -> bool:
        return self.answer is not None


@dataclass(frozen=True, repr=False)
class Mismatches(Result):
    """Where a model and a recording differ."""

    recording: Recording
    instruction: Instruction  #: the model
    recorded_rows: int
    groups: tuple[MismatchGroup, ...]
    explained_by: Instruction | None  #: the model with the changes, if that explains every row
    #: other values of one parameter of it that explain every row too
    not_told: tuple[tuple[str, object], ...]
    tabled: tuple[str, ...]  #: instructions of the tables that explain every row
    seconds: float
    complete: bool = True  #: whether all changes were tried on all rows; if not, the time was up

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.groups)

    @property
    def verdict(self) -> str:
        """`match`: no row is wrong; `explained` by changes of the model; `mismatch`; `unknown`: the time was up."""
        if not self.groups:
            return "match" if self.complete else "unknown"
        return "explained" if self.explained_by is not None else "mismatch"

    @property
    def count(self) -> int:
        return sum(each.rows for each in self.groups)

    @property
    def summary(self) -> str:
        """One line."""
        if not self.groups:
            return f"{self.instruction.label} explains all of {counted(self.recorded_rows, 'row')}"
        return (
            f"{self.instruction.label} gets {self.count:,} of {counted(self.recorded_rows, 'row')} wrong, "
            f"in {counted(len(self.groups), 'group')}"
        )

    def __str__(self) -> str:
        lines = [self.summary]
        for number, group in enumerate(self.groups, 1):
            first, *rest = self._group_lines(group)
            lines += [f"{number}. {first}", *(f"   {line}" for line in rest)]
        if self.explained_by is not None:
            spec = self.explained_by.spec
            lines.append(f"explains every row: {spec.text}")
            for name in dict.fromkeys(name for name, _ in self.not_told):
                values = values_text([value for each, value in self.not_told if each == name])
                lines.append(f"  not told by these rows: {name} ({values})")
        if self.groups and self.tabled:
            more = f" and {len(self.tabled) - 3} more" if len(self.tabled) > 3 else ""
            lines.append(f"of the tables, these explain every row: {', '.join(self.tabled[:3])}{more}")
        elif self.groups and self.explained_by is None:
            lines.append("no changes of the model explain every row: `mmaformal diagnose` tries all models")
        if not self.complete:
            lines.append(
                "the time was up before all changes were tried on all rows: give it more with --timeout"
            )
        return "\n".join(lines)

    def _group_lines(self, group: MismatchGroup) -> list[str]:
        wrong = group.smallest
        d = self.instruction.d_format
        what, rows = (
            f"{group.kind}{change_text(self.instruction.spec, group.change)}",
            counted(group.rows, "row"),
        )
        if group.change is not None and not group.cause:
            what = f"candidate, for it does not explain every row: {what}"
            rows = f"mends {rows}, spoils {group.spoils:,}"
        lines = [
            f"{what}: {rows}, the smallest row {wrong.row}: "
            f"recorded {_told(wrong.recorded, d)}, modelled {_told(wrong.modelled, d)}"
        ]
        if isinstance(group.answer, Different):
            w = group.answer.witness
            x, y = (_told(int(r), d) for r in w.results)
            lines.append(f"smallest input: {w.case_text}: modelled {x}, changed {y}")
            lines += [f"  {line}" for line in minimality_lines(group.answer.minimality)]
        elif group.answer is not None:
            lines.append(f"smallest input: {group.answer}")
        return lines

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict for each group: its kind, how many rows, what explains them, and the smallest of them."""
        return [
            {
                "kind": group.kind,
                "rows": group.rows,
                "cause": group.cause,
                **{name: group.smallest.to_json(self.instruction)[name] for name in _OF_THE_SMALLEST},
            }
            for group in self.groups
        ]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "file": str(self.recording.path),
            "model": {"instruction": self.instruction.label, "text": self.instruction.spec.text},
            "rows": self.recorded_rows,
            "mismatches": self.count,
            "groups": [
                {
                    "kind": group.kind,
                    "rows": group.rows,
                    "spoils": group.spoils,
                    "cause": group.cause,
                    "change": None
                    if group.change is None
                    else {group.change[0]: parameter_text(group.change[1], group.change[0])},
                    "smallest": group.smallest.to_json(self.instruction),
                    "answer": None if group.answer is None else group.answer.to_json(),
                }
                for group in self.groups
            ],
            "explained_by": None if self.explained_by is None else self.explained_by.spec.text,
            "complete": self.complete,
            "tabled": list(self.tabled),
            "not_told": [[name, parameter_text(value, name)] for name, value in self.not_told],
            "seconds": round(self.seconds, 2),
        }


def mismatches(
    recording: str | Path | Recording,
    instruction: Instruction | None = None,
    *,
    timeout: float = 120.0,
    progress: Progress | None = None,
) -> Mismatches:
    """Find the rows of a recording that a model gets wrong, in groups, and what explains each.

    instruction: the model, by default that of the instruction recorded.  timeout: seconds for everything; where they
    are up, the answer has what was found until then.  progress: called with a line of text as the work goes on.

    Raises RecordingError for what is no recording or does not fit, NotModelledError where there is no model.
    """
    caller(progress)
    start = time.monotonic()
    given = recording if isinstance(recording, Recording) else read(recording)
    model = instruction or given.instruction
    if model is None:
        raise NotModelledError(f"{given.path}: {given.label} is not modelled yet")
    require_fit(given, model)
    work = _Work(_File(given, model), start + checked_timeout(timeout), progress or (lambda _: None))
    work.read()
    if not work.wrong:
        return Mismatches(given, model, work.rows.seen, (), None, (), (), work.elapsed, work.complete)
    work.descend()
    groups = work.rows.groups(work.changes, work.explains)
    work.look_around()
    return Mismatches(
        given,
        model,
        work.rows.seen,
        tuple(_asked(model, group, work.deadline, work.say) for group in groups),
        model.replace(**differing(model.spec, work.nearest)) if work.explains else None,
        tuple(work.not_told),
        tuple(work.tabled),
        work.elapsed,
        work.complete,
    )


class _Work:
    """Findings about a file's rows, step by step; each step ends when its part of the time is up."""

    def __init__(self, rows: _File, deadline: float, say: Progress) -> None:
        self.rows, self.deadline, self.say = rows, deadline, say
        self.start = time.monotonic()
        self.complete, self.explains = True, False
        self.wrong = 0
        self.nearest = rows.spec
        self.changes: dict[str, object] = {}
        self.not_told: list[tuple[str, object]] = []
        self.tabled: list[str] = []

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def _part(self, part: float) -> Deadline:
        """So much of the time that is left."""
        return Deadline(max(self.deadline - time.monotonic(), 0) * part)

    def read(self) -> None:
        """The rows that the model gets wrong."""
        until = self.start + (self.deadline - self.start) * _READING
        self.some = self.rows.some(until)
        self.wrong = self.some.wrongs
        self.complete = self.rows.seen == self.rows.recording.rows

    def descend(self) -> None:
        """The changes, and the model with all of them."""
        descent = Descent(self.some, self.say)
        with self._part(_DESCENDING) as trying:
            descent.from_model(self.rows.spec)
        self.complete &= not trying.expired
        self.nearest, self.explains = descent.current, False
        if not descent.wrong:
            self.explains = not self.rows.any_wrong(descent.current)
        if not self.explains:
            self.nearest = descent.beyond_chance()
        self.changes = descent.named(self.rows.spec, self.nearest)
        self.descent = descent

    def look_around(self) -> None:
        """Find what else explains every row: other values of one parameter, and instructions of the tables."""
        with self._part(_AROUND) as looking:
            for spec in tabled(self.rows.types, self.rows.model.k):
                if not self.rows.any_wrong(spec):
                    self.tabled += known_as(spec)
            for _, spec in self.descent.explaining(self.nearest) if self.explains else ():
                if not self.rows.any_wrong(spec):
                    self.not_told += differing(self.nearest, spec).items()
        self.complete &= not looking.expired


def _told(code: int, fmt: Format) -> str:
    """A number, or the code of a NaN."""
    return f"NaN {code:#x}" if fmt.is_nan(code) else fmt.text(code)


def differing(model: DotAdd, spec: DotAdd) -> dict[str, object]:
    """The parameters in which a model differs from another of its algorithm, and its values."""
    changed = {name: v for name in spec.parameters if (v := spec.parameters[name]) != model.parameters[name]}
    if spec.product_order != model.product_order:
        changed["product_order"] = spec.product_order
    return changed


def _asked(model: Instruction, group: MismatchGroup, deadline: float, progress: Progress) -> MismatchGroup:
    """The group with the smallest input on which its change shows."""
    left = deadline - time.monotonic()
    if group.change is None or left <= 1:
        return group
    name, value = group.change
    progress(f"the smallest input on which {name} shows")
    row = group.smallest
    known = plain_codes(row)
    answer = find_difference(model, model.replace(**{name: value}), known=known, timeout=min(left, _EACH))
    return replace(group, answer=answer)


def stage_of(name: str, value: object, was: object) -> str:
    """The stage that a parameter is about."""
    if name == "rho" and isinstance(value, Conversion) and isinstance(was, Conversion):
        rounded = [(x.format, x.fraction_bits, x.rounding) for x in (value, was)]
        if rounded[0] == rounded[1]:
            return "sign of an exact zero"
    return STAGES[name]


# ---- the changes -----------------------------------------------------------------------------------------------------


class Descent:
    """From a model to one that gets fewer rows wrong, one parameter at a time."""

    def __init__(self, some: Some, progress: Progress) -> None:
        self.some, self.progress = some, progress
        self.wrong = some.wrongs
        self.path: list[
            tuple[str, DotAdd, int]
        ] = []  #: parameters, the models, and how many were tried for each

    def from_model(self, spec: DotAdd) -> None:
        """The changes that make most rows right, one after the other."""
        self.path = [("", spec, 0)]
        while self.wrong:
            self.progress(f"{self.wrong:,} of {self.some.wrongs:,} rows wrong: {self.current.text}")
            tried, ranked = self._ranked(self.current)
            if not ranked or ranked[0][0] >= self.wrong:
                break
            wrong, _, name, current = ranked[0]
            self.path.append((name, current, tried))
            self.wrong = wrong

    @property
    def current(self) -> DotAdd:
        return self.path[-1][1]

    def beyond_chance(self) -> DotAdd:
        """The model of the first changes, each of which mends more than chance would."""
        pairs = zip(self.path, self.path[1:], strict=False)
        for (_, before, _), (_, after, tried) in pairs:
            if not beyond_chance(self.some, before, after, tried):
                return before
        return self.current

    def named(self, spec: DotAdd, nearest: DotAdd) -> dict[str, object]:
        """The parameters in which a model differs from the first, in the order in which they were changed."""
        changes = differing(spec, nearest)
        return {name: changes[name] for name, _, _ in self.path if name in changes}

    def explaining(self, spec: DotAdd) -> list[tuple[str, DotAdd]]:
        """The models that differ from one in a parameter and explain all of the rows tried."""
        few = slice(0, _FEW)
        return [
            (name, each)
            for name, each in variants(spec)
            if not (self.some.count(each, few) or self.some.count(each))
        ]

    def _ranked(self, current: DotAdd) -> tuple[int, list[tuple[int, tuple[int, ...], str, DotAdd]]]:
        """How many variants a model has, and the best, with how many rows each gets wrong."""
        few = slice(0, _FEW)
        tried = [
            (self.some.count(spec, few), (_distance(current, spec, name), place), name, spec)
            for place, (name, spec) in enumerate(variants(current))
        ]
        tried.sort(key=lambda each: each[:2])
        bound = tried[min(_BEST, len(tried)) - 1][0] if tried else 0
        best = [each for each in tried if each[0] <= bound]
        exact = [(self.some.count(spec), near, name, spec) for _, near, name, spec in best]
        return len(tried), sorted(exact, key=lambda each: each[:2])


def _distance(x: DotAdd, y: DotAdd, name: str) -> int:
    """How far a value is from another; those of instructions that there are come first."""
    if known_as(y):
        return -1
    if name == "product_order":
        return 0
    u, v = x.parameters[name], y.parameters[name]
    return abs(u - v) if isinstance(u, int) and isinstance(v, int) else 0


# ---- the rows --------------------------------------------------------------------------------------------------------


class _File:
    """The rows of a recording, as a model takes them."""

    def __init__(self, recording: Recording, model: Instruction) -> None:
        self.recording, self.model, self.spec = recording, model, model.spec
        self.types = Types.of(self.spec)
        self.seen = recording.rows  #: those that were read in time

    def blocks(self) -> Iterator[tuple[int, RecordedRows, NDArray[np.uint64]]]:
        """The first row of a block, the block, and what the model gives."""
        done = 0
        for block in self.recording.blocks():
            if done >= self.seen:
                break
            rows = RecordedRows.of(block, self.types, self.spec.k)
            yield done, rows, results(self.spec, rows.rows.codes)
            done += len(rows.d)

    def some(self, until: float) -> Some:
        """Rows that the model gets wrong, and rows that it gets right, those of the file's beginning.

        What is read until then, in `time.monotonic`, is all that counts from now on.
        """
        found: tuple[list[RecordedRows], list[RecordedRows]] = [], []
        counts, seen = [0, 0], 0
        for _, rows, modelled in self.blocks():
            wrong = rows_differ(self.spec, modelled, rows.d)
            for i, which in enumerate((wrong, ~wrong)):
                counts[i] += int(which.sum())
                room = TRIED - sum(map(len, found[i]))
                found[i].append(rows.at(np.nonzero(which)[0][:room]))
            seen += len(rows.d)
            if time.monotonic() > until:
                break
        self.seen = seen
        return Some(RecordedRows.join(found[0]), RecordedRows.join(found[1]), *counts)

    def any_wrong(self, spec: DotAdd) -> bool:
        return any(rows.differ(spec).any() for _, rows, _ in self.blocks())

    def groups(self, changes: dict[str, object], causes: bool) -> list[MismatchGroup]:
        """The mismatching rows, each by the first change that explains it alone, by all, or by what is seen.

        causes: whether the changes together explain every row.
        """
        spoils: Counter[tuple[str, object]] = Counter()
        kinds: dict[tuple[str, tuple[str, object] | None], _Smallest] = {}
        single = [
            (name, value, self.spec.replace(**{name: value})) for name, value in self._possible(changes)
        ]
        together = self.spec.replace(**changes) if len(changes) > 1 else None
        for first, block, modelled in self.blocks():
            wrong = rows_differ(self.spec, modelled, block.d)
            where = np.nonzero(wrong)[0]
            right = block.at(np.nonzero(~wrong)[0])
            for name, value, spec in single if not causes else ():
                spoils[name, value] += int(right.differ(spec).sum())
            rows, gives = block.at(where), modelled[where]
            left = np.ones(len(where), np.bool_)
            for name, value, spec in single:
                explained = left & ~rows.differ(spec)
                kind = stage_of(name, value, None if name == "product_order" else self.spec.parameters[name])
                self._add(kinds, (kind, (name, value)), first + where, rows, gives, explained)
                left &= ~explained
            if together is not None:
                explained = left & ~rows.differ(together)
                self._add(kinds, ("several of these together", None), first + where, rows, gives, explained)
                left &= ~explained
            for kind, seen in _seen(self.spec, rows.d, gives):
                self._add(kinds, (f"unexplained: {kind}", None), first + where, rows, gives, left & seen)
                left &= ~seen
        return [
            MismatchGroup(
                kind,
                found.count,
                found.mismatch,
                change,
                spoils=spoils[change] if change is not None else 0,
                cause=causes and change is not None,
            )
            for (kind, change), found in kinds.items()
            if found.mismatch is not None
        ]

    def _possible(self, changes: dict[str, object]) -> Iterator[tuple[str, object]]:
        """The changes that make sense alone."""
        for name, value in changes.items():
            try:
                self.spec.replace(**{name: value})
            except ValueError:
                continue
            yield name, value

    def _add(
        self,
        kinds: dict[tuple[str, tuple[str, object] | None], _Smallest],
        kind: tuple[str, tuple[str, object] | None],
        numbers: NDArray[np.intp],
        rows: RecordedRows,
        gives: NDArray[np.uint64],
        which: NDArray[np.bool_],
    ) -> None:
        chosen = np.nonzero(which)[0]
        if len(chosen):
            kinds.setdefault(kind, _Smallest()).add(
                self.spec, numbers[chosen], rows.at(chosen), gives[chosen]
            )


class _Smallest:
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


__getattr__ = names(__name__, explain_mismatches="mismatches")
