"""Which arithmetic is this?  Of a callable, by asking it as few inputs as possible.

    found = identify(unit, a_format="fp16", c_format="fp32", k=16)      # unit(a, b, c) → d, bit patterns
    print(found)                # found.classes: the model; found.rows: what was asked, and the answers

Each input is chosen, of many cases, so that the answer leaves as few as possible of the models that are left; first
among all models with ordinary numbers, then with zeros and special values among those that are left with all that they
may do there.  Models that no case tells apart are a question to a solver: its input is the next, or they are proved
equal.
In the end the unit is asked many cases at once, and some again: one that does not always compute the same function, or
is two models mixed, is told as such.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mmaformal.algorithms import DotAdd
from mmaformal.architectures.known import known_as
from mmaformal.cases.codes import exponent, is_finite, is_zero
from mmaformal.cases.generate import MOODS, Mood, generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.questions import Progress
from mmaformal.cases.run import compiled_results
from mmaformal.display import ShortRepr, counted
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import FORMATS, Format
from mmaformal.instruction import Instruction
from mmaformal.queries.classes import Classes, Explanation, one_nan
from mmaformal.queries.elimination import differ, ordinary, tabled
from mmaformal.spaces import algorithms, details, models, sure
from mmaformal.spaces.common import Types

#: Cases to choose from: at first, and when what is left is not told apart by those.
_POOL, _POOLS = 256, (256, 1500, 6000)
#: Results that are compared at once, where models are many.
_RESULTS = 10_000_000
#: Families whose details are followed at once.
_FOLLOWED = 48
#: Models that the cases are drawn for: where bits are cut off depends on them.
_DRAWN_FOR = 8
#: Of more models than these, the columns of results are compared on some of the models.
_COMPARED = 4096
#: More models than these are not asked of a solver.
_MOST = 64
#: Rows that models are compared on where none explains all; how many that explain most are tried as the first of two,
#: and how many as the second.
_TRIED, _FIRSTS, _SECONDS = 600, 400, 8
#: Fewer rows than these are no sign of a second model.
_LEAST = 8
#: One model but for a part of the rows that is no more than this.
_EXCEPTIONS = 0.02

#: bit patterns a (n, K), b (n, K), c (n,), and block scales (n, K / block) of a and b, if there are any → d (n,)
Unit = Callable[..., ArrayLike]
Verdict = Literal["one", "several", "noise", "exceptions", "mixture", "none"]


@dataclass(frozen=True, repr=False)
class Identified(ShortRepr):
    """What a unit was found to be, and all that it was asked."""

    #: one function; several that no case tells apart and that are not proved to be one; one but for rows that are
    #: otherwise when asked again (noise), or that nothing explains (exceptions); two models mixed; none
    verdict: Verdict
    classes: tuple[Explanation, ...]  #: of "mixture" both, of "none" the nearest
    types: Types
    k: int
    rows: Rows  #: all inputs, the chosen ones first
    d: NDArray[np.uint64]  #: the answers
    chosen: int  #: inputs that were chosen one by one
    calls: int  #: of the unit
    wrong: tuple[int, ...]  #: rows that the model does not explain; of "mixture", those of the second
    repeated: tuple[int, ...]  #: of these, those that gave something else when asked again
    models: int  #: in the beginning
    seconds: float

    def __bool__(self) -> bool:
        """Whether it is one function."""
        return self.verdict == "one"

    @property
    def summary(self) -> str:
        """One line."""
        n, names = len(self.d), [each.model.text for each in self.classes]
        asked = f"{counted(self.chosen, 'input')} chosen, {n:,} in all"
        few = f"{len(self.wrong):,} of {counted(n, 'row')}"
        others = counted(sum(len(each.open) for each in self.classes) + len(names) - 1, "model")
        again = f", {len(self.repeated):,} of these otherwise when asked again" if self.repeated else ""
        return {
            "one": lambda: f"{names[0]}, by {asked}",
            "several": lambda: f"{names[0]}, not told apart from {others}, by {asked}",
            "noise": lambda: f"noise: {names[0]}, but for {few}{again}",
            "mixture": lambda: f"two models mixed: {names[0]}, and for {few} {names[1]}",
            "exceptions": lambda: f"{names[0]}, but for {few}, which nothing explains",
            "none": lambda: (
                f"none of {self.models:,} models, by {asked}; the nearest, {names[0]}, is wrong in {few}{again}"
            ),
        }[self.verdict]()

    def __str__(self) -> str:
        lines = [self.summary]
        for each in self.classes:
            if known := each.known_as:
                more = f" and {len(known) - 3} more" if len(known) > 3 else ""
                lines.append(f"{each.model.text} is {', '.join(known[:3])}{more}")
            if each.same:
                lines.append(f"proved to be the same function: {counted(len(each.same), 'other model')}")
            if each.open:
                lines.append(
                    f"not told apart from it, nor proved the same: {counted(len(each.open), 'model')}"
                )
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "verdict": self.verdict,
            "types": str(self.types),
            "terms": self.k,
            "classes": [
                {
                    "model": each.model.text,
                    "known_as": list(each.known_as),
                    "same": [x.text for x in each.same],
                    "open": [x.text for x in each.open],
                }
                for each in self.classes
            ],
            "chosen": self.chosen,
            "rows": len(self.d),
            "calls": self.calls,
            "wrong": list(self.wrong),
            "repeated": list(self.repeated),
            "models": self.models,
            "seconds": round(self.seconds, 2),
        }


def identify(
    unit: Unit | Instruction,
    *,
    a_format: str | Format | None = None,
    b_format: str | Format | None = None,
    c_format: str | Format | None = None,
    d_format: str | Format | None = None,
    k: int | None = None,
    scale_format: str | Format | None = None,
    scale_block: int = 0,
    among: Iterable[DotAdd | Instruction] | None = None,
    confirm: int = 4096,
    timeout: float = 60.0,
    progress: Progress | None = None,
) -> Identified:
    """The model that a unit computes, by inputs chosen one after the other.

    unit: a callable of unsigned 64-bit arrays of bit patterns, a and b of shape (n, K), c of (n,), with block scales
    also scale_a and scale_b of (n, K / block); it returns d of shape (n,).  Or an Instruction, whose types are used.
    b_format, d_format: those of a and c, if not given.  among: models to tell apart, by default all of
    `mmaformal.spaces`.  confirm: cases that it is asked in the end, at once.  timeout: seconds for solvers.

    Raises ValueError for types that no model has, and for answers that are not n codes of d,
    TypeError for missing types.
    """
    start = time.monotonic()
    spec = unit.spec if isinstance(unit, Instruction) else None
    if spec is not None:
        types, k = Types.of(spec), spec.k
    elif a_format is None or c_format is None or k is None:
        raise TypeError("a callable needs a_format, c_format and k: what it takes")
    else:
        a, c = _format(a_format), _format(c_format)
        b = a if b_format is None else _format(b_format)
        d = c if d_format is None else _format(d_format)
        types = Types(a, b, c, d, None if scale_format is None else _format(scale_format), scale_block)
    given = None if among is None else tuple(x.spec if isinstance(x, Instruction) else x for x in among)
    if given is not None and (odd := [x for x in given if (Types.of(x), x.k) != (types, k)]):
        raise ValueError(f"{odd[0]!r} takes other inputs than {types}, K = {k}")
    asked = _Asked(unit.dot_add if isinstance(unit, Instruction) else unit, types)
    search = _Search(asked, types, k, given, start + timeout, progress or (lambda _: None))
    return replace(search.found(confirm), seconds=time.monotonic() - start)


def _format(given: str | Format) -> Format:
    return FORMATS[given] if isinstance(given, str) else given


# ---- the unit --------------------------------------------------------------------------------------------------------


class _Asked:
    """A unit, and all that it was asked."""

    def __init__(self, unit: Unit, types: Types) -> None:
        self.unit, self.types, self.calls = unit, types, 0
        self.cases: list[Rows] = []
        self.answers: list[NDArray[np.uint64]] = []

    def answer(self, rows: Rows) -> NDArray[np.uint64]:
        """The codes of d; asked and answered are kept."""
        words = [fmt.word for fmt in (self.types.a, self.types.b, self.types.c)]
        sides = [x.astype(word) for x, word in zip((rows.a, rows.b, rows.c), words, strict=True)]
        if self.types.scale is not None:
            sides += [x.astype(self.types.scale.word) for x in (rows.scale_a, rows.scale_b)]
        self.calls += 1
        d = np.asarray(self.unit(*sides))
        if d.shape != (len(rows),) or d.dtype.kind not in "ui":
            raise ValueError(
                f"the unit gave {d.dtype} of shape {d.shape} for {len(rows)} rows: d is one code each"
            )
        codes: NDArray[np.uint64] = d.astype(np.uint64)
        if (codes >= self.types.d.codes).any():
            raise ValueError(f"the unit gave {int(codes.max()):#x}, which is no code of {self.types.d}")
        self.cases.append(rows)
        self.answers.append(codes)
        return codes

    def all(self) -> tuple[Rows, NDArray[np.uint64]]:
        return Rows.join(self.cases), np.concatenate([*self.answers, np.empty(0, np.uint64)])


# ---- models and cases ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """What each of some models gives for each of some cases."""

    specs: tuple[DotAdd, ...]
    rows: Rows
    d: NDArray[np.uint64]  #: models × cases; NaNs that a model does not know are one code
    #: of families: models × cases, whether it gives that whatever its details are
    sure: NDArray[np.bool_] | None
    tells: NDArray[np.bool_]  #: models × cases, whether it gives this and nothing else

    @staticmethod
    def of(specs: Sequence[DotAdd], rows: Rows, *, families: bool = False) -> _Table:
        given = ((spec, compiled_results(spec, rows.codes)) for spec in specs)
        d = [x if spec.nan_is_canonical else one_nan(x, spec.d_format) for spec, x in given]
        table = np.stack(d)
        if families:
            table[table == specs[0].d_format.sign_mask] = 0
        sure = _sure(specs, rows) if families else None
        unknown = np.array([[not spec.nan_is_canonical] for spec in specs]) & (
            table == quiet_nan(specs[0].d_format)
        )
        return _Table(tuple(specs), rows, table, sure, ~unknown if sure is None else sure & ~unknown)

    def agree(self, case: int, d: np.uint64) -> NDArray[np.bool_]:
        """The models that give this for a case."""
        fmt = self.specs[0].d_format
        families = self.sure is not None
        same = self.d[:, case] == (0 if families and d == fmt.sign_mask else d)
        if self.sure is not None:
            same |= ~self.sure[:, case]
        if fmt.is_nan(int(d)):
            any_nan = np.array([not spec.nan_is_canonical for spec in self.specs])
            same |= any_nan & (self.d[:, case] == quiet_nan(fmt))
        return np.asarray(same)

    def best(self, left: NDArray[np.intp], but: Collection[int] = ()) -> int | None:
        """The case whose answer leaves the fewest of these models, on average; None if none tells any apart."""
        some = left[:: max(1, len(left) // _COMPARED)]
        least, best = float(len(some)) ** 2, None
        for case in set(range(len(self.rows))).difference(but):
            column = self.d[some, case]
            given = column[self.tells[some, case]]
            if len(counts := np.unique(given, return_counts=True)[1]) < 2:
                continue
            unsure = len(some) - len(given)  # they are left, whatever the answer
            remaining = float((counts.astype(np.float64) * (counts + unsure)).sum()) + unsure * len(some)
            if remaining < least:
                least, best = remaining, case
        return best


def _pool(specs: Sequence[DotAdd], count: int, moods: Sequence[Mood], seed: int) -> Rows:
    """Cases drawn for some of these models."""
    rng = np.random.default_rng(seed)
    some = [specs[i] for i in rng.choice(len(specs), min(_DRAWN_FOR, len(specs)), replace=False)]
    return Rows.join([generate(x, -(-count // len(some)), seed + i, moods) for i, x in enumerate(some)])


def _ordinary(rows: Rows, types: Types, seed: int) -> Rows:
    """Cases, made of these, in which nothing is zero or special."""
    dense = _dense(rows, types, seed)
    return dense.at(ordinary(dense, types))


def _sure(specs: Sequence[DotAdd], rows: Rows) -> NDArray[np.bool_]:
    """For each model and each of some ordinary cases, whether the model's details do not show."""
    types = Types.of(specs[0])
    products = exponent(rows.a, types.a) + exponent(rows.b, types.b)
    c = exponent(rows.c, types.c)
    of = {name: sure(name, products, c) for name in _algorithms(specs)}
    return np.stack([of[spec.parameters.algorithm] for spec in specs])


def _zero(codes: NDArray[np.uint64], fmt: Format) -> NDArray[np.bool_]:
    return np.asarray(
        is_zero(codes.astype(np.int64), fmt) if fmt.has_zero else np.zeros(codes.shape, np.bool_)
    )


@lru_cache(maxsize=2)
def _everything(types: Types, k: int) -> _Table:
    """All models there are, but for details, on ordinary cases."""
    specs = [spec for name in algorithms() for spec in models(types, k, name)]
    if not specs:
        raise ValueError(f"no model takes {types}, K = {k}")
    rows, sure_ones = list[Rows](), 0
    for seed in range(40):
        rows.append(_ordinary(_pool(specs, _POOL, ("near", "edge", "bits"), seed), types, seed))
        of = [
            next(spec for spec in specs if spec.parameters.algorithm == name) for name in _algorithms(specs)
        ]
        good = _sure(of, rows[-1]).all(axis=0)
        if sure_ones < _POOL // 2:  # at least half of them so that all models are sure
            rows[-1] = rows[-1].at(np.argsort(~good, kind="stable")[: max(16, 2 * int(good.sum()))])
            sure_ones += int(good.sum())
        if sum(map(len, rows)) >= _POOL:
            break
    return _Table.of(specs, Rows.join(rows).at(slice(0, _POOL)), families=True)


def _algorithms(specs: Sequence[DotAdd]) -> set[str]:
    return {spec.parameters.algorithm for spec in specs}


def _dense(rows: Rows, types: Types, seed: int) -> Rows:
    """The same with factors of other products in place of those that are zero or special."""
    rng = np.random.default_rng(seed)

    def filled(side: NDArray[np.uint64], fmt: Format) -> NDArray[np.uint64]:
        good = np.asarray(is_finite(side.astype(np.int64), fmt)) & ~_zero(side, fmt)
        places = np.argsort(~good, axis=1, kind="stable")  # the good ones first
        chosen = rng.integers(0, 1 << 20, side.shape) % np.maximum(good.sum(axis=1, keepdims=True), 1)
        other = np.take_along_axis(side, np.take_along_axis(places, chosen, axis=1), axis=1)
        return np.where(good, side, other)

    return Rows(filled(rows.a, types.a), filled(rows.b, types.b), rows.c, rows.scale_a, rows.scale_b)


# ---- the search ------------------------------------------------------------------------------------------------------


class _Search:
    """Asks a unit until one model is left, or none."""

    def __init__(
        self,
        asked: _Asked,
        types: Types,
        k: int,
        among: tuple[DotAdd, ...] | None,
        deadline: float,
        progress: Progress,
    ) -> None:
        self.asked, self.types, self.k, self.deadline, self.progress = asked, types, k, deadline, progress
        self.among = among
        self.chosen = 0

    def found(self, confirm: int) -> Identified:
        """The models that explain the answers; and whether the unit is them."""
        if self.among is not None:
            count, left = len(self.among), list(self.among)
        else:
            table = _everything(self.types, self.k)
            count = len(table.specs)
            families = self._narrowed(self._split(table), ("near", "edge", "numbers"), ordinary=True)
            return self.confirmed(self._with_details(families), confirm, count)
        left = self._narrowed(left, (*MOODS, "edge"))
        return self.confirmed(self._settled(left), confirm, count)

    def _with_details(self, families: list[DotAdd]) -> list[Explanation]:
        """What is left of families with all that they may do with zeros and special values; of many, those likest to
        instructions of the tables are followed, and as long as none explains the answers the next."""
        known = tabled(self.types, self.k)
        families = sorted(families, key=lambda each: -max((_alike(each, x) for x in known), default=0))
        for low in range(0, len(families), _FOLLOWED):
            left = [each for spec in families[low : low + _FOLLOWED] for each in details(spec)]
            if self.chosen:
                rows, d = self.asked.all()
                left = [each for each in left if not _wrong(each, rows, d).any()]
            classes = self._settled(self._narrowed(left, (*MOODS, "edge")))
            if classes:
                rest = tuple(families[low + _FOLLOWED :])
                return [replace(classes[0], open=(*classes[0].open, *rest)), *classes[1:]]
        return []

    def _ask(self, case: Codes) -> np.uint64:
        self.chosen += 1
        answer: np.uint64 = self.asked.answer(Rows.of([case]))[0]
        return answer

    def _split(self, table: _Table) -> list[DotAdd]:
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
            count = min(count, max(_POOL, _RESULTS // len(specs)))
            rows = _pool(specs, count, moods, 100 * seed + 7)
            rows = _ordinary(rows, self.types, seed) if ordinary else rows
            if len(rows):
                specs = self._split(_Table.of(specs, rows, families=ordinary))
        return specs

    def _settled(self, specs: list[DotAdd]) -> list[Explanation]:
        """Classes of one function each, by solvers; and, while there are several, by inputs of those."""
        while specs:
            if len(specs) > _MOST:
                first = min(specs, key=lambda each: not known_as(each))
                return [
                    Explanation(
                        first, first, open=tuple(x for x in specs if x != first), known_as=known_as(first)
                    )
                ]
            classes, tests = Classes([(x, x) for x in specs], self._left(), self.progress).found()
            if not tests:
                return classes
            for test in tests:
                answer = self._ask(test.case)
                table = _Table.of(specs, Rows.of([test.case]))
                specs = [specs[i] for i in np.nonzero(table.agree(0, answer))[0]]
                if len(specs) < 2:
                    break
        return []

    def _left(self) -> float:
        return max(self.deadline - time.monotonic(), 2)

    # ---- is it that? ----

    def confirmed(self, classes: list[Explanation], confirm: int, count: int) -> Identified:
        """Many cases at once, and again what went wrong."""
        some = [each.model for each in classes] or self._candidates()[:1]
        self.asked.answer(_pool(some, confirm, (*MOODS, "edge"), 11))
        rows, d = self.asked.all()
        verdict: Verdict = "one" if len(classes) == 1 and not classes[0].open else "several"
        if not classes or _wrong(classes[0].model, rows, d).any():
            self.progress("no model explains all answers: do two?")
            table = _Right.of(self._candidates(), rows, d, self.among is None)
            pair = table.pair()
            verdict, classes = (
                ("mixture", [_alone(x) for x in pair]) if pair else ("none", [_alone(table.nearest())])
            )
        wrong = _wrong(classes[0].model, rows, d)
        where = np.nonzero(wrong)[0]
        again = self.asked.answer(rows.at(where)) if len(where) else d[where]
        repeated = where[again != d[where]]
        if verdict == "none" and 2 * len(repeated) >= len(where):
            verdict = "noise"
        elif verdict == "none" and wrong.mean() <= _EXCEPTIONS:
            verdict = "exceptions"
        return Identified(
            verdict,
            tuple(classes),
            self.types,
            self.k,
            rows,
            d,
            chosen=self.chosen,
            calls=self.asked.calls,
            wrong=tuple(map(int, where)),
            repeated=tuple(map(int, repeated)),
            models=count,
            seconds=0.0,
        )

    def _candidates(self) -> Sequence[DotAdd]:
        return _everything(self.types, self.k).specs if self.among is None else self.among


def _alike(x: DotAdd, y: DotAdd) -> int:
    """How many parameters are the same."""
    p, q = x.parameters, y.parameters
    same = sum(p[name] == q[name] for name in p) if type(p) is type(q) else -1
    return same + (x.product_order == y.product_order)


def _wrong(spec: DotAdd, rows: Rows, d: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return differ(spec, compiled_results(spec, rows.codes), d)


def _alone(spec: DotAdd) -> Explanation:
    return Explanation(spec, spec, known_as=known_as(spec))


@dataclass(frozen=True)
class _Right:
    """Which of some models are right on which of some rows."""

    specs: Sequence[DotAdd]
    right: NDArray[np.bool_]  #: models × a few rows
    rows: Rows
    d: NDArray[np.uint64]  #: all of them
    detailed: bool  #: whether the models stand for all of their details

    @staticmethod
    def of(specs: Sequence[DotAdd], rows: Rows, d: NDArray[np.uint64], detailed: bool) -> _Right:
        """Tried on some rows, of those where nothing is zero or special if models stand for their details."""
        types = Types.of(specs[0])
        few, of_few = rows, d
        if detailed and (kept := ordinary(rows, types)).sum() >= 100:
            few, of_few = rows.at(kept), d[kept]
        few, of_few = few.at(slice(0, _TRIED)), of_few[:_TRIED]
        return _Right(specs, np.stack([~_wrong(x, few, of_few) for x in specs]), rows, d, detailed)

    def nearest(self) -> DotAdd:
        """The model that explains most rows."""
        best = np.argsort(-self.right.sum(axis=1), kind="stable")[:8]
        return min(self._details(best), key=self._size)

    def pair(self) -> tuple[DotAdd, DotAdd] | None:
        """Two models of which one or the other explains every row, and each alone some of them."""
        order = np.argsort(-self.right.sum(axis=1), kind="stable")[:_FIRSTS]
        for first in sorted(order, key=lambda i: not known_as(self.specs[i])):  # of the tables, if there are
            rest = ~self.right[first]
            if rest.sum() < _LEAST:
                continue
            others = np.nonzero(self.right[:, rest].all(axis=1))[0][:_SECONDS]
            if not len(others):
                continue
            one = min(self._details([first]), key=self._size)
            wrong = _wrong(one, self.rows, self.d)
            rows, d = self.rows.at(wrong), self.d[wrong]
            for other in sorted(self._details(others), key=lambda x: not known_as(x)):
                if not _wrong(other, rows, d).any():
                    return one, other
        return None

    def _details(self, which: Sequence[int] | NDArray[np.intp]) -> Iterator[DotAdd]:
        for i in which:
            yield from details(self.specs[i]) if self.detailed else [self.specs[i]]

    def _size(self, spec: DotAdd) -> tuple[int, bool]:
        return int(_wrong(spec, self.rows, self.d).sum()), not known_as(spec)
