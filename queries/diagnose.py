"""Which arithmetic gave these rows?  Told nothing but types, which models explain every row of a recording?

    found = diagnose("rows.npz")
    print(found)                # found.classes: the models that explain every row, those of one function together
    found.tests                 # inputs on which the classes differ: what to run next

The models are a space (`mmaformal.spaces`): every algorithm there is, with every value of its parameters.  Those that
get too many of a few rows wrong, whatever zeros and special values do, are left out first; the rest, with everything
that zeros and special values may do, has to reproduce every row.  Models that explain all rows and that no random case
distinguishes are one class where a proof says so; others are told as not distinguished.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mmaformal.architectures.known import known_as
from mmaformal.checked import Progress, caller
from mmaformal.display import counted
from mmaformal.executors import checked_jobs
from mmaformal.queries.classes import Classes, ModelClass, RunNext, values_text
from mmaformal.queries.elimination import (
    ModelElimination,
    RecordedRows,
    RefutedModel,
    nearest_of,
    remaining,
    types_of_recording,
)
from mmaformal.queries.orders import OrdersFound, ordered
from mmaformal.recordings.read import Recording, read
from mmaformal.renamed import keywords
from mmaformal.result import Result, how_many
from mmaformal.solver.deadline import Deadline, checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, sessions
from mmaformal.spaces import algorithms, design_spaces
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: Rows that models are found by.
_ROWS = 1 << 17
#: More models than these that explain all rows are counted, and not compared.
_MOST = 400
#: The part of the time that the models of the space may take, and of what is left then, other orders of the products;
#: seconds for what ends by
#: itself to end, at most.
_SEARCHING, _ORDERING, _GRACE = 0.75, 0.9, 0.6
#: Models and tests that are listed for a person.
_LISTED, _SHOWN = 8, 3


@dataclass(frozen=True, repr=False)
class Diagnosis(Result):
    """The models that explain a recording, and what was tried."""

    classes: tuple[ModelClass, ...]
    tests: tuple[RunNext, ...]  #: together they tell all classes apart
    nearest: tuple[RefutedModel, ...]  #: told where nothing explains every row
    types: Types
    k: int
    recorded_rows: int
    tried: int  #: models, not counting details
    complete: bool  #: whether all models were tried on all rows and compared; if not, the time was up
    compared: int  #: rows that what explains them was run on
    explained_by: int  #: models that explain every row, details counted
    families_in_all: int  #: these, not counting details
    orders: (
        OrdersFound | None
    )  #: what was found of the orders of products, where nothing of the list explains every row
    seconds: float

    def __bool__(self) -> bool:
        return bool(self.classes)

    @property
    def verdict(self) -> str:
        """`one` model explains every row, but for details; `several` do; `none` of those tried; `unknown`."""
        return how_many(self.families_in_all, self.complete)

    @property
    def summary(self) -> str:
        """One line."""
        about = f"{counted(self.recorded_rows, 'row')} of {counted(self.k, 'product')}, {self.types}"
        if self.compared < self.recorded_rows:
            about = f"the first {self.compared:,} of {about}"
        early = "" if self.complete else "the time was up early: "
        if not self.classes:
            return f"{early}nothing tried explains all of {about}"
        n = self.families_in_all
        models = "1 model" if n == 1 else f"{n:,} models"
        return f"{early}{models} of {self.tried:,} tried explain{'s' if n == 1 else ''} {about}"

    @property
    def families(self) -> dict[DotAdd, list[ModelClass]]:
        """The classes, those together that differ only in what zeros and special values do."""
        found: dict[DotAdd, list[ModelClass]] = {}
        for each in self.classes:
            found.setdefault(each.family, []).append(each)
        return found

    def __str__(self) -> str:
        lines = [self.summary]
        for number, classes in enumerate(islice(self.families.values(), _LISTED), 1):
            first, *rest = _family_lines(classes)
            lines += [f"{number}. {first}", *(f"   {line}" for line in rest)]
        if self.families_in_all > _LISTED:
            lines.append(f"and {counted(self.families_in_all - _LISTED, 'model')} more: --json")
        if self.explained_by > _MOST:
            lines.append(
                f"{self.explained_by:,} models at least, details counted, explain every row; {_MOST} were compared"
            )
        if not self.complete:
            lines.append(
                "the time was up before all models were tried and compared: give it more with --timeout"
            )
        for test in self.tests[:_SHOWN]:
            lines += _test_lines(test)
        if len(self.tests) > _SHOWN and self.complete:
            lines.append(f"{len(self.tests)} inputs tell all of them apart: `.tests`, --json")
        lines += self.orders.lines if self.orders is not None else []
        for miss in self.nearest:
            d = self.types.d
            lines.append(f"nearest: {miss.model.text}")
            wrong = f"{counted(miss.wrong, 'row')} wrong, the smallest row {miss.row}"
            lines.append(f"  {wrong}: recorded {d.text(miss.recorded)}, it gives {d.text(miss.gives)}")
        return "\n".join(lines)

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict for each class of models that explain every row."""
        return [each.to_json() for each in self.classes]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "explained": bool(self.classes),
            "complete": self.complete,
            "compared": self.compared,
            "types": [fmt.name for fmt in self.types[:4]],
            "terms": self.k,
            "rows": self.recorded_rows,
            "tried": self.tried,
            "explained_by": self.explained_by,
            "families": self.families_in_all,
            "classes": [each.to_json() for each in self.classes],
            "tests": [
                {
                    **test.case.to_json(),
                    "gives": [f"{x:#x}" for x in test.gives],
                }
                for test in self.tests
            ],
            "nearest": [
                {
                    "model": miss.model.text,
                    "wrong": miss.wrong,
                    "row": miss.row,
                    "recorded": f"{miss.recorded:#x}",
                    "gives": f"{miss.gives:#x}",
                }
                for miss in self.nearest
            ],
            "orders": self.orders.to_json() if self.orders is not None else None,
            "seconds": round(self.seconds, 2),
        }


def _compared(exact: Sequence[tuple[DotAdd, DotAdd]]) -> list[tuple[DotAdd, DotAdd]]:
    """The models to compare: instructions of the tables, then one of each family, then the rest."""
    firsts = {family: each for each, family in reversed(exact)}
    return sorted(exact, key=lambda x: (not known_as(x[0]), firsts[x[1]] != x[0]))[:_MOST]


def _family_lines(classes: Sequence[ModelClass]) -> list[str]:
    """One model for a person, and what of it the rows leave open."""
    lines = [classes[0].model.text]
    known = list(dict.fromkeys(name for each in classes for name in each.known_as))
    if known:
        lines.append(
            f"that is {', '.join(known[:3])}{f' and {len(known) - 3} more' if len(known) > 3 else ''}"
        )
    model = classes[0].model
    members = [spec for each in classes for spec in each.members]
    own = [spec for spec in members if spec.parameters.algorithm == model.parameters.algorithm]
    others = [spec for spec in members if spec.parameters.algorithm != model.parameters.algorithm]
    undecided = [
        f"{name} ({values_text([spec.parameters[name] for spec in own])})"
        for name in model.parameters
        if len({spec.parameters[name] for spec in own}) > 1
    ]
    if others:
        more = f" and {len(others) - 1:,} more" if len(others) > 1 else ""
        lines.append(f"no input tried tells it from {others[0].text}{more}")
    if undecided:
        lines.append(f"not told by these rows: {', '.join(undecided)}")
    if undecided or others:
        proved = sum(len(each.same) for each in classes)
        of = f"{len(members)} models" + (
            f", {proved} of them proved to be another's function" if proved else ""
        )
        lines.append(f"{of}; {counted(len(classes), 'function')} that some input distinguishes")
    return lines


def _test_lines(test: RunNext) -> list[str]:
    """An input, without its zero products, and how many different results it has."""
    codes = dict.fromkeys(test.gives)
    gives = ", ".join(f"{code:#x}" for code in islice(codes, 6)) + (", …" if len(codes) > 6 else "")
    return [f"to run next: {test.case.text}", f"  {len(codes)} results: {gives}"]


@keywords(orders="order_timeout")
def diagnose(
    recording: str | Path | Recording,
    *,
    only: Sequence[str] | None = None,
    timeout: float = 120.0,
    order_timeout: float | None = None,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    jobs: int | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Diagnosis:
    """Find the models that explain every row of a recording, of all there are for its types.

    K is what was recorded.  The models are found by the first 131,072 rows, and run on all.  A NaN is compared bit by
    bit with models whose NaNs are known, and is any NaN for others.

    only: names of algorithms, of `mmaformal.spaces.algorithms()` (default: all) or `design_spaces()`.  timeout:
    seconds for everything; where they are up, the answer has what was found until then.  order_timeout: seconds of
    these (default: half) for all other orders of the products (`mmaformal.queries.orders`), where nothing explains
    every row with those of the space; 0: they are not searched.  jobs: worker processes (default: one for each
    core).  executor: whose workers take their place (`mmaformal.executors`).  memory, solver, progress, cache: as
    `find_difference` has them.

    Raises RecordingError for what is no recording, ValueError for an algorithm that there is not, LostWorkerError.
    """
    caller(progress)
    start = time.monotonic()
    checked_timeout(timeout)
    if order_timeout is not None and order_timeout < 0:
        raise ValueError(f"order_timeout is a number of seconds, 0 or more, not {order_timeout}")
    given = recording if isinstance(recording, Recording) else read(recording, modelled=False)
    names = algorithms() if only is None else list(only)
    if unknown := [name for name in names if name not in (*algorithms(), *design_spaces())]:
        raise ValueError(f"no algorithm {unknown[0]!r}; there are {', '.join(algorithms())}")
    count = checked_jobs(jobs)
    with sessions(solver, memory, cache) as solvers:
        work = _Search(given, names, count, executor, start + timeout, progress or (lambda _: None))
        work.run(timeout, timeout / 2 if order_timeout is None else order_timeout)
        classes = Classes(_compared(work.exact), max(work.left, 0), work.say, **solvers)
        explained, tests = classes.found()
    return Diagnosis(
        tuple(explained),
        tuple(tests),
        nearest=tuple(work.nearest),
        types=work.types,
        k=given.terms,
        recorded_rows=given.rows,
        tried=work.tried,
        complete=work.complete and classes.complete,
        compared=work.compared if work.exact else given.rows,
        explained_by=len(work.exact),
        families_in_all=len({family for _, family in work.exact}),
        orders=work.orders,
        seconds=time.monotonic() - start,
    )


class _Search:
    """Models tried on a recording; what was found is here at any time."""

    def __init__(
        self,
        given: Recording,
        names: Sequence[str],
        jobs: int,
        executor: Executor | None,
        deadline: float,
        say: Progress,
    ) -> None:
        self.given, self.names, self.deadline, self.say = given, names, deadline, say
        self.types = types_of_recording(given)
        self.rows = RecordedRows.of(next(given.blocks(_ROWS)), self.types, given.terms)
        self.search = ModelElimination(self.rows, names, jobs, say, executor)
        self.exact: list[tuple[DotAdd, DotAdd]] = []  #: each with what it is a detail of
        self.near: list[tuple[int, DotAdd]] = []
        self.nearest: list[RefutedModel] = []
        self.orders: OrdersFound | None = None
        self.tried, self.compared, self.complete = 0, 0, False

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    def run(self, timeout: float, order_timeout: float) -> None:
        """Try every model, then other orders where none explains the rows, and find the nearest."""
        grace = min(_GRACE, timeout / 10)
        with Deadline(timeout * _SEARCHING + grace):
            self.run_models(self.deadline - timeout * (1 - _SEARCHING))
        with Deadline(max(self.left, grace)):
            self.take_models()
        if not self.exact and order_timeout > 0:
            with Deadline(max(self.left * _ORDERING, 0)):
                self.run_orders(min(order_timeout, self.left * _ORDERING - grace))
        with Deadline(max(self.left, grace)):
            self.find_nearest()

    def run_models(self, until: float) -> None:
        """Every model of the space on the first rows."""
        self.search.run(until)

    def take_models(self) -> None:
        """Those that explain the first rows, on the rest."""
        found = self.search.found
        self.near, self.tried = found.near, found.tried
        self._on_the_rest(found.exact)
        self.complete = found.complete and (not self.exact or self.compared == self.given.rows)

    def run_orders(self, seconds: float) -> None:
        """Other orders of the products."""
        if seconds > 0:
            self.orders = ordered(self.rows, self.names, seconds, self.say)
            self._on_the_rest(list(self.orders.exact))
            self.complete &= not self.exact or self.compared == self.given.rows

    def _on_the_rest(self, exact: list[tuple[DotAdd, DotAdd]]) -> None:
        """Keep of the models that explain the first rows those that explain the rest too."""
        self.exact, self.compared = exact, len(self.rows)
        for number, block in enumerate(self.given.blocks(_ROWS)):
            if not self.exact or self.left <= 0:
                break
            if number:
                self.say(f"{counted(len(self.exact), 'model')} on rows from {number * _ROWS:,}")
                self.exact = remaining(self.exact, RecordedRows.of(block, self.types, self.given.terms))
                self.compared += len(block.d)

    def find_nearest(self) -> None:
        """The models that get the fewest rows wrong, where none explains them all."""
        if not self.exact and self.near:
            blocks = (
                RecordedRows.of(block, self.types, self.given.terms) for block in self.given.blocks(_ROWS)
            )
            self.nearest = nearest_of(self.rows, blocks, self.near)
