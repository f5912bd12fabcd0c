"""Which arithmetic gave these rows?  Told nothing but types, which models explain every row of a recording?

    found = diagnose("rows.npz")
    print(found)                # found.classes: the models that explain every row, those of one function together
    found.tests                 # inputs on which the classes differ: what to run next

The models are a space (`mmaformal.spaces`): every algorithm there is, with every value of its parameters.  Those that
get too many of a few rows wrong, whatever zeros and special values do, are left out first; the rest, with everything
that zeros and special values may do, has to reproduce every row.  Models that explain all rows and that no random case
tells apart are one class where a proof says so; others are told as not told apart.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmaformal.algorithms import DotAdd, Parameters, parameter_text
from mmaformal.architectures import ARCHITECTURES
from mmaformal.cases.codes import is_finite, is_nan, is_zero
from mmaformal.cases.generate import MOODS, generate
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import results
from mmaformal.display import ShortRepr, counted
from mmaformal.encodings import executable
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import find_difference
from mmaformal.recordings.check import row_sizes
from mmaformal.recordings.read import Block, Recording, read
from mmaformal.solver.answers import Different, Equal, Proof
from mmaformal.solver.pool import processes
from mmaformal.spaces import algorithms, details, models
from mmaformal.spaces.common import Types

#: A model that gets more than this part of the rows wrong, whatever its details, is none.
_WRONG = 0.1
#: How many rows a model is run on, one at a time, before it is run on more; most of them refute what is none.
_FIRST, _SECOND = 5, 200
#: How many details of a model that is refuted are tried, to tell how near it is.
_LIKELY = 64
#: How many parts the models of an algorithm are divided into, for worker processes.
_PARTS = 8
#: Rows that models are found by.
_ROWS = 1 << 17
#: Random cases to tell models apart by.
_CASES = 6000
#: More models than these that explain all rows are counted, and not compared.
_MOST = 400
_NEAREST = 3
_SHOWN = 3


@dataclass(frozen=True, repr=False)
class Miss(ShortRepr):
    """A model that some rows refute."""

    model: DotAdd
    wrong: int  #: rows of all
    row: int  #: the smallest of them
    gives: int  #: code
    recorded: int  #: code


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


@dataclass(frozen=True, repr=False)
class Diagnosis(ShortRepr):
    """What explains a recording, and what was tried."""

    classes: tuple[Explanation, ...]
    tests: tuple[RunNext, ...]  #: together they tell all classes apart
    nearest: tuple[Miss, ...]  #: told where nothing explains every row
    types: Types
    k: int
    rows: int
    tried: int  #: models, not counting details
    explained_by: int  #: models that explain every row, details counted
    seconds: float

    def __bool__(self) -> bool:
        return bool(self.classes)

    @property
    def summary(self) -> str:
        """One line."""
        t = self.types
        about = f"{counted(self.rows, 'row')} of {counted(self.k, 'product')}, {t.a} × {t.b} + {t.c} → {t.d}"
        if not self.classes:
            return f"nothing tried explains all of {about}"
        n = len(self.families)
        models = "1 model" if n == 1 else f"{n} models"
        return f"{models} of {self.tried:,} tried explain{'s' if n == 1 else ''} {about}"

    @property
    def families(self) -> dict[DotAdd, list[Explanation]]:
        """The classes, those together that differ only in what zeros and special values do."""
        found: dict[DotAdd, list[Explanation]] = {}
        for each in self.classes:
            found.setdefault(each.family, []).append(each)
        return found

    def __str__(self) -> str:
        lines = [self.summary]
        for number, classes in enumerate(self.families.values(), 1):
            first, *rest = _family_lines(classes)
            lines += [f"{number}. {first}", *(f"   {line}" for line in rest)]
        if self.explained_by > _MOST:
            lines.append(
                f"{self.explained_by:,} models, details counted, explain every row; {_MOST} were compared"
            )
        for test in self.tests[:_SHOWN]:
            lines += _test_lines(test)
        if len(self.tests) > _SHOWN:
            lines.append(f"{len(self.tests)} inputs tell all of them apart: `.tests`, --json")
        for miss in self.nearest:
            d = self.types.d
            lines.append(f"nearest: {model_text(miss.model)}")
            wrong = f"{counted(miss.wrong, 'row')} wrong, the smallest row {miss.row}"
            lines.append(f"  {wrong}: recorded {d.text(miss.recorded)}, it gives {d.text(miss.gives)}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "explained": bool(self.classes),
            "types": [fmt.name for fmt in self.types],
            "terms": self.k,
            "rows": self.rows,
            "tried": self.tried,
            "explained_by": self.explained_by,
            "classes": [
                {
                    "model": model_text(each.model),
                    "family": model_text(each.family),
                    "known_as": list(each.known_as),
                    "same": [model_text(x) for x in each.same],
                    "open": [model_text(x) for x in each.open],
                }
                for each in self.classes
            ],
            "tests": [
                {
                    "a": [f"{x:#x}" for x in test.case.a],
                    "b": [f"{x:#x}" for x in test.case.b],
                    "c": f"{test.case.c:#x}",
                    "gives": [f"{x:#x}" for x in test.gives],
                }
                for test in self.tests
            ],
            "nearest": [
                {
                    "model": model_text(miss.model),
                    "wrong": miss.wrong,
                    "row": miss.row,
                    "recorded": f"{miss.recorded:#x}",
                    "gives": f"{miss.gives:#x}",
                }
                for miss in self.nearest
            ],
            "seconds": round(self.seconds, 2),
        }


def model_text(spec: DotAdd) -> str:
    """An algorithm and its parameters, on one line."""
    order = f", products in the order {','.join(map(str, spec.product_order))}" if spec.product_order else ""
    return f"{spec.parameters.algorithm} {spec.parameters.describe()}{order}"


def _family_lines(classes: Sequence[Explanation]) -> list[str]:
    """One model for a person, and what of it the rows leave open."""
    lines = [model_text(classes[0].model)]
    known = list(dict.fromkeys(name for each in classes for name in each.known_as))
    if known:
        lines.append(
            f"that is {', '.join(known[:3])}{f' and {len(known) - 3} more' if len(known) > 3 else ''}"
        )
    members = [spec for each in classes for spec in each.members]
    undecided = [
        f"{name} ({_values_text([spec.parameters[name] for spec in members])})"
        for name in classes[0].model.parameters
        if len({spec.parameters[name] for spec in members}) > 1
    ]
    if undecided:
        lines.append(f"not told by these rows: {', '.join(undecided)}")
        proved = sum(len(each.same) for each in classes)
        of = f"{len(members)} models" + (
            f", {proved} of them proved to be another's function" if proved else ""
        )
        lines.append(f"{of}; {counted(len(classes), 'function')} that some input tells apart")
    return lines


def _values_text(values: Sequence[object]) -> str:
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


def _test_lines(test: RunNext) -> list[str]:
    """An input, without its zero products, and how many different results it has."""
    pairs = [(k, x, y) for k, (x, y) in enumerate(zip(test.case.a, test.case.b, strict=True)) if x or y]
    inputs = [f"a[{k}]·b[{k}] = {x:#x}·{y:#x}" for k, x, y in pairs] + [f"c = {test.case.c:#x}"]
    codes = dict.fromkeys(test.gives)
    gives = ", ".join(f"{code:#x}" for code in islice(codes, 6)) + (", …" if len(codes) > 6 else "")
    return [f"to run next: {', '.join(inputs)}", f"  {len(codes)} results: {gives}"]


Progress = Callable[[str], None]


def diagnose(
    recording: str | Path | Recording,
    *,
    only: Sequence[str] | None = None,
    timeout: float = 120.0,
    jobs: int = 1,
    progress: Progress | None = None,
) -> Diagnosis:
    """The models that explain every row of a recording, of all there are for its types.

    K is what was recorded.  The models are found by the first 131,072 rows, and run on all.  A NaN is compared bit by
    bit with models whose NaNs are known, and is any NaN for others.

    only: names of algorithms, of `mmaformal.spaces.algorithms()` (default: all).  timeout: seconds for proving that
    models which are not told apart are the same, and for making the tests small.  jobs: worker processes; with several,
    a script needs the guard `if __name__ == "__main__"`.  progress: called with a line of text as the work goes on.

    Raises RecordingError for what is no recording, ValueError for an algorithm that there is not.
    """
    start = time.monotonic()
    given = recording if isinstance(recording, Recording) else read(recording)
    say = progress or (lambda _: None)
    types = Types(given.a_format, given.b_format, given.c_format, given.d_format)
    names = algorithms() if only is None else list(only)
    if unknown := [name for name in names if name not in algorithms()]:
        raise ValueError(f"no algorithm {unknown[0]!r}; there are {', '.join(algorithms())}")
    blocks = given.blocks(_ROWS)
    rows = _Recorded.of(next(blocks), types, given.terms)
    found = _search(rows, names, jobs, say)
    exact = found.exact
    for block in blocks:
        more = _Recorded.of(block, types, given.terms)
        exact = [(spec, family) for spec, family in exact if not more.differ(spec).any()]
    nearest = () if exact else tuple(_nearest(rows, found.near))
    classes, tests = _Classes(exact[:_MOST], timeout, say).found()
    return Diagnosis(
        tuple(classes),
        tuple(tests),
        nearest=nearest,
        types=types,
        k=given.terms,
        rows=given.rows,
        tried=found.tried,
        explained_by=len(exact),
        seconds=time.monotonic() - start,
    )


# ---- searching -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class _Recorded(ShortRepr):
    """Rows and what was recorded of them."""

    rows: Rows
    d: NDArray[np.uint64]
    types: Types
    k: int

    @staticmethod
    def of(block: Block, types: Types, k: int) -> _Recorded:
        none = np.empty((len(block.d), 0), np.uint64)
        return _Recorded(Rows(block.a, block.b, block.c, none, none), block.d.astype(np.uint64), types, k)

    def differ(self, spec: DotAdd, where: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.bool_]:
        """Of some rows, those that a model gets wrong."""
        x = self.rows
        some = Rows(x.a[where], x.b[where], x.c[where], x.scale_a[where], x.scale_b[where])
        return differ(spec, results(spec, some.codes), self.d[where])

    def one(self, row: int) -> tuple[Codes, int]:
        """A row, in Python's integers."""
        return self.rows[row], int(self.d[row])

    def telling_first(self) -> NDArray[np.intp]:
        """The rows in an order by chance, but those of the fewest zeros and special values first."""
        x, t = self.rows, self.types
        odd = np.zeros(len(self.d), np.int64)
        for codes, fmt in ((x.a, t.a), (x.b, t.b), (x.c[:, None], t.c), (self.d[:, None], t.d)):
            odd += np.asarray(is_zero(codes, fmt) | ~is_finite(codes, fmt)).sum(axis=1)
        order = np.random.default_rng(0).permutation(len(self.d))
        return order[np.argsort(odd[order], kind="stable")]


@dataclass(frozen=True, repr=False)
class _Found(ShortRepr):
    exact: list[
        tuple[DotAdd, DotAdd]
    ]  #: every row explained, details and all; and the model that it is a detail of
    near: list[tuple[int, DotAdd]]  #: the fewest of some rows wrong
    tried: int


def _search(rows: _Recorded, names: Sequence[str], jobs: int, progress: Progress) -> _Found:
    """All models of these algorithms, divided among processes."""
    tasks = [(name, part) for name in names for part in range(_PARTS)]
    found = []
    for name, each in _done(rows, tasks, jobs):
        found.append(each)
        tried, exact = sum(each.tried for each in found), sum(len(each.exact) for each in found)
        text = f"{tried:,} models tried, {exact:,} explain every row"
        progress(f"{len(found)} of {len(tasks)} parts, the last of {name}: {text}")
    near = sorted((x for each in found for x in each.near), key=lambda x: (x[0], model_text(x[1])))
    exact_ones = sorted(
        (x for each in found for x in each.exact), key=lambda x: (not _known_as(x[0]), _order(x[0]))
    )
    return _Found(exact_ones, near[:_NEAREST], sum(each.tried for each in found))


def _done(rows: _Recorded, tasks: Sequence[tuple[str, int]], jobs: int) -> Iterator[tuple[str, _Found]]:
    """Parts as they are done, with the names of their algorithms."""
    if jobs == 1:
        yield from ((name, _searched(rows, name, part)) for name, part in tasks)
        return
    with processes(jobs) as executor:
        running = {executor.submit(_searched, rows, name, part): name for name, part in tasks}
        yield from ((running[future], future.result()) for future in as_completed(running))


def _searched(rows: _Recorded, algorithm: str, part: int) -> _Found:
    """One part of one algorithm's models, in a worker process."""
    order = rows.telling_first()
    first, second = [rows.one(row) for row in order[:_FIRST]], order[:_SECOND]
    exact, near, tried = [], [], 0
    for spec in islice(models(rows.types, rows.k, algorithm), part, None, _PARTS):
        tried += 1
        if _mostly_wrong(spec, first):
            continue
        wrong = int(rows.differ(spec, second).sum())
        near.append((wrong, spec))
        if wrong <= max(_WRONG * len(second), 1):
            for each in details(spec):
                refuting = _refuting(rows, each, order)
                if refuting is None:
                    exact.append((each, spec))
                else:  # it is likely to refute others
                    order = np.concatenate([[refuting], order[order != refuting]])
    return _Found(exact, sorted(near, key=lambda x: x[0])[:_NEAREST], tried)


def _mostly_wrong(spec: DotAdd, rows: Sequence[tuple[Codes, int]]) -> bool:
    """Whether more than half of some rows refute a model."""
    wrong = 0
    for done, (codes, d) in enumerate(rows, 1):
        result = int(executable.dot_add(spec, codes.a, codes.b, codes.c).result)
        wrong += result != d and not (is_nan(result, spec.d_format) and is_nan(d, spec.d_format))
        if 2 * wrong > len(rows):
            return True
        if 2 * (wrong + len(rows) - done) <= len(rows):
            break
    return False


def _refuting(rows: _Recorded, spec: DotAdd, order: NDArray[np.intp]) -> np.intp | None:
    """A row that refutes a model, looked for in this order; None if every row is explained."""
    for low, high in ((0, 32), (32, 512), (512, len(order))):
        where = order[low:high]
        wrong = rows.differ(spec, where)
        if wrong.any():
            row: np.intp = where[wrong][0]
            return row
    return None


def _nearest(rows: _Recorded, near: Sequence[tuple[int, DotAdd]]) -> Iterator[Miss]:
    """The models that get the fewest rows wrong, with their likeliest details."""
    for _, spec in near:
        best = min(islice(details(spec), _LIKELY), key=lambda each: int(rows.differ(each).sum()))
        wrong = np.nonzero(rows.differ(best))[0]
        x = rows.rows
        sizes = row_sizes(best, *(side[wrong].astype(np.int64) for side in (x.a, x.b, x.c)))
        row = int(wrong[np.lexsort(sizes.T[::-1])[0]])
        one = Rows(*(side[row : row + 1] for side in (x.a, x.b, x.c, x.scale_a, x.scale_b)))
        (gives,) = results(best, one.codes)
        yield Miss(best, len(wrong), row, gives=int(gives), recorded=int(rows.d[row]))


def differ(spec: DotAdd, x: NDArray[np.uint64], y: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Where results differ; NaNs are one where the model does not know theirs."""
    different = x != y
    if different.any() and not spec.nan_is_canonical:
        nans = [np.asarray(is_nan(codes.astype(np.int64), spec.d_format)) for codes in (x, y)]
        different &= ~(nans[0] & nans[1])
    return np.asarray(different)


# ---- models that explain every row -----------------------------------------------------------------------------------


class _Classes:
    """Models that explain all rows, those of one function together."""

    def __init__(self, exact: Sequence[tuple[DotAdd, DotAdd]], timeout: float, progress: Progress) -> None:
        self.families, self.progress = dict(exact), progress
        self.deadline = time.monotonic() + timeout
        self.cases = generate(exact[0][0], _CASES, moods=(*MOODS, "edge")).cases() if exact else []
        self.nans_known = all(spec.nan_is_canonical for spec in self.families)
        self.equal: dict[tuple[DotAdd, DotAdd], Proof | None] = {}  #: None: not settled in time

    def found(self) -> tuple[list[Explanation], list[RunNext]]:
        """Grouped by what random cases show; then by inputs too on which a solver finds that two of a group differ."""
        while True:
            rows, groups = Rows.of(self.cases), dict[bytes, list[DotAdd]]()
            for spec in sorted(self.families, key=lambda each: not _known_as(each)):
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
        if not self.nans_known:
            d[np.asarray(is_nan(d.astype(np.int64), spec.d_format))] = quiet_nan(spec.d_format)
        return d

    def _apart(self, members: Sequence[DotAdd]) -> Iterator[Codes]:
        """Inputs on which a member differs from the first, of those that are not proved equal."""
        first = members[0]
        for spec in members[1:]:
            left = self.deadline - time.monotonic()
            if (first, spec) in self.equal or left <= 1:
                continue
            self.progress(f"is {model_text(spec)} the same as {model_text(first)}?")
            answer = find_difference(_instruction(first), _instruction(spec), timeout=min(left, 20))
            if isinstance(answer, Different):
                yield _inputs_of(answer)
            else:
                self.equal[first, spec] = answer.proof if isinstance(answer, Equal) else None

    def _class(self, members: Sequence[DotAdd]) -> Explanation:
        """The first, what is proved to be the same, and the rest."""
        first = members[0]
        proved = {spec: proof for spec in members[1:] if (proof := self.equal.get((first, spec))) is not None}
        rest = tuple(spec for spec in members[1:] if spec not in proved)
        known = tuple(dict.fromkeys(name for spec in (first, *proved) for name in _known_as(spec)))
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
            x, y = (_instruction(specs[i]) for i in part)
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


def _order(spec: DotAdd) -> tuple[object, ...]:
    """By the algorithm, then by values of parameters in their order."""
    values = (spec.parameters[name] for name in spec.parameters)
    return spec.parameters.algorithm, *(
        (isinstance(x, int), x if isinstance(x, int) else str(x)) for x in values
    )


def _instruction(spec: DotAdd) -> Instruction:
    return Instruction(model_text(spec), "a model", 1, 1, spec)


@lru_cache(maxsize=1)
def _registry() -> dict[tuple[Parameters, Types, tuple[int, ...]], tuple[str, ...]]:
    """The labels of all instructions without block scales, by what they compute at any K."""
    found: dict[tuple[Parameters, Types, tuple[int, ...]], tuple[str, ...]] = {}
    for i in (i for arch in ARCHITECTURES.values() for i in arch if i.spec.scale_format is None):
        key = i.parameters, _types(i.spec), i.spec.product_order
        found[key] = (*found.get(key, ()), i.label)
    return found


def _known_as(spec: DotAdd) -> tuple[str, ...]:
    """The instructions of the registry that are this model, chained or cut to its K."""
    return _registry().get((spec.parameters, _types(spec), spec.product_order), ())


def _types(spec: DotAdd) -> Types:
    return Types(spec.a_format, spec.b_format, spec.c_format, spec.d_format)


if __name__ == "__main__":
    from mmaformal.cli import main as command

    sys.exit(command(["diagnose", *sys.argv[1:]]))
