"""The search of `identify`: which of all models a unit computes, asked input by input, and what it is if none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.algorithms import DotAdd
from mmaformal.architectures.known import known_as
from mmaformal.cases.generate import MOODS, Mood
from mmaformal.cases.in_common import Trait, in_common
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.questions import Progress
from mmaformal.display import ShortRepr, counted
from mmaformal.probes.box import Box
from mmaformal.probes.special import nans
from mmaformal.queries.asking_units import POOL, Asked, Table, everything, ordinary_cases, pool
from mmaformal.queries.classes import Classes, Explanation, one_nan
from mmaformal.queries.elimination import tabled
from mmaformal.queries.several_models import ASIDE, Candidates
from mmaformal.queries.special_rules import FEW, SpecialRules, findings, fitted, plain, plain_inputs, wrong
from mmaformal.spaces import DESIGNS, details
from mmaformal.spaces.common import Types

#: Cases to choose from: at first, and when what is left is not told apart by those.
_POOLS = (POOL, 1500, 6000)
#: Results that are compared at once, where models are many.
_RESULTS = 10_000_000
#: Families whose details are followed at once.
_FOLLOWED = 48
#: More models than these are not asked of a solver.
_MOST = 64
#: Cases without special values, asked where no model explains all answers; and from how many inputs they are drawn.
_PLAIN, _DRAWN = 1500, 12
#: Seconds for two models of which one or the other explains every answer, if the time limit leaves no more.
_OF_PAIRS = 20

_EVERYTHING: tuple[Mood, ...] = (*MOODS, "edge", "subnormal", "cancel")

#: One function; several that no case tells apart and that are not proved to be one; one but for special values; a model
#: whose answers are otherwise when asked again; two models; none of the models.
Verdict: TypeAlias = Literal["one", "several", "special", "noise", "mixture", "none"]


@dataclass(frozen=True, repr=False)
class Outcome(ShortRepr):
    """What a search found of a unit."""

    verdict: Verdict
    classes: tuple[Explanation, ...]  #: of "mixture" both, of "noise" and "none" the nearest
    findings: tuple[str, ...]  #: what the unit does of its own with special values
    in_common: tuple[Trait, ...]  #: of the rows that the model does not explain
    wrong: tuple[int, ...]  #: rows that the model does not explain; of "mixture", those of the second
    repeated: tuple[int, ...]  #: rows that gave something else when asked again
    rows: int  #: how many `wrong` and `repeated` are of
    chosen: int  #: inputs that were chosen one by one
    models: int  #: that were tried


class Search:
    """Asks a unit until one model is left, or none."""

    def __init__(
        self,
        asked: Asked,
        types: Types,
        k: int,
        algorithms: tuple[str, ...],
        among: tuple[DotAdd, ...] | None,
        designs: bool,
        deadline: float,
        progress: Progress,
    ) -> None:
        self.asked, self.types, self.k, self.deadline, self.progress = asked, types, k, deadline, progress
        self.algorithms, self.among, self.designs = algorithms, among, designs
        self.rules = SpecialRules()
        self.chosen = 0
        self.models = len(self._candidates())

    def found(self, confirm: int) -> Outcome:
        """The models that explain the answers; and whether the unit is them."""
        classes = self._searched()
        some = [each.model for each in classes] or self._candidates()[:1]
        self.asked.answer(pool(some, confirm, _EVERYTHING, 11))
        if self._explained(classes):
            return self._outcome(_settled_as(classes), classes)
        self.progress("no model explains all answers: are they always the same?")
        rows, first = self.asked.all()
        again = self._again(rows)
        fmt = self.types.d
        changed = one_nan(again, fmt) != one_nan(first, fmt)
        return self._changing(changed, again) if changed.any() else self._function()

    # ---- the models that explain the answers ----

    def _searched(self) -> list[Explanation]:
        """What is left of all models when no case tells any apart."""
        if self.among is not None:
            return self._settled(self._narrowed(list(self.among), _EVERYTHING))
        table = everything(self.types, self.k, self.algorithms)
        table = table.under(self.rules) if self.rules else table
        families = self._narrowed(self._split(table), ("near", "edge", "numbers"), ordinary=True)
        return self._with_details(families)

    def _with_details(self, families: list[DotAdd]) -> list[Explanation]:
        """What is left of families with all that they may do with zeros and special values; of many, those likest to
        instructions of the tables are followed, and as long as none explains the answers the next."""
        known = tabled(self.types, self.k)
        families = sorted(families, key=lambda each: -max((_alike(each, x) for x in known), default=0))
        for low in range(0, len(families), _FOLLOWED):
            left = [each for spec in families[low : low + _FOLLOWED] for each in details(spec)]
            if self.chosen:
                left = [each for each in left if not self._wrong(each).any()]
            classes = self._settled(self._narrowed(left, (*MOODS, "edge")))
            if classes:
                rest = tuple(families[low + _FOLLOWED :])
                return [replace(classes[0], open=(*classes[0].open, *rest)), *classes[1:]]
        return []

    def _ask(self, case: Codes) -> np.uint64:
        self.chosen += 1
        answer: np.uint64 = self.rules.results(self.asked.answer(Rows.of([case])), self.types.d)[0]
        return answer

    def _split(self, table: Table) -> list[DotAdd]:
        """Ask cases of a table until none tells apart what is left."""
        left, asked = np.arange(len(table.specs)), set[int]()
        while len(left) > 1 and (case := table.best(left, asked)) is not None:
            asked.add(case)
            answer = self._ask(table.rows[case])
            left = left[table.agree(case, answer)[left]]
            self.progress(f"{counted(self.chosen, 'input')} asked, {len(left):,} models left")
        return [table.specs[i] for i in left]

    def _narrowed(self, specs: list[DotAdd], moods: Sequence[Mood], ordinary: bool = False) -> list[DotAdd]:
        """The same by new cases, more and more of them, drawn for what is left."""
        for seed, count in enumerate(_POOLS):
            if len(specs) < 2:
                break
            count = min(count, max(POOL, _RESULTS // len(specs)))
            rows = pool(specs, count, moods, 100 * seed + 7)
            rows = ordinary_cases(rows, self.types, seed) if ordinary else rows
            rows = self.rules.inputs(rows, self.types)
            if len(rows):
                specs = self._split(Table.of(specs, rows, families=ordinary, rules=self.rules))
        return specs

    def _settled(self, specs: list[DotAdd]) -> list[Explanation]:
        """Classes of one function each, by solvers; and, while there are several, by inputs of those."""
        while specs:
            if len(specs) > _MOST:
                return [_not_told_apart(specs)]
            classes, tests = Classes([(x, x) for x in specs], self._left(), self.progress).found()
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

    # ---- where none does ----

    def _changing(self, changed: NDArray[np.bool_], again: NDArray[np.uint64]) -> Outcome:
        """Of a unit that gives other answers to the same inputs: those when asked `again`."""
        rows, d = self.asked.all()
        repeated = tuple(map(int, np.nonzero(changed)[0]))
        twice, both = Rows.join([rows, rows]), np.concatenate([d, again])
        candidates = Candidates.of(self._candidates(), twice, both, self.among is None)
        pair = candidates.pair(self._left(_OF_PAIRS))
        if pair is not None:
            one, other = (self._likeliest(candidates, spec) for spec in pair)
            if not (wrong(one, twice, both, ASIDE) & wrong(other, twice, both, ASIDE)).any():
                return self._outcome("mixture", [_alone(one), _alone(other)], repeated)
        nearest = self._likeliest(candidates, candidates.nearest()[0])
        return self._outcome("noise", [_alone(nearest)], repeated)

    def _function(self) -> Outcome:
        """Of a unit that gives the same answers again, none of which any model explains all of."""
        self._ask_plain()
        rows, d = self.asked.all()
        given = self.algorithms
        for names in (given, DESIGNS) if self.designs else (given,):
            self.algorithms, self.rules = names, SpecialRules()
            candidates = Candidates.of(self._candidates(), rows, d, self.among is None)
            if survivors := candidates.survivors():
                return self._but_for_special(survivors)
        self.algorithms = given
        candidates = Candidates.of(self._candidates(), rows, d, self.among is None)
        if pair := self._by_input(candidates):
            return self._outcome("mixture", [_alone(x) for x in pair])
        best, self.rules = fitted(candidates.nearest(), rows, d, self.among is None)
        return self._outcome("none", [_alone(best)])

    def _but_for_special(self, survivors: list[DotAdd]) -> Outcome:
        """Of a unit whose answers without special values some models explain."""
        known = tabled(self.types, self.k)
        survivors = sorted(survivors, key=lambda each: -max((_alike(each, x) for x in known), default=0))
        rows, d = self.asked.all()
        best, self.rules = fitted(survivors, rows, d, self.among is None)
        self.progress(f"{best.text} explains what has no special values: again, with those set aside")
        classes = self._searched()
        if not self._explained(classes):
            rows, d = self.asked.all()
            ordinary = plain(rows, d, self.types)
            shown = ordinary.sum() >= FEW and not (self._wrong(best) & ordinary).any()
            verdict: Verdict = "special" if shown else "none"
            return self._outcome(verdict, [_alone(best)])
        rows, d = self.asked.all()
        model = classes[0].model
        self.rules = _without_nans(self.rules, model)
        return self._outcome("special" if self.rules else _settled_as(classes), classes)

    def _by_input(self, candidates: Candidates) -> tuple[DotAdd, DotAdd] | None:
        """Two models of which one or the other gives each answer without special values; so in new rows too."""
        pair = candidates.pair(self._left(_OF_PAIRS))
        if pair is None:
            return None
        one, other = (self._likeliest(candidates, spec) for spec in pair)
        before = len(self.asked.all()[1])
        self._ask_plain(seed=500)
        rows, d = self.asked.all()
        both = wrong(one, rows, d) & wrong(other, rows, d) & plain(rows, d, self.types)
        new = wrong(one, rows, d)[before:]
        return None if both.any() or not new.any() else (one, other)

    def _likeliest(self, candidates: Candidates, spec: DotAdd) -> DotAdd:
        """The model with the details that explain most answers."""
        return min(candidates.with_details(spec), key=lambda each: int(self._wrong(each).sum()))

    # ---- asking ----

    def _again(self, rows: Rows) -> NDArray[np.uint64]:
        """The answers when everything is asked again, in another order."""
        order = np.random.default_rng(5).permutation(len(rows))
        found = np.empty(len(rows), np.uint64)
        found[order] = self.asked.answer(rows.at(order), keep=False)
        return found

    def _ask_plain(self, seed: int = 300) -> None:
        """Ask cases without special values, many of them cancelling."""
        some = self._candidates()[:: max(1, self.models // 50)]
        found: list[Rows] = []
        for i in range(seed, seed + _DRAWN):
            rows = ordinary_cases(pool(some, _PLAIN, ("near", "edge", "bits", "cancel"), i), self.types, i)
            found.append(rows.at(plain_inputs(rows, self.types)))
            if sum(map(len, found)) >= _PLAIN:
                break
        rows = Rows.join(found).at(slice(0, _PLAIN))
        if len(rows):
            self.asked.answer(rows)

    def _nan_rule(self) -> str | None:
        """What the probes read of its NaNs."""
        if self.types.scale is not None:
            return None

        def unit(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[np.uint64]:
            none = np.empty((len(c), 0), np.uint64)
            left, right, addend = (x.astype(np.uint64) for x in (a, b, c))
            return self.asked.answer(Rows(left, right, addend, scale_a=none, scale_b=none))

        return nans(Box(unit, self.types, self.k)).rule

    # ---- answers ----

    def _outcome(
        self, verdict: Verdict, classes: Sequence[Explanation], repeated: tuple[int, ...] = ()
    ) -> Outcome:
        model = classes[0].model
        rows, d = self.asked.all()
        left = self._wrong(model)
        said: list[str] = []
        if self.rules:
            rule = self._nan_rule() if self.rules.one_nan else None
            said = findings(model, self.rules, rows, d, rule)
        scales = (self.types.scale,) if self.types.scale is not None else ()
        formats = (*self.types[:4], *scales)
        common = in_common(formats, rows, left, self.types.scale_block) if left.any() else []
        return Outcome(
            verdict,
            tuple(classes),
            tuple(said),
            tuple(common),
            wrong=tuple(map(int, np.nonzero(left)[0])),
            repeated=repeated,
            rows=len(d),
            chosen=self.chosen,
            models=self.models,
        )

    def _candidates(self) -> Sequence[DotAdd]:
        if self.among is not None:
            return self.among
        return everything(self.types, self.k, self.algorithms).specs

    def _explained(self, classes: Sequence[Explanation]) -> bool:
        return bool(classes) and not self._wrong(classes[0].model).any()

    def _wrong(self, spec: DotAdd) -> NDArray[np.bool_]:
        """The answers that a model does not explain; none of them before the first is asked."""
        rows, d = self.asked.all()
        return wrong(spec, rows, d, self.rules)

    def _left(self, least: float = 2) -> float:
        return max(self.deadline - time.monotonic(), least)


def _settled_as(classes: Sequence[Explanation]) -> Verdict:
    return "one" if len(classes) == 1 and not classes[0].open else "several"


def _without_nans(rules: SpecialRules, model: DotAdd) -> SpecialRules:
    """NaNs are no finding of a model that leaves them open."""
    return rules if model.nan_is_canonical else replace(rules, one_nan=False)


def _not_told_apart(specs: Sequence[DotAdd]) -> Explanation:
    first = min(specs, key=lambda each: not known_as(each))
    return Explanation(first, first, open=tuple(x for x in specs if x != first), known_as=known_as(first))


def _alike(x: DotAdd, y: DotAdd) -> int:
    """How many parameters are the same."""
    p, q = x.parameters, y.parameters
    same = sum(p[name] == q[name] for name in p) if type(p) is type(q) else -1
    return same + (x.product_order == y.product_order)


def _alone(spec: DotAdd) -> Explanation:
    return Explanation(spec, spec, known_as=known_as(spec))
