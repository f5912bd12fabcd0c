"""Proves what relates nodes that are cut: without it, a claim of all of them together would be one of too much.

A node that is cut may be anything.  Here is proved of those that are cut at once that one is a function of others, in
which range a largest exponent is, that a sum is 0 where no exponent is that of a number, how large a magnitude is, and
that it is not 0 where its sign is minus.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import z3

from mmaformal.hardware.graph import Graph
from mmaformal.hardware.maxima import Largest
from mmaformal.hardware.sums import CaseValues
from mmaformal.proof.kernel import Link

#: Seconds for what is easy, and for what may be less so.
_EASY, _PATIENCE = 1.0, 10.0
#: Nodes between a term and what is cut before it, of its definition.
DEFINED = 40


class Cutting(Protocol):
    """A prover of single claims about terms whose values are known in cases."""

    @property
    def graph(self) -> Graph:
        """The terms."""

    @property
    def values(self) -> dict[int, CaseValues]:
        """The values of each term in all cases."""

    @property
    def codes(self) -> Sequence[Link]:
        """The links of codes between steps, which count as inputs."""

    @property
    def below(self) -> list[tuple[set[int], Link]]:
        """The links that are proved between terms of the model, with the ids of these terms."""

    def attempt(
        self, link: Link, given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        """Whether a link is proved in so many seconds."""


def between(by: Cutting, given: Sequence[Link], largest: Sequence[Largest]) -> list[Link]:
    """Returns what is proved between the terms that links cut."""
    cut = {free.get_id(): free for link in given for free in link.free}
    found = [definition(by, free, cut) for free in cut.values()]
    for free in cut.values():
        number = signed_of(free)
        if number is not None:
            found += [prove_size(by, free), *(_signed(by, sign, free, number) for sign in cut.values())]
    for each in largest:
        found += [link for link in each.definitions if link.free[0].get_id() in cut]
        if each.top.get_id() in cut:
            found.append(_range(by, each))
            if each.total is not None and each.total.get_id() in cut:
                found.append(_nothing(by, each, each.total))
    return [link for link in found if link is not None]


def definition(by: Cutting, term: z3.ExprRef, cut: Mapping[int, z3.ExprRef]) -> Link | None:
    """Return a term as a function of what is cut before it, or of inputs; None where more than wires and choices are
    between."""
    ends = by.graph.ends(term, cut, DEFINED)
    if not ends:
        return None
    # The same term, but written so that it is not the one that is cut.
    again = [(x, ~~x if isinstance(x, z3.BitVecRef) else z3.Not(z3.Not(x))) for x in ends]
    link = Link(term == z3.substitute(term, *again), (term, *(x for x in ends if x.get_id() in cut)))
    return link if by.attempt(link, [], _EASY, ends) else None


def prove_max(by: Cutting, term: z3.ExprRef, cut: Mapping[int, z3.ExprRef]) -> Iterator[Link]:
    """Prove that neither of two is above the larger of them, a term that is cut, where what they are made of is cut."""
    for x in term.children()[1:] if is_max(term) else ():
        ends = [x] if x.get_id() in cut else by.graph.ends(x, cut, DEFINED)
        if ends and all(each.get_id() in cut for each in ends):
            link = Link(z3.ULE(x, term), (term, *ends))
            if by.attempt(link, [], _EASY, term.children()[1:]):
                yield link


def is_max(term: z3.ExprRef) -> bool:
    """Whether a term is the larger of two, `If(x > y, x, y)`."""
    if not z3.is_app_of(term, z3.Z3_OP_ITE) or not z3.is_app_of(term.arg(0), z3.Z3_OP_UGT):
        return False
    return bool(term.arg(0).arg(0).eq(term.arg(1)) and term.arg(0).arg(1).eq(term.arg(2)))


def signed_of(term: z3.ExprRef) -> z3.BitVecRef | None:
    """Return the number whose magnitude a term is, `If(sign, -x, x)`; None of other terms."""
    choice = z3.is_app_of(term, z3.Z3_OP_ITE) and z3.is_app_of(term.arg(1), z3.Z3_OP_BNEG)
    return term.arg(2) if choice and term.arg(1).arg(0).eq(term.arg(2)) else None


def prove_size(by: Cutting, magnitude: z3.ExprRef) -> Link | None:
    """Prove how large the magnitude of a number is whose bound is known; None of other terms."""
    number = signed_of(magnitude)
    known = [] if number is None else [link for free, link in by.below if free == {number.get_id()}]
    bounds = [x for link in known for x in _constants(link.claim)]
    for bound in [max(bounds), (1 << max(bounds).bit_length()) - 1] if bounds else []:
        link = Link(z3.ULE(magnitude, bound), (magnitude,))
        if by.attempt(link, known, _PATIENCE):
            return link
    return None


def _constants(claim: z3.ExprRef) -> list[int]:
    """Return the numbers in a claim that are not negative."""
    if z3.is_bv_value(claim):
        return [claim.as_long()] if claim.as_signed_long() >= 0 else []
    return [x for each in claim.children() for x in _constants(each)] if z3.is_bool(claim) else []


def _signed(by: Cutting, sign: z3.ExprRef, magnitude: z3.ExprRef, number: z3.BitVecRef) -> Link | None:
    """Prove that a number with its highest bit set is not 0; None where `sign` is another bit."""
    top = number.size() - 1
    if not (z3.is_app_of(sign, z3.Z3_OP_EXTRACT) and sign.params() == [top, top] and sign.arg(0).eq(number)):
        return None
    link = Link(z3.Or(sign == 0, magnitude != 0), (sign, magnitude))
    return link if by.attempt(link, [], _EASY, [number]) else None


def _range(by: Cutting, largest: Largest) -> Link | None:
    """Prove in which range a largest exponent is, from ranges of all: each its own of the cases, or that of all."""
    seen = [by.values[term.get_id()] for term in largest.terms]
    every = min(map(min, seen)), max(map(max, seen))
    links, ends = [], []
    for term, values in zip(largest.terms, seen, strict=True):
        for low, high in ((min(values), max(values)), every):
            link = _within(term, low, high)
            if by.attempt(link, by.codes, _PATIENCE):
                links.append(link)
                ends.append((low, high))
                break
        else:
            return None
    link = _within(largest.top, max(low for low, _ in ends), max(high for _, high in ends))
    return link if by.attempt(link, links, _PATIENCE) else None


def in_range(by: Cutting, term: z3.ExprRef) -> Link | None:
    """Prove in which range a word of few inputs is: that of the cases, or below the next power of two; and that it is 0
    or not below another power of two, as the significands of numbers that are not subnormal are, and their products."""
    seen = by.values.get(term.get_id())
    if seen is None or not z3.is_bv(term) or not by.graph.of_few_inputs(term):
        return None
    low, high = min(seen), max(seen)
    known, cut, patience = [*by.codes], [], _EASY
    if z3.is_app_of(term, z3.Z3_OP_BMUL):
        cut, patience = term.children(), _PATIENCE
        known += [each for each in (in_range(by, x) for x in cut if x.num_args()) if each is not None]
    below = (1 << high.bit_length()) - 1
    for ends in dict.fromkeys([(low, high), (low, below), (0, below)]):
        link = _within(term, *ends)
        if by.attempt(link, known, patience, cut):
            break
    else:
        return None
    least = min(filter(None, seen), default=0)
    if low or least <= 1:
        return link
    gap = z3.Or(term == 0, z3.UGE(term, 1 << (least.bit_length() - 1)))
    found = Link(z3.And(*link.claim.children(), gap), (term,))
    return found if by.attempt(found, known, patience, cut) else link


def of_product(by: Cutting, product: z3.BitVecRef) -> Link | None:
    """Prove in which range a product of few inputs is, and that it is 0 where a factor is, and nowhere else; None of
    factors for which that is not so."""
    factors, said = product.children(), in_range(by, product)
    if said is None:
        return None
    nothing = (product == 0) == z3.Or([x == 0 for x in factors])
    link = Link(z3.And(*said.claim.children(), nothing), (product,))
    known = [each for each in (in_range(by, x) for x in factors if x.num_args()) if each is not None]
    return link if by.attempt(link, [*by.codes, *known], _PATIENCE, factors) else None


def _within(term: z3.BitVecRef, low: int, high: int) -> Link:
    return Link(z3.And(z3.UGE(term, low), z3.ULE(term, high)), (term,))


def _nothing(by: Cutting, largest: Largest, total: z3.BitVecRef) -> Link | None:
    """Prove that a sum is 0 where the largest exponent is smaller than that of any term which is not 0 in a case."""
    pairs = zip(largest.terms, largest.significands, strict=True)
    seen = [zip(by.values[exponent.get_id()], by.values[x.get_id()], strict=True) for exponent, x in pairs]
    least = min((exponent for each in seen for exponent, x in each if x), default=0)
    if not least:
        return None
    zeros = [
        Link(z3.Or(z3.UGE(exponent, least), significand == 0), (exponent, significand))
        for exponent, significand in zip(largest.terms, largest.significands, strict=True)
    ]
    link = Link(z3.Or(z3.UGE(largest.top, least), total == 0), (largest.top, total))
    if not all(by.attempt(each, by.codes, _PATIENCE) for each in zeros):
        return None
    before = [*zeros, *(each for each in largest.below)]
    return link if by.attempt(link, before, _PATIENCE, (largest.top,)) else None
