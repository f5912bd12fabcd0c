"""Models of one function together: grouped by cases, then by solvers; and inputs that tell the groups apart."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.algorithms import DotAdd, parameter_text
from mmaformal.architectures.known import known_as
from mmaformal.cases.codes import is_nan
from mmaformal.cases.generate import MOODS, generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.questions import Progress
from mmaformal.cases.run import compiled_results as results
from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Different, Equal, Proof

#: Random cases to tell models apart by.
_CASES = 6000


@dataclass(frozen=True, repr=False)
class Explanation(ShortRepr):
    """Models that explain every row and that were not told apart."""

    model: DotAdd  #: the first of them
    family: DotAdd  #: the same but for what zeros and special values do, at one value each
    same: tuple[DotAdd, ...] = ()  #: proved to be the same function
    proofs: tuple[Proof, ...] = ()
    open: tuple[DotAdd, ...] = ()  #: no case tells them from the first; not proved the same
    known_as: tuple[str, ...] = ()  #: instructions of the registry that are this model

    @property
    def members(self) -> tuple[DotAdd, ...]:
        """All of them."""
        return (self.model, *self.same, *self.open)


@dataclass(frozen=True, repr=False)
class RunNext(ShortRepr):
    """An input to run next, and what each class of models gives."""

    case: Codes
    gives: tuple[int, ...]  #: codes, in the order of the classes


def one_nan(d: NDArray[np.uint64], fmt: Format) -> NDArray[np.uint64]:
    """Codes, all NaNs the same one."""
    return np.where(np.asarray(is_nan(d.astype(np.int64), fmt)), np.uint64(quiet_nan(fmt)), d)


class Classes:
    """Models that explain all rows, those of one function together."""

    def __init__(self, exact: Sequence[tuple[DotAdd, DotAdd]], timeout: float, progress: Progress) -> None:
        self.families, self.progress = dict(exact), progress
        self.deadline = time.monotonic() + timeout
        self.cases = generate(exact[0][0], _CASES, moods=(*MOODS, "edge", "tiny")).cases() if exact else []
        self.nans_known = all(spec.nan_is_canonical for spec in self.families)
        self.equal: dict[tuple[DotAdd, DotAdd], Proof | None] = {}  #: None: not settled in time

    def found(self) -> tuple[list[Explanation], list[RunNext]]:
        """Grouped by what random cases show; then by inputs too on which a solver finds that two of a group differ."""
        while True:
            rows, groups = Rows.of(self.cases), dict[bytes, list[DotAdd]]()
            for spec in sorted(self.families, key=lambda each: not known_as(each)):
                groups.setdefault(self._results(spec, rows).tobytes(), []).append(spec)
            apart = [case for members in groups.values() for case in self._apart(members)]
            if not apart:
                break
            self.cases += apart
        firsts = [members[0] for members in groups.values()]
        return [self._class(members) for members in groups.values()], self._tests(firsts, rows)

    def _results(self, spec: DotAdd, rows: Rows) -> NDArray[np.uint64]:
        """Codes; NaNs are one code where some model does not know its own."""
        d = results(spec, rows.codes)
        return d if self.nans_known else one_nan(d, spec.d_format)

    def _apart(self, members: Sequence[DotAdd]) -> Iterator[Codes]:
        """Inputs on which a member differs from the first, of those that are not proved equal."""
        first = members[0]
        for spec in members[1:]:
            left = self.deadline - time.monotonic()
            if (first, spec) in self.equal or left <= 1:
                continue
            self.progress(f"is {spec.text} the same as {first.text}?")
            answer = find_difference(as_instruction(first), as_instruction(spec), timeout=min(left, 20))
            if isinstance(answer, Different):
                yield _inputs_of(answer)
            else:
                self.equal[first, spec] = answer.proof if isinstance(answer, Equal) else None

    def _class(self, members: Sequence[DotAdd]) -> Explanation:
        """The first, what is proved to be the same, and the rest."""
        first = members[0]
        proved = {spec: proof for spec in members[1:] if (proof := self.equal.get((first, spec))) is not None}
        rest = tuple(spec for spec in members[1:] if spec not in proved)
        known = tuple(dict.fromkeys(name for spec in (first, *proved) for name in known_as(spec)))
        return Explanation(first, self.families[first], tuple(proved), tuple(proved.values()), rest, known)

    def _tests(self, specs: Sequence[DotAdd], rows: Rows) -> list[RunNext]:
        """Cases that together tell all classes apart: each time one that splits what is left most."""
        given = [self._results(spec, rows) for spec in specs]
        tests: list[RunNext] = []
        left = [list(range(len(specs)))]  #: classes that the tests so far do not tell apart
        while any(len(part) > 1 for part in left):
            part = max(left, key=len)
            kinds = [len(set(column)) for column in np.stack([given[i] for i in part]).T]
            case = self._smaller(self.cases[int(np.argmax(kinds))], specs, part)
            gives = tuple(int(self._results(spec, Rows.of([case]))[0]) for spec in specs)
            tests.append(RunNext(case, gives))
            left = [same for part in left for same in _split(part, gives)]
        return tests

    def _smaller(self, case: Codes, specs: Sequence[DotAdd], part: Sequence[int]) -> Codes:
        """Where two are to be told apart, the smallest input that does, if it is found in time."""
        remaining = self.deadline - time.monotonic()
        if len(part) == 2 and remaining > 1:
            x, y = (as_instruction(specs[i]) for i in part)
            answer = find_difference(x, y, timeout=min(remaining, 30))
            if isinstance(answer, Different):
                return _inputs_of(answer)
        return case


def _inputs_of(answer: Different) -> Codes:
    w = answer.witness
    return Codes(tuple(map(int, w.a)), tuple(map(int, w.b)), int(w.c))


def _split(part: Sequence[int], gives: Sequence[int]) -> list[list[int]]:
    by_code: dict[int, list[int]] = {}
    for i in part:
        by_code.setdefault(gives[i], []).append(i)
    return list(by_code.values())


def values_text(values: Sequence[object]) -> str:
    """Each value once; of integers, ranges."""
    texts = dict.fromkeys(parameter_text(x) for x in values if not isinstance(x, int))
    numbers = sorted({x for x in values if isinstance(x, int)})
    ranges: list[list[int]] = []
    for x in numbers:
        if ranges and x == ranges[-1][-1] + 1:
            ranges[-1].append(x)
        else:
            ranges.append([x])
    return ", ".join([*texts, *(str(r[0]) if len(r) == 1 else f"{r[0]} … {r[-1]}" for r in ranges)])


def as_instruction(spec: DotAdd) -> Instruction:
    """A model as an instruction without a machine."""
    return Instruction(spec.text, "a model", 1, 1, spec)
