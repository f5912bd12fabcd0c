"""Models of one function together: grouped by cases, then by solvers; and inputs that tell the groups apart."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.known import known_as, rarity, without_nan_rule
from mmaformal.cases.codes import one_nan
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Codes, Rows, plain_codes
from mmaformal.cases.run import quick_results as results
from mmaformal.cases.shrink import fewer_products, half_the_products, shrink, smaller_cases
from mmaformal.checked import Progress
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.solver.answers import Different, Equal, Proof
from mmaformal.solver.deadline import Deadline, check_time
from mmaformal.solver.session import SolverKeywords
from mmaformal.spec import DotAdd, parameter_text

#: Random cases to tell models apart by, and how many of them all models are run on first.
_CASES, _FIRST = 6000, 250
#: Seconds that are left in any case for the inputs to run next.
_LAST = 1.0
#: Seconds that a question to solvers, which ends by itself, may take beyond its limit.
_GRACE = 0.6
#: The most seconds in which one input to run next is made smaller.
_SMALLER = 30.0


@dataclass(frozen=True, repr=False)
class ModelClass(ShortRepr):
    """Models that explain every row and that were not distinguished."""

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

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "model": self.model.text,
            "family": self.family.text,
            "known_as": list(self.known_as),
            "same": [each.text for each in self.same],
            "open": [each.text for each in self.open],
        }


@dataclass(frozen=True, repr=False)
class RunNext(ShortRepr):
    """An input to run next, and what each class of models gives."""

    case: Codes
    gives: tuple[int, ...]  #: codes, in the order of the classes


class Classes:
    """Models that explain all rows, those of one function together."""

    def __init__(
        self,
        exact: Sequence[tuple[DotAdd, DotAdd]],
        timeout: float,
        progress: Progress,
        *,
        only_solvers: bool = False,
        **solvers: Unpack[SolverKeywords],
    ) -> None:
        """timeout: seconds for everything; where they are up, models that were not compared stand in one class.

        only_solvers: for solvers alone; cases are run to the end.  solvers: which are asked, and their memory.
        """
        self.only_solvers, self.solvers = only_solvers, solvers
        self.families, self.progress = dict(exact), progress
        self.deadline = time.monotonic() + timeout
        self.specs = sorted(self.families, key=rarity)
        self.nans_known = all(spec.nan_is_canonical for spec in self.families)
        self.cases: list[Codes] = []
        self.given = np.empty((len(self.specs), 0), np.uint64)  #: what each model gives for each case
        self.equal: dict[tuple[DotAdd, DotAdd], Proof | None] = {}  #: None: not settled in time
        self.tests: list[RunNext] = []
        self.distinguished = True  #: whether `tests` tell all classes apart
        self.complete = True  #: whether all were compared, too

    def found(self) -> tuple[list[ModelClass], list[RunNext]]:
        """Grouped by what random cases show; then by inputs too on which a solver finds that two of a group differ."""
        if not self.specs:
            return [], []
        with self._within(0) as comparing:
            self._compare()
        groups = self._groups()
        with self._within(_LAST) as testing:
            self._test([members[0] for members in groups.values()])
        self.distinguished = not testing.expired
        self.complete = self.distinguished and not comparing.expired
        return [self._class([self.specs[i] for i in members]) for members in groups.values()], self.tests

    def _within(self, least: float) -> Deadline:
        """Return a deadline for what is left of the time, but so many seconds at least."""
        left = max(self.deadline - time.monotonic(), least) + _GRACE
        return Deadline(None if self.only_solvers else left)

    def _compare(self) -> None:
        """More and more cases, until a solver finds none on which two of a group differ."""
        cases = generate(self.specs[0], _CASES, distributions=(*DISTRIBUTIONS, "edge", "tiny")).cases()
        self._add(cases[:_FIRST])
        self._add(cases[_FIRST:])
        while apart := [case for members in self._groups().values() for case in self._apart(members)]:
            self._add(apart)

    def _add(self, cases: Sequence[Codes]) -> None:
        """Run all models on more cases; all of them or none."""
        if cases:
            rows, given = Rows.of(cases), []
            for spec in self.specs:
                check_time()
                given.append(self._results(spec, rows))
            self.given, self.cases = np.hstack([self.given, given]), [*self.cases, *cases]

    def _groups(self) -> dict[bytes, list[int]]:
        """The models that no case distinguishes, by their places, in the order of their firsts."""
        groups: dict[bytes, list[int]] = {}
        for i in range(len(self.specs)):
            groups.setdefault(self.given[i].tobytes(), []).append(i)
        return groups

    def _results(self, spec: DotAdd, rows: Rows) -> NDArray[np.uint64]:
        """Codes; NaNs are one code where some model does not know its own."""
        d = results(spec, rows.codes)
        return d if self.nans_known else one_nan(d, spec.d_format)

    def _apart(self, members: Sequence[int]) -> Iterator[Codes]:
        """Inputs on which a member differs from the first, of those that are not proved equal."""
        first, *rest = (self.specs[i] for i in members)
        for spec in rest:
            left = self.deadline - time.monotonic()
            if (first, spec) in self.equal or left <= 1:
                continue
            if not self.nans_known and _differ_in_nans(first, spec):  # which are one here
                self.equal[first, spec] = None
                continue
            self.progress(f"is {spec.text} the same as {first.text}?")
            models = as_instruction(first), as_instruction(spec)
            answer = find_difference(*models, timeout=min(left, 20), **self.solvers)
            if isinstance(answer, Different) and self._tells(
                case := plain_codes(answer.witness), first, spec
            ):
                yield case
            else:  # also where they give different NaNs, which are one here
                self.equal[first, spec] = answer.proof if isinstance(answer, Equal) else None

    def _tells(self, case: Codes, *specs: DotAdd) -> bool:
        """Whether models give different results."""
        x, y = (self._results(spec, Rows.of([case])) for spec in specs)
        return bool((x != y).any())

    def _class(self, members: Sequence[DotAdd]) -> ModelClass:
        """The first, what is proved to be the same, and the rest."""
        first = members[0]
        proved = {spec: proof for spec in members[1:] if (proof := self.equal.get((first, spec))) is not None}
        rest = tuple(spec for spec in members[1:] if spec not in proved)
        known = tuple(dict.fromkeys(name for spec in (first, *proved) for name in known_as(spec)))
        return ModelClass(first, self.families[first], tuple(proved), tuple(proved.values()), rest, known)

    def _test(self, firsts: Sequence[int]) -> None:
        """Cases that together tell all classes apart: each time one that splits what is left most."""
        specs, given = [self.specs[i] for i in firsts], self.given[list(firsts)]
        left = [list(range(len(specs)))]  #: classes that the tests so far do not distinguish
        while any(len(part) > 1 for part in left):
            check_time()
            part = max(left, key=len)
            codes = np.sort(given[part], axis=0)
            kinds = 1 + (codes[1:] != codes[:-1]).sum(axis=0)
            case = self.cases[int(np.argmax(kinds))]
            if len(part) == 2:
                case = self._smaller(case, *(specs[i] for i in part))
            gives = tuple(int(self._results(spec, Rows.of([case]))[0]) for spec in specs)
            self.tests.append(RunNext(case, gives))
            left = [same for part in left for same in _split(part, gives)]

    def _smaller(self, case: Codes, x: DotAdd, y: DotAdd) -> Codes:
        """Return a smaller case on which two models differ, by running them: the smallest found in time."""
        smallest = [case]

        def differ(cases: Sequence[Codes]) -> list[bool]:
            check_time()
            rows = Rows.of(cases)
            apart = [bool(each) for each in self._results(x, rows) != self._results(y, rows)]
            if True in apart:  # which is what `shrink` goes on from
                smallest.append(cases[apart.index(True)])
            return apart

        with Deadline(min(max(self.deadline - time.monotonic(), 0.0), _SMALLER)):
            for candidates in (half_the_products, fewer_products, smaller_cases):
                shrink(x, smallest[-1], differ, candidates)
        return smallest[-1]


def _differ_in_nans(x: DotAdd, y: DotAdd) -> bool:
    """Whether models are one but for known NaNs."""
    return x.nan_is_canonical and y.nan_is_canonical and without_nan_rule(x) == without_nan_rule(y)


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
