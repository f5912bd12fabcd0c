"""The models that explain a unit's answers: of all there are, what is left by inputs chosen one after the other."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.known import known_as, rarity
from mmaformal.cases.generate import DISTRIBUTIONS, Distribution
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.checked import Progress
from mmaformal.display import counted
from mmaformal.queries.asking_units import POOL, Asked, Table, everything, ordinary_cases, pool
from mmaformal.queries.classes import Classes, ModelClass, RunNext
from mmaformal.queries.elimination import tabled
from mmaformal.queries.special_rules import SpecialRules, wrong
from mmaformal.solver.deadline import checking
from mmaformal.solver.session import SolverKeywords
from mmaformal.spaces import details
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: Cases to choose from: at first, and when what is left is not distinguished by those.
_POOLS = (POOL, 1500, 6000)
#: Results that are compared at once, where models are many.
_RESULTS = 10_000_000
#: Families whose details are followed at once.
_FOLLOWED = 48
#: More models than these are not asked of a solver.
_MOST = 64
#: Seconds of solvers for one group of models in any case; of what is left of the time, the part that they may take.
_LEAST, _SOLVING = 2.0, 0.7

EVERYTHING: tuple[Distribution, ...] = (*DISTRIBUTIONS, "edge", "subnormal", "cancel")


class Narrowing:
    """Asks a unit until no input distinguishes the models that are left."""

    def __init__(
        self,
        asked: Asked,
        types: Types,
        k: int,
        algorithms: tuple[str, ...],
        among: tuple[DotAdd, ...] | None,
        deadline: float,
        solving: float,
        progress: Progress,
        **solvers: Unpack[SolverKeywords],
    ) -> None:
        self.asked, self.types, self.k, self.deadline, self.progress = asked, types, k, deadline, progress
        self.algorithms, self.among, self.solving = algorithms, among, solving
        self.solvers = solvers
        self.rules = SpecialRules()
        self.chosen = 0
        self.left: Sequence[DotAdd] = ()  #: the models left, as far as it came
        self.doing = ""  #: what was begun last

    def candidates(self) -> Sequence[DotAdd]:
        """All models, but for details."""
        if self.among is not None:
            return self.among
        return everything(self.types, self.k, self.algorithms).specs

    def begin(self, doing: str) -> None:
        """Says what is being done, and keeps it."""
        self.doing = doing
        self.progress(doing)

    def searched(self) -> list[ModelClass]:
        """Return what is left of all models when no case tells any apart."""
        self.begin("running the models on cases")
        self.left = self.candidates()
        if self.among is not None:
            return self._settled(self._narrowed(list(self.among), EVERYTHING))
        table = everything(self.types, self.k, self.algorithms)
        table = table.under(self.rules) if self.rules else table
        families = self._narrowed(self._split(table), ("near", "edge", "numbers"), ordinary=True)
        return self._with_details(families)

    def _with_details(self, families: list[DotAdd]) -> list[ModelClass]:
        """Return what is left of families with all that they may do with zeros and special values; of many, those
        likest to instructions of the tables are followed, and as long as none explains the answers the next."""
        self.begin("asking about zeros and special values")
        known = tabled(self.types, self.k)
        families = sorted(
            families, key=lambda each: -max((same_parameters(each, x) for x in known), default=0)
        )
        for low in range(0, len(families), _FOLLOWED):
            left = [each for spec in families[low : low + _FOLLOWED] for each in checking(details(spec))]
            if self.chosen:
                left = [each for each in checking(left) if not self.wrong(each).any()]
            classes = self._settled(self._narrowed(left, (*DISTRIBUTIONS, "edge")))
            if classes:
                rest = tuple(families[low + _FOLLOWED :])
                return [replace(classes[0], open=(*classes[0].open, *rest)), *classes[1:]]
        return []

    def _ask(self, case: Codes) -> np.uint64:
        answer: np.uint64 = self.rules.results(self.asked.answer(Rows.of([case])), self.types.d)[0]
        self.chosen += 1
        return answer

    def _split(self, table: Table) -> list[DotAdd]:
        """Ask cases of a table until none distinguishes what is left."""
        self.doing = "choosing inputs"
        left, asked = np.arange(len(table.specs)), set[int]()
        while len(left) > 1 and (case := table.best(left, asked)) is not None:
            asked.add(case)
            answer = self._ask(table.rows[case])
            left = left[table.agree(case, answer)[left]]
            self.left = [table.specs[i] for i in left]
            self.progress(f"{counted(self.chosen, 'input')} asked, {len(left):,} models left")
        return [table.specs[i] for i in left]

    def _narrowed(
        self, specs: list[DotAdd], distributions: Sequence[Distribution], ordinary: bool = False
    ) -> list[DotAdd]:
        """Return what is left after new cases, more and more of them, drawn for what is left."""
        for seed, count in enumerate(_POOLS):
            if len(specs) < 2:
                break
            count = min(count, max(POOL, _RESULTS // len(specs)))
            rows = pool(specs, count, distributions, 100 * seed + 7)
            rows = ordinary_cases(rows, self.types, seed) if ordinary else rows
            rows = self.rules.inputs(rows, self.types)
            if len(rows):
                specs = self._split(Table.of(specs, rows, families=ordinary, rules=self.rules))
        return specs

    def _settled(self, specs: list[DotAdd]) -> list[ModelClass]:
        """Classes of one function each, by solvers; and, while there are several, by inputs of those."""
        while specs:
            self.left = specs
            if len(specs) > _MOST:
                return [_not_told_apart(specs)]
            classes, tests = self._classes(specs)
            if not tests:
                return classes
            before = len(specs)
            for test in tests:
                rows = self.rules.inputs(Rows.of([test.case]), self.types)
                answer = self._ask(rows[0])
                table = Table.of(specs, rows, rules=self.rules)
                specs = [specs[i] for i in np.nonzero(table.agree(0, answer))[0]]
                if len(specs) < 2:
                    break
            if len(specs) == before:  # they differ in nothing but what the unit does of its own
                return [_not_told_apart(specs)]
        return []

    def _classes(self, specs: Sequence[DotAdd]) -> tuple[list[ModelClass], list[RunNext]]:
        """By solvers, as long as they may take."""
        self.begin(f"comparing {counted(len(specs), 'model')} by solvers")
        start = time.monotonic()
        seconds = min(max(self.solving, _LEAST), (self.deadline - start) * _SOLVING)
        of = [(x, x) for x in specs]
        found = Classes(of, seconds, self.progress, only_solvers=True, **self.solvers).found()
        self.solving -= time.monotonic() - start
        return found

    def explained(self, classes: Sequence[ModelClass]) -> bool:
        """Whether a model explains every answer."""
        return bool(classes) and not self.wrong(classes[0].model).any()

    def wrong(self, spec: DotAdd) -> NDArray[np.bool_]:
        """The answers that a model does not explain; none of them before the first is asked."""
        rows, d = self.asked.all()
        return wrong(spec, rows, d, self.rules)


def _not_told_apart(specs: Sequence[DotAdd]) -> ModelClass:
    first = min(specs, key=rarity)
    return ModelClass(first, first, open=tuple(x for x in specs if x != first), known_as=known_as(first))


def same_parameters(x: DotAdd, y: DotAdd) -> int:
    """How many parameters are the same."""
    p, q = x.parameters, y.parameters
    same = sum(p[name] == q[name] for name in p) if type(p) is type(q) else -1
    return same + (x.product_order == y.product_order)
