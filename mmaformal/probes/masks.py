"""The order of summation from masked sums (FPRev, arXiv 2411.00442; MMA-Sim §III-C).

A term M, a term −M and a small term u, the rest zero: u is in the result if it is added after M and −M have met, and
is lost beside them if it is added before, or with them.  So of three places at most one pair meets before the third:

- exactly one mask of the three leaves its u: that pair meets first, `ij | k`;
- none does: the three are added in one fused sum, which keeps too few bits for u beside M;
- all three do: they are added in one sum that is exact, or M is not large enough to swallow u.

A tree is what its triples are (Aho et al. 1981, BUILD).  FPRev asks all u at once and counts those left, which takes
fewer rows; one at a time says of each which it was, and a unit that rounds to odd or down leaves no count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.probes.box import Box, Response, dyadic_text, exact_code, factors_of, power
from mmaformal.probes.tree import Tree
from mmaformal.summation import Node

#: One for each (i, j, k): whether u at k is left when M is at i and −M at j.
Left: TypeAlias = NDArray[np.bool_]
#: How many of the three masks of (i, j, k) leave their u.
Counts: TypeAlias = NDArray[np.int8]

#: Rows asked at a time.
_CHUNK = 1 << 15
_SHOWN = 6


@dataclass(frozen=True, repr=False)
class Masked(ShortRepr):
    """The order of summation as masked sums tell it."""

    tree: Tree | None  #: None where they do not tell it
    why_not: str
    large: int  #: exponents of M and u
    small: int
    rows: tuple[Response, ...]  #: some of those asked

    @property
    def says(self) -> str:
        """One sentence."""
        sizes = f"M = {dyadic_text(power(self.large))}, u = {dyadic_text(power(self.small))}"
        return f"masked sums, {sizes}" if self.tree else self.why_not


def masked(box: Box) -> Masked:
    """The tree, where M can be so much larger than u that u is lost beside it."""
    sizes = _sizes(box)
    if sizes is None:
        return Masked(None, "no two sizes of a term pass every place alone", 0, 0, ())
    large, small = sizes
    if box.k == 1:
        return Masked(Tree(Node((1, 0)), 1), "", large, small, ())
    left = _left(box, large, small)
    found = tree_of(left)
    if isinstance(found, str):
        return Masked(None, found, large, small, ())
    tree = Tree(found, box.k)
    return Masked(tree, "", large, small, _evidence(box, tree, large, small))


def _sizes(box: Box) -> tuple[int, int] | None:
    """The largest and the smallest power of two, as exponents, that every place passes alone."""
    c, d = box.types.c, box.types.d
    most = min(box.largest_product, c.max_exponent, d.max_exponent)
    least = max(box.least_product, c.min_exponent, d.min_exponent)
    large = next((e for e in range(most, most - 4, -1) if _passes(box, e)), None)
    if large is None:
        return None
    low, high = least, large  # what passes alone does so from some size on
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _passes(box, middle) else (middle + 1, high)
    return (large, low) if low < large else None


def _passes(box: Box, exponent: int) -> bool:
    value = power(exponent)
    cases = [{place: x} for place in range(box.k + 1) for x in (value, -value)]
    if not all(map(box.can_hold, cases)):
        return False
    answers = map(box.number, box.ask(cases))
    return all(answer == next(iter(case.values())) for answer, case in zip(answers, cases, strict=True))


def _left(box: Box, large: int, small: int) -> Left:
    """Every mask asked."""
    n = box.k + 1
    numbers = (power(large), -power(large), power(small))
    products = [factors_of(box.types.a, box.types.b, x) for x in numbers]
    addends = [exact_code(box.types.c, x) for x in numbers]
    expected = exact_code(box.types.d, power(small))
    a = np.array([0, *(pair[0] for pair in products if pair)], np.uint64)
    b = np.array([0, *(pair[1] for pair in products if pair)], np.uint64)
    c = np.array([0, *(code for code in addends if code is not None)], np.uint64)
    i, j, k = np.array([(*x, z) for x in combinations(range(n), 2) for z in range(n) if z not in x]).T
    left = np.zeros((n, n, n), np.bool_)
    for start in range(0, len(i), _CHUNK):
        x, y, z = (places[start : start + _CHUNK] for places in (i, j, k))
        kinds = np.zeros((len(x), n), np.int8)
        rows = np.arange(len(x))
        kinds[rows, x], kinds[rows, y], kinds[rows, z] = 1, 2, 3
        d = box.run(a[kinds[:, :-1]], b[kinds[:, :-1]], c[kinds[:, -1]])
        left[x, y, z] = left[y, x, z] = d == np.uint64(expected or 0)
    return left


def tree_of(left: Left) -> Node | str:
    """The tree whose triples these are, or why there is none."""
    each = left.astype(np.int8)
    counts: Counts = each + each.transpose(0, 2, 1) + each.transpose(2, 0, 1)
    if (counts[_distinct(len(left))] == 2).any():
        return "two of three masks leave their term: no tree of sums does that"
    first = left & (counts == 1)  # i and j meet before k
    try:
        return _built(list(range(len(left))), first, counts)
    except _NoTreeError as error:
        return str(error)


class _NoTreeError(Exception):
    pass


def _distinct(n: int) -> NDArray[np.bool_]:
    i, j, k = np.ogrid[:n, :n, :n]
    found: NDArray[np.bool_] = (i != j) & (j != k) & (i != k)
    return found


def _built(places: list[int], first: Left, counts: Counts) -> Node:
    """The node of these places.  Raises _NoTreeError where their triples are no tree's."""
    joined: NDArray[np.bool_] = np.any(first[np.ix_(places, places, places)], axis=2)
    parts = list(_components(joined))
    groups = [[places[x] for x in part] for part in parts]
    if len(groups) == 1:
        raise _NoTreeError(f"places {places[:4]} …: their masks contradict each other, no tree has them")
    for group in groups:
        others = [x for x in places if x not in group]
        if len(group) > 1 and not _separate(group, others, first):
            raise _NoTreeError(f"places {group[:4]} … meet before some of the others only: no tree has that")
    lossless = _lossless(groups, counts)
    return Node(tuple(g[0] if len(g) == 1 else _built(g, first, counts) for g in groups), lossless=lossless)


def _separate(group: list[int], others: list[int], first: Left) -> bool:
    """Whether every two of a group meet before each of the others."""
    block = first[np.ix_(group, group, others)]
    return bool(block[~np.eye(len(group), dtype=np.bool_)].all())


def _lossless(groups: list[list[int]], counts: Counts) -> bool:
    """Whether nothing is lost among three terms of a sum.  Raises _NoTreeError where that depends on which."""
    if len(groups) == 2:
        return False
    owner = {place: number for number, group in enumerate(groups) for place in group}
    places = sorted(owner)
    numbers = np.array([owner[x] for x in places])
    i, j, k = numbers[:, None, None], numbers[None, :, None], numbers[None, None, :]
    seen = set(np.unique(counts[np.ix_(places, places, places)][(i != j) & (j != k) & (i != k)]).tolist())
    if seen not in ({0}, {3}):
        raise _NoTreeError("three terms of one sum are lost beside each other, and three others are not")
    return seen == {3}


def _components(edges: NDArray[np.bool_]) -> Iterator[list[int]]:
    """The connected parts of a graph."""
    unseen = set(range(len(edges)))
    while unseen:
        part, front = set(), {min(unseen)}
        while front:
            part |= front
            front = {int(y) for x in front for y in np.flatnonzero(edges[x])} - part
        unseen -= part
        yield sorted(part)


def _evidence(box: Box, tree: Tree, large: int, small: int) -> tuple[Response, ...]:
    """For some nodes: M and −M in two of its terms, and u in a third, or outside."""
    cases = []
    for node in tree.nodes:
        i, j, *more = (min(part) for part in node.parts)
        outside = [x for x in range(box.k + 1) if x not in node.places]
        for k in [*more[:1], *outside[:1]]:
            cases.append({i: power(large), j: -power(large), k: power(small)})
    return tuple(box.ask(cases[:_SHOWN]))
