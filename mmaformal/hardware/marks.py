"""Exponents of zeros that a design marks by a number of its own, below that of any other term.

A model gives a zero the least exponent; a program may write −999.  What it takes for the largest exponent is then that
mark where every term is 0, and elsewhere the model's and a constant.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.encodings.smt.blocks import maximum, resize
from mmaformal.hardware.between import Cutting
from mmaformal.hardware.candidates import WORD
from mmaformal.hardware.maxima import Largest
from mmaformal.hardware.sums import CaseValues, signed
from mmaformal.proof.lemmas import Argument, Link, at_most

#: Seconds for a lemma, in the first round.
_PATIENCE = 20.0
_PADDED = (z3.Z3_OP_CONCAT, z3.Z3_OP_ZERO_EXT, z3.Z3_OP_SIGN_EXT)
#: An exponent has at most so many bits.
_EXPONENT = 32


class Marking(Cutting, Protocol):
    """A prover of single claims about a design."""

    model: list[z3.ExprRef]
    nodes: list[z3.BitVecRef]
    theorem: Argument

    def seen(self, term: z3.ExprRef) -> CaseValues:
        """The values of any term in all cases."""

    def attempt_all(
        self, links: Sequence[Link], given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        """Whether several links are proved at once in so many seconds."""

    def product_of(self, product: z3.ExprRef) -> Link | None:
        """Return the link that says what is proved of a product."""


@dataclass(frozen=True, repr=False)
class Marked(ShortRepr):
    """The exponents of some terms with marks, their largest, and what follows once a design has one of them."""

    largest: Largest
    follows: Mapping[int, Link]  #: of each, and of their largest: which exponent of the model it is
    below: tuple[Link, ...]  #: which of the exponents are marks, and in which range others are
    of_top: tuple[Link, ...]  #: the range of the largest; that the sum of the terms is 0 where it is a mark
    nothing: z3.BoolRef  #: that the largest is a mark


@dataclass(frozen=True)
class _Marks:
    """The mark of zeros, the least exponent that the model gives them, and by how much other exponents are larger."""

    of: Largest
    low: int
    up: int
    bits: int
    mark: int

    def term(self, exponent: z3.BitVecRef, significand: z3.BitVecRef) -> z3.BitVecRef:
        other = resize(exponent, self.bits) + z3.BitVecVal(self.up, self.bits)
        return z3.If(significand == 0, z3.BitVecVal(self.mark, self.bits), other)

    def range_of(self, marked: z3.BitVecRef) -> Link:
        """Return the link that says that a marked exponent is the mark, or in the range of the others."""
        most = self.up + (1 << self.of.top.size()) - 1
        above = z3.And(z3.UGE(marked, self.up), z3.ULE(marked, most))
        return Link(z3.Or(marked == self.mark, above), (marked,))

    def without(self, marked: z3.BitVecRef, exponent: z3.BitVecRef) -> Link:
        """Return the link that says which exponent of the model a marked one is."""
        other = resize(marked - z3.BitVecVal(self.up, self.bits), exponent.size())
        value = z3.If(marked == self.mark, z3.BitVecVal(self.low, exponent.size()), other)
        return Link(exponent == value, (marked,), ((exponent, value),))


def marks_of(by: Marking, every: Sequence[Largest]) -> list[Marked]:
    """Return the largest exponents of a model of which a design marks the zeros, as it does; each proved."""
    found = [_marks(by, each) for each in every]
    proved = (_proved(by, each) for each in found if each is not None)
    made = [each for each in proved if each is not None]
    return [replace(each, of_top=(*each.of_top, *_nested(by, each.largest, made))) for each in made]


def _nested(by: Marking, part: Largest, every: Sequence[Marked]) -> Iterator[Link]:
    """Prove that the largest exponent of some terms is not above that of these and others."""
    places = {x.get_id() for x in part.terms}
    for each in every:
        whole = each.largest
        if places < {x.get_id() for x in whole.terms}:
            link = replace(at_most(part.top, whole.top), free=(part.top, whole.top))
            below = [x for x in whole.below if any(y.get_id() in places for y in x.free)]
            if by.attempt(link, below, _PATIENCE):
                yield link


def _marks(by: Marking, of: Largest) -> _Marks | None:
    """Return how a design marks zeros, as it is seen on the cases; None where it does not."""
    exponents = np.array([by.values[x.get_id()] for x in of.terms], np.int64)
    zero = np.array([[not x for x in by.values[y.get_id()]] for y in of.significands])
    if not all(each.any() and not each.all() for each in zero):
        return None
    (low, *others) = set(exponents[zero].tolist())
    if others or low > exponents[~zero].min():
        return None
    for node in by.nodes:
        if WORD <= node.size() <= _EXPONENT:
            apart = _mark_of(by.values[node.get_id()], node.size(), exponents, zero)
            if apart is not None and apart < exponents[~zero].min() and apart != low:
                up = max(0, -apart)
                most = (1 << of.top.size()) - 1 + up
                return _Marks(of, int(low), up, most.bit_length(), apart + up)
    return None


def _mark_of(
    seen: CaseValues, bits: int, exponents: NDArray[np.int64], zero: NDArray[np.bool_]
) -> int | None:
    """Return how far the one value of a node, where a term is 0, is from what it has else: its exponent, and a
    constant."""
    numbers = np.array(signed(seen, bits), np.int64)
    for exponent, is_zero in zip(exponents, zero, strict=True):
        apart = numbers[~is_zero] - exponent[~is_zero]
        marks = numbers[is_zero]
        if (apart == apart[0]).all() and (marks == marks[0]).all():
            return int(marks[0] - apart[0])
    return None


@dataclass(frozen=True)
class _Term:
    """A term's exponent with its mark, and what is proved of it."""

    marked: z3.BitVecRef
    low: Link  #: the model's exponent, where the term is 0
    without: Link  #: the model's exponent
    is_mark: Link
    within: Link
    wider: tuple[Link, ...]  #: `is_mark`, of the significand with zeros beside it
    by_inputs: tuple[Link, ...]  #: the marked exponent as a function of the inputs


def _proved(by: Marking, marks: _Marks) -> Marked | None:
    """Return the exponents with marks, once it is proved that the model's are functions of them; else None."""
    of = marks.of
    found = (_of_term(by, marks, *pair) for pair in zip(of.terms, of.significands, strict=True))
    terms = list(itertools.takewhile(lambda each: each is not None, found))
    proved = [each for each in terms if each is not None]
    if len(proved) < len(of.terms):
        return None
    top = maximum([each.marked for each in proved])
    whole, within = marks.without(top, of.top), marks.range_of(top)
    of_terms = [each.within for each in proved]
    if not by.attempt(whole, [each.low for each in proved], _PATIENCE) or not by.attempt(
        within, of_terms, _PATIENCE
    ):
        return None
    below = [link for each in proved for link in (each.is_mark, each.within, *each.wider)]
    nothing = list(_nothing(by, of, top, marks.mark, below))
    follows = {each.marked.get_id(): each.without for each in proved} | {top.get_id(): whole}
    marked = tuple(each.marked for each in proved)
    links = tuple(by.theorem.not_below("align", "exponents with marks", top, marked))
    definitions = tuple(link for each in proved for link in each.by_inputs)
    largest = Largest(top, marked, links, of.significands, of.total, definitions)
    return Marked(largest, follows, tuple(below), (within, *nothing), top == marks.mark)


def _of_term(by: Marking, marks: _Marks, exponent: z3.BitVecRef, significand: z3.BitVecRef) -> _Term | None:
    """Return the exponent of a term with its mark, if all is proved of it."""
    marked = marks.term(exponent, significand)
    product = by.product_of(significand)
    known = [] if product is None else [replace(product, free=())]
    low = Link(z3.Or(significand != 0, exponent == marks.low), (exponent, significand))
    is_mark = Link((marked == marks.mark) == (significand == 0), (marked, significand))
    without, within = marks.without(marked, exponent), marks.range_of(marked)
    if (
        by.attempt(low, [*by.codes, *known], _PATIENCE)
        and by.attempt_all([is_mark, within], [], _PATIENCE, (exponent, significand))
        and by.attempt(without, [low], _PATIENCE)
    ):
        wider = tuple(_padded(by, marked, significand, is_mark))
        by_inputs = tuple(_by_inputs(by, marks, marked, exponent, significand))
        return _Term(marked, low, without, is_mark, within, wider, by_inputs)
    return None


def _by_inputs(
    by: Marking, marks: _Marks, marked: z3.BitVecRef, exponent: z3.BitVecRef, significand: z3.BitVecRef
) -> Iterator[Link]:
    """Prove which function of the inputs alone a marked exponent is: its product is not in it."""
    for claim, link in _zeros(by, significand):
        value = z3.If(claim, z3.BitVecVal(marks.mark, marks.bits), marks.term(exponent, significand).arg(2))
        inputs = [x for x in by.graph.nodes([value]) if not x.num_args() and not _is_number(x)]
        again = [(x, ~~x) for x in inputs if isinstance(x, z3.BitVecRef)]
        found = Link(marked == z3.substitute(value, *again), (marked,))
        if by.attempt(found, [replace(link, free=(), defined=())], _PATIENCE, []):
            yield found
            return


def _is_number(term: z3.ExprRef) -> bool:
    return bool(z3.is_bv_value(term) or z3.is_true(term) or z3.is_false(term))


def _zeros(by: Marking, significand: z3.BitVecRef) -> Iterator[tuple[z3.BoolRef, Link]]:
    """Prove which claims of few inputs say that a product is 0."""
    known = by.product_of(significand)
    given = [*by.codes, *([] if known is None else [known])]
    for claim in _like(by, significand == 0):
        if by.graph.of_few_inputs(claim, significand):
            link = Link(claim == (significand == 0), (significand,), ((claim, significand == 0),))
            if by.attempt(link, given, _PATIENCE):
                yield claim, link


def _nothing(by: Marking, of: Largest, top: z3.BitVecRef, mark: int, below: Sequence[Link]) -> Iterator[Link]:
    """Prove that the sum of the terms is 0 where the largest exponent is a mark."""
    if of.total is None:
        return
    nothing = Link(z3.Or(top != mark, of.total == 0), (top, of.total))
    if by.attempt(nothing, below, _PATIENCE):
        yield nothing
        for x in _wider(by, of.total):
            link = Link(z3.Or(top != mark, x == 0), (top, x))
            if by.attempt(link, [nothing], _PATIENCE):
                yield link


def _wider(by: Marking, term: z3.BitVecRef) -> Iterator[z3.BitVecRef]:
    """The nodes of the model that are a term with bits beside it."""
    for x in by.model:
        if z3.is_bv(x) and x.decl().kind() in _PADDED and any(y.eq(term) for y in x.children()):
            yield x


def _padded(by: Marking, marked: z3.BitVecRef, significand: z3.BitVecRef, is_mark: Link) -> Iterator[Link]:
    """Prove of a significand with zeros beside it too that it is 0 where the exponent is a mark."""
    mark = is_mark.claim.arg(0)
    for x in _wider(by, significand):
        link = Link(mark == (x == 0), (marked, x))
        if by.attempt(link, [is_mark], _PATIENCE):
            yield link


def zeros_of(by: Marking, marked: Marked) -> dict[int, Link]:
    """Prove which claims of the model say that every term is 0: that the largest exponent is a mark.

    Returns the links that say so, by the claims' ids.
    """
    found: dict[int, Link] = {}
    for significand in marked.largest.significands:
        found.update((claim.get_id(), link) for claim, link in _zeros(by, significand))
    for claim in _like(by, marked.nothing):
        link = Link(claim == marked.nothing, (marked.largest.top,), ((claim, marked.nothing),))
        if by.attempt(link, [*by.graph.frontier(claim, found, 0), *marked.below], _PATIENCE):
            found[claim.get_id()] = link
    return found


def _like(by: Marking, claim: z3.BoolRef) -> list[z3.BoolRef]:
    """The other claims of the model that hold in the cases in which one does."""
    seen = by.seen(claim)
    claims = [x for x in by.model if isinstance(x, z3.BoolRef) and x.num_args() and not x.eq(claim)]
    return [x for x in claims if by.values[x.get_id()] == seen]
