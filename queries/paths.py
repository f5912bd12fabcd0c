"""All orders in which a chain of steps may take products, as paths of one graph.

After some steps all that is left of the order is a set of products: a step leads from one set to a larger one, and an
order is a path from none to all.  So 2^16 sets hold 16! orders.  A place may be more than a set (a sum, too).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

#: Pairs of a set and a step that are compared at once.
_CHUNK = 1 << 24

PlaceArray = NDArray[np.int32]
StepPath = tuple[int, ...]  #: of each step, the way in which it is filled


@dataclass(frozen=True, repr=False)
class Paths:
    """Steps, level by level, ordered by the places where they begin; each is on a path from the first to the last."""

    fillings: PlaceArray  #: ways to fill a step: the products in the order in which it takes them, a row each
    places: tuple[int, ...]  #: how many there are before, between and after the steps: 1, …, 1
    begin: tuple[PlaceArray, ...]  #: of the steps of a level, where each begins
    end: tuple[PlaceArray, ...]  #: where it ends
    filled: tuple[PlaceArray, ...]  #: and its filling

    def __repr__(self) -> str:
        return f"<Paths of {len(self.filled)} steps each, through {len(self):,} steps>"

    def __len__(self) -> int:
        """Steps of all levels; none if there is no path."""
        return sum(map(len, self.filled))

    @staticmethod
    def steps(k: int, classes: Sequence[Hashable]) -> int:
        """How many steps the graph of all orders has; `all` says of what."""
        step = len(classes)
        ways = math.factorial(step) // math.prod(map(math.factorial, Counter(classes).values()))
        return sum(math.comb(k, n) * math.comb(k - n, step) * ways for n in range(0, k, step))

    @staticmethod
    @lru_cache(maxsize=2)
    def all(k: int, classes: tuple[Hashable, ...]) -> Paths:
        """Every order of k products, by steps of `len(classes)`; of a step's products, those in positions of one class
        are added in no order of their own, and ascend."""
        fillings = np.array(list(_fillings(k, classes)), np.int32)
        bits = (np.uint64(1) << fillings.astype(np.uint64)).sum(axis=1, dtype=np.uint64)
        sets, places = np.zeros(1, np.uint64), [1]
        begin, end, filled = [], [], []
        for _ in range(0, k, len(classes)):
            first, filling = _apart(sets, bits)
            sets, last = np.unique(sets[first] | bits[filling], return_inverse=True)
            places.append(len(sets))
            begin.append(first)
            end.append(last.astype(np.int32))
            filled.append(filling)
        return Paths(fillings, tuple(places), tuple(begin), tuple(end), tuple(filled))

    @property
    def count(self) -> float:
        """How many paths there are."""
        ways: NDArray[np.float64] = np.ones(1)
        for begin, end, places in zip(self.begin, self.end, self.places[1:], strict=True):
            ways = np.asarray(np.bincount(end, ways[begin], places), np.float64)
        return float(ways.sum())

    def through(self, kept: Sequence[NDArray[np.bool_]]) -> Paths:
        """The paths all of whose steps are kept."""
        kept = [each.copy() for each in kept]
        reached = [np.ones(1, np.bool_)]
        for level, keep in enumerate(kept):
            keep &= reached[level][self.begin[level]]
            reached.append(marked(self.places[level + 1], self.end[level][keep]))
        for level in reversed(range(len(kept))):
            kept[level] &= reached[level + 1][self.end[level]]
            reached[level] = marked(self.places[level], self.begin[level][kept[level]])
        number = [np.cumsum(each, dtype=np.int32) - np.int32(1) for each in reached]
        return Paths(
            self.fillings,
            tuple(int(each.sum()) for each in reached),
            tuple(number[i][self.begin[i][keep]] for i, keep in enumerate(kept)),
            tuple(number[i + 1][self.end[i][keep]] for i, keep in enumerate(kept)),
            tuple(self.filled[i][keep] for i, keep in enumerate(kept)),
        )

    def some(self, rng: np.random.Generator) -> StepPath:
        """One of the paths, by chance."""
        path, at = [], 0
        for begin, end, filled in zip(self.begin, self.end, self.filled, strict=True):
            step = rng.integers(*np.searchsorted(begin, (at, at + 1)))
            path.append(int(filled[step]))
            at = int(end[step])
        return tuple(path)

    def each(self, level: int = 0, at: int = 0) -> Iterator[StepPath]:
        """All paths, from a place on."""
        if level == len(self.filled):
            yield ()
            return
        for step in range(*np.searchsorted(self.begin[level], (at, at + 1))):
            for rest in self.each(level + 1, int(self.end[level][step])):
                yield (int(self.filled[level][step]), *rest)

    def order(self, path: StepPath) -> tuple[int, ...]:
        """The products as a path takes them."""
        return tuple(int(x) for filling in path for x in self.fillings[filling])


def _fillings(k: int, classes: Sequence[Hashable], taken: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Ways to fill the positions of a step with products; those in positions of one class ascend."""
    if len(taken) == len(classes):
        yield taken
        return
    before = [x for x, each in zip(taken, classes, strict=False) if each == classes[len(taken)]]
    for x in range(max(before, default=-1) + 1, k):
        if x not in taken:
            yield from _fillings(k, classes, (*taken, x))


def _apart(sets: NDArray[np.uint64], bits: NDArray[np.uint64]) -> tuple[PlaceArray, PlaceArray]:
    """Pairs of a set and a filling that have no product in common, ordered by sets."""
    some = max(1, _CHUNK // len(bits))
    pairs = [np.nonzero((sets[low : low + some, None] & bits) == 0) for low in range(0, len(sets), some)]
    first = np.concatenate([x + i * some for i, (x, _) in enumerate(pairs)])
    return first.astype(np.int32), np.concatenate([y for _, y in pairs]).astype(np.int32)


def marked(count: int, which: PlaceArray) -> NDArray[np.bool_]:
    """Return an array of so many truth values, true in these places."""
    marks = np.zeros(count, np.bool_)
    marks[which] = True
    return marks
