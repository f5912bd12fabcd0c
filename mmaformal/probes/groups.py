"""Products that are summed on their own within a fused sum, before they are cut: groups.

Two halves of the last place that is kept are both cut, unless they were added first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from mmaformal.probes.box import Box, Terms, power
from mmaformal.probes.kept import BesideC, KeptPlaces, SeenPlaces, exponent_for, terms
from mmaformal.summation import Node

#: roundings that leave nothing of a positive half
_DROPS_HALVES = {"RZ", "RD", "RNE", "RNZ", "RND"}


def by_cancelling(box: Box, products: Sequence[int], kept: KeptPlaces) -> list[list[int]] | None:
    """Groups among products of one fused sum, found beside M and −M; None where none could be seen."""
    if kept.more or len(kept.cut) != 1 or kept.cut[0] not in _DROPS_HALVES or len(products) < 4:
        return None
    top, half = power(kept.large), power(kept.large - kept.places - 1)
    if not all(box.holds(place, half) for place in products):
        return None
    pairs = list(combinations(products, 2))
    crowds = box.ask([{i: top, j: -top, **{k: half for k in products if k not in (i, j)}} for i, j in pairs])
    hosts = [pair for pair, row in zip(pairs, crowds, strict=True) if box.number(row) != 0]
    joined: list[tuple[int, int]] = []
    for i, j in _apart(hosts, products):
        couples = [x for x in pairs if i not in x and j not in x]
        rows = box.ask([{i: top, j: -top, **dict.fromkeys(couple, half)} for couple in couples])
        joined += [couple for couple, row in zip(couples, rows, strict=True) if box.number(row) != 0]
    return _classes(products, joined)


def _apart(hosts: list[tuple[int, int]], products: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Some hosts, one for each class of places that hosts join."""
    for group in _classes(products, hosts):
        yield next((i, j) for i, j in hosts if i in group and j in group)


def by_c(box: Box, products: Sequence[int], beside: BesideC, tie: int | None) -> list[list[int]] | None:
    """Groups among products of one fused sum, found beside a larger c; None where none could be seen.

    `tie`: a place for the product that makes a tie, if that is free.
    """
    seen = beside.least if beside.seen else None
    if seen is None or seen.more:
        return None
    couples, cases = [], []
    for couple in combinations(products, 2):
        at = next((x for x in (tie, *products) if x is not None and x not in couple), None)
        if seen.context.tie is not None and at is None:
            return None  # no third product to make a tie
        asked = _couple_cases(box, seen, at, couple)
        if not asked:
            return None
        couples.append(couple)
        cases += asked
    rows = [row.d for row in box.ask(cases)]
    answers = zip(couples, rows[::4], rows[1::4], rows[2::4], rows[3::4], strict=True)
    return _classes(
        products, [x for x, none, first, second, both in answers if none == first == second != both]
    )


def _couple_cases(box: Box, seen: SeenPlaces, tie: int | None, couple: tuple[int, int]) -> list[Terms]:
    """Halves of the last place seen at none, one, the other and both of two places; none where no types hold them."""
    context, at = seen.context, seen.places + 1
    exponent = exponent_for(box, context, tie, couple, at)
    if exponent is None:
        return []
    return [terms(box, context, exponent, tie, small, at) for small in ((), couple[:1], couple[1:], couple)]


def _classes(places: Sequence[int], joined: Iterable[tuple[int, int]]) -> list[list[int]]:
    """The classes of more than one place that pairs join."""
    of = {place: {place} for place in places}
    for x, y in joined:
        if of[x] is not of[y]:
            of[x] |= of[y]
            for place in of[y]:
                of[place] = of[x]
    return [list(group) for group in sorted({tuple(sorted(x)) for x in of.values() if len(x) > 1})]


def with_groups(node: Node, groups: Iterable[Sequence[int]]) -> Node:
    """The node with some of its places in groups, smaller groups within larger ones."""
    children = list(node.children)
    for group in sorted(groups, key=len):
        inside = [x for x in children if _places(x) <= set(group)]
        if not 2 <= len(inside) < len(children) or frozenset().union(*map(_places, inside)) != frozenset(
            group
        ):
            continue
        children = [x for x in children if x not in inside]
        children.append(Node(tuple(inside), rounded=False))
    return replace(node, children=tuple(children))


def _places(child: Node | int) -> frozenset[int]:
    return frozenset({child}) if isinstance(child, int) else child.places
