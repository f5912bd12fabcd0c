"""Elimination: of all models there are for some types, those that explain every row, and the nearest of the others.

Those that get too many of a few rows wrong, whatever zeros and special values do, are left out first; the rest, with
everything that zeros and special values may do, has to reproduce every row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures import ARCHITECTURES
from mmaformal.architectures.known import rarity
from mmaformal.cases.codes import exponent, is_finite, is_nan, is_zero
from mmaformal.cases.inputs import Codes, Rows
from mmaformal.cases.run import quick_results as results
from mmaformal.checked import Progress
from mmaformal.display import ShortRepr
from mmaformal.executors import results_in_order
from mmaformal.kernels.rows import quick_dot_add
from mmaformal.recordings.check import row_sizes
from mmaformal.recordings.read import Recording, RowBlock
from mmaformal.rounding import Conversion, NanRule, Rounding
from mmaformal.solver.pool import processes
from mmaformal.spaces import details, models, sure
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: A model that gets more than this part of the rows wrong, whatever its details, is none.
_WRONG = 0.1
#: How many rows a model is run on, one at a time, before it is run on more; most of them refute what is none.
_FIRST, _SECOND = 5, 200
#: How many details of a model that is refuted are tried, to tell how near it is.
_LIKELY = 64
#: How many parts the models of an algorithm are divided into, for worker processes.
_PARTS = 8
#: Once so many of one part explain every row, the rows tell little, and details of further models are not tried.
_DETAILED = 500
_NEAREST = 3
#: Seconds that worker processes have to hand in what they found, once the time is up.
_GRACE = 0.5


@dataclass(frozen=True, repr=False)
class RefutedModel(ShortRepr):
    """A model that some rows refute."""

    model: DotAdd
    wrong: int  #: rows of all
    row: int  #: the smallest of them
    gives: int  #: code
    recorded: int  #: code


def types_of_recording(recording: Recording) -> Types:
    """The types of its rows."""
    formats = recording.a_format, recording.b_format, recording.c_format, recording.d_format
    block = recording.terms // recording.scales if recording.scales else 0
    return Types(*formats, recording.scale_format, block)


def tabled(types: Types, k: int) -> list[DotAdd]:
    """Return what the instructions of the tables compute that take these types, chained to K."""
    found = {i.spec for arch in ARCHITECTURES.values() for i in arch if Types.of(i.spec) == types}
    whole = [each for each in found if k % each.period == 0 and (k == each.k or each.passes_on)]
    return sorted({each.replace(k=k) for each in whole}, key=lambda each: each.text)


#: Signs of the products and of c in the exact sum, 0 where c is not read, each with a way to change signs to that.
_SIGNS = {
    (1, 1): ("", True),
    (-1, 1): ("a", True),
    (1, -1): ("c", True),
    (-1, -1): ("ac", True),
    (1, 0): ("", False),
    (-1, 0): ("a", False),
}
#: Rows by which signs are told apart, and the part of them by which choices are as good as each other.
_SIGNED, _MORE = 200, 0.05


def _signs(rows: RecordedRows) -> list[tuple[str, bool]]:
    """The changes of signs (`DotAdd.negated`, `reads_c`) that rows look like, by what their exact sums would be.

    None, unless another choice is nearer to what was recorded; where every c is zero, it may not be read.
    """
    t, near = rows.types, dict.fromkeys(_SIGNS, 0)
    plain = _SIGNS[1, 1]
    if t.scale is not None:
        return [plain]
    sides = ((rows.rows.a, t.a), (rows.rows.b, t.b), (rows.rows.c[:, None], t.c), (rows.d[:, None], t.d))
    finite = [np.asarray(is_finite(codes.astype(np.int64), fmt)).all(axis=1) for codes, fmt in sides]
    usual = np.nonzero(np.logical_and.reduce(finite))[0][:_SIGNED]
    for row in usual:
        codes, code = rows.one(int(row))
        pairs = zip(codes.a, codes.b, strict=True)
        products = sum((t.a.value(x) * t.b.value(y) for x, y in pairs), Fraction(0))
        c, d = t.c.value(codes.c), t.d.value(code)
        for sign_of_products, sign_of_c in _SIGNS:
            exact = sign_of_products * products + sign_of_c * c
            near[sign_of_products, sign_of_c] += bool(d) and abs(exact - d) * 16 <= abs(d)
    best = max(near.values())
    if near[1, 1] + _MORE * len(usual) >= best:
        unread = bool(len(rows)) and not (rows.rows.c & np.uint64(t.c.sign_mask - 1)).any()
        return [plain, _SIGNS[1, 0]] if unread else [plain]
    return [_SIGNS[each] for each in _SIGNS if near[each] + _MORE * len(usual) >= best]


def _with_signs(spec: DotAdd, changes: Sequence[tuple[str, bool]]) -> Iterator[DotAdd]:
    """A model with each of some changes of signs, where the encodings hold it."""
    for negated, reads_c in changes:
        try:
            yield spec.replace(negated=negated, reads_c=reads_c)
        except ValueError:
            continue


def ordinary_rows(rows: Rows, types: Types) -> NDArray[np.bool_]:
    """The rows in whose inputs nothing is zero or special."""
    sides = [(rows.a, types.a), (rows.b, types.b), (rows.c[:, None], types.c)]
    if types.scale is not None:
        sides += [(rows.scale_a, types.scale), (rows.scale_b, types.scale)]
    good = np.ones(len(rows), np.bool_)
    for wide, fmt in sides:
        codes = wide.astype(np.int64)
        good &= np.asarray(is_finite(codes, fmt) & ~np.asarray(is_zero(codes, fmt))).all(axis=1)
    return good


@dataclass(frozen=True, repr=False)
class RecordedRows(ShortRepr):
    """Rows and what was recorded of them."""

    rows: Rows
    d: NDArray[np.uint64]
    types: Types
    k: int

    @staticmethod
    def of(block: RowBlock, types: Types, k: int) -> RecordedRows:
        """The rows of a block; products that were not recorded are of +0."""
        none = np.empty((len(block.d), 0), np.uint64)
        if (types.scale is None) != (block.scale_a is None):
            raise ValueError("these rows have block scales and the types have none, or the other way round")
        scales = (none if side is None else side.astype(np.uint64) for side in (block.scale_a, block.scale_b))
        missing = ((0, 0), (0, k - block.a.shape[1]))
        a, b = (np.pad(side.astype(np.uint64), missing) for side in (block.a, block.b))
        rows = Rows(a, b, block.c.astype(np.uint64), *scales)
        return RecordedRows(rows, block.d.astype(np.uint64), types, k)

    @staticmethod
    def join(parts: Sequence[RecordedRows]) -> RecordedRows:
        """All of several, of which there is one at least."""
        rows = Rows.join([part.rows for part in parts])
        return RecordedRows(rows, np.concatenate([part.d for part in parts]), parts[0].types, parts[0].k)

    def __len__(self) -> int:
        return len(self.d)

    def at(self, where: NDArray[np.intp] | slice) -> RecordedRows:
        """Some of the rows."""
        return RecordedRows(self.rows.at(where), self.d[where], self.types, self.k)

    def differ(self, spec: DotAdd, where: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.bool_]:
        """Say for each of some rows whether a model gets it wrong."""
        some = self.at(where)
        return rows_differ(spec, results(spec, some.rows), some.d)

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


def step_sums(
    step: DotAdd, a: NDArray[np.uint64], b: NDArray[np.uint64], c: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Return what one step of a model gives, and where none of its details show, in it or in what is made of it.

    a, b: (n, products of the step), nothing zero or special among them.
    """
    types = Types.of(step)
    d = quick_dot_add(step, a, b, c).astype(np.uint64)
    products = exponent(a, types.a) + exponent(b, types.b)
    known = sure(step.parameters.algorithm, products, exponent(c, types.c))
    for codes, fmt in ((c, types.c), (d, types.d)):
        known &= np.asarray(is_finite(codes, fmt)) & ~np.asarray(is_zero(codes, fmt))
    return d, known


def without_details(spec: DotAdd, rows: RecordedRows) -> NDArray[np.bool_]:
    """Rows on which a model gives the same whatever its details are."""
    if rows.types.scale is not None:
        return np.zeros(len(rows), np.bool_)
    x, L = rows.rows, spec.parameters.step_products
    known, d = ordinary_rows(x, rows.types), x.c
    if spec.parameters.made_of(spec) is not None:  # whatever its steps give: they begin with zeros
        types, recorded = rows.types, rows.d
        exponents = exponent(x.a, types.a) + exponent(x.b, types.b)
        known &= sure(spec.parameters.algorithm, exponents, exponent(x.c, types.c))
        known &= np.asarray(is_finite(recorded, types.d)) & ~np.asarray(is_zero(recorded, types.d))
        return known
    step = spec.replace(k=L, product_order=())
    for first in range(0, spec.k, L):
        products = spec.taken[first : first + L]
        d, each = step_sums(step, x.a[:, products], x.b[:, products], d)
        known &= each
    return known


@dataclass(frozen=True, repr=False)
class Found(ShortRepr):
    exact: list[
        tuple[DotAdd, DotAdd]
    ]  #: every row explained, details and all; and the model that it is a detail of
    near: list[tuple[int, DotAdd]]  #: the fewest of some rows wrong
    tried: int
    complete: bool = True  #: whether all models were tried; if not, the time was up


class ModelElimination:
    """All models of some algorithms, divided among processes, or the workers of an executor; what was found is here at
    any time, and does not depend on which is done first."""

    def __init__(
        self,
        rows: RecordedRows,
        names: Sequence[str],
        jobs: int,
        progress: Progress,
        executor: Executor | None = None,
    ) -> None:
        self.rows, self.names, self.jobs, self.progress = rows, names, jobs, progress
        self.executor = executor
        self._tasks = [(name, part) for part in range(_PARTS) for name in names]
        self._done: dict[tuple[str, int], Found] = {}
        self._reached: set[str] = set()  #: algorithms of which models were tried

    def run(self, until: float = math.inf) -> None:
        """Try them, until then at most, in `time.monotonic`."""
        for task, each in _done(self.rows, self._tasks, self.jobs, until, self.executor):
            self._done[task], name = each, task[0]
            self._reached |= {name} if each.tried else set()
            tried, exact = sum(x.tried for x in self._parts), sum(len(x.exact) for x in self._parts)
            text = f"{tried:,} models tried, {exact:,} explain every row"
            self.progress(f"{len(self._parts)} of {len(self._tasks)} parts, the last of {name}: {text}")

    @property
    def _parts(self) -> list[Found]:
        """The findings of parts, in the order of the parts."""
        return [self._done[task] for task in self._tasks if task in self._done]

    @property
    def found(self) -> Found:
        """The models that explain every row, and those that are nearest, of what was tried."""
        near = sorted((x for each in self._parts for x in each.near), key=lambda x: (x[0], x[1].text))
        explaining = [x for each in self._parts for x in each.exact]
        there, rows = {spec for spec, _ in explaining}, self.rows
        for spec in tabled(rows.types, rows.k):  # not all details were tried of all
            reached = spec.parameters.algorithm in self._reached
            if reached and spec not in there and not rows.differ(spec).any():
                explaining.append((spec, spec))
        exact_ones = sorted(explaining, key=lambda x: (rarity(x[0]), _in_order(x[0])))
        complete = len(self._parts) == len(self._tasks) and all(each.complete for each in self._parts)
        return Found(exact_ones, near[:_NEAREST], sum(each.tried for each in self._parts), complete)


def _done(
    rows: RecordedRows,
    tasks: Sequence[tuple[str, int]],
    jobs: int,
    until: float,
    executor: Executor | None = None,
) -> Iterator[tuple[tuple[str, int], Found]]:
    """Parts as they are done.

    In one process the next part is of the algorithm that took the least time so far, so that a large space, or one
    of which many details explain the rows, does not keep the others waiting.
    """
    if executor is not None:
        end = time.time() + until - time.monotonic()
        parts = [(rows, *task, end) for task in tasks]
        yield from (
            (tasks[place], each) for place, each in results_in_order(executor, _searched_elsewhere, parts)
        )
        return
    if jobs == 1:
        left, spent = list(tasks), dict.fromkeys((name for name, _ in tasks), 0.0)
        while left:
            task = min(left, key=lambda each: spent[each[0]])  # the first of them
            left.remove(task)
            start = time.monotonic()
            yield task, _searched(rows, *task, until)
            spent[task[0]] += time.monotonic() - start
        return
    with processes(jobs) as pool:
        running = {pool.submit(_searched, rows, *task, until): task for task in tasks}
        limit = None if until == math.inf else max(until - time.monotonic(), 0) + _GRACE
        try:
            yield from ((running[future], future.result()) for future in as_completed(running, limit))
        except TimeoutError:
            return


def _searched_elsewhere(rows: RecordedRows, algorithm: str, part: int, end: float) -> Found:
    """One part, on another machine, whose `time.monotonic` is its own; `end` is in `time.time`."""
    return _searched(rows, algorithm, part, time.monotonic() + end - time.time())


def _searched(rows: RecordedRows, algorithm: str, part: int, until: float) -> Found:
    """One part of one algorithm's models, in a worker process; what was tried until then."""
    order = rows.telling_first()
    first, second = rows.at(order[:_FIRST]), rows.at(order[:_SECOND])
    nans = np.asarray(is_nan(first.d.astype(np.int64), rows.types.d))
    exact: list[tuple[DotAdd, DotAdd]] = []
    near: list[tuple[int, DotAdd]] = []
    tried = 0
    complete = True
    changes = _signs(rows)
    own = models(rows.types, rows.k, algorithm, part, _PARTS)
    for spec in (signed for each in own for signed in _with_signs(each, changes)):
        if time.monotonic() > until:
            complete = False
            break
        tried += 1
        if _mostly_wrong(spec, first, nans):
            continue
        wrong = int(second.differ(spec).sum())
        near.append((wrong, spec))
        if wrong <= max(_WRONG * len(second), 1):
            explaining, row = _explaining(spec, rows, order, everything=len(exact) < _DETAILED, until=until)
            exact += ((each, spec) for each in explaining)
            if row is not None:  # it is likely to refute others
                order = np.concatenate([[row], order[order != row]])
    return Found(exact, sorted(near, key=lambda x: x[0])[:_NEAREST], tried, complete)


def _explaining(
    spec: DotAdd, rows: RecordedRows, order: NDArray[np.intp], everything: bool, until: float
) -> tuple[list[DotAdd], np.intp | None]:
    """The model with the details that explain every row, or with its own alone; and the last row that refuted some."""
    known = without_details(spec, rows)[order]
    if (last := refuting(rows, spec, order[known])) is not None:
        return [], last
    found, some = [], order[~known]
    for each in details(spec) if everything else (spec,):
        if time.monotonic() > until:
            break
        row = refuting(rows, each, some)
        if (
            row is None and spec.parameters.made_of(spec) is not None
        ):  # what is between its steps is not looked at
            row = refuting(rows, each, order[known])
        if row is None:
            found.append(each)
        else:
            last, some = row, np.concatenate([[row], some[some != row]])
    return found, last


def _mostly_wrong(spec: DotAdd, rows: RecordedRows, nans: NDArray[np.bool_]) -> bool:
    """Whether more than half of some rows refute a model, any NaN taken for any other; `nans`: which of them are."""
    gives = results(spec, rows.rows)
    wrong = gives != rows.d
    if nans.any():
        wrong &= ~(nans & np.asarray(is_nan(gives.astype(np.int64), spec.d_format)))
    return 2 * int(wrong.sum()) > len(rows)


def refuting(rows: RecordedRows, spec: DotAdd, order: NDArray[np.intp]) -> np.intp | None:
    """A row that refutes a model, looked for in this order; None if every row is explained."""
    for low, high in ((0, 32), (32, 512), (512, len(order))):
        where = order[low:high]
        wrong = rows.differ(spec, where)
        if wrong.any():
            row: np.intp = where[wrong][0]
            return row
    return None


def remaining(exact: Sequence[tuple[DotAdd, DotAdd]], rows: RecordedRows) -> list[tuple[DotAdd, DotAdd]]:
    """Those of some models, each with what it is a detail of, that explain more rows."""
    by_family: dict[DotAdd, list[DotAdd]] = {}
    for spec, family in exact:
        by_family.setdefault(family, []).append(spec)
    left = set[DotAdd]()
    for family, specs in by_family.items():
        known = without_details(family, rows)
        if not rows.differ(family, np.nonzero(known)[0]).any():
            made_of = family.parameters.made_of(family) is not None
            some = np.arange(len(rows)) if made_of else np.nonzero(~known)[0]
            left.update(spec for spec in specs if refuting(rows, spec, some) is None)
    return [each for each in exact if each[0] in left]


def nearest_of(
    first: RecordedRows, blocks: Iterable[RecordedRows], near: Sequence[tuple[int, DotAdd]]
) -> list[RefutedModel]:
    """The models that get the fewest rows wrong, with their likeliest details; what they get wrong of all blocks."""
    models = [
        min(islice(details(spec), _LIKELY), key=lambda each: int(first.differ(each).sum()))
        for _, spec in near
    ]
    found: dict[DotAdd, tuple[tuple[int, ...], RefutedModel]] = {}
    start = 0
    for rows in blocks:
        for spec in models:
            wrong = np.nonzero(rows.differ(spec))[0]
            if not len(wrong):
                continue
            x = rows.rows
            sizes = row_sizes(spec, *(side[wrong].astype(np.int64) for side in (x.a, x.b, x.c)))
            smallest = int(np.lexsort(sizes.T[::-1])[0])
            size, row = tuple(map(int, sizes[smallest])), int(wrong[smallest])
            (gives,) = results(spec, x.at(slice(row, row + 1)).codes)
            miss = RefutedModel(spec, len(wrong), start + row, gives=int(gives), recorded=int(rows.d[row]))
            if spec in found:
                before = found[spec][1]
                size, miss = min(found[spec], (size, miss), key=lambda each: each[0])
                miss = replace(miss, wrong=before.wrong + len(wrong))
            found[spec] = size, miss
        start += len(rows)
    return sorted((miss for _, miss in found.values()), key=lambda each: each.wrong)


def rows_differ(spec: DotAdd, x: NDArray[np.uint64], y: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Where results differ; NaNs are one where the model does not know theirs."""
    different = x != y
    if different.any() and not spec.nan_is_canonical:
        nans = [np.asarray(is_nan(codes.astype(np.int64), spec.d_format)) for codes in (x, y)]
        different &= ~(nans[0] & nans[1])
    return np.asarray(different)


def _in_order(spec: DotAdd) -> tuple[object, ...]:
    """By how many roundings there are besides that to nearest even, the algorithm, then values of parameters in their
    order, a known NaN before any."""
    values = [spec.parameters[name] for name in spec.parameters]
    roundings = {x.rounding if isinstance(x, Conversion) else x for x in values}
    unusual = sum(isinstance(x, Rounding) and x is not Rounding.RNE for x in roundings)
    return (
        unusual,
        spec.parameters.algorithm,
        *(
            (isinstance(x, int), x if isinstance(x, int) else "~" if x is NanRule.ANY else str(x))
            for x in values
        ),
    )
