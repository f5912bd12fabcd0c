"""Which structure made which region of a product: rows of a kind, and in these runs of columns.

A kernel takes D in tiles, and what is left at its edges, or at those of each thread, in others.  So where one structure
explains a part of D, the elements that it leaves are searched for another, and so on; then rows that are alike stand
together, and each column of such rows is of a structure that explains all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.given_matrices import GivenMatrices
from mmaformal.instruction import Instruction
from mmaformal.queries.likely_structures import Compared, Likely, Tournament
from mmaformal.queries.structure_search import STAGES
from mmaformal.structures import CodeArray, Structure

#: Structures of one product, at most; kinds of rows; and elements that no other structure explains, of each region.
_MOST, _KINDS, _OWN = 6, 16, 6
#: Rows and columns with elements that are left, in which another structure is looked for.
_ROWS, _COLUMNS = 16, 128

WrongMask = NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class Regions(ShortRepr):
    """A product by regions."""

    structures: tuple[Structure, ...]  #: the first is that of the most elements
    which: NDArray[np.intp]  #: (M, N): the number of the structure
    made: CodeArray  #: (M, N): what they give
    wrong: WrongMask  #: (M, N): where D is not so


def in_regions(
    given: GivenMatrices,
    first: Compared,
    instructions: Sequence[Instruction],
    say: Callable[[str], object],
    tried: Callable[[int], object],
) -> Regions | None:
    """Find structures of the elements that the first one leaves; None where there are none."""
    found, tournament = [first], Tournament(given, say)
    for _ in range(_MOST - 1):
        left = np.logical_and.reduce([x.wrong for x in found])
        if int(left.sum()) < _OWN:
            break
        say(f"{int(left.sum()):,} elements are not of {len(found)} structures")
        search = _search_of(given, left, instructions)
        tried(search.tried)
        if (best := search.first()) is None:
            break
        if best in (x.structure for x in found):
            break
        tournament.run([best])
        found.append(tournament.compared[best])
    if len(found) == 1:
        return None
    which = placed(~np.array([x.wrong for x in found]), given.call)
    made, wrong = (np.choose(which, [getattr(x, name) for x in found]) for name in ("made", "wrong"))
    counts = np.bincount(which.ravel(), minlength=len(found))
    there = [
        int(x) for x in np.argsort(-counts, kind="stable") if counts[x]
    ]  # one may have no element in the end
    place = np.zeros(len(found), np.intp)
    place[there] = np.arange(len(there))
    return Regions(tuple(found[x].structure for x in there), place[which], made, wrong)


def _search_of(given: GivenMatrices, left: WrongMask, instructions: Sequence[Instruction]) -> Likely:
    """Search structures of the elements that are left, in some rows and columns that have many."""
    rows = _fullest(left.sum(axis=1), _ROWS)
    columns = _fullest(left[rows].sum(axis=0), _COLUMNS)
    search = Likely(given.part(rows, columns), left[np.ix_(rows, columns)])
    for stage in STAGES[:-1]:
        for each in instructions:
            search.run(each, stage)
        if search.explains_all:
            break
    return search


def _fullest(counts: NDArray[np.integer], most: int) -> NDArray[np.intp]:
    there = np.flatnonzero(counts)
    return np.sort(there[np.argsort(-counts[there], kind="stable")[:most]])


def placed(right: WrongMask, call: tuple[int, int] | None = None) -> NDArray[np.intp]:
    """(M, N): which structure each element is of, of `right` (structures, M, N): which explain it.

    call: rows and columns of one call, where D is of several, which have the same regions.  An element that one
    structure explains where its neighbours are another's is that one's by chance, and stays the neighbours'.
    """
    count, *size = right.shape
    M, N = call or (size[0], size[1])
    calls = right.reshape(count, size[0] // M, M, size[1] // N, N)
    explained = calls.sum(axis=(1, 3))
    likely = explained == explained.max(axis=0)  # all of them, where nothing explains an element
    kinds, kind_of = list[WrongMask](), np.zeros(M, np.intp)
    for row in range(M):
        for number, kind in enumerate(kinds):
            both = kind & likely[:, row]
            if both.any(axis=0).all():
                kinds[number], kind_of[row] = both, number
                break
        else:
            kind_of[row] = len(kinds)
            kinds.append(likely[:, row].copy())
    which = np.zeros((M, N), np.intp)
    if len(kinds) <= max(_KINDS, M // 8):
        for number, kind in enumerate(kinds):
            rows = np.flatnonzero(kind_of == number)
            which[rows] = _with_own(_columns(kind), calls[:, :, rows])
    return np.tile(which, (size[0] // M, size[1] // N))


def _with_own(columns: NDArray[np.intp], right: WrongMask) -> NDArray[np.intp]:
    """The columns, those of the first structure where a run has too few elements that no other explains."""
    for run in np.split(np.arange(len(columns)), np.flatnonzero(np.diff(columns)) + 1):
        others = np.flatnonzero(np.arange(len(right)) != columns[run[0]])
        own = ~right[others][..., run].any(axis=0)
        if columns[run[0]] and int(own.sum()) < _OWN:
            columns[run] = 0
    return columns


def _columns(kind: WrongMask) -> NDArray[np.intp]:
    """The structure of each column: the fewest runs there may be, and their edges at the roundest places.

    One row tells a column at an edge from its neighbours by one element, which both structures may explain; tiles are
    of a power of two of columns, the largest first or last.
    """
    structures, width = kind.shape
    best = [(0, 0) if kind[x, 0] else None for x in range(structures)]
    before = list[list[int]]()
    for column in range(1, width):
        roundness = (column & -column).bit_length()
        reached, came = list[tuple[int, int] | None](), list[int]()
        for x in range(structures):
            ways = [
                ((cost[0] + (y != x), cost[1] - (y != x) * roundness), y != x, y)
                for y, cost in enumerate(best)
                if cost is not None and kind[x, column]
            ]
            reached.append(min(ways)[0] if ways else None)
            came.append(min(ways)[2] if ways else x)
        before.append(came)
        best = reached
    found = np.zeros(width, np.intp)
    found[-1] = min((cost, x) for x, cost in enumerate(best) if cost is not None)[1]
    for column in range(width - 1, 0, -1):
        found[column - 1] = before[column - 1][found[column]]
    return found
