"""Why a design computes a model: nodes of both that are the same, one after the other, from the inputs to d.

Which nodes may be the same is seen on cases: those that have the same value in all of them, or values a constant
apart, or complements.  It is proved node by node, with the nodes proved before cut: first those next to both, then
further from them, where too much was cut.  Names are not needed; designs whose stages are those of the model, in
whatever order and however written, have such nodes (SAT sweeping, Kuehlmann and Krohm, DAC 1997, on words).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.cases.evaluate import evaluate_all
from mmaformal.cases.inputs import Inputs, Rows
from mmaformal.display import ShortRepr
from mmaformal.encodings import smt
from mmaformal.hardware.between import DEFINED, definition, of_product, prove_max
from mmaformal.hardware.candidates import WORD, Candidates, as_sort, as_word
from mmaformal.hardware.carry_save import added_words, rows_of
from mmaformal.hardware.exact_sums import exact_sum, rounded_exact
from mmaformal.hardware.exponent_cases import ExponentCases, multiplication_of
from mmaformal.hardware.intervals import Bounds
from mmaformal.hardware.marks import marks_of, zeros_of
from mmaformal.hardware.maxima import Maxima, Maximum, largest_exponents
from mmaformal.hardware.module import Module
from mmaformal.hardware.multipliers import recovered
from mmaformal.hardware.node_proofs import PATIENCE, SumProofs
from mmaformal.hardware.normalised import NormalFactor, NormalProduct, found_in, prove_normalised
from mmaformal.hardware.rounders import is_word, prove_rounder, sums_of_codes
from mmaformal.hardware.sums import CaseValues, Partials, long_sums, signed
from mmaformal.hardware.undefined import drawn
from mmaformal.proof.failure import labelled
from mmaformal.proof.kernel import prove
from mmaformal.proof.lemmas import Link
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd

#: Nodes of the model that are tried for one of the design, in the first round.
_TRIED = 3
#: What is made of one word alone.
_PARTS = (z3.Z3_OP_EXTRACT, z3.Z3_OP_BNEG)
#: The seed of the values that undefined signals have on the cases: any but 0 and 1.
_SEED = 7
#: One of more is no exponent.
_EXPONENT = 32


@dataclass(repr=False)
class Matched(ShortRepr):
    """How far the design was followed."""

    proof: Proof | None  #: that d is the model's
    proved: int  #: nodes of the design
    nodes: int  #: nodes of the design there are
    unmatched: list[str] = field(
        default_factory=list
    )  #: named wires of the design that are no node of the model


def values_of(inputs: Inputs, rows: Rows) -> dict[str, NDArray[np.object_]]:
    """The columns of rows by the names of the constants."""
    columns = zip(inputs.flat(), rows.codes.flat(), strict=True)
    return {str(term): column.astype(object) for term, column in columns}


class Follower(SumProofs):
    """Proves that a design's `d` is the model's, or the `same`, node by node, in rounds that have more time each."""

    def __init__(
        self,
        asker: Asker,
        spec: DotAdd,
        inputs: Inputs,
        design: Module,
        rows: Rows,
        progress: Callable[[str], None],
        same: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef] = operator.eq,
    ) -> None:
        super().__init__(asker)
        self.design, self.inputs, self.progress, self.same = design, inputs, progress, same
        self.trace = smt.dot_add(spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b)
        self.d, self.wanted = design.outputs["d"], self.trace.result
        interfaces = list(labelled("", self.trace))
        self.exact = exact_sum(spec, self.trace.steps)
        fixed = [] if self.exact is None else [self.exact.total]
        self.model = self.graph.nodes([*(term for _, term in interfaces), *fixed, self.wanted])
        self.nodes = [node for node in self.graph.nodes([self.d]) if isinstance(node, z3.BitVecRef)]
        self.named = {term.get_id(): name for name, term in reversed(list(design.wires.items()))}
        self._columns = {**values_of(inputs, rows), **drawn(design, len(rows), _SEED)}
        self._count = len(rows)
        self.values = self._evaluated([*self.model, *self.nodes])
        self.theorem.interfaces = lambda: [*design.wires.items(), *labelled("model", self.trace)]
        self.sums = sums_of_codes(interfaces)
        self.chosen: set[int] = set()  #: nodes of the model that are cut for all that are functions of them
        self.range_of = Bounds(self).of
        self.definitions: dict[tuple[int, ...], Link | None] = {}
        self.products: dict[int, Link | None] = {}  #: what is known of products of few inputs
        self.largest = largest_exponents(self.theorem, self.trace.steps)
        self.marks = marks_of(self, self.largest)
        _take_marks(self)
        self.candidates = Candidates(self.model, self.values)
        self.rows = rows_of(self.nodes, self.values)
        fixed_sums = [] if self.exact is None else [self.exact.of_netlist]
        self.partials = Partials([*long_sums(self.model), *fixed_sums], self.values, self.largest_of)
        self.maxima = Maxima(self.largest, self.values)
        self.cases = _cases_of(self, spec, Link(same(self.d, self.wanted)))
        self.below = [
            ({term.get_id() for term in link.free}, link)
            for each in (*(x.below for x in self.largest), *(x.below + x.of_top for x in self.marks))
            for link in each
        ]

    def _evaluated(self, terms: Sequence[z3.ExprRef]) -> dict[int, CaseValues]:
        """The values of terms, and of what is in them, in all cases."""
        return {
            number: tuple(int(x) for x in np.broadcast_to(column, self._count))
            for number, column in evaluate_all(terms, self._columns).items()
        }

    def seen(self, term: z3.ExprRef) -> CaseValues:
        """The values of any term in all cases."""
        return self._evaluated([term])[term.get_id()]

    def run(self, effort: float = 1.0) -> Matched:
        """Go through the nodes that are not the model's yet, and ask for d; each lemma has `effort` times the time.

        Raises NotProvedError where the last lemma, that d follows from all, is not settled.
        """
        self.effort, self.unsettled = effort, False
        if not self.links:
            for node, link in recovered(self):
                self.links[node.get_id()] = link
                self.of_model.setdefault(link.term.get_id(), link)
                self.graph.opaque.add(node.get_id())
        if self.cases is not None and (effort > 1 or _is_foreign(self)):
            last = _by_exponents(self, self.cases)
            if last is not None:
                self.theorem.conclude("d of the design is the model's", last)
                return replace(self.matched, proof=prove(self.asker, self.theorem))
        for term in self.model:
            if term.get_id() not in self.of_model:
                self._constant(term, self.of_model)
        for number, node in enumerate(self.nodes):
            if self.asker.left <= 0:
                break
            if node.get_id() in self.links or node.get_id() == self.d.get_id() or _is_leaf(node):
                continue
            name = self.named.get(node.get_id(), "")
            self.progress(f"{len(self.links)} of {number} nodes are the model's; {name}")
            self._match(node, self.candidates.of(node))
        last = self._as_same() or self._link(self.d, self.wanted, lambda term: term)
        last = last or prove_rounder(self, self.d, self.wanted)
        if last is None and self.exact is not None:
            last = rounded_exact(self, self.exact, self.d, self.wanted)
        if last is None:
            return self.matched
        self.theorem.conclude("d of the design is the model's", last)
        return replace(self.matched, proof=prove(self.asker, self.theorem))

    def _as_same(self) -> Link | None:
        """The link that d counts as the model's, if that is another claim than that it is, and is proved."""
        if self.same is operator.eq:
            return None
        link, wanted = Link(self.same(self.d, self.wanted)), self.wanted.get_id()
        given = self.given(self.d, self.wanted, 0, lambda each: any(x.get_id() == wanted for x in each.free))
        return link if given and self.attempt(link, given, PATIENCE[1]) else None

    @property
    def matched(self) -> Matched:
        """How far the design is followed."""
        unmatched = [self.named[node.get_id()] for node in self.nodes if _unmatched(self, node)]
        return Matched(None, len(self.links), len(self.nodes), unmatched)

    def _match(
        self,
        node: z3.BitVecRef,
        candidates: Iterable[tuple[z3.ExprRef, Callable[[z3.ExprRef], z3.BitVecRef]]],
    ) -> None:
        if self._constant(node, self.links) or self.is_sum(node) or self._maximum(node):
            return
        if self.rows and _through_rows(self, node):
            return
        found = list(candidates)
        if len(found) > 1:
            cut = self._cut(node, self.links)
            found.sort(key=lambda each: _unlike(self, each[0], cut))
        for term, value in found[: round(_TRIED * self.effort)]:
            if self._link(node, term, value) is not None:
                self._alike(term)
                return
        if not self._maximum(node, again=True):
            _code(self, node, found[:_TRIED])

    def _alike(self, term: z3.ExprRef) -> None:
        """Prove that other nodes of the model are functions of a matched one, so that they are not cut beside it."""
        self.chosen.add(term.get_id())
        for other in self.candidates.like(term):
            if other.get_id() in self.of_model:
                continue
            if self.graph.of_few_inputs(other, term):
                given = self.codes
            elif self._cut(other, self.of_model) <= {term.get_id()} | self._cut(term, self.of_model):
                given = self.graph.frontier(other, self.of_model, 0)
            else:
                continue
            value = next(value for each, value in self.candidates.of(other) if each is term)
            said = as_sort(value(term), other)
            link = Link(other == said, (term,), ((other, said),))
            if self.attempt(link, given, PATIENCE[0]):
                self.of_model[other.get_id()] = link

    def _link(
        self, node: z3.BitVecRef, term: z3.ExprRef, value: Callable[[z3.ExprRef], z3.BitVecRef]
    ) -> Link | None:
        """The link of a node of the design to one of the model, if it is proved."""
        if term.get_id() == node.get_id() == self.d.get_id():
            return Link(node == node)
        said = value(term)
        link = Link(node == said, (term,), ((node, said),))
        before: list[tuple[int, ...]] = []
        for level, patience in enumerate(PATIENCE):
            given = self.given(node, term, level)
            key = tuple(sorted(id(each) for each in given))
            if key in before:
                break
            before.append(key)
            if self.attempt(link, given, patience):
                return self._put_down(node, link)
        if self.graph.of_few_inputs(node, term) and self._by_products(node, term, link):
            return self._put_down(node, link)
        given = self.given(node, term, 0, functools.partial(_no_part, self))
        cut = {free.get_id(): free for each in given for free in each.free}
        known = [*map(self.range_of, cut.values()), *(_defined(self, term, cut) for term in cut.values())]
        more = [each for each in known if each is not None]
        more += [each for term in cut.values() for each in prove_max(self, term, cut)]
        if more and self.attempt(link, [*given, *more], PATIENCE[-1]):
            return self._put_down(node, link)
        plain = self.graph.of_few_inputs(node, term) or not self.graph.arithmetic(node, term, said)
        whole = tuple(sorted(map(id, self.codes)))
        if plain and whole not in before and self.attempt(link, self.codes, PATIENCE[1]):
            return self._put_down(node, link)
        return None

    def _by_products(self, node: z3.BitVecRef, term: z3.ExprRef, link: Link) -> bool:
        """Whether a link is proved with nothing cut but products, of which is known what their factors show."""
        given = self.given(node, term, 0, lambda x: {y.decl().kind() for y in x.free} == {z3.Z3_OP_BMUL})
        products = {x.get_id(): x for each in given for x in each.free}
        known = [self.product_of(x) for x in products.values()]
        more = [each for each in known if each is not None]
        return bool(more) and self.attempt(link, [*self.codes, *given, *more], PATIENCE[-1])

    def product_of(self, product: z3.ExprRef) -> Link | None:
        """Return the link that says what is proved of a product; asked once."""
        assert isinstance(product, z3.BitVecRef)
        if product.get_id() not in self.products:
            self.products[product.get_id()] = of_product(self, product)
        return self.products[product.get_id()]

    def _put_down(self, node: z3.BitVecRef, link: Link) -> Link:
        self.links[node.get_id()] = link
        term = link.free[0]
        self.of_model.setdefault(term.get_id(), link)
        _follows(self, term)
        if term.get_id() in self.sums and node.sort() == term.sort():
            self.graph.take_for_input(term, node)
            self.codes.append(link)
        return link

    def _maximum(self, node: z3.BitVecRef, again: bool = False) -> bool:
        """Whether a node of the design is proved to be the largest of some of the model's exponents, and an offset.

        `again`: the node is not proved to be the one of the model's that has its values.
        """
        seen, bits = self.values[node.get_id()], node.size()
        if not WORD <= bits <= _EXPONENT or (seen in self.candidates.same) is not again:
            return False
        for numbers in (seen, signed(seen, bits)):
            found = self.maxima.of(numbers)
            if found is None:
                continue
            maximum, offset = found

            def shifted(x: z3.BitVecRef, offset: int = offset) -> z3.BitVecRef:
                return as_word(x, bits) + offset

            said = self._link(node, maximum.term, shifted)
            if said is not None:
                self.maxima.add(maximum, numbers, offset)
                return not maximum.whole or self._all(node, said, maximum, offset)
        return False

    def _all(self, node: z3.BitVecRef, said: Link, maximum: Maximum, offset: int) -> bool:
        """From the largest of all exponents in the design's order to the model's."""
        top, terms = maximum.of.top, maximum.of.terms
        same = self.theorem.same_maximum("align", "exponents", maximum.term, top, terms, maximum.of.below)
        value = as_word(top, node.size()) + offset
        link = Link(node == value, (top,), ((node, value),))
        if not self.attempt(link, [said, same], PATIENCE[1]):
            return False
        self.links[node.get_id()] = self.of_model[top.get_id()] = link
        _follows(self, top)
        self._alike(top)
        return True


def _take_marks(follower: Follower) -> None:
    """Take exponents with a design's marks for nodes of the model."""
    follower.largest = [*(each.largest for each in follower.marks), *follower.largest]
    added = [x for each in follower.marks for x in (*each.largest.terms, each.largest.top, each.nothing)]
    follower.model = follower.graph.nodes([*follower.model, *added])
    follower.values.update(follower._evaluated(added))


def _follows(follower: Follower, term: z3.ExprRef) -> None:
    """Take what of the model is known by an exponent with a mark, once that is a node of the design."""
    for each in follower.marks:
        link = each.follows.get(term.get_id())
        if link is not None:
            follower.of_model[link.defined[0][0].get_id()] = link
        if term.eq(each.largest.top):
            follower.of_model.update(zeros_of(follower, each))


def _defined(follower: Follower, term: z3.ExprRef, cut: dict[int, z3.ExprRef]) -> Link | None:
    """A term as a function of what else is cut, or one of few inputs as a function of these; proved once."""
    ends = [x.get_id() for x in follower.graph.ends(term, cut, DEFINED)]
    if not follower.graph.of_few_inputs(term) and any(number not in cut for number in ends):
        return None
    key = term.get_id(), *ends
    if key not in follower.definitions:
        follower.definitions[key] = definition(follower, term, cut)
    return follower.definitions[key]


def _no_part(follower: Follower, link: Link) -> bool:
    """Whether a link cuts no mere bits, or the opposite, of a word that another one cuts."""
    return not any(
        z3.is_app_of(x, kind) and x.arg(0).get_id() in follower.of_model for x in link.free for kind in _PARTS
    )


def _code(
    follower: Follower,
    node: z3.BitVecRef,
    found: Iterable[tuple[z3.ExprRef, Callable[[z3.ExprRef], z3.BitVecRef]]],
) -> None:
    """Match a node with a code that the model makes of a sum, if it is one."""
    for term, _ in found:
        if term.get_id() in follower.sums and term.sort() == node.sort():
            link = prove_rounder(follower, node, term)
            if link is not None:
                follower._put_down(node, link)
                return


def _unmatched(follower: Follower, node: z3.BitVecRef) -> bool:
    at = node.get_id()
    return at in follower.named and at not in follower.links and not _is_leaf(node)


def _unlike(follower: Follower, term: z3.ExprRef, cut: set[int]) -> tuple[bool, int]:
    """Candidates in order: those that are cut elsewhere, then by how much else is cut next to them."""
    return term.get_id() not in follower.chosen, len(cut ^ follower._cut(term, follower.of_model))


def _cases_of(follower: Follower, spec: DotAdd, claim: Link) -> ExponentCases | None:
    """The cases of a claim about a fused multiply-add; None of other models."""
    of, values = multiplication_of(follower.trace.steps), functools.partial(_values_of, follower)
    return None if of is None else ExponentCases(follower, spec, of, claim, values, follower.progress)


def _values_of(follower: Follower, count: int, codes: NDArray[np.object_]) -> dict[str, NDArray[np.object_]]:
    """Values of all constants on rows of codes of a, b and c."""
    columns = zip(follower.inputs.flat(), codes, strict=True)
    return {**{str(term): column for term, column in columns}, **drawn(follower.design, count, _SEED)}


def _is_foreign(follower: Follower) -> bool:
    """Whether most words of the design may be none of the model's: it is made in another way."""
    words = [node for node in follower.nodes if is_word(node) and not _is_leaf(node)]
    alike = [node for node in words if next(follower.candidates.of(node), None) is not None]
    return len(alike) < len(words) / 2


def _by_exponents(follower: Follower, cases: ExponentCases) -> Link | None:
    """Prove that d is the model's, in a case for each distance of the exponents of a product and of c."""
    product = cases.of.product
    seen, number = follower.values[product.get_id()], product.get_id()
    for node in follower.nodes:
        if (
            node.get_id() not in follower.links
            and follower.values[node.get_id()] == seen
            and not _is_leaf(node)
        ):
            follower._link(node, product, functools.partial(as_word, bits=node.size()))
    of_product = [link for link in follower.links.values() if len(link.free) == 1]
    links = [link for link in of_product if link.free[0].get_id() == number]
    if not links and cases.normalised is None:
        cases.normalised = _normalised(follower, cases)
    return cases.run(links)


def _normalised(follower: Follower, cases: ExponentCases) -> NormalProduct | None:
    """The product of a design that normalises its factors before; None of others."""
    a, b = NormalFactor.of(cases.of.a.significand), NormalFactor.of(cases.of.b.significand)
    seen = follower.seen(a.normal), follower.seen(b.normal)
    for found in found_in(follower.nodes, follower.values, *seen):
        follower.progress("the product of factors that are normalised")
        proved = prove_normalised(follower, cases.of.product, a, b, found)
        if proved is not None:
            return proved
    return None


def _through_rows(follower: Follower, node: z3.BitVecRef) -> bool:
    """Whether an addition behind a carry-save tree is proved to be a sum of the words before it, one after the
    other, and that to be the model's."""
    through = added_words(node, follower.rows)
    if through is None:
        return False
    rows = [row.link for row in through.rows]
    if not all(follower.attempt(row.link, [], PATIENCE[-1], row.words) for row in through.rows):
        return False
    total = through.words[0]
    for word in through.words[1:]:
        seen = [follower.values[x.get_id()] for x in (total, word)]
        total = total + word
        number = total.get_id()
        follower.values[number] = tuple((x + y) % (1 << node.size()) for x, y in zip(*seen, strict=True))
        if number not in follower.links:
            follower._match(total, follower.candidates.of(total))
    if total.get_id() not in follower.links:
        return False
    flat = Link(node == total, (), ((node, total),))
    found = follower.links[total.get_id()]
    link = replace(
        found, claim=z3.substitute(found.claim, (total, node)), defined=((node, found.defined[0][1]),)
    )
    if not follower.attempt(flat, rows, PATIENCE[-1], through.words) or not follower.attempt(
        link, [flat, found], PATIENCE[1]
    ):
        return False
    follower.links[node.get_id()] = link
    follower.graph.opaque.add(node.get_id())
    return True


def _is_leaf(node: z3.ExprRef) -> bool:
    """Whether a node is an input or a number, or only says which bits of one it is."""
    while node.num_args() == 1 and node.decl().kind() == z3.Z3_OP_EXTRACT:
        node = node.arg(0)
    return bool(node.num_args() == 0)
