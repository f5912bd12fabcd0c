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
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from mmaformal.architectures.known import known_as
from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.inputs import plain_codes
from mmaformal.checked import Progress, caller
from mmaformal.display import ShortRepr, counted, minimality_lines
from mmaformal.executors import workers_given
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.listing import change_text
from mmaformal.queries.chance import Some, beyond_chance
from mmaformal.queries.classes import values_text
from mmaformal.queries.elimination import tabled
from mmaformal.queries.find_difference import find_difference
from mmaformal.queries.mismatching_rows import RecordingRows
from mmaformal.recordings.check import Mismatch, NotModelledError
from mmaformal.recordings.read import Recording, read, require_fit
from mmaformal.renamed import names
from mmaformal.result import Result
from mmaformal.solver.answers import Answer, Different
from mmaformal.solver.deadline import Deadline, checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, SolverKeywords, sessions
from mmaformal.spaces import variants
from mmaformal.spec import DotAdd, parameter_text

#: Rows of each that the changes are put in an order by.
_FEW, _BEST = 48, 24
#: Seconds for one smallest input.
_EACH = 60.0
#: Shares of the time that is left, for reading the rows, trying changes, and looking for what else explains them.
_READING, _DESCENDING, _AROUND = 0.4, 0.6, 0.5

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
    instruction: Instruction | str | None = None,
    *,
    timeout: float = 120.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Mismatches:
    """Find the rows of a recording that a model gets wrong, in groups, and what explains each.

    instruction: the model, by default that of the instruction recorded.  timeout: seconds for everything; where they
    are up, the answer has what was found until then.  memory, solver, progress, cache: as `find_difference` has them.
    jobs: so many processes run models on blocks of rows (default: this one).  executor: whose workers do
    (`mmaformal.executors`).

    Raises RecordingError for what is no recording or does not fit, NotModelledError where there is no model,
    LostWorkerError.
    """
    caller(progress)
    start = time.monotonic()
    given = recording if isinstance(recording, Recording) else read(recording)
    model = given.instruction if instruction is None else instruction_meant(instruction)
    if model is None:
        raise NotModelledError(f"{given.path}: {given.label} is not modelled yet")
    require_fit(given, model)
    until, say = start + checked_timeout(timeout), progress or (lambda _: None)
    with sessions(solver, memory, cache) as solvers:
        with workers_given(executor, jobs) as workers:
            work = _Work(RecordingRows(given, model, workers), until, say)
            work.read()
            if not work.wrong:
                return Mismatches(given, model, work.rows.seen, (), None, (), (), work.elapsed, work.complete)
            work.descend()
            groups = work.groups()
            work.look_around()
        asked = tuple(_asked(model, group, until, say, **solvers) for group in groups)
    return Mismatches(
        given,
        model,
        work.rows.seen,
        asked,
        model.replace(**differing(model.spec, work.nearest)) if work.explains else None,
        tuple(work.not_told),
        tuple(work.tabled),
        work.elapsed,
        work.complete,
    )


class _Work:
    """Findings about a file's rows, step by step; each step ends when its part of the time is up."""

    def __init__(self, rows: RecordingRows, deadline: float, say: Progress) -> None:
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

    def groups(self) -> list[MismatchGroup]:
        """The mismatching rows by what explains them."""
        kinds, spoils = self.rows.groups(self.changes, self.explains)
        return [
            MismatchGroup(
                kind,
                found.count,
                found.mismatch,
                change,
                spoils=spoils[change] if change is not None else 0,
                cause=self.explains and change is not None,
            )
            for (kind, change), found in kinds.items()
            if found.mismatch is not None
        ]

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


def _asked(
    model: Instruction,
    group: MismatchGroup,
    deadline: float,
    progress: Progress,
    **solvers: Unpack[SolverKeywords],
) -> MismatchGroup:
    """The group with the smallest input on which its change shows."""
    left = deadline - time.monotonic()
    if group.change is None or left <= 1:
        return group
    name, value = group.change
    progress(f"the smallest input on which {name} shows")
    row = group.smallest
    known, seconds = plain_codes(row), min(left, _EACH)
    answer = find_difference(model, model.replace(**{name: value}), known=known, timeout=seconds, **solvers)
    return replace(group, answer=answer)


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


__getattr__ = names(__name__, explain_mismatches="mismatches")
