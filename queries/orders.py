"""Which order of the products explains these rows?  Of all there are, for given parameters of an algorithm.

They are too many to list: K = 16 products, one after the other, have 16!.  But after some steps all that is left of an
order is which products were taken and the sum so far, and of that a row has few: sums of the same products differ in
some last places.  So a row is followed through all sets of products, forward with every sum that some order gives,
backward from what was recorded, and leaves the orders on a way from one to the other, as paths of a graph
(`mmaformal.queries.paths`).  An order that is left and that some row refutes names the next row.  In the end there are
none, so that no order explains the rows, or those that explain all of them.  That is found by running, of all sums that
there are, and rests on which products of a step may change places (`DotAdd.class_of`); it is no obligation of a solver.

What zeros and special values do is not known yet.  So, in algorithms that have such details, rows are used that have
neither, and a sum that is either, or that could depend on details (`mmaformal.spaces.sure`), stands for any.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.codes import some_nan
from mmaformal.checked import Progress
from mmaformal.display import ShortRepr, counted
from mmaformal.kernels.rows import quick_dot_add
from mmaformal.queries.elimination import RecordedRows, ordinary_rows, refuting, rows_differ, step_sums
from mmaformal.queries.paths import Paths, PlaceArray, StepPath, marked
from mmaformal.spaces import details, models
from mmaformal.spaces.common import Types
from mmaformal.spec import DotAdd

#: Rows that orders are found by.
_ROWS = 2048
#: Orders that explain these rows and are run on all, with all details; where there are more, they are not all told.
_MOST = 16
#: Rows that refute a path, of which the one is taken that was taken least.
_CHOSEN = 64
#: Orders by chance that tell which rows are explained by few.
_DRAWN = 16
#: Less likely than the likeliest, in each row, by this power of e: not searched.
_UNLIKELY = 1.0
#: Rows of which a model has to explain most before its details are tried, and what part of them it may get wrong.
_FEW, _WRONG = 200, 0.1
#: Once so many explain every row, details of others are not tried.
_DETAILED = 500
#: Seconds in which an order that was found is tried with other parameters.
_OTHERS = 10.0
#: Paths that are looked at one by one.
_LISTED = 64
#: Graphs of more steps than these are not made; and those that would have more are not distinguished by sums.
_MOST_STEPS, _LARGE = 12_000_000, 2_000_000
#: Sums that are computed at once.
_CHUNK = 1 << 18
#: Rows and orders by chance that parameters are compared by, and how many of them are kept: the likeliest.
_ROUNDS = ((8, 8, 2048), (48, 16, 64), (256, 64, 24))


class _TimeUpError(Exception):
    """The time given was used up."""


@dataclass(frozen=True, repr=False)
class OrdersFound(ShortRepr):
    """Findings on the orders of products, for the parameters that are likeliest."""

    exact: tuple[tuple[DotAdd, DotAdd], ...]  #: what explains every row, and the model that it is a detail of
    refuted: tuple[DotAdd, ...]  #: no order explains the rows, whatever zeros and special values do
    unsettled: tuple[tuple[DotAdd, str], ...]  #: and why
    left: int  #: parameters that were less likely, or for which there was no time

    @property
    def lines(self) -> list[str]:
        """For a person."""
        found = []
        if self.refuted:
            n = counted(len(self.refuted), "likely choice")
            found.append(f"no order of products explains these rows, for {n} of parameters:")
            found += [f"  {spec.text}" for spec in self.refuted]
        found += [f"orders of products, not settled: {spec.text}: {why}" for spec, why in self.unsettled]
        if self.left:
            others = counted(self.left, "choice")
            found.append(f"orders of products were not searched for {others}: less likely, or no time")
        return found

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "refuted": [spec.text for spec in self.refuted],
            "unsettled": [{"model": spec.text, "why": why} for spec, why in self.unsettled],
            "not searched": self.left,
        }


def ordered(rows: RecordedRows, names: Sequence[str], timeout: float, progress: Progress) -> OrdersFound:
    """The likeliest parameters of these algorithms, with every order of the products.

    Likely are those that, in orders by chance, often give what was recorded.  An order that explains all rows is then
    tried with all parameters there are.
    """
    deadline = time.monotonic() + timeout
    usable = rows.at(rows.telling_first()[:_ROWS])
    specs = [spec for name in names for spec in _families(rows.types, rows.k, name)]
    progress(f"orders of products: which of {counted(len(specs), 'choice')} of parameters are likely?")
    exact: dict[DotAdd, DotAdd] = {}
    refuted: list[DotAdd] = []
    unsettled: list[tuple[DotAdd, str]] = []
    seen: set[tuple[int, ...]] = set()
    for spec in _likely(specs, usable, deadline):
        if time.monotonic() > deadline:
            break
        progress(f"orders of products: {spec.text}, {counted(len(exact), 'model')} found")
        orders, why = _orders_of(spec, usable, deadline)
        there: dict[DotAdd, DotAdd] = {}
        for order in orders:
            there |= _detailed(rows, [spec], order, _DETAILED)
        for order in {tuple(each.taken) for each in there}.difference(seen):
            seen.add(order)
            until = min(deadline, time.monotonic() + _OTHERS)
            exact |= _detailed(rows, [each for each in specs if each != spec], order, _DETAILED, until)
        exact |= there
        if why:
            unsettled.append((spec, why))
        elif not there:
            refuted.append(spec)
    settled = {*refuted, *(spec for spec, _ in unsettled), *(family.in_order for family in exact.values())}
    left = sum(spec not in settled for spec in specs)
    return OrdersFound(tuple(exact.items()), tuple(refuted), tuple(unsettled), left)


def _detailed(
    rows: RecordedRows, specs: Sequence[DotAdd], order: Sequence[int], most: int, until: float = math.inf
) -> dict[DotAdd, DotAdd]:
    """The models in this order that explain every row, and what they are details of; of many, not all details."""
    few = rows.at(rows.telling_first()[:_FEW])
    found: dict[DotAdd, DotAdd] = {}
    for spec in specs:
        if time.monotonic() > until:
            break
        family = spec.replace(product_order=tuple(order))
        if few.differ(family).sum() <= max(_WRONG * len(few), 1):
            for each in details(family) if len(found) < most else (family,):
                if refuting(rows, each, np.arange(len(rows))) is None:
                    found[each] = family
    return found


def _families(types: Types, k: int, algorithm: str) -> Iterator[DotAdd]:
    """Models of an algorithm in which there is an order to be found, products as they are numbered."""
    for spec in models(types, k, algorithm, ordered=False):
        if (
            types.scale is None
            and spec.parameters.made_of(spec) is None
            and k > 1
            and len(set(_classes(spec))) > 1
        ):
            yield spec


def _classes(spec: DotAdd) -> list[object]:
    return [spec.class_of(i) for i in range(spec.k)]


def _orders_of(spec: DotAdd, rows: RecordedRows, deadline: float) -> tuple[list[tuple[int, ...]], str]:
    """The orders that explain rows, and why these are not all, if they are not."""
    found: list[tuple[int, ...]] = []
    if Paths.steps(spec.k, _classes(spec)[: spec.parameters.step_products]) > _MOST_STEPS:
        return found, "too many sets of products to follow"
    try:
        for order in explaining(spec, rows, deadline):
            if len(found) == _MOST:
                return found, f"more than {_MOST} orders explain {counted(len(rows), 'row')}"
            found.append(order)
    except _TimeUpError:
        return found, "the time given was used up"
    return found, ""


def _likely(specs: list[DotAdd], rows: RecordedRows, deadline: float) -> list[DotAdd]:
    """Those that are likeliest to give what was recorded, in an order by chance."""
    rng = np.random.default_rng(0)
    for count, orders, kept in _ROUNDS:
        some = rows.at(slice(0, count))
        shuffled = _shuffled(some, orders, rng)
        likelihood = []
        for spec in specs:
            if time.monotonic() > deadline:
                break
            right = ~shuffled.differ(spec).reshape(orders, len(some))
            likelihood.append(np.log(right.sum(axis=0) + 0.5).sum())
        best = np.argsort(-np.array(likelihood), kind="stable")
        good = [i for i in best if likelihood[best[0]] - likelihood[i] < _UNLIKELY * count]
        rank, seen = dict[int, int](), Counter[tuple[str, int]]()
        for (
            i
        ) in good:  # of each algorithm and size of steps the likeliest first: some are as likely in many ways
            kind = specs[i].parameters.algorithm, specs[i].parameters.step_products
            rank[i] = seen[kind]
            seen[kind] += 1
        specs = [specs[i] for i in sorted(good, key=lambda i: rank[i])[:kept]]
    return specs


def _shuffled(rows: RecordedRows, orders: int, rng: np.random.Generator) -> RecordedRows:
    """All rows with their products in an order by chance, then again in another, and so on."""
    taken = [rng.permutation(rows.k) for _ in range(orders)]
    x = rows.rows
    parts = [replace(rows, rows=replace(x, a=x.a[:, each], b=x.b[:, each])) for each in taken]
    return RecordedRows.join(parts)


# ---- all orders, of one choice of parameters -------------------------------------------------------------------------


def explaining(spec: DotAdd, rows: RecordedRows, deadline: float) -> Iterator[tuple[int, ...]]:
    """Every order with which these parameters explain rows, whatever zeros and special values do, each once.

    Raises _TimeUpError.
    """
    search, rng = _Orders(spec, rows, deadline), np.random.default_rng(0)
    paths, known, used = search.everything(), set[StepPath](), Counter[int]()
    while len(paths) and paths.count > _LISTED + len(known):
        path = paths.some(rng)
        wrong = search.wrong(path)
        if len(wrong):
            row = min(islice(map(int, wrong), _CHOSEN), key=lambda each: used[each])
            used[row] += 1
            paths = search.left_by(paths, row)
        elif path not in known:
            known.add(path)
            yield paths.order(path)
    for path in paths.each() if len(paths) else ():
        if path not in known and not len(search.wrong(path)):
            yield paths.order(path)


class _Orders:
    """Rows followed through the steps of one choice of parameters."""

    def __init__(self, spec: DotAdd, rows: RecordedRows, deadline: float) -> None:
        self.spec, self.types, self.deadline = spec, rows.types, deadline
        #: one step, whose products are in their places
        self.step = spec.replace(k=spec.parameters.step_products, product_order=())
        self.detailed = len(list(islice(details(spec), 2))) > 1
        #: stands for a sum that is not known; as a NaN it stays one
        self.unknown = np.uint64(some_nan(spec.d_format))
        rows = rows.at(np.nonzero(ordinary_rows(rows.rows, rows.types))[0]) if self.detailed else rows
        shuffled = _shuffled(rows, _DRAWN, np.random.default_rng(1))
        right = ~shuffled.differ(spec).reshape(_DRAWN, len(rows))
        #: those that few orders explain first
        self.rows = rows.at(np.argsort(right.sum(axis=0), kind="stable"))

    def everything(self) -> Paths:
        return Paths.all(self.spec.k, tuple(_classes(self.step)))

    def _summed(
        self, a: NDArray[np.uint64], b: NDArray[np.uint64], c: NDArray[np.uint64]
    ) -> NDArray[np.uint64]:
        """The sums after one step, `unknown` where they depend on details; a, b: (n, products of a step)."""
        if time.monotonic() > self.deadline:
            raise _TimeUpError
        if not self.detailed:
            return quick_dot_add(self.step, a, b, c).astype(np.uint64)
        d, known = step_sums(self.step, a, b, c)
        d[~known] = self.unknown
        return d

    def _explained(self, d: NDArray[np.uint64], recorded: NDArray[np.uint64]) -> NDArray[np.bool_]:
        same = ~rows_differ(self.spec, d, recorded)
        return same | (d == self.unknown) if self.detailed else same

    def wrong(self, path: StepPath) -> NDArray[np.intp]:
        """The rows that an order does not explain."""
        x = self.rows.rows
        d, fillings = x.c, self.everything().fillings
        for filling in path:
            d = self._summed(x.a[:, fillings[filling]], x.b[:, fillings[filling]], d)
        return np.nonzero(~self._explained(d, self.rows.d))[0]

    def left_by(self, paths: Paths, row: int) -> Paths:
        """The paths that explain a row; if that graph is too large, those all of whose steps are on such a path."""
        x = self.rows.rows
        a, b = x.a[row], x.b[row]
        at, sums = np.zeros(1, np.int32), x.c[row : row + 1]
        begin, step, end, places = [], [], [], [1]
        for level in range(len(paths.filled)):
            source, taking = _joined(at, paths.begin[level])
            d = np.empty(len(source), np.uint64)
            for low in range(0, len(source), _CHUNK):
                some = slice(low, low + _CHUNK)
                products = paths.fillings[paths.filled[level][taking[some]]]
                d[some] = self._summed(a[products], b[products], sums[source[some]])
            at, sums, target = _distinct(paths.end[level][taking], d)
            begin.append(source)
            step.append(taking)
            end.append(target)
            places.append(len(at))
        kept = [np.ones(len(each), np.bool_) for each in end]
        kept[-1] = self._explained(sums, np.broadcast_to(self.rows.d[row], sums.shape))[end[-1]]
        end[-1], places[-1] = np.zeros_like(end[-1]), 1
        finer = Paths(paths.fillings, tuple(places), tuple(begin), tuple(end), tuple(step)).through(kept)
        if len(finer) > _LARGE:
            return paths.through([marked(len(x), y) for x, y in zip(paths.filled, finer.filled, strict=True)])
        return replace(finer, filled=tuple(x[y] for x, y in zip(paths.filled, finer.filled, strict=True)))


def _joined(at: PlaceArray, begin: PlaceArray) -> tuple[PlaceArray, PlaceArray]:
    """Each sum with each step from its place; both are ordered by places."""
    first, last = np.searchsorted(begin, at, "left"), np.searchsorted(begin, at, "right")
    count = last - first
    source = np.repeat(np.arange(len(at), dtype=np.int32), count)
    steps = np.arange(len(source)) - np.repeat(np.cumsum(count) - count - first, count)
    return source, steps.astype(np.int32)


def _distinct(at: PlaceArray, sums: NDArray[np.uint64]) -> tuple[PlaceArray, NDArray[np.uint64], PlaceArray]:
    """Each pair of a place and a sum once, ordered by places, and which of them each was."""
    order = np.lexsort((sums, at))
    x, y = at[order], sums[order]
    new = np.ones(len(x), np.bool_)
    new[1:] = (x[1:] != x[:-1]) | (y[1:] != y[:-1])
    which = np.empty(len(x), np.int32)
    which[order] = np.cumsum(new) - 1
    return x[new], y[new], which
