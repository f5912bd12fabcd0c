"""Why a design computes a model: nodes of both that are the same, one after the other, from the inputs to d.

Which nodes may be the same is seen on cases: those that have the same value in all of them, or values a constant
apart, or complements.  It is proved node by node, with the nodes proved before cut: first those next to both, then
further from them, where too much was cut.  Names are not needed; designs whose stages are those of the model, in
whatever order and however written, have such nodes (SAT sweeping, Kuehlmann and Krohm, DAC 1997, on words).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import z3

from mmaformal.algorithms import DotAdd
from mmaformal.cases.evaluate import evaluate_all
from mmaformal.cases.inputs import Inputs, Rows
from mmaformal.display import ShortRepr
from mmaformal.encodings import smt
from mmaformal.hardware.module import Module
from mmaformal.hardware.sums import Partial, Partials, Value, bound_of, signed, sums_of
from mmaformal.lanes import Tracer
from mmaformal.proof.failure import named
from mmaformal.proof.kernel import Lemma, Theorem, cache_of, prove
from mmaformal.proof.lemmas import Argument, Link, is_maximum
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker, constants_of

#: Seconds for a node whose neighbours are cut, then for one whose neighbours' neighbours are, …
_PATIENCE = (1.0, 3.0, 10.0)
#: What depends on so few inputs is tried without a cut, too.
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
#: Nodes of the model that are tried for one of the design.
_TRIED = 3
#: A word of fewer bits than this has the values of another by chance, and is tried with the same values only.
_WORD = 4


@dataclass(repr=False)
class Matched(ShortRepr):
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
        self.bounds: dict[int, Link] = {}  #: of terms of the model's sums
        self.below: list[tuple[set[int], Link]] = []  #: what is known between nodes of the model

    def run(self) -> Matched:
        candidates = _Candidates(self.model, self.values)
        self.partials = Partials(list(sums_of(self.model)), self.values)
        self._maxima()
        for number, node in enumerate(self.nodes):
            if self.asker.left <= 0:
                break
            if node.get_id() != self.d.get_id() and not _is_leaf(node):
                name = self.named.get(node.get_id(), "")
                self.progress(f"{len(self.links)} of {number} nodes are the model's; {name}")
                self._match(node, candidates.of(node))
        last = self._link(self.d, self.wanted, lambda term: term) or self._by_leading_one()
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
        if self._sum(node):
            return
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
        for level, patience in enumerate((*_PATIENCE, _PATIENCE[1]) if _is_plain(link.claim) else _PATIENCE):
            given = self._given(node, term, level) if level < len(_PATIENCE) else []
            key = tuple(sorted(id(each) for each in given))
            if key in before:
                break
            before.append(key)
            if self._attempt(link, given, patience):
                self.links[node.get_id()] = link
                self.of_model.setdefault(term.get_id(), link)
                return link
        return None

    def _by_leading_one(self) -> Link | None:
        """That d is the model's, in a case for each place of the leading one of the widest word that both make it of.

        Where two designs normalise a sum in two ways, all that they share is that sum; its leading one known, their
        shifts are.
        """
        given = self._given(self.d, self.wanted, 0)
        words = [
            (link.term.size(), i)
            for i, link in enumerate(given)
            if len(link.free) == 1 and _is_word(link.free[0])
        ]
        if not words:
            return None
        bits, at = max(words)
        word, said = given[at].term, replace(given[at], free=())
        others = [*given[:at], *given[at + 1 :]]
        last = Link(self.d == self.wanted, (self.wanted,), ((self.d, self.wanted),))
        cases = [_leading_one(word, i) for i in range(-1, bits)]
        for i, case in enumerate(cases):
            self.progress(f"d, where the leading one of {bits} bits is at {i - 1}")
            if not self._attempt(last, [case, said, *others], _PATIENCE[-1]):
                return None
        self.theorem.split("a word has a leading one, or is 0", cases, terms=[word])
        return last

    def _sum(self, node: z3.BitVecRef) -> bool:
        """Whether a node of the design is proved to be a sum of some terms of a sum of the model's, within a bound."""
        seen = signed(self.values[node.get_id()], node.size())
        partial = self.partials.of(seen)
        if partial is None or not partial.fits:
            return False
        given = list(
            {id(x): x for x in (*self._given(node, partial.term, 0), *self._bounds(partial))}.values()
        )
        link = _of_sum(node, partial.term, partial.bounded)
        if not self._attempt(link, given, _PATIENCE[1]):
            return False
        self.links[node.get_id()] = link
        self.of_model.setdefault(partial.term.get_id(), link)
        self.partials.add(seen, partial)
        return not partial.whole or len(partial.places) == 1 or self._whole(node, link, partial)

    def _bounds(self, partial: Partial) -> list[Link]:
        """That its terms are within their bounds."""
        found = []
        for place in sorted(partial.places):
            term = partial.of.terms[place]
            if term.get_id() not in self.bounds:
                one = Partial(partial.of, frozenset((place,)), term, bound_of(term))
                link = Link(one.bounded, (term,))
                if self._attempt(link, _frontier(term, self.of_model, 0), _PATIENCE[1]):
                    self.bounds[term.get_id()] = link
            if term.get_id() in self.bounds:
                found.append(self.bounds[term.get_id()])
        return found

    def _whole(self, node: z3.BitVecRef, said: Link, partial: Partial) -> bool:
        """From all terms in the design's order to the model's sum."""
        total, terms = partial.of.total, partial.of.terms
        same = Link(partial.term == total, (total,), ((partial.term, total),))
        link = _of_sum(node, total, replace(partial, term=total).bounded)
        if not self._attempt(same, [], _PATIENCE[-1], terms) or not self._attempt(
            link, [said, same], _PATIENCE[1]
        ):
            return False
        self.links[node.get_id()] = self.of_model[total.get_id()] = link
        return True

    def _attempt(
        self, link: Link, given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        text = "a node of the design is the model's"
        inputs = [*cut, *constants_of(link.claim)]
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
        for numbers in (seen, signed(seen, bits)) if bits >= _WORD else ():
            for term in self.apart.get(_differences(numbers), ()):
                offset = numbers[0] - self.values[term.get_id()][0]
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


def _of_sum(node: z3.BitVecRef, term: z3.BitVecRef, bounded: z3.BoolRef) -> Link:
    """That a node is a number, which is within its bound."""
    more = node.size() - term.size()
    value = z3.SignExt(more, term) if more > 0 else z3.Extract(node.size() - 1, 0, term) if more < 0 else term
    return Link(z3.And(node == value, bounded), (term,), ((node, value),))


def _is_plain(claim: z3.BoolRef) -> bool:
    """Whether a claim is of few inputs, or has no arithmetic: easy without a cut."""
    if len(constants_of(claim)) <= _FEW:
        return True
    return not any(node.decl().kind() in _ARITHMETIC for node in _nodes([claim]))


def _is_word(term: z3.ExprRef) -> bool:
    return isinstance(term, z3.BitVecRef) and term.size() >= 2 * _WORD


def _leading_one(word: z3.BitVecRef, place: int) -> Link:
    """That a word is 0 above a place and 1 there; of −1, that it is 0."""
    bits = word.size()
    if place <= 0:
        value = z3.BitVecVal(int(place == 0), bits)
        return Link(word == value, (), ((word, value),))
    below = z3.Extract(place - 1, 0, word)
    value = z3.Concat(z3.BitVecVal(1, bits - place), below)
    return Link(word == value, (below,), ((word, value),))


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
