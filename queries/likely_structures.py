"""The structures that explain most of a product: of all those of the space, by a part of it, then by all of it.

First a few rows and columns of each quarter of D, so that a bug in one part does not hide the structure; those that
leave the fewest elements wrong go on to more and more rows, the better half each time, then to all of D.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.given_matrices import GivenMatrices
from mmaformal.instruction import Instruction
from mmaformal.queries.structure_search import ChainsOfRows, StructureSearch, codes_differ
from mmaformal.solver.deadline import check_time
from mmaformal.structures import CodeArray, Structure, exactly, replay

#: Rows of each half of D, and columns of each, with which every structure is compared.
_ROWS, _COLUMNS = 8, 64
#: Structures that are remembered; that go on to more rows; that are compared with all of D.
_KEPT, _SECOND, _LAST = 2048, 256, 8
#: How many elements one that goes on leaves wrong at most: so many times the fewest, and some.
_ABOUT, _FEW = 1.25, 8
#: The part of the elements that one explains which is taken for a part of D.
_GOOD = 0.4
#: Elements with which the second round begins, and after which those that are alike are taken for that.
_BEGIN, _ENOUGH = 1 << 12, 1 << 16
#: Products of factors after which the time is looked at.
_AT_ONCE = 1 << 27


class Likely(StructureSearch):
    """Structures by how many elements they leave wrong, of some rows and columns of each half of D."""

    def __init__(self, given: GivenMatrices, wanted: NDArray[np.bool_] | None = None) -> None:
        """wanted (M, N): the elements that are to be explained; all, if it is not given."""
        m, _, n = given.shape
        rows, columns = _of_halves(m, _ROWS), _of_halves(n, _COLUMNS)
        some = given.part(rows, columns)
        c = None if some.c is None or some.c_format is None else (some.c, some.c_format)
        super().__init__(some.a, some.b, some.d, some.d_format, c, some.scales)
        self.wanted = None if wanted is None else wanted[np.ix_(rows, columns)]
        self._count = 0
        self._seen: list[tuple[int, tuple[int, ...], int, Structure]] = []

    def seen(self, structure: Structure, wrong: NDArray[np.bool_]) -> None:
        plain = _plainness(structure, self.a.shape[1])
        wrong = wrong if self.wanted is None else wrong & self.wanted
        self._count += 1
        self._seen.append((int(wrong.sum()), plain, self._count, structure))
        if len(self._seen) > 2 * _KEPT:
            self._seen = sorted(self._seen)[:_KEPT]

    def first(self) -> Structure | None:
        """The one that leaves the fewest elements wrong, if it explains a good part of them."""
        count, *_, structure = min(self._seen)
        of = self.d.size if self.wanted is None else int(self.wanted.sum())
        return structure if count <= (1 - _GOOD) * of else None

    @property
    def explains_all(self) -> bool:
        """Whether one leaves none wrong."""
        return any(count == 0 for count, *_ in self._seen)

    def best(self) -> list[Structure]:
        """Those that leave about the fewest elements wrong, of those alike the plainest first."""
        ranked = sorted(self._seen)[:_SECOND]
        return [structure for count, *_, structure in ranked if count <= _ABOUT * ranked[0][0] + _FEW]


def _plainness(structure: Structure, K: int) -> tuple[int, ...]:
    """Lower of what kernels do more often."""
    block = structure.block or K
    uneven = bool(K % block) or structure.halved is not None
    special = (
        not structure.whole,
        structure.rest is not None,
        structure.short == "first",
        bool(structure.smaller),
    )
    return (
        *special,
        structure.order != "sequential",
        uneven,
        bool(block & (block - 1)),
        len(structure.chains(K)),
    )


def _of_halves(size: int, each: int) -> NDArray[np.intp]:
    """Places spread over each half of an axis."""
    middle = (size + 1) // 2
    halves = (0, middle), (middle, size)
    places = [np.linspace(first, end - 1, min(each, end - first)) for first, end in halves]
    return np.unique(np.concatenate(places).astype(np.intp))


@dataclass(repr=False)
class Compared(ShortRepr):
    """A structure, what it gives of the first rows of D, and where D is not so."""

    structure: Structure
    made: CodeArray  #: (M, N)
    wrong: NDArray[np.bool_]  #: (M, N)
    rows: int  #: compared


class Tournament:
    """Structures compared with more and more of D."""

    def __init__(self, given: GivenMatrices, say: Callable[[str], object]) -> None:
        self.given, self._say = given, say
        self.compared: dict[Structure, Compared] = {}
        self.alike = (
            0  #: more that explain as much of the rows looked at as those that were compared with all
        )

    def run(self, likely: Sequence[Structure]) -> None:
        """Compare the likeliest with all of D; `compared` has what is done, at any time."""
        for structure in self._second(list(likely)):
            if structure not in self.compared:
                self._say(f"all of D: {structure}")
                self._whole(structure)

    def _second(self, likely: list[Structure]) -> list[Structure]:
        """Rounds of more rows each, from which the better half goes on."""
        m, _, n = self.given.shape
        self.alike, elements = 0, _BEGIN
        while len(likely) > _LAST:
            rows = np.unique(np.linspace(0, m - 1, min(max(elements // n, 4), m)).astype(np.intp))
            some = self.given.part(rows, np.arange(n))
            wrong = {x: int(codes_differ(d, some.d, some.d_format).sum()) for x, d in _all_made(some, likely)}
            ranked = sorted(likely, key=wrong.__getitem__)
            least = wrong[ranked[0]]
            ties = sum(wrong[x] == least for x in ranked)
            self._say(f"{len(rows):,} rows: {len(likely)} structures, {ties} leave {least:,} elements wrong")
            keep = max(ties, _LAST, len(likely) // 2 if len(rows) < m else _LAST)
            if len(rows) == m or elements >= _ENOUGH:
                self.alike = max(ties - _LAST, 0)
                keep = _LAST
            likely, elements = ranked[:keep], 4 * elements
        return likely

    def _whole(self, structure: Structure) -> None:
        """Run a structure on all of D, some rows at a time; what is done stands if the time is up."""
        m, k, n = self.given.shape
        each = max(_AT_ONCE // (k * n), 1)
        found = Compared(structure, np.zeros((m, n), structure.result.word), np.zeros((m, n), bool), 0)
        for first in range(0, m, each):
            check_time()
            some = self.given.part(np.arange(first, min(first + each, m)), np.arange(n))
            d = made_by_structure(some, structure)
            found.made[first : first + each] = d
            found.wrong[first : first + each] = codes_differ(d, some.d, some.d_format)
            found.rows = min(first + each, m)
            self.compared[structure] = found


def made_by_structure(given: GivenMatrices, structure: Structure) -> CodeArray:
    """Returns what a structure gives."""
    of_a, of_b = given.scale_codes
    c = _addend(given, structure)
    return replay(given.a, given.b, structure, c, scale_a=of_a, scale_b=of_b, progress=False)


def _all_made(given: GivenMatrices, structures: Sequence[Structure]) -> list[tuple[Structure, CodeArray]]:
    """Runs structures; chains that they share are run once."""
    chains = dict[Instruction, ChainsOfRows]()
    made = []
    for x in structures:
        check_time()
        if x.instruction not in chains:
            chains[x.instruction] = ChainsOfRows(x.instruction, given.a, given.b, given.scales)
        made.append((x, chains[x.instruction].made(x, _addend(given, x))))
    return made


def _addend(given: GivenMatrices, structure: Structure) -> CodeArray | None:
    if given.c is None or given.c_format is None:
        return None
    return exactly(given.c, given.c_format, structure.c_format)
