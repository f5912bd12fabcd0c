"""Products of factors that are normalised first: the model's product, shifted by the leading zeros of both factors.

Units that recode their operands (HardFloat), or widen the exponent on entry, shift a subnormal significand until its
leading one is on top, and multiply then.  That such a product is the model's, shifted, is shown factor by factor, in a
case for each number of leading zeros, in which the shift is only wires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import z3

from mmaformal.display import ShortRepr
from mmaformal.encodings.smt.blocks import BitVec, resize
from mmaformal.hardware.sums import CaseValues
from mmaformal.proof.kernel import Link, Theorem

#: Seconds for a lemma about one operand, and for one about a product with its factors cut.
_OF_ONE, _OF_PRODUCT = 30.0, 60.0


class Attempting(Protocol):
    """A prover of single claims in one theorem."""

    @property
    def theorem(self) -> Theorem:
        """The theorem in which claims are derived."""

    def attempt(
        self, link: Link, given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        """Prove a link from others, with terms cut, in so many seconds; says whether it did."""

    def attempt_all(
        self, links: Sequence[Link], given: Sequence[Link], patience: float, cut: Sequence[z3.ExprRef] = ()
    ) -> bool:
        """Prove several at once."""


def _leading_zeros(word: BitVec) -> BitVec:
    """How many zeros are above the leading one of a word, in as many bits as that takes; all of its bits, of 0."""
    bits = word.size()
    wide = bits.bit_length()
    found: BitVec = z3.BitVecVal(bits, wide)
    for place in range(bits):
        found = z3.If(z3.Extract(place, place, word) == 1, z3.BitVecVal(bits - 1 - place, wide), found)
    return found


def leading_one(word: BitVec, place: int) -> Link:
    """Return the link that says that a word is 0 above a place and 1 there; of −1, that it is 0."""
    bits = word.size()
    if place <= 0:
        value = z3.BitVecVal(int(place == 0), bits)
        return Link(word == value, (), ((word, value),))
    below = z3.Extract(place - 1, 0, word)
    value = z3.Concat(z3.BitVecVal(1, bits - place), below)
    return Link(word == value, (below,), ((word, value),))


@dataclass(frozen=True, repr=False)
class NormalFactor(ShortRepr):
    """A factor of the model's product, and what it is when it is normalised."""

    significand: BitVec
    zeros: BitVec  #: its leading zeros
    normal: BitVec  #: shifted by them

    @classmethod
    def of(cls, significand: BitVec) -> NormalFactor:
        zeros = _leading_zeros(significand)
        return cls(significand, zeros, significand << resize(zeros, significand.size()))

    def places(self, bits: int) -> BitVec:
        """Its leading zeros in so many bits."""
        return resize(self.zeros, bits)

    def shifts(self, word: BitVec) -> BitVec:
        """A word shifted as the factor is."""
        return word << self.places(word.size())


@dataclass(frozen=True, repr=False)
class MultiplierMatch(ShortRepr):
    """A multiplication of a design that may be that of both factors normalised, by places more."""

    node: BitVec
    factors: tuple[BitVec, BitVec]  #: the design's, in the model's order
    places: tuple[int, int]  #: by how many places each is above the normalised one


def found_in(
    nodes: Sequence[z3.ExprRef], values: Mapping[int, CaseValues], a: CaseValues, b: CaseValues
) -> Iterator[MultiplierMatch]:
    """The multiplications among a design's nodes whose operands have the values of two normalised factors, but for a
    constant shift."""
    for node in nodes:
        if not z3.is_app_of(node, z3.Z3_OP_BMUL) or node.num_args() != 2:
            continue
        x, y = node.children()
        for one, other in ((x, y), (y, x)):
            places = _places(values[one.get_id()], a), _places(values[other.get_id()], b)
            if places[0] is not None and places[1] is not None:
                yield MultiplierMatch(node, (one, other), (places[0], places[1]))
                break


def _places(seen: CaseValues, wanted: CaseValues) -> int | None:
    """By how many places a column is above another; None if by no constant number of them."""
    one = next(((x, y) for x, y in zip(seen, wanted, strict=True) if y), None)
    if one is None or not one[0]:
        return None
    place = (one[0] & -one[0]).bit_length() - (one[1] & -one[1]).bit_length()
    same = place >= 0 and all(x == y << place for x, y in zip(seen, wanted, strict=True))
    return place if same else None


@dataclass(frozen=True, repr=False)
class NormalProduct(ShortRepr):
    """The product of both normalised factors of a model, what was proved of it, and how far each was shifted."""

    product: BitVec
    links: tuple[Link, ...]
    zeros: tuple[BitVec, BitVec]


def prove_normalised(
    proving: Attempting, product: BitVec, a: NormalFactor, b: NormalFactor, found: MultiplierMatch
) -> NormalProduct | None:
    """The product of normalised factors, if it is proved to be a design's, and the model's when it is shifted back."""
    node, bits, place = found.node, product.size(), sum(found.places)
    if node.size() < bits + place or bits < a.significand.size() + b.significand.size():
        return None
    both = resize(a.normal, bits) * resize(b.normal, bits)
    half = resize(a.significand, bits) * resize(b.normal, bits)
    whole = resize(a.significand, bits) * resize(b.significand, bits)
    words = [
        (x, resize(factor.normal, x.size()) << more, factor)
        for x, factor, more in zip(found.factors, (a, b), found.places, strict=True)
    ]
    factors = [Link(x == word, (factor.normal,), ((x, word),)) for x, word, factor in words]
    value = resize(both, node.size()) << place
    last = Link(node == value, (both,), ((node, value),))
    of_model = Link(whole == product)
    if not (
        proving.attempt_all(factors, [], _OF_ONE)
        and proving.attempt(last, factors, _OF_PRODUCT)
        and proving.attempt(of_model, [], _OF_PRODUCT, [a.significand, b.significand])
    ):
        return None
    first, second = (
        _by_cases(proving, a, both, half, b.normal),
        _by_cases(proving, b, half, whole, a.significand),
    )
    if first is None or second is None:
        return None
    back = z3.LShR(z3.LShR(both, a.places(bits)), b.places(bits))
    links = [
        Link(both == b.shifts(a.shifts(product)), (both,)),
        Link(product == back, (both,), ((product, back),)),
    ]
    if not proving.attempt_all(
        links, [first, second, of_model], _OF_PRODUCT, [both, half, whole, product, a.zeros, b.zeros]
    ):
        return None
    return NormalProduct(both, (last, *links, *_size(proving, a, b, both)), (a.zeros, b.zeros))


def _by_cases(
    proving: Attempting, factor: NormalFactor, word: BitVec, less: BitVec, cut: BitVec
) -> Link | None:
    """The link that a product with a normalised factor is the one without, shifted by its leading zeros, and back: for
    each place of its leading one."""
    link = Link(z3.And(word == factor.shifts(less), less == z3.LShR(word, factor.places(word.size()))))
    cases = [leading_one(factor.significand, i) for i in range(-1, factor.significand.size())]
    if not all(proving.attempt(link, [case], _OF_PRODUCT, [cut]) for case in cases):
        return None
    proving.theorem.split("a factor has a leading one, or is 0", cases, terms=[factor.significand])
    return link


def _size(proving: Attempting, a: NormalFactor, b: NormalFactor, both: BitVec) -> list[Link]:
    """Those links of two that are proved: a product of normalised factors has its leading one in one of the highest
    two places, or is 0 where one of them is."""
    tops = []
    for each in (a, b):
        top = z3.Extract(each.normal.size() - 1, each.normal.size() - 1, each.normal) == 1
        nothing = each.significand == 0
        claim = z3.And(top == z3.Not(nothing), (each.normal == 0) == nothing)
        tops.append(Link(claim, (each.normal, each.significand)))
        if not proving.attempt(tops[-1], [], _OF_ONE, [each.significand]):
            return []
    least = z3.BitVecVal(1 << (a.significand.size() + b.significand.size() - 2), both.size())
    nonzero = [each.significand != 0 for each in (a, b)]
    found = []
    for claim in (
        z3.Implies(z3.And(nonzero), z3.UGE(both, least)),
        z3.Implies(z3.Not(z3.And(nonzero)), both == 0),
    ):
        link = Link(claim, (both,))
        if proving.attempt(link, tops, _OF_PRODUCT):
            found.append(link)
    return found
