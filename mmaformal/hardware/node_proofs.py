"""How a design is followed: what is proved of its nodes so far, and nodes that are sums of the model's terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import z3

from mmaformal.hardware.candidates import as_number
from mmaformal.hardware.graph import Graph
from mmaformal.hardware.sums import CaseValues, Partial, Partials, inside, seen_bound, signed
from mmaformal.lanes import Tracer
from mmaformal.proof.kernel import Lemma, Theorem, cache_of
from mmaformal.proof.lemmas import Argument, Link
from mmaformal.solver.asking import Asker

#: Seconds for a node whose neighbours are cut, then for one whose neighbours' neighbours are, …; in the first round.
PATIENCE = (1.0, 3.0, 10.0)


class NodeProofs:
    """The state of a proof: links derived so far, what is known of nodes, and how the next claim is tried."""

    def __init__(self, asker: Asker) -> None:
        self.asker, self.graph = asker, Graph()
        self.theorem = Argument(Tracer())
        self.theorem.simplified = True
        self.links: dict[int, Link] = {}  #: by the design's node
        self.of_model: dict[int, Link] = {}  #: by the model's
        self.below: list[tuple[set[int], Link]] = []  #: what is known between nodes of the model
        self.codes: list[Link] = []  #: of codes between steps, which count as inputs
        self.values: dict[int, CaseValues] = {}  #: of each node in all cases
        self.effort = 1.0  #: how much more time there is for each lemma than in the first round
        self.unsettled = False  #: whether a lemma of this round was not settled in its time
        self._refuted: dict[int, Lemma] = {}  #: by the id of what is refuted

    def attempt(
        self, link: Link, given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        """Whether a link is proved in so many seconds; then it is derived."""
        return self.attempt_all([link], given, patience, cut)

    def attempt_all(
        self, links: Sequence[Link], given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        """Prove several links at once in so many seconds, derive them, and return whether it worked."""
        trial = Theorem()
        trial.simplified = True
        text = "a node of the design is the model's"
        trial.derive("design", text, links, given, cut)
        (lemma,) = trial.lemmas.values()
        if not self._known(lemma, patience):
            return False
        self.theorem.derive("design", text, links, given, cut)
        return True

    @property
    def left(self) -> float:
        """The seconds left."""
        return self.asker.left

    def _known(self, lemma: Lemma, patience: float) -> bool:
        if lemma.refuted.get_id() in self._refuted:
            return False
        verdict = cache_of(self.asker).attempt(self.asker, lemma, patience * self.effort).verdict
        if verdict == "sat":
            self._refuted[lemma.refuted.get_id()] = lemma
        self.unsettled |= verdict == "unknown"
        return verdict == "unsat"

    def given(
        self, node: z3.ExprRef, term: z3.ExprRef, level: int, only: Callable[[Link], bool] | None = None
    ) -> list[Link]:
        """Return the links that are cut at: the proved nodes next to both, or `level` of them further; `only` some."""
        found: dict[int, Link] = {}
        for root, every in ((node, self.links), (term, self.of_model)):
            known = every if only is None else {x: link for x, link in every.items() if only(link)}
            for link in self.graph.frontier(root, known, level):
                found[id(link)] = link
        cut = {free.get_id() for link in found.values() for free in link.free}
        return [*found.values(), *(link for free, link in self.below if free <= cut)]

    def _cut(self, term: z3.ExprRef, known: dict[int, Link]) -> set[int]:
        """Which nodes of the model are cut next to a term."""
        return {free.get_id() for link in self.graph.frontier(term, known, 0) for free in link.free}

    def _constant(self, term: z3.ExprRef, known: dict[int, Link]) -> bool:
        """Whether a term is proved to be one value: it depends on few inputs, or is made of such terms."""
        seen, number = self.values[term.get_id()], term.get_id()
        if not term.num_args() or seen.count(seen[0]) < len(seen):
            return False
        value = (
            z3.BitVecVal(seen[0], term.sort())
            if isinstance(term, z3.BitVecRef)
            else z3.BoolVal(bool(seen[0]))
        )
        link = Link(term == value, (), ((term, value),))
        given = [known[x.get_id()] for x in self.graph.operands(term) if x.get_id() in known]
        pairs = [pair for each in given for pair in each.defined if not each.free]
        if pairs and z3.simplify(z3.substitute(term, *pairs)).eq(value):
            given = [each for each in given if not each.free]
        elif self.graph.of_few_inputs(term):
            given = self.codes
        else:
            return False
        if self.attempt(link, given, PATIENCE[0]):
            known[number] = link
            return True
        return False


class SumProofs(NodeProofs):
    """Proves that nodes are sums of terms that the model adds."""

    partials: Partials

    def __init__(self, asker: Asker) -> None:
        super().__init__(asker)
        self.bounds: dict[int, Link] = {}  #: of terms of the model's sums

    def largest_of(self, term: z3.BitVecRef) -> int:
        """Return the largest magnitude that a term of few inputs has in the cases, if it is proved, or what is seen."""
        largest = max(map(abs, signed(self.values[term.get_id()], term.size())))
        link = _within(term, largest)
        if not self.graph.of_few_inputs(term) or not self.attempt(link, self.codes, PATIENCE[0]):
            return seen_bound(term)
        self.bounds[term.get_id()] = link
        return largest

    def is_sum(self, node: z3.BitVecRef) -> bool:
        """Whether a node of the design is proved to be a sum of some terms of a sum of the model's, within a bound."""
        seen = signed(self.values[node.get_id()], node.size())
        partial = self.partials.of(seen)
        if partial is None or not partial.fits:
            return False
        bounds = self._bounds(partial)
        if len(partial.places) == 1:  # the term is not cut
            bounds = [replace(each, free=()) for each in bounds]
        given = list({id(x): x for x in (*self.given(node, partial.term, 0), *bounds)}.values())
        link = _of_sum(node, partial.term, partial.bounded)
        if not self.attempt(link, given, PATIENCE[1]):
            return False
        self.links[node.get_id()] = link
        self.of_model.setdefault(partial.term.get_id(), link)
        self.partials.add(seen, partial)
        return not partial.whole or len(partial.places) == 1 or self._whole(node, link, partial)

    def _bounds(self, partial: Partial) -> list[Link]:
        """Prove that the terms of a partial sum are within their bounds, and return the links that say so."""
        found = []
        for place in sorted(partial.places):
            term = partial.of.terms[place]
            if term.get_id() not in self.bounds:
                link = _within(term, seen_bound(term))
                before = self.graph.frontier(term, self.of_model, 0)
                if self.attempt(link, self.codes, PATIENCE[0], inside(term)) or self.attempt(
                    link, before, PATIENCE[1]
                ):
                    self.bounds[term.get_id()] = link
            if term.get_id() in self.bounds:
                found.append(self.bounds[term.get_id()])
        return found

    def _whole(self, node: z3.BitVecRef, said: Link, partial: Partial) -> bool:
        """From all terms in the design's order to the model's sum."""
        total, terms = partial.of.total, partial.of.terms
        same = Link(partial.term == total, (total,), ((partial.term, total),))
        bounded = Link(replace(partial, term=total).bounded, (total,))
        link = _of_sum(node, total, bounded.claim)
        if not self.attempt(same, [], PATIENCE[-1], terms) or not self.attempt_all(
            [link, bounded], [said, same], PATIENCE[1]
        ):
            return False
        self.links[node.get_id()] = self.of_model[total.get_id()] = link
        self.below.append(({total.get_id()}, bounded))
        return True


def _within(term: z3.BitVecRef, bound: int) -> Link:
    """Return the link that says that a number's magnitude is within a bound."""
    return Link(z3.And(term <= bound, term >= -bound), (term,))


def _of_sum(node: z3.BitVecRef, term: z3.BitVecRef, bounded: z3.BoolRef) -> Link:
    """Return the link that says that a node is a number, which is within its bound."""
    value = as_number(term, node.size())
    return Link(z3.And(node == value, bounded), (term,), ((node, value),))
