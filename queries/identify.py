"""Which arithmetic is this?  Of a callable, by asking it as few inputs as possible.

    found = identify(unit, a_format="fp16", c_format="fp32", k=16)      # unit(a, b, c) → d, bit patterns
    print(found)                # found.classes: the model; found.inputs: what was asked, and the answers

Each input is chosen, of many cases, so that the answer leaves as few as possible of the models that are left; first
among all models with ordinary numbers, then with zeros and special values among those that are left with all that they
may do there.  Models that no case distinguishes are a question to a solver: its input is the next, or they are proved
equal.  In the end the unit is asked many cases at once.

Where no model explains all answers, everything is asked again.  The same input with another answer is noise, or two
models by turns.  Otherwise the unit is a function, and what it does with special values is set aside
(`special_rules`): if a model explains the rest, the search is made again with these rules, which are findings of their
own.  Then the designs that no unit is known to be are tried, then two models with a part of the inputs each.  What is
left is none of the models: the nearest is told, and what the rows that it gets wrong have in common.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.in_common import Trait
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import quick_results
from mmaformal.checked import Progress, caller, integer
from mmaformal.display import counted
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.probes.report import own_types
from mmaformal.queries.asking_units import Asked, AskedUnit
from mmaformal.queries.classes import ModelClass
from mmaformal.queries.identify_narrowing import Narrowing
from mmaformal.queries.identify_search import Identification, IdentifyVerdict, Search
from mmaformal.recordings.check import row_sizes
from mmaformal.renamed import keywords
from mmaformal.result import Result
from mmaformal.solver.deadline import checked_timeout
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, sessions
from mmaformal.spaces import algorithms, design_spaces
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class Identified(Result):
    """The model that a unit was found to be, and all that it was asked."""

    outcome: Identification
    types: Types
    k: int
    inputs: Rows  #: all inputs, the chosen ones first
    d: NDArray[np.uint64]  #: the answers
    calls: int  #: of the unit
    seconds: float

    def __bool__(self) -> bool:
        """Whether it is one function of the space, special values and all."""
        return self.verdict == "one"

    @property
    def verdict(self) -> IdentifyVerdict:
        """The kind of answer that was found.

        `one` function; `several` that no case distinguishes and that are not proved to be one; a model but for
        `special` values; a model with `noise`: other answers to the same inputs; two models (`mixture`); `none` of
        the models; `unknown`, for the time was up.
        """
        return self.outcome.verdict

    @property
    def classes(self) -> tuple[ModelClass, ...]:
        """The models left; of a mixture both, of noise and of none the nearest; of unknown one that is left, if any."""
        return self.outcome.classes

    @property
    def findings(self) -> tuple[str, ...]:
        """The unit's own ways with special values, beside the model."""
        return self.outcome.findings

    @property
    def in_common(self) -> tuple[Trait, ...]:
        """Traits that the rows have in common which the model does not explain, and few of the others."""
        return self.outcome.in_common

    @property
    def wrong(self) -> tuple[int, ...]:
        """Rows that the model, with the findings, does not explain; of a mixture, those of the second."""
        return self.outcome.wrong

    @property
    def repeated(self) -> tuple[int, ...]:
        """Rows that gave something else when asked again."""
        return self.outcome.repeated

    @property
    def chosen(self) -> int:
        """Inputs that were chosen one by one."""
        return self.outcome.chosen

    @property
    def models(self) -> int:
        """How many models there were, not counting details."""
        return self.outcome.models

    @property
    def left(self) -> int:
        """Where the verdict is unknown, how many models explain every answer so far, as far as they were compared."""
        return self.outcome.left

    @property
    def summary(self) -> str:
        """One line."""
        if self.verdict == "unknown":
            return self._unsettled
        n, first = self.outcome.rows, self.classes[0].model.text
        asked = f"{counted(self.chosen, 'input')} chosen, {len(self.d):,} in all"
        few = f"{len(self.wrong):,} of {counted(n, 'row')}"
        names = [each.model.text for each in self.classes]
        others = counted(sum(len(each.open) for each in self.classes) + len(names) - 1, "model")
        again = f"{len(self.repeated):,} of {n:,} answers are others when asked again"
        but = f"{first}, but {'; '.join(self.findings)}" if self.findings else first
        split = again if self.repeated else f"the second for {few}, by the input"
        return {
            "one": lambda: f"{first}, by {asked}",
            "several": lambda: f"{first}, not distinguished from {others}, by {asked}",
            "special": lambda: f"{but}{self._otherwise}, by {asked}",
            "noise": lambda: f"noise: {again}; the nearest model, {first}, is wrong in {few}",
            "mixture": lambda: f"two models mixed: {first}, and {names[-1]}; {split}",
            "none": lambda: (
                f"none of {self.models:,} models, by {asked}; the nearest, {first}, is wrong in {few}"
            ),
        }[self.verdict]()

    @property
    def _unsettled(self) -> str:
        """The words on what is known where the time was up."""
        asked = f"by {counted(self.chosen, 'input')} chosen, {len(self.d):,} in all"
        if self.outcome.so_far:
            known = f"{self.outcome.so_far}, {asked}"
        elif not len(self.d):
            known = f"nothing was asked yet{f' to tell {self.models:,} models apart' if self.models else ''}"
        else:
            named = f", {self.classes[0].model.text} among them" if self.left > 1 else ""
            named = f": {self.classes[0].model.text}" if self.left == 1 else named
            known = f"{counted(self.left, 'model')} left of {self.models:,}, {asked}{named}"
        return f"not settled when the time was up; {known}"

    @property
    def _otherwise(self) -> str:
        """The words on what no finding explains, of a model but for special values."""
        if not self.wrong:
            return ""
        return f"{'; and' if self.findings else ', but'} {len(self.wrong):,} rows with special values are otherwise"

    def __str__(self) -> str:
        lines = [self.summary]
        if self.outcome.unfinished:
            lines.append(f"the time was up while {self.outcome.unfinished}: give it more with timeout=")
        if self.verdict in ("noise", "none") and self.findings:
            lines.append(f"of special values: {'; '.join(self.findings)}")
        if self.wrong and self.verdict in ("none", "special"):
            lines += [f"rows that it gets wrong: {trait}" for trait in self.in_common]
            if not self.in_common and not self.outcome.unfinished:
                lines.append("nothing that was looked for is common to the rows that it gets wrong")
            lines += [self._distance, f"the smallest of them: {self._row(self._smallest)}"]
        for each in self.classes:
            if known := each.known_as:
                more = f" and {len(known) - 3} more" if len(known) > 3 else ""
                lines.append(f"{each.model.text} is {', '.join(known[:3])}{more}")
            if each.same:
                lines.append(f"proved to be the same function: {counted(len(each.same), 'other model')}")
            if each.open:
                lines.append(
                    f"not distinguished from it, nor proved the same: {counted(len(each.open), 'model')}"
                )
        return "\n".join(lines)

    @property
    def _distance(self) -> str:
        """How many of the rows that the model gets wrong it gets wrong by one unit in the last place."""
        where, fmt = np.array(self.wrong), self.types.d
        gives = quick_results(self.classes[0].model, self.inputs.at(where)).astype(np.int64)
        next_to = np.abs(gives - self.d[where].astype(np.int64)) == 1 << fmt.ignored_low_bits
        return f"in {int(next_to.sum()):,} of the {len(where):,} d is the number next to the model's"

    @property
    def _smallest(self) -> int:
        """The row with the smallest input among those that the model gets wrong."""
        where = np.array(self.wrong)
        sides = (side[where].astype(np.int64) for side in (self.inputs.a, self.inputs.b, self.inputs.c))
        sizes = row_sizes(self.classes[0].model, *sides)
        return int(where[np.lexsort(sizes.T[::-1])[0]])

    def _row(self, row: int) -> str:
        """An input, what the unit gave, and what the model gives."""
        d, case = self.types.d, self.inputs[row]
        gives = int(quick_results(self.classes[0].model, Rows.of([case]))[0])
        return f"{case.text}: the unit gave {d.text(int(self.d[row]))}, the model gives {d.text(gives)}"

    def rows(self) -> list[dict[str, object]]:
        """Returns a dict for each class of models left (`classes`)."""
        return [each.to_json() for each in self.classes]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "verdict": self.verdict,
            "types": str(self.types),
            "terms": self.k,
            "classes": [each.to_json() for each in self.classes],
            "findings": list(self.findings),
            "in_common": [str(trait) for trait in self.in_common],
            "chosen": self.chosen,
            "rows": len(self.d),
            "calls": self.calls,
            "wrong": list(self.wrong),
            "repeated": list(self.repeated),
            "models": self.models,
            "left": self.left,
            "so_far": self.outcome.so_far,
            "unfinished": self.outcome.unfinished,
            "seconds": round(self.seconds, 2),
        }


@keywords(solving="solver_timeout")
def identify(
    unit: AskedUnit | Instruction,
    *,
    a_format: str | Format | None = None,
    b_format: str | Format | None = None,
    c_format: str | Format | None = None,
    d_format: str | Format | None = None,
    k: int | None = None,
    scale_format: str | Format | None = None,
    scale_block: int = 0,
    among: Iterable[DotAdd | Instruction] | None = None,
    only: Iterable[str] | None = None,
    confirm: int = 4096,
    timeout: float = 300.0,
    solver_timeout: float = 60.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Identified:
    """Find the model that a unit computes, by inputs chosen one after the other.

    unit: a callable of unsigned 64-bit arrays of bit patterns, a and b of shape (n, K), c of (n,), with block scales
    also scale_a and scale_b of (n, K / block); it returns d of shape (n,).  Or an Instruction, whose types are used.
    b_format, d_format: those of a and c, if not given.  among: models to distinguish, by default all of
    `mmaformal.spaces`, and where none of these explains the answers its `design_spaces()`.  only: the names of the
    algorithms that are tried.  confirm: cases that it is asked in the end, at once.  timeout: seconds for everything;
    where they are up, the answer says what was found until then, and its verdict is "unknown".  A kernel that numba
    compiles, once on a machine, is compiled to its end all the same.  solver_timeout: seconds of these for solvers.
    memory, solver, progress, cache: as `find_difference` has them.

    Raises ValueError for a format or an algorithm that there is not, for types that no model has, and for answers that
    are not n codes of d; TypeError for missing types.
    """
    caller(progress)
    start = time.monotonic()
    types, k = _takes(unit, (a_format, b_format, c_format, d_format), k, scale_format, scale_block)
    given = None if among is None else tuple(x.spec if isinstance(x, Instruction) else x for x in among)
    if given is not None and (odd := [x for x in given if (Types.of(x), x.k) != (types, k)]):
        raise ValueError(f"{odd[0]!r} takes other inputs than {types}, K = {k}")
    names = tuple(algorithms()) if only is None else tuple(only)
    if unknown := [name for name in names if name not in (*algorithms(), *design_spaces())]:
        raise ValueError(
            f"no algorithm {unknown[0]!r}; there are {', '.join((*algorithms(), *design_spaces()))}"
        )
    if given is not None and only is not None:
        given = tuple(x for x in given if x.parameters.algorithm in names)
    asked = Asked(unit.dot_add if isinstance(unit, Instruction) else unit, types)
    designs = only is None and among is None
    deadline = start + checked_timeout(timeout)
    checked_timeout(solver_timeout)
    say = progress or (lambda _: None)
    with sessions(solver, memory, cache) as solvers:
        narrowing = Narrowing(asked, types, k, names, given, deadline, solver_timeout, say, **solvers)
        outcome = Search(narrowing, designs).found(confirm)
    rows, d = asked.all()
    return Identified(outcome, types, k, rows, d, calls=asked.calls, seconds=time.monotonic() - start)


def _takes(
    unit: AskedUnit | Instruction,
    formats: Sequence[str | Format | None],
    k: int | None,
    scale_format: str | Format | None,
    scale_block: int,
) -> tuple[Types, int]:
    """The types and K of a unit."""
    if isinstance(unit, Instruction):
        return Types.of(unit.spec), unit.k
    names = [f"{side}_format" for side in "abcd"]
    own = own_types(unit, {**dict(zip(names, formats, strict=True)), "k": k})
    given = [own.get(name, fmt) for name, fmt in zip(names, formats, strict=True)]
    count = own.get("k", k)
    if given[0] is None or given[2] is None or count is None:
        raise TypeError("a callable needs a_format, c_format and k: what it takes")
    a, c = Format.named(given[0], "a_format"), Format.named(given[2], "c_format")
    b = a if given[1] is None else Format.named(given[1], "b_format")
    d = c if given[3] is None else Format.named(given[3], "d_format")
    scale = None if scale_format is None else Format.named(scale_format, "scale_format")
    return Types(a, b, c, d, scale, scale_block), integer(count, "k")
