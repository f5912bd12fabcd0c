"""Why a design computes a model: nodes of both that are the same, one after the other, from the inputs to d.

Which nodes may be the same is seen on cases: those that have the same value in all of them, or values a constant
apart, or complements.  It is proved node by node, with the nodes proved before cut: first those next to both, then
further from them, where too much was cut.  Names are not needed; designs whose stages are those of the model, in
whatever order and however written, have such nodes (SAT sweeping, Kuehlmann and Krohm, DAC 1997, on words).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import z3

from mmaformal.algorithms import DotAdd
from mmaformal.cases.evaluate import evaluate_all
from mmaformal.cases.inputs import Inputs, Rows
from mmaformal.encodings import smt
from mmaformal.hardware.module import Module
from mmaformal.lanes import Tracer
from mmaformal.proof.failure import named
from mmaformal.proof.kernel import Lemma, Theorem, cache_of, prove
from mmaformal.proof.lemmas import Argument, Link, is_maximum
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker, constants_of

#: Seconds for a node whose neighbours are cut, then for one whose neighbours' neighbours are, …
_PATIENCE = (3.0, 10.0, 30.0)
#: Nodes of the model that are tried for one of the design.
_TRIED = 3
#: A word of fewer bits than this has the values of another by chance, and is tried with the same values only.
_WORD = 4

Value = tuple[int, ...]  #: of a node in all cases


@dataclass
class Matched:
    """How far the design was followed."""

    proof: Proof | None  #: that d is the model's
    proved: int  #: nodes of the design
    nodes: int  #: nodes of the design there are
    unmatched: list[str] = field(
        default_factory=list
    )  #: named wires of the design that are no node of the model


def values_of(
    inputs: Inputs, rows: Rows, design: Module
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.object_]]]:
    """The columns of rows by the names of the constants; what a design leaves undefined is 0."""
    columns = zip(inputs.flat(), rows.codes.flat(), strict=True)
    found = {str(term): column.astype(object) for term, column in columns}
    for term in design.inputs.values():
        for constant in constants_of(term):
            found.setdefault(str(constant), np.zeros(len(rows), object))
    return found


def follow(
    asker: Asker,
    spec: DotAdd,
    inputs: Inputs,
    design: Module,
    rows: Rows,
    progress: Callable[[str], None],
) -> Matched:
    """Prove that the design's `d` is the model's, from node to node; what was reached if that does not succeed."""
    return _Follower(asker, spec, inputs, design, rows, progress).run()


class _Follower:
    def __init__(
        self,
        asker: Asker,
        spec: DotAdd,
        inputs: Inputs,
        design: Module,
        rows: Rows,
        progress: Callable[[str], None],
    ) -> None:
        self.asker, self.design, self.progress = asker, design, progress
        self.trace = smt.dot_add(spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b)
        self.d, self.wanted = design.outputs["d"], self.trace.result
        interfaces = [term for _, term in named("", self.trace)]
        self.model = _nodes([*interfaces, self.wanted])
        self.nodes = [node for node in _nodes([self.d]) if isinstance(node, z3.BitVecRef)]
        self.named = {term.get_id(): name for name, term in reversed(list(design.wires.items()))}
        found = evaluate_all([*self.model, *self.nodes], values_of(inputs, rows, design))
        self.values: dict[int, Value] = {
            number: tuple(int(x) for x in np.broadcast_to(column, len(rows)))
            for number, column in found.items()
        }
        self.theorem = Argument(Tracer())
        self.theorem.simplified = True
        self.theorem.interfaces = lambda: [*design.wires.items(), *named("model", self.trace)]
        self.links: dict[int, Link] = {}  #: by the design's node
        self.of_model: dict[int, Link] = {}  #: by the model's
        self.below: list[tuple[set[int], Link]] = []  #: what is known between nodes of the model

    def run(self) -> Matched:
        candidates = _Candidates(self.model, self.values)
        self._maxima()
        for number, node in enumerate(self.nodes):
            if self.asker.left <= 0:
                break
            if node.get_id() != self.d.get_id() and not _is_leaf(node):
                name = self.named.get(node.get_id(), "")
                self.progress(f"{len(self.links)} of {number} nodes are the model's; {name}")
                self._match(node, candidates.of(node))
        last = self._link(self.d, self.wanted, lambda term: term)
        proof = None
        if last is not None:
            self.theorem.conclude("d of the design is the model's", last)
            proof = prove(self.asker, self.theorem)
        unmatched = [self.named[node.get_id()] for node in self.nodes if self._unmatched(node)]
        return Matched(proof, len(self.links), len(self.nodes), unmatched)

    def _unmatched(self, node: z3.BitVecRef) -> bool:
        return node.get_id() in self.named and node.get_id() not in self.links and not _is_leaf(node)

    def _maxima(self) -> None:
        """That an exponent is at most the largest, of each step."""
        for step in self.trace.steps:
            top = getattr(step, "e_max", None)
            terms = [
                getattr(term, "exponent", None)
                for term in (*getattr(step, "products", ()), getattr(step, "addend", None))
            ]
            below = [term for term in terms if isinstance(term, z3.BitVecRef)]
            if isinstance(top, z3.BitVecRef) and below and is_maximum(top, below):
                for link in self.theorem.not_below("align", "exponents", top, below):
                    self.below.append(({term.get_id() for term in link.free}, link))

    def _match(
        self,
        node: z3.BitVecRef,
        candidates: Iterable[tuple[z3.ExprRef, Callable[[z3.ExprRef], z3.BitVecRef]]],
    ) -> None:
        for tried, (term, value) in enumerate(candidates):
            if tried == _TRIED or self._link(node, term, value) is not None:
                return

    def _link(
        self, node: z3.BitVecRef, term: z3.ExprRef, value: Callable[[z3.ExprRef], z3.BitVecRef]
    ) -> Link | None:
        """The link of a node of the design to one of the model, if it is proved."""
        if term.get_id() == node.get_id():
            return Link(node == node)
        said = value(term)
        link = Link(node == said, (term,), ((node, said),))
        before: list[tuple[int, ...]] = []
        for level, patience in enumerate(_PATIENCE):
            given = self._given(node, term, level)
            key = tuple(sorted(id(each) for each in given))
            if key in before:
                break
            before.append(key)
            if self._attempt(link, given, patience):
                self.links[node.get_id()] = link
                self.of_model.setdefault(term.get_id(), link)
                return link
        return None

    def _attempt(self, link: Link, given: Sequence[Link], patience: float) -> bool:
        text = "a node of the design is the model's"
        inputs = [c for each in (link.claim,) for c in constants_of(each)]
        trial = Theorem()
        trial.simplified = True
        trial.derive("design", text, [link], given, inputs)
        (lemma,) = trial.lemmas.values()
        if not self._known(lemma, patience):
            return False
        self.theorem.derive("design", text, [link], given, inputs)
        return True

    def _known(self, lemma: Lemma, patience: float) -> bool:
        return cache_of(self.asker).attempt(self.asker, lemma, patience).verdict == "unsat"

    def _given(self, node: z3.ExprRef, term: z3.ExprRef, level: int) -> list[Link]:
        """What is cut: the proved nodes next to both, or `level` of them further."""
        found: dict[int, Link] = {}
        for root, known in ((node, self.links), (term, self.of_model)):
            for link in _frontier(root, known, level):
                found[id(link)] = link
        cut = {free.get_id() for link in found.values() for free in link.free}
        return [*found.values(), *(link for free, link in self.below if free <= cut)]


class _Candidates:
    """Which nodes of the model a node of the design may be."""

    def __init__(self, model: Sequence[z3.ExprRef], values: dict[int, Value]) -> None:
        self.values = values
        self.same: dict[Value, list[z3.ExprRef]] = {}
        self.apart: dict[Value, list[z3.ExprRef]] = {}
        for node in model:
            seen = values[node.get_id()]
            if len(set(seen)) > 1:
                self.same.setdefault(seen, []).append(node)
                if isinstance(node, z3.BitVecRef) and node.size() >= _WORD:
                    self.apart.setdefault(_differences(seen), []).append(node)

    def of(self, node: z3.BitVecRef) -> Iterator[tuple[z3.ExprRef, Callable[[z3.ExprRef], z3.BitVecRef]]]:
        """Nodes of the model, and the design's as a function of each."""
        seen, bits = self.values[node.get_id()], node.size()
        for term in self.same.get(seen, ()):
            yield term, lambda x: _word(x, bits)
        opposite = tuple(((1 << bits) - 1) ^ x for x in seen)
        for term in self.same.get(opposite, ()):
            yield term, lambda x: ~_word(x, bits)
        if bits >= _WORD:
            for term in self.apart.get(_differences(seen), ()):
                offset = seen[0] - self.values[term.get_id()][0]
                if offset:
                    yield term, lambda x, offset=offset: _word(x, bits) + offset  # type: ignore[misc]


def _differences(seen: Value) -> Value:
    return tuple(x - seen[0] for x in seen)


def _word(term: z3.ExprRef, bits: int) -> z3.BitVecRef:
    """The term in so many bits."""
    if isinstance(term, z3.BoolRef):
        term = z3.If(term, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))
    assert isinstance(term, z3.BitVecRef)
    if term.size() == bits:
        return term
    return z3.ZeroExt(bits - term.size(), term) if term.size() < bits else z3.Extract(bits - 1, 0, term)


def _is_leaf(node: z3.ExprRef) -> bool:
    """Whether a node is an input or a number, or only says which bits of one it is."""
    while node.num_args() == 1 and node.decl().kind() == z3.Z3_OP_EXTRACT:
        node = node.arg(0)
    return bool(node.num_args() == 0)


def _nodes(roots: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
    """Every term once, operands first."""
    order: list[z3.ExprRef] = []
    seen: set[int] = set()
    stack = [(root, False) for root in reversed(roots)]
    while stack:
        term, ready = stack.pop()
        if ready:
            order.append(term)
        elif term.get_id() not in seen:
            seen.add(term.get_id())
            stack.append((term, True))
            stack += [(x, False) for x in reversed(term.children())]
    return order


def _frontier(root: z3.ExprRef, known: dict[int, Link], level: int) -> list[Link]:
    """The links of known nodes first met from a root down, behind `level` of them."""
    best: dict[int, int] = {}  #: of each node, the fewest known nodes before it
    found: dict[int, Link] = {}
    stack = [(x, level) for x in root.children()]
    while stack:
        term, left = stack.pop()
        number = term.get_id()
        if best.get(number, -1) >= left:
            continue
        best[number] = left
        if number in known:
            if not left:
                found[number] = known[number]
                continue
            left -= 1
        stack += [(x, left) for x in term.children()]
    # What is met with fewer before it elsewhere is looked through there: it must not be cut.
    return [link for number, link in found.items() if best[number] == 0]


__all__ = ["Matched", "follow", "values_of"]
