"""The order of summation told by c alone, where no two products are far enough apart to mask a third (fp4, fp6).

c is so large that a product is half of its last place.  Two such halves make c larger by one place if c meets both
before it is rounded, and are lost, or count for two, if it is rounded in between; whether c was even or odd does not
matter then.  Which of two steps is first, a sum that crosses a power of two tells: beyond it a last place counts
twice.

What is told is which products meet c before it is rounded, and in which order.  Whether the products of a step are
added to each other first, a c tells that is so small that it is lost beside a product: where it is lost beside M and −M
at every two places, no two products meet before c.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from mmaformal.probes.box import Box, Response, Terms, power
from mmaformal.probes.kept import cancelling
from mmaformal.summation import Node

_SHOWN = 4


def read_steps(box: Box, places: int) -> tuple[Node, tuple[Response, ...]] | str:
    """The sums that c goes through, or why they are not told; results have so many fractional places."""
    last = _last_place(box, places)
    if last is None:
        return "no product is half of the last place of a c"
    pairs = list(combinations(box.products, 2))
    cases = [case for pair in pairs for case in _halves(box, pair, places, last)]
    rows = box.ask(cases)
    right = [box.number(row) == sum(case.values()) for row, case in zip(rows, cases, strict=True)]
    both = zip(pairs, right[::2], right[1::2], strict=True)
    together = [pair for pair, even, odd in both if even and odd]
    groups = _classes(box.k, together)
    joined = {(x, y) for group in groups for x, y in combinations(group, 2)}
    if joined != set(together):
        return "products that meet c in one step do not make steps: their pairs contradict each other"
    ordered = _in_order(box, groups, places, last)
    if isinstance(ordered, str):
        return ordered
    node: Node | int = box.c
    fused = _meet_c_first(box)
    for group in ordered:
        node = Node((node, *group), open=not fused and len(group) > 1)
    assert isinstance(node, Node)
    return node, tuple(rows[:_SHOWN])


def _meet_c_first(box: Box) -> bool:
    """Whether a small c is lost beside M and −M at every two places."""
    pairs = list(combinations(box.products, 2))
    kept = cancelling(box, pairs[0], box.c) if pairs else None
    if kept is None or kept.more:
        return False
    top, small = power(kept.large), power(kept.large - kept.places - 1)
    rows = box.ask([{i: top, j: -top, box.c: small} for i, j in pairs])
    return all(box.number(row) != small for row in rows)


def _last_place(box: Box, places: int) -> int | None:
    """An exponent of c's last place, half of which is a product, and twice it too."""
    c, d = box.types.c, box.types.d
    high = min(c.max_exponent, d.max_exponent) - 2 - places
    low = max(c.min_exponent, d.min_exponent) + 2 - places
    for last in sorted(range(max(low, box.least_product), min(high, box.largest_product) + 1), key=abs):
        if all(box.can_hold({0: power(last - 1), box.c: x}) for x in _addends(places, last)) and (
            box.holds(0, power(last + 1)) and box.holds(0, -power(last + 1))
        ):
            return last
    return None


def _addends(places: int, last: int) -> list[Fraction]:
    """An even and an odd c, and one just below a power of two."""
    one = power(places)
    return [x * power(last) for x in (one, one + 1, 2 * one - 1)]


def _halves(box: Box, pair: Sequence[int], places: int, last: int) -> list[Terms]:
    half = dict.fromkeys(pair, power(last - 1))
    return [{**half, box.c: c} for c in _addends(places, last)[:2]]


def _classes(k: int, together: Sequence[tuple[int, int]]) -> list[list[int]]:
    partners: dict[int, set[int]] = {x: {x} for x in range(k)}
    for x, y in together:
        partners[x].add(y)
        partners[y].add(x)
    return [list(group) for group in sorted({tuple(sorted(group)) for group in partners.values()})]


def _in_order(box: Box, groups: list[list[int]], places: int, last: int) -> list[list[int]] | str:
    """The steps from the first to the last: two places more at one of them, two less at another, c just below 2^n.

    The sum comes back to c unless the first of them carried it beyond, where the odd place was lost.
    """
    c = _addends(places, last)[2]
    firsts = [group[0] for group in groups]
    cases: list[tuple[int, int]] = [(x, y) for x in firsts for y in firsts if x != y]
    rows = box.ask([{x: power(last + 1), y: -power(last + 1), box.c: c} for x, y in cases])
    lost = {case: box.number(row) != c for case, row in zip(cases, rows, strict=True)}
    if any(lost[x, y] == lost[y, x] for x, y in cases):
        return "which step is first is not told by a sum that crosses a power of two"
    before = {x: sum(lost[y, x] for y in firsts if y != x) for x in firsts}
    if sorted(before.values()) != list(range(len(firsts))):
        return "steps contradict each other's order"
    return sorted(groups, key=lambda group: before[group[0]])
