"""Where to cut a claim that follows from others: at the terms that these formulas have in common.

A claim proved for every value of a term holds of its own, so any terms may be cut, and the fewer operations are left,
the less a solver has to know.  What the premises and the claim both speak of is an interface between them: how it is
made does not matter, mostly.  Where it does, one looks into it, as far as the next terms that are used twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set

import z3

from mmaformal.solver.terms import (
    TermNode,
    app_decl,
    ast_kind,
    decl_kind,
    expression,
    main_context,
    operands_first,
)

#: Ways in which a claim is cut, by number: as its hint says, the computed ones from 1 on, these (or none) and what is
#: hard besides, and not at all.
HINT, HARD, UNCUT = 0, 500, 1000

#: So many computed ways are tried after one that was not settled in time.
_BEYOND = 3

#: Operations of two terms that are hard unless the last is a constant.
_HARD = {
    z3.Z3_OP_BSHL,
    z3.Z3_OP_BLSHR,
    z3.Z3_OP_BASHR,
    z3.Z3_OP_BUDIV,
    z3.Z3_OP_BUREM,
    z3.Z3_OP_BSDIV,
    z3.Z3_OP_BSREM,
    z3.Z3_OP_BSMOD,
    z3.Z3_OP_BUDIV_I,
    z3.Z3_OP_BUREM_I,
    z3.Z3_OP_BSDIV_I,
    z3.Z3_OP_BSREM_I,
    z3.Z3_OP_BSMOD_I,
}

#: So often some interfaces are looked into, at most.
_DEEPEST = 10


class Ways:
    """The ways to cut a claim, of `formulas`, the premises and the claim itself; each is computed when it is asked
    for."""

    def __init__(self, formulas: Sequence[z3.BoolRef], hint: Iterable[z3.ExprRef] = ()) -> None:
        self._hint, self._formulas = list(hint), formulas
        self._levels: list[list[z3.ExprRef]] = []
        self._deeper = shared(formulas)

    @property
    def count(self) -> int:
        """How many there are, as far as they are computed."""
        return bool(self._hint) + len(self._levels) + 1

    def beginning_with(
        self, first: int | None, unsettled: Set[int] = frozenset()
    ) -> Iterator[tuple[int, list[z3.ExprRef]]]:
        """Each way with its number: the `first`, if there is one, then the hint, and the computed ones as far as the
        first that is `unsettled`, which may grow meanwhile; then uncut, and a few more of the computed ones."""
        cut = self._cut(first)
        if first is not None and cut is not None:
            yield first, cut
        yield from (each for each in self._all(unsettled) if each[0] != first)

    def _all(self, unsettled: Set[int]) -> Iterator[tuple[int, list[z3.ExprRef]]]:
        seen = set[frozenset[int]]()
        for number in self._numbers(unsettled):
            cut = self._cut(number)
            if cut is not None and (terms := frozenset(each.get_id() for each in cut)) not in seen:
                seen.add(terms)
                yield number, cut

    def _numbers(self, unsettled: Set[int]) -> Iterator[int]:
        yield HINT
        last = HINT
        for last in range(HINT + 1, _DEEPEST + 1):
            yield last
            if last in unsettled:
                yield HARD + last
                break
        yield from (HARD, UNCUT)
        yield from range(last + 1, min(last + _BEYOND, _DEEPEST) + 1)

    def _cut(self, number: int | None) -> list[z3.ExprRef] | None:
        """Return the terms that one way cuts; None if there is no such way."""
        if number is None or number == HINT:
            return self._hint or None
        if number == UNCUT:
            return []
        if number >= HARD:
            return self._hard_too(number - HARD)
        while len(self._levels) < number:
            level = next(self._deeper, None)
            if level is None:
                return None
            self._levels.append(level)
        return self._levels[number - 1]

    def _hard_too(self, number: int) -> list[z3.ExprRef] | None:
        """A computed way, or no cut, and what is hard besides; None if nothing is."""
        cut = self._cut(number) if number else []
        found = [] if cut is None else hard(self._formulas, cut)
        return [*cut, *found] if cut is not None and found else None


def hard(formulas: Sequence[z3.BoolRef], cut: Iterable[z3.ExprRef] = ()) -> list[z3.ExprRef]:
    """The largest products, quotients and shifts of, or by, what is no constant, but for those in what is cut."""
    nodes, _ = operands_first(formulas)
    by_id = {each.id: each for each in nodes}
    context, found = main_context(), []
    left, seen = [formula.get_id() for formula in reversed(formulas)], {each.get_id() for each in cut}
    while left:
        node = by_id[left.pop()]
        if node.id in seen or not node.operands:
            continue
        seen.add(node.id)
        kind = decl_kind(context, app_decl(context, node.handle))
        variable = sum(1 for each in node.operands if ast_kind(context, by_id[each].handle) == z3.Z3_APP_AST)
        if (kind == z3.Z3_OP_BMUL and variable > 1) or (
            kind in _HARD and ast_kind(context, by_id[node.operands[-1]].handle) == z3.Z3_APP_AST
        ):
            found.append(expression(node))
        else:
            left += reversed(node.operands)
    return found


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


def _outermost(nodes: Sequence[TermNode], found: Collection[int]) -> set[int]:
    """Return the terms among the found ones that others are in, and that are in no other."""
    above: set[int] = set()  #: what has one of them below it
    reaching = set(found)  #: that, and they
    for node in nodes:
        if not reaching.isdisjoint(node.operands):
            above.add(node.id)
            reaching.add(node.id)
    inside: set[int] = set()  #: what is in one of them
    for node in reversed(nodes):
        if node.id in found or node.id in inside:
            inside.update(node.operands)
    return {each for each in found if each in above and each not in inside}
