"""The smallest set of inputs that tells all of some models apart: which arithmetic does this machine run on?

    found = fingerprint(of_types("fp16", "fp32"))       # all instructions that take these types
    print(found)                    # the inputs, and what each model gives: a decision tree
    found.named("rows.npz")         # which of them gave the rows of a recording
    found.program(hopper["HMMA.16816.F32"])             # says it on the machine at hand

Models that no input distinguishes are proved to be one function, or told as not settled.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES, ON_PAPER
from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.codes import is_finite, one_nan
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import quick_results
from mmaformal.cases.shrink import shrink
from mmaformal.checked import Progress, caller
from mmaformal.display import counted
from mmaformal.formats import FORMATS, Format
from mmaformal.instruction import Instruction
from mmaformal.queries.classes import Classes, ModelClass
from mmaformal.queries.elimination import RecordedRows, types_of_recording
from mmaformal.queries.find_difference import IncomparableError
from mmaformal.recordings.read import Recording, read
from mmaformal.result import Result
from mmaformal.solver.deadline import check_time, checked_timeout, checking, last_within
from mmaformal.solver.portfolio import DEFAULT_MEMORY
from mmaformal.solver.session import Cache, Solver, sessions
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

if TYPE_CHECKING:
    from mmaformal.recorder.program import RecorderProgram

#: Random cases drawn for each model.
_CASES = 4000
#: Sets of cases of a size that are tried, of those that tell most apart.
_TELLING, _SETS = 60, 200_000
#: The part of the time for which instructions are the same; and seconds for the rest in any case.
_COMPARING, _LEAST = 0.6, 0.5


@dataclass(frozen=True, repr=False)
class Fingerprint(Result):
    """Inputs that tell models apart."""

    instructions: tuple[Instruction, ...]  #: chained to one K
    classes: tuple[ModelClass, ...]  #: of one function each
    cases: tuple[Codes, ...]
    gives: tuple[tuple[int, ...], ...]  #: of each class, the codes of d, one for each case
    at_least: int  #: so many cases are needed
    seconds: float
    distinguished: bool = True  #: whether all were compared, and the cases tell all classes apart
    complete: bool = True  #: whether fewer and smaller cases were looked for, too; if not, the time was up

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The labels of the instructions that each class is."""
        return tuple(
            tuple(i.label for i in self.instructions if i.spec in each.members) for each in self.classes
        )

    @property
    def verdict(self) -> str:
        """`apart`: the inputs tell all functions apart; `one`: there is one function; `unknown`: the time was up."""
        if not self.distinguished:
            return "unknown"
        return "one" if len(self.classes) == 1 else "apart"

    @property
    def summary(self) -> str:
        """One line."""
        n = len(self.cases)
        if not self.distinguished:
            return (
                f"not settled: the time was up before all {counted(len(self.instructions), 'instruction')} were "
                f"compared; {counted(n, 'input')} found until then, not known to tell all of them apart"
            )
        if len(self.classes) == 1:
            return (
                f"{counted(len(self.instructions), 'instruction')}, one function: no input tells them apart"
            )
        smallest = "fewer do not" if self.at_least >= n else f"at least {self.at_least}"
        inputs = f"{counted(n, 'input')} {'tells' if n == 1 else 'tell'}"
        return (
            f"{inputs} {counted(len(self.classes), 'function')} of {counted(len(self.instructions), 'instruction')} "
            f"apart ({smallest})"
        )

    def __str__(self) -> str:
        d = self.instructions[0].d_format
        digits = -(-d.storage_bits // 4)
        lines = [self.summary]
        if self.distinguished and not self.complete:
            lines.append("the time was up before fewer and smaller inputs were looked for: --timeout")
        for number, case in enumerate(self.cases, 1):
            lines.append(f"input {number}: {case.text}")
        if not self.distinguished:
            return "\n".join([*lines, "give it more time: --timeout"])
        if not self.cases:
            lines += [f"  {label}" for labels in self.labels for label in labels]
        else:
            lines += self._tree(range(len(self.classes)), 0, f"0x{{:0{digits}x}}", "")
        for each in self.classes:
            if each.open:
                lines.append(
                    f"not distinguished, nor proved the same: {each.model.text}; {each.open[0].text}"
                )
        return "\n".join(lines)

    def _tree(self, left: Sequence[int], case: int, code: str, indent: str) -> list[str]:
        """A decision tree: what each result of a case says."""
        lines = []
        for value in dict.fromkeys(self.gives[i][case] for i in left):
            those = [i for i in left if self.gives[i][case] == value]
            told = f"{indent}d = {code.format(value)} ({self.instructions[0].d_format.text(value)})"
            if len(those) == 1:
                names = self.labels[those[0]]
                more = f" and {len(names) - 4} more" if len(names) > 4 else ""
                lines.append(f"{told}: {', '.join(names[:4])}{more}")
            else:
                lines.append(f"{told}: input {case + 2}")
                lines += self._tree(those, case + 1, code, indent + "  ")
        return lines

    def rows(self) -> list[dict[str, object]]:
        """A dict for each instruction: the number of its function, and the code of d for each input."""
        numbers = range(1, len(self.cases) + 1)
        return [
            {
                "instruction": label,
                "function": function,
                **{f"input {number}": f"{code:#x}" for number, code in zip(numbers, gives, strict=True)},
            }
            for function, (labels, gives) in enumerate(zip(self.labels, self.gives, strict=True), 1)
            for label in labels
        ]

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "types": str(Types.of(self.instructions[0].spec)),
            "terms": self.instructions[0].k,
            "at_least": self.at_least,
            "distinguished": self.distinguished,
            "complete": self.complete,
            "cases": [case.to_json() for case in self.cases],
            "classes": [
                {
                    "instructions": list(labels),
                    "model": each.model.text,
                    "gives": [f"{x:#x}" for x in gives],
                    "proved_the_same": [x.text for x in each.same],
                    "open": [x.text for x in each.open],
                }
                for each, labels, gives in zip(self.classes, self.labels, self.gives, strict=True)
            ],
            "seconds": round(self.seconds, 2),
        }

    # ---- using it ----

    def named(self, recording: str | Path | Recording) -> tuple[tuple[str, ...], ...]:
        """The classes, by their instructions, that explain every row of a recording.

        Raises RecordingError for what is no recording, IncomparableError for one of other types, ValueError where the
        time was up before all instructions were compared.
        """
        self._require_told_apart()
        given = recording if isinstance(recording, Recording) else read(recording, modelled=False)
        types = Types.of(self.instructions[0].spec)
        if types_of_recording(given) != types:
            raise IncomparableError(f"{given.path} has other types than {types}")
        left = list(zip(self.classes, self.labels, strict=True))
        for block in given.blocks():
            kept = []
            for each, labels in left:
                spec = each.model
                spec = spec.replace(k=-(-given.terms // spec.period) * spec.period)
                if not RecordedRows.of(block, types, spec.k).differ(spec).any():
                    kept.append((each, labels))
            left = kept
        return tuple(labels for _, labels in left)

    def program(self, instruction: Instruction, compiler: str | None = None) -> RecorderProgram:
        """A program that puts the inputs to the unit of an instruction, and prints which of these it is.

        Its K divides that of the inputs, which are put to it piece by piece, each result the next one's c.  Raises
        RecorderError where no program can be written for it, ValueError where the time was up before all instructions
        were compared.
        """
        self._require_told_apart()
        from mmaformal.recorder.fingerprint import fingerprint_program

        table = list(zip(self.labels, self.gives, strict=True))
        return fingerprint_program(instruction, self.cases, table, compiler)

    def _require_told_apart(self) -> None:
        if not self.distinguished:
            raise ValueError(
                "the inputs are not known to tell all instructions apart: the time was up; give it more"
            )


def of_types(a: str | Format, d: str | Format, b: str | Format | None = None) -> tuple[Instruction, ...]:
    """The instructions of these types, c as d, of all units that are built: no block scales, and no signs changed."""
    a, d = (FORMATS[x] if isinstance(x, str) else x for x in (a, d))
    b = a if b is None else FORMATS[b] if isinstance(b, str) else b
    there_are = (i for name, arch in ARCHITECTURES.items() if name not in ON_PAPER for i in arch)
    found = [i for i in there_are if Types.of(i.spec) == Types(a, b, d, d) and not i.spec.is_signed]
    if not found:
        raise ValueError(f"no instruction takes {a} × {b} + {d} → {d}")
    return tuple(found)


def fingerprint(
    instructions: Iterable[Instruction | str],
    *,
    timeout: float = 120.0,
    memory: int = DEFAULT_MEMORY,
    solver: Solver = None,
    progress: Progress | None = None,
    cache: Cache = False,
) -> Fingerprint:
    """Find the smallest set of inputs that tells all of these apart.

    Instructions of other K are chained to the least K that they have in common.  timeout: seconds for
    everything; where they are up, the answer says whether the inputs found until then are known to tell all apart.
    memory, solver, progress, cache: as `find_difference` has them.

    Raises IncomparableError for other types, ValueError for none.
    """
    caller(progress)
    start = time.monotonic()
    deadline = start + checked_timeout(timeout)
    given = [instruction_meant(each) for each in instructions]
    if not given:
        raise ValueError("there is no instruction to tell from others")
    k = math.lcm(*(i.k for i in given))
    chained = [i.chained(k) for i in given]
    if odd := [i for i in chained if Types.of(i.spec) != Types.of(chained[0].spec)]:
        raise IncomparableError(
            f"{odd[0].label} takes {odd[0].spec.types}, {chained[0].label} {chained[0].spec.types}"
        )
    specs = list(dict.fromkeys(i.spec for i in chained))
    say = progress or (lambda _: None)
    with sessions(solver, memory, cache) as solvers:
        comparing = Classes([(x, x) for x in specs], timeout * _COMPARING, say, **solvers)
        classes, tests = comparing.found()
    firsts, cases = [each.model for each in classes], [test.case for test in tests]
    fewer = _fewer(firsts, cases) if comparing.complete else iter(())
    say(f"{counted(len(firsts), 'function')}: the fewest inputs that tell them apart")
    cases, expired = last_within(max(deadline - time.monotonic(), _LEAST), fewer, cases)
    gives = [tuple(map(int, x)) for x in _results(firsts, Rows.of(cases))] if cases else [()] * len(firsts)
    return Fingerprint(
        tuple(chained),
        tuple(classes),
        tuple(cases),
        tuple(gives),
        at_least=_bound(len(firsts), len(cases)),
        seconds=time.monotonic() - start,
        distinguished=comparing.complete,
        complete=comparing.complete and not expired,
    )


def _bound(functions: int, cases: int) -> int:
    """None tell one function from itself; of several, one at least is needed."""
    return min(cases, 1) if functions > 1 else 0


def _results(specs: Sequence[DotAdd], rows: Rows) -> NDArray[np.uint64]:
    """Codes, models × cases; NaNs are one code where some model does not know its own."""
    d = np.stack([quick_results(spec, rows.codes) for spec in checking(specs)])
    return d if all(spec.nan_is_canonical for spec in specs) else one_nan(d, specs[0].d_format)


def _fewer(specs: Sequence[DotAdd], known: Sequence[Codes]) -> Iterator[list[Codes]]:
    """Cases that tell all apart, as `known` ones do: each time fewer or smaller, in the end the fewest of many."""
    if len(specs) < 2:
        return
    drawn = [generate(spec, _CASES, seed, (*DISTRIBUTIONS, "edge")) for seed, spec in enumerate(specs)]
    cases = [*known, *(case for rows in drawn for case in rows.cases())]
    table = _results(specs, Rows.of(cases))
    kinds = np.array([len(np.unique(column)) for column in table.T])
    finite = _finite(table, specs[0].d_format)
    products = np.array([sum(bool(x and y) for x, y in zip(case.a, case.b, strict=True)) for case in cases])
    everything = [*np.lexsort((products, ~finite, -kinds))[:_TELLING], *range(len(known))]
    of_numbers = [case for case in np.lexsort((products, -kinds)) if finite[case]][:_TELLING]
    sets = chain(_sets(table, of_numbers, 2), _sets(table, everything, len(known)))
    chosen = [cases[i] for i in next(sets, list(range(len(known))))]
    yield chosen
    yield from _smaller(specs, chosen)


def _finite(table: NDArray[np.uint64], fmt: Format) -> NDArray[np.bool_]:
    """The cases of which all results are numbers: a NaN's code is not known of all units."""
    return np.asarray(np.asarray(is_finite(table.astype(np.int64), fmt)).all(axis=0))


def _sets(table: NDArray[np.uint64], best: Sequence[int], most: int) -> Iterator[list[int]]:
    """Sets of cases that tell all models apart, of one case, of two, …"""
    for size in range(1, most + 1):
        for number, some in enumerate(checking(combinations(best, size))):
            if number > _SETS:
                break
            if len(np.unique(table[:, list(some)], axis=0)) == len(table):
                yield list(some)


def _smaller(specs: Sequence[DotAdd], cases: Sequence[Codes]) -> Iterator[list[Codes]]:
    """One case after the other made smaller while all together still tell all apart."""
    cases = list(cases)
    fmt = specs[0].d_format
    for place in range(len(cases)):
        others = Rows.of(cases[:place] + cases[place + 1 :]) if len(cases) > 1 else None
        fixed = _results(specs, others) if others is not None else np.empty((len(specs), 0), np.uint64)

        numbers = bool(_finite(_results(specs, Rows.of([cases[place]])), fmt)[0])

        def shows(
            some: Sequence[Codes], fixed: NDArray[np.uint64] = fixed, numbers: bool = numbers
        ) -> list[bool]:
            check_time()
            table = _results(specs, Rows.of(some))
            good = _finite(table, fmt) | (not numbers)
            apart = [len(np.unique(np.column_stack([fixed, x]), axis=0)) == len(specs) for x in table.T]
            return [bool(x and y) for x, y in zip(good, apart, strict=True)]

        cases[place] = shrink(specs[0], cases[place], shows)
        yield list(cases)
