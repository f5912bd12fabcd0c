"""The terms of a design and of a model as a graph: what is asked of them over and over, found once."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import z3

from mmaformal.display import ShortRepr, counted, short_text
from mmaformal.proof.kernel import Link

#: The number of inputs up to which a term is easy without a cut.
_FEW = 3
_ARITHMETIC = frozenset(
    (
        z3.Z3_OP_BADD,
        z3.Z3_OP_BSUB,
        z3.Z3_OP_BMUL,
        z3.Z3_OP_BNEG,
        z3.Z3_OP_BSHL,
        z3.Z3_OP_BLSHR,
        z3.Z3_OP_BASHR,
    )
)
#: Operations that definitions have not: lemmas with them might be hard.
_HARD = frozenset((z3.Z3_OP_BMUL, z3.Z3_OP_BSHL, z3.Z3_OP_BLSHR, z3.Z3_OP_BASHR))


class Graph(ShortRepr):
    """Terms with their operands, which inputs they depend on, and whether there is arithmetic in them."""

    def __init__(self) -> None:
        self._operands: dict[int, list[z3.ExprRef]] = {}
        self._inputs: dict[int, frozenset[int] | None] = {}  #: None: more than a few
        self._arithmetic: dict[int, bool] = {}
        self.opaque: set[int] = set()  #: known nodes that nothing is gained by looking behind
        self._taken: dict[int, int] = {}  #: terms that are taken for an input, and the id of that
        self._kept: list[z3.ExprRef] = []  #: so that no id is given twice

    def __repr__(self) -> str:
        return short_text(self, counted(len(self._kept), "term"))

    def operands(self, term: z3.ExprRef) -> list[z3.ExprRef]:
        number = term.get_id()
        if number not in self._operands:
            self._operands[number] = term.children()
            self._kept.append(term)
        return self._operands[number]

    def nodes(self, roots: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
        """Every term once, operands first."""
        return self._walk(roots, set())

    def _walk(self, roots: Sequence[z3.ExprRef], seen: set[int]) -> list[z3.ExprRef]:
        """Return the terms below the roots that were not seen before, operands first, and note them as seen."""
        order: list[z3.ExprRef] = []
        stack = [(root, False) for root in reversed(roots)]
        while stack:
            term, ready = stack.pop()
            if ready:
                order.append(term)
            elif term.get_id() not in seen:
                seen.add(term.get_id())
                stack.append((term, True))
                stack += [(x, False) for x in reversed(self.operands(term))]
        return order

    def _examine(self, terms: Sequence[z3.ExprRef]) -> None:
        """Inputs and arithmetic of all that is in some terms."""
        if all(term.get_id() in self._inputs for term in terms):
            return
        for term in self._walk(terms, {*self._inputs}):
            number, operands = term.get_id(), [x.get_id() for x in self.operands(term)]
            kind = term.decl().kind()
            self._arithmetic[number] = number not in self._taken and (
                kind in _ARITHMETIC or any(self._arithmetic[x] for x in operands)
            )
            if number in self._taken or kind == z3.Z3_OP_UNINTERPRETED:
                self._inputs[number] = frozenset([self._taken.get(number, number)])
            else:
                self._inputs[number] = _few([self._inputs[x] for x in operands])

    def take_for_input(self, term: z3.ExprRef, node: z3.ExprRef) -> None:
        """From here on a term, and a node that is proved to be it, count as one input."""
        self._taken[term.get_id()] = self._taken[node.get_id()] = term.get_id()
        self.opaque |= {term.get_id(), node.get_id()}
        self._inputs.clear()
        self._arithmetic.clear()

    def of_few_inputs(self, *terms: z3.ExprRef) -> bool:
        """Whether terms depend, all together, on a few inputs."""
        self._examine(terms)
        return _few([self._inputs[term.get_id()] for term in terms]) is not None

    def arithmetic(self, *terms: z3.ExprRef) -> bool:
        """Whether there is arithmetic in one of several terms."""
        self._examine(terms)
        return any(self._arithmetic[term.get_id()] for term in terms)

    def ends(self, root: z3.ExprRef, cut: Collection[int], most: int) -> list[z3.ExprRef]:
        """Return the first cut terms, and inputs, met from a root down; nothing where more than so many nodes, a
        product or a shift by a number that is not constant are before it."""
        seen: set[int] = set()
        found: list[z3.ExprRef] = []
        stack = self.operands(root)[:]
        if _is_hard(root):
            return []
        while stack:
            term = stack.pop()
            if term.get_id() in seen or z3.is_bv_value(term) or z3.is_true(term) or z3.is_false(term):
                continue
            seen.add(term.get_id())
            known = term.get_id() in cut or term.get_id() in self._taken
            if known or not term.num_args():
                found.append(term)
            elif _is_hard(term) or len(seen) > most:
                return []
            stack += [] if known else self.operands(term)
        return found

    def above(self, roots: Sequence[z3.ExprRef], below: z3.ExprRef) -> set[int]:
        """Return the ids of the terms, from some roots down, that a term is in; its own is none of them."""
        found: set[int] = set()
        for term in self.nodes(roots):
            if any(x.get_id() in found or x.get_id() == below.get_id() for x in self.operands(term)):
                found.add(term.get_id())
        return found

    def frontier(self, root: z3.ExprRef, known: dict[int, Link], level: int) -> list[Link]:
        """The links of known nodes first met from a root down, behind `level` of them."""
        best: dict[int, int] = {}  #: of each node, the fewest known nodes before it
        found: dict[int, Link] = {}
        stack = [(x, level) for x in self.operands(root)]
        while stack:
            term, left = stack.pop()
            number = term.get_id()
            if number in self.opaque and number in known:
                left = 0
            if best.get(number, -1) >= left:
                continue
            best[number] = left
            if number in known:
                if not left:
                    found[number] = known[number]
                    continue
                left -= 1
            stack += [(x, left) for x in self.operands(term)]
        # What is met with fewer before it elsewhere is looked through there: it must not be cut.
        return [link for number, link in found.items() if best[number] == 0]


def _is_hard(term: z3.ExprRef) -> bool:
    return term.decl().kind() in _HARD


def _few(sets: Sequence[frozenset[int] | None]) -> frozenset[int] | None:
    """All of several, if they are few."""
    every: set[int] = set()
    for each in sets:
        if each is None:
            return None
        every |= each
    return frozenset(every) if len(every) <= _FEW else None
