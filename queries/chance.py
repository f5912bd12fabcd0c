"""Whether a change of a model mends more rows than chance would.

Two tests, each at a level that is divided by the number of changes tried:

- it mends more rows than it spoils, as if each of these were either by the toss of a coin;
- it mends more rows than it would if the rows on which it shows were others: a wrong row is off by some number of
  places, a change moves some part of all rows by as many, and where the two have nothing to do with each other, that
  part of the wrong rows is mended.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.run import quick_results
from mmaformal.display import ShortRepr
from mmaformal.queries.elimination import RecordedRows
from mmaformal.spec import DotAdd

#: How likely it may be that chance mends as many.
_LEVEL = 0.01


@dataclass(frozen=True, repr=False)
class Some(ShortRepr):
    """Rows that a model gets wrong, and rows that it gets right, of as many as there are of each."""

    wrong: RecordedRows
    right: RecordedRows
    wrongs: int  #: of all rows
    rights: int

    @property
    def weights(self) -> tuple[float, float]:
        """How many rows each of these stands for."""
        return self.wrongs / max(len(self.wrong), 1), self.rights / max(len(self.right), 1)

    def count(self, spec: DotAdd, where: slice = slice(None)) -> int:
        """How many of all rows a model gets wrong, by these; rounded up."""
        counts = (int(rows.differ(spec, where).sum()) for rows in (self.wrong, self.right))
        return math.ceil(sum(n * weight for n, weight in zip(counts, self.weights, strict=True)))


def beyond_chance(some: Some, before: DotAdd, after: DotAdd, tried: int) -> bool:
    """Whether the change from one model to another, the best of so many tried, mends more than chance would."""
    mends = spoils = chance = 0.0
    moved: list[tuple[NDArray[np.int64], float]] = []
    off: list[tuple[NDArray[np.int64], float]] = []
    for rows, weight in zip((some.wrong, some.right), some.weights, strict=True):
        old, new = rows.differ(before), rows.differ(after)
        mends += weight * float((old & ~new).sum())
        spoils += weight * float((new & ~old).sum())
        codes = [quick_results(spec, rows.rows.codes).astype(np.int64) for spec in (before, after)]
        moved.append((codes[1] - codes[0], weight))
        off.append((np.where(old, rows.d.astype(np.int64) - codes[0], 0), weight))
    whole = sum(len(places) * weight for places, weight in moved)
    shares, amounts = _weighed(moved), _weighed(off)
    chance = sum(count * shares.get(places, 0.0) / whole for places, count in amounts.items())
    level = _LEVEL / max(tried, 1)
    return _coin(round(mends), round(spoils)) < level and _poisson(round(mends), chance) < level


def _weighed(parts: list[tuple[NDArray[np.int64], float]]) -> dict[int, float]:
    """How many rows there are of each number of places but none."""
    found: dict[int, float] = {}
    for places, weight in parts:
        for value, count in zip(*np.unique(places[places != 0], return_counts=True), strict=True):
            found[int(value)] = found.get(int(value), 0.0) + weight * float(count)
    return found


def _coin(mends: int, spoils: int) -> float:
    """How likely so many heads of all tosses are, or more, at most (Hoeffding); 0 where nothing is spoilt."""
    if not spoils:
        return 0.0 if mends else 1.0
    return math.exp(-((mends - spoils) ** 2) / (2 * (mends + spoils))) if mends > spoils else 1.0


def _poisson(count: int, mean: float) -> float:
    """How likely so many are, or more, where so many are expected, at most (Chernoff)."""
    if count <= mean or not count:
        return 1.0
    return math.exp(count - mean + count * math.log(mean / count)) if mean else 0.0
