"""The search of `identify`: which of all models a unit computes, asked input by input, and what it is if none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.known import algorithms_on_paper, known_as, rarity
from mmaformal.cases.codes import one_nan
from mmaformal.cases.in_common import Trait, in_common
from mmaformal.cases.inputs import Rows
from mmaformal.display import ShortRepr
from mmaformal.probes.box import Box
from mmaformal.probes.special import nans
from mmaformal.queries.asking_units import ordinary_cases, pool
from mmaformal.queries.classes import ModelClass
from mmaformal.queries.elimination import tabled
from mmaformal.queries.identify_narrowing import EVERYTHING, Narrowing, same_parameters
from mmaformal.queries.several_models import ASIDE, CandidateModels
from mmaformal.queries.special_rules import (
    FEW,
    SpecialRules,
    findings,
    fitted,
    plain_inputs,
    rows_without_special,
    wrong,
)
from mmaformal.solver.deadline import Deadline
from mmaformal.spaces import design_spaces
from mmaformal.spec import DotAdd

#: Cases without special values, asked where no model explains all answers; and from how many inputs they are drawn.
_PLAIN, _DRAWN = 1500, 12
#: Seconds at most for two models of which one or the other explains every answer.
_OF_PAIRS = 20
#: The most models left when time is up that are searched for one of the tables; of more, the first is told.
_NAMED = 1000

#: One function; several that no case distinguishes and that are not proved to be one; one but for special values; a
#: model whose answers are otherwise when asked again; two models; none of the models; the time was up before one was
#: settled.
IdentifyVerdict: TypeAlias = Literal["one", "several", "special", "noise", "mixture", "none", "unknown"]


@dataclass(frozen=True, repr=False)
class Identification(ShortRepr):
    """The result of a search for what a unit is."""

    verdict: IdentifyVerdict
    #: of "mixture" both, of "noise" and "none" the nearest, of "unknown" one that is left, if that is known
    classes: tuple[ModelClass, ...]
    findings: tuple[str, ...] = ()  #: what the unit does of its own with special values
    in_common: tuple[Trait, ...] = ()  #: of the rows that the model does not explain
    wrong: tuple[int, ...] = ()  #: rows that the model does not explain; of "mixture", those of the second
    repeated: tuple[int, ...] = ()  #: rows that gave something else when asked again
    rows: int = 0  #: how many `wrong` and `repeated` are of
    chosen: int = 0  #: inputs that were chosen one by one
    models: int = 0  #: that were tried
    left: int = 0  #: of "unknown", models that explain every answer so far, as far as they were compared
    so_far: str = ""  #: of "unknown", what is known beside that
    unfinished: str = ""  #: what was being done when the time was up


@dataclass(frozen=True, repr=False)
class _Found(ShortRepr):
    """The class or classes that a unit is of, before anything is said of its rows."""

    verdict: IdentifyVerdict
    classes: Sequence[ModelClass]


class Search:
    """Asks a unit until one model is left, or none."""

    def __init__(self, narrowing: Narrowing, designs: bool) -> None:
        """designs: whether the designs that no unit is known to be are tried where no model explains the answers."""
        self.by, self.designs = narrowing, designs
        self.asked, self.types, self.among = narrowing.asked, narrowing.types, narrowing.among
        self.models = 0
        self.repeated: tuple[int, ...] = ()
        self.so_far = ""

    def found(self, confirm: int) -> Identification:
        """The models that explain the answers; and whether the unit is them.  Ends when the time is up."""
        with Deadline(self._left) as searching:
            found = self._built(self._found(confirm))
            model = found.classes[0].model
            wrong, rows = self.by.wrong(model), self.asked.all()[0]
            said = self._findings(model)
        if searching.expired:
            return self._unsettled()
        common: list[Trait] = []
        with Deadline(self._left) as saying:
            if wrong.any():
                self.by.begin("looking for what the wrong answers have in common")
                common = self._in_common(rows, wrong)
        return Identification(
            found.verdict,
            tuple(found.classes),
            tuple(said),
            tuple(common),
            wrong=tuple(map(int, np.nonzero(wrong)[0])),
            repeated=self.repeated,
            rows=len(rows),
            chosen=self.by.chosen,
            models=self.models,
            unfinished=self.by.doing if saying.expired else "",
        )

    @property
    def _left(self) -> float:
        """Seconds that are left."""
        return max(self.by.deadline - time.monotonic(), 0)

    def _found(self, confirm: int) -> _Found:
        self.by.begin("listing the models")
        self.models = len(self.by.candidates())
        classes = self.by.searched()
        self.by.begin("asking many cases at once")
        some = [each.model for each in classes] or self.by.candidates()[:1]
        self.asked.answer(pool(some, confirm, EVERYTHING, 11))
        if self.by.explained(classes):
            return _Found(_settled_as(classes), classes)
        self.so_far = "no model explains every answer"
        self.by.begin("asking everything again")
        rows, first = self.asked.all()
        again = self._again(rows)
        fmt = self.types.d
        changed = one_nan(again, fmt) != one_nan(first, fmt)
        if changed.any():
            self.repeated = tuple(map(int, np.nonzero(changed)[0]))
            self.so_far += f", and {len(self.repeated):,} of {len(rows):,} are others when asked again"
            return self._changing(again)
        self.so_far += ", and all are the same when asked again"
        return self._function()

    def _built(self, found: _Found) -> _Found:
        """Return what was found; but of designs on paper alone, which leave NaNs open, a model of another kind that
        explains every answer but for its NaNs, if there is one."""
        given, rules = self.by.algorithms, self.by.rules
        built = tuple(name for name in given if name not in algorithms_on_paper())
        models = [model for each in found.classes for model in each.members]
        settled = found.verdict in ("one", "several", "special")
        if not (self.designs and built and settled and min(map(rarity, models)) == 2):
            return found
        self.so_far = f"{models[0].text}, a design on paper, explains every answer"
        self.by.algorithms, self.by.rules = built, replace(rules, one_nan=True)
        others = self.by.searched()
        if self.by.explained(others):
            return _Found("special", others)
        self.by.algorithms, self.by.rules = given, rules
        return found

    def _unsettled(self) -> Identification:
        """Return what is known when the time is up."""
        _, d = self.asked.all()
        left = () if self.so_far or not self.models else self.by.left
        classes = []
        if left:
            named = (spec for spec in left if known_as(spec)) if len(left) <= _NAMED else iter(())
            classes = [_alone(next(named, left[0]))]
        return Identification(
            "unknown",
            tuple(classes),
            repeated=self.repeated,
            rows=len(d),
            chosen=self.by.chosen,
            models=self.models,
            left=len(left),
            so_far=self.so_far,
            unfinished=self.by.doing,
        )

    # ---- where none does ----

    def _changing(self, again: NDArray[np.uint64]) -> _Found:
        """Find what a unit is that gives other answers to the same inputs: those when asked `again`."""
        self.by.begin("looking for two models mixed")
        rows, d = self.asked.all()
        twice, both = Rows.join([rows, rows]), np.concatenate([d, again])
        candidates = CandidateModels.of(self.by.candidates(), twice, both, self.among is None)
        pair = candidates.pair(_OF_PAIRS)
        if pair is not None:
            one, other = (self._likeliest(candidates, spec) for spec in pair)
            if not (wrong(one, twice, both, ASIDE) & wrong(other, twice, both, ASIDE)).any():
                return _Found("mixture", [_alone(one), _alone(other)])
        nearest = self._likeliest(candidates, candidates.nearest()[0])
        return _Found("noise", [_alone(nearest)])

    def _function(self) -> _Found:
        """Find what a unit is that gives the same answers again, all of which no model explains."""
        self.by.begin("setting special values aside")
        self._ask_plain()
        rows, d = self.asked.all()
        given = self.by.algorithms
        for names in (given, tuple(design_spaces())) if self.designs else (given,):
            self.by.algorithms, self.by.rules = names, SpecialRules()
            candidates = CandidateModels.of(self.by.candidates(), rows, d, self.among is None)
            if survivors := candidates.survivors():
                return self._but_for_special(survivors)
        self.by.algorithms = given
        self.by.begin("looking for two models mixed")
        candidates = CandidateModels.of(self.by.candidates(), rows, d, self.among is None)
        if pair := self._by_input(candidates):
            return _Found("mixture", [_alone(x) for x in pair])
        best, self.by.rules = fitted(candidates.nearest(), rows, d, self.among is None)
        return _Found("none", [_alone(best)])

    def _but_for_special(self, survivors: list[DotAdd]) -> _Found:
        """Find what a unit is whose answers without special values some models explain."""
        known = tabled(self.types, self.by.k)
        survivors = sorted(
            survivors, key=lambda each: -max((same_parameters(each, x) for x in known), default=0)
        )
        rows, d = self.asked.all()
        best, self.by.rules = fitted(survivors, rows, d, self.among is None)
        self.so_far = f"without special values {best.text} explains every answer"
        self.by.progress(f"{self.so_far}: again, with those set aside")
        classes = self.by.searched()
        if not self.by.explained(classes):
            rows, d = self.asked.all()
            ordinary = rows_without_special(rows, d, self.types)
            shown = ordinary.sum() >= FEW and not (self.by.wrong(best) & ordinary).any()
            verdict: IdentifyVerdict = "special" if shown else "none"
            return _Found(verdict, [_alone(best)])
        rows, d = self.asked.all()
        model = classes[0].model
        self.by.rules = _without_nans(self.by.rules, model)
        return _Found("special" if self.by.rules else _settled_as(classes), classes)

    def _by_input(self, candidates: CandidateModels) -> tuple[DotAdd, DotAdd] | None:
        """Two models of which one or the other gives each answer without special values; so in new rows too."""
        pair = candidates.pair(_OF_PAIRS)
        if pair is None:
            return None
        one, other = (self._likeliest(candidates, spec) for spec in pair)
        before = len(self.asked.all()[1])
        self._ask_plain(seed=500)
        rows, d = self.asked.all()
        both = wrong(one, rows, d) & wrong(other, rows, d) & rows_without_special(rows, d, self.types)
        new = wrong(one, rows, d)[before:]
        return None if both.any() or not new.any() else (one, other)

    def _likeliest(self, candidates: CandidateModels, spec: DotAdd) -> DotAdd:
        """The model with the details that explain most answers."""
        return min(candidates.with_details(spec), key=lambda each: int(self.by.wrong(each).sum()))

    # ---- asking ----

    def _again(self, rows: Rows) -> NDArray[np.uint64]:
        """The answers when everything is asked again, in another order."""
        order = np.random.default_rng(5).permutation(len(rows))
        found = np.empty(len(rows), np.uint64)
        found[order] = self.asked.answer(rows.at(order), keep=False)
        return found

    def _ask_plain(self, seed: int = 300) -> None:
        """Ask cases without special values, many of them cancelling."""
        some = self.by.candidates()[:: max(1, self.models // 50)]
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
        """Return the rule that the probes read of its NaNs; None of a unit with scales."""
        if self.types.scale is not None:
            return None

        def unit(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[np.uint64]:
            none = np.empty((len(c), 0), np.uint64)
            left, right, addend = (x.astype(np.uint64) for x in (a, b, c))
            return self.asked.answer(Rows(left, right, addend, scale_a=none, scale_b=none))

        return nans(Box(unit, self.types, self.by.k)).rule

    # ---- answers ----

    def _findings(self, model: DotAdd) -> list[str]:
        """Return what the unit does of its own with special values, a sentence each."""
        if not self.by.rules:
            return []
        rule = self._nan_rule() if self.by.rules.one_nan else None
        rows, d = self.asked.all()
        return findings(model, self.by.rules, rows, d, rule)

    def _in_common(self, rows: Rows, wrong: NDArray[np.bool_]) -> list[Trait]:
        """Facts of the wrong rows."""
        scales = (self.types.scale,) if self.types.scale is not None else ()
        return in_common((*self.types[:4], *scales), rows, wrong, self.types.scale_block)


def _settled_as(classes: Sequence[ModelClass]) -> IdentifyVerdict:
    return "one" if len(classes) == 1 and not classes[0].open else "several"


def _without_nans(rules: SpecialRules, model: DotAdd) -> SpecialRules:
    """NaNs are no finding of a model that leaves them open."""
    return rules if model.nan_is_canonical else replace(rules, one_nan=False)


def _alone(spec: DotAdd) -> ModelClass:
    return ModelClass(spec, spec, known_as=known_as(spec))
