"""Where to cut a claim that follows from others: at the terms that these formulas have in common.

A claim proved for every value of a term holds of its own, so any terms may be cut, and the fewer operations are left,
the less a solver has to know.  What the premises and the claim both speak of is an interface between them: how it is
made does not matter, mostly.  Where it does, one looks into it, as far as the next terms that are used twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import z3

from mmaformal.solver.terms import Node, expression, operands_first

#: Ways in which a claim is cut, by number: as its hint says, the computed ones from 1 on, and not at all.
HINT, UNCUT = 0, 1000

#: So often some interfaces are looked into, at most.
_DEEPEST = 10


class Ways:
    """The ways to cut a claim, of `formulas`, the premises and the claim itself; each is computed when it is asked
    for."""

    def __init__(self, formulas: Sequence[z3.BoolRef], hint: Iterable[z3.ExprRef] = ()) -> None:
        self._hint = list(hint)
        self._levels: list[list[z3.ExprRef]] = []
        self._deeper = shared(formulas)

    @property
    def count(self) -> int:
        """How many there are, as far as they are computed."""
        return bool(self._hint) + len(self._levels) + 1

    def beginning_with(self, first: int | None) -> Iterator[tuple[int, list[z3.ExprRef]]]:
        """Each way with its number: the `first`, if there is one, then the hint, uncut, and the computed ones."""
        cut = self._cut(first)
        if first is not None and cut is not None:
            yield first, cut
        yield from (each for each in self._all() if each[0] != first)

    def _all(self) -> Iterator[tuple[int, list[z3.ExprRef]]]:
        if self._hint:
            yield HINT, self._hint
        yield UNCUT, []
        for number in range(HINT + 1, UNCUT):
            cut = self._cut(number)
            if cut is None:
                break
            yield number, cut

    def _cut(self, number: int | None) -> list[z3.ExprRef] | None:
        """What is cut in one way; None if there is no such way."""
        if number is None or number == HINT:
            return self._hint or None
        if number == UNCUT:
            return []
        while len(self._levels) < number:
            level = next(self._deeper, None)
            if level is None:
                return None
            self._levels.append(level)
        return self._levels[number - 1]


def shared(formulas: Sequence[z3.BoolRef]) -> Iterator[list[z3.ExprRef]]:
    """The largest terms that are used more than once in formulas; then, with some of these opened, the largest again.

    Those are opened that others of them are in, from outside to inside; where none is in another, all are.  Terms come
    in the order in which the formulas have them.
    """
    nodes, uses = operands_first(formulas)
    uses.update(formula.get_id() for formula in formulas)
    by_id = {each.id: each for each in nodes}
    opened: set[int] = set()
    for _ in range(_DEEPEST):
        found: dict[int, z3.ExprRef] = {}
        left, seen = [formula.get_id() for formula in reversed(formulas)], set()
        while left:
            node = by_id[left.pop()]
            if node.id in seen or not node.operands:
                continue
            seen.add(node.id)
            if uses[node.id] > 1 and node.id not in opened:
                found[node.id] = expression(node)
            else:
                left += reversed(node.operands)
        if not found:
            return
        yield list(found.values())
        opened |= _outermost(nodes, found.keys()) or found.keys()


def _outermost(nodes: Sequence[Node], found: Collection[int]) -> set[int]:
    """Of the terms that are found, those that others are in, and that are in no other."""
    above: set[int] = set()  #: what has one of them below it
    for node in nodes:
        if any(each in found or each in above for each in node.operands):
            above.add(node.id)
    inside: set[int] = set()  #: what is in one of them
    for node in reversed(nodes):
        if node.id in found or node.id in inside:
            inside.update(node.operands)
    return {each for each in found if each in above and each not in inside}
