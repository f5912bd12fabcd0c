"""Two runs in the SMT encoding, the second on related inputs, and the argument that their results are related.

Step by step of the chain and stage by stage: each function derives, from links of what a stage reads, the link of
what it gives.  Everything is a lemma about fresh constants (`lemmas`), so a chain needs no induction beyond the
composition: a step's c is any code that is related to the other run's.

`Same` is for runs that are to give the same code: on permuted or exchanged products.  `Opposite` is for a run on
negated inputs: numbers are the negatives, NaNs stay NaNs, and the sign of a zero is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import z3

from mmaformal.cases.codes import is_nan, magnitude_field
from mmaformal.cases.interfaces import AnyStep
from mmaformal.encodings.smt.blocks import (
    Operand,
    Special,
    Term,
    Trace,
    all_of,
    negate_if,
    resize,
)
from mmaformal.formats import Format
from mmaformal.lanes import Tracer
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.kernel import ArgumentError, Link, demand
from mmaformal.proof.lemmas import Argument, at_most, is_maximum, within
from mmaformal.spec import DotAdd


def same(left: z3.ExprRef, right: z3.ExprRef) -> Link:
    """Return the link that says that two terms are equal; where it is used, the right one is replaced by the left one.

    Raises ArgumentError if they are not of one sort.
    """
    if left.sort() != right.sort():
        widths = [f"{x.size()} bits" if z3.is_bv(x) else str(x.sort()) for x in (left, right)]
        raise ArgumentError(
            f"no lemma relates an interface of {widths[0]} in one run to one of {widths[1]} in the other, as where a "
            "product less makes a sum narrower"
        )
    return Link(right == left, (left,), ((right, left),))


def all_links(*links: Link) -> Link:
    """One link that says what all of them say."""
    return Link(
        all_of([link.claim for link in links]),
        tuple(term for link in links for term in link.free),
        tuple(pair for link in links for pair in link.defined),
        tuple(lane for link in links for lane in link.lanes),
        tuple(flag for link in links for flag in link.flags),
    )


class Pairing(Argument):
    """An argument about two runs."""

    def __init__(self) -> None:
        super().__init__(Tracer())

    def under(
        self, tree: z3.BitVecRef, terms: Sequence[z3.BitVecRef], wanted: Link, term: z3.BitVecRef
    ) -> None:
        """Derive that a term is at most the maximum of all."""
        for each, link in zip(terms, self.not_below("align", "exponents", tree, terms), strict=True):
            if each.eq(term):
                self.derive("align", "a term's exponent is not above the largest", [wanted], [link])

    # ---- maxima and sums ----------------------------------------------------------------------------------------

    def maxima(
        self,
        left: z3.BitVecRef,
        left_terms: Sequence[z3.BitVecRef],
        right: z3.BitVecRef,
        right_terms: Sequence[z3.BitVecRef],
        links: Sequence[Link],
        below: Sequence[tuple[z3.BitVecRef, z3.BitVecRef, Link]] = (),
    ) -> Link:
        """Return the link that says that the largest of both runs are equal, from the links of the right terms with
        left ones.

        `links` make each right term a left one.  `below`: left terms that are no right term's, each with another
        one of the left terms and the link that it is at most that.
        """
        pairs = [pair for link in links for pair in link.defined]
        wanted = {term.get_id() for term in right_terms}
        pairs = [pair for pair in pairs if pair[0].get_id() in wanted]
        moved = z3.substitute(right, *pairs) if pairs else right
        text = "the largest exponents are equal"
        if not moved.eq(right):
            self.derive("align", text, [same(moved, right)], links, inputs=left_terms)
        if moved.eq(left):
            return same(left, right) if not moved.eq(right) else self.identical(left, right)
        alone = {small.get_id() for small, _, _ in below}
        matched = [term for term in left_terms if term.get_id() not in alone]
        result = same(left, right)
        if not (is_maximum(left, left_terms) and is_maximum(moved, matched)):
            return self.derive("align", text, [result], [*links, *(link for *_, link in below)], left_terms)[
                0
            ]
        what = "exponents"
        under_left = {
            term.get_id(): link
            for term, link in zip(left_terms, self.not_below("align", what, left, left_terms), strict=True)
        }
        under_moved = {
            term.get_id(): link
            for term, link in zip(matched, self.not_below("align", what, moved, matched), strict=True)
        }
        for small, large, link in below:
            given = [link, under_moved[large.get_id()]]
            under_moved[small.get_id()] = self.derive(
                "align", f"{what}: ≤ is transitive", [at_most(small, moved)], given
            )[0]
        order = [
            self._not_above("align", what, left, moved, under_moved),
            self._not_above("align", what, moved, left, under_left),
        ]
        equal = same(left, moved)
        self.derive("align", f"{what}: neither of two maxima is above the other", [equal], order)
        if moved.eq(right):
            return equal
        return self.derive("align", text, [result], [equal, same(moved, right)])[0]

    def at_most_all(self, tree: z3.BitVecRef, bound: z3.BitVecRef, below: dict[int, Link]) -> Link:
        """Return the link that says that a maximum is at most what each of its terms, by their ids, is at most."""
        return self._not_above("align", "exponents", tree, bound, below)

    def identical(self, left: z3.ExprRef, right: z3.ExprRef) -> Link:
        """Return the link that says that two terms are one and the same."""
        link = same(left, right)
        self.derive("identical", "a term is equal to itself", [link], inputs=[left])
        return link

    def permuted_sum(self, left: z3.BitVecRef, right: z3.BitVecRef, links: Sequence[Link]) -> Link:
        """Return the link that says that two sums of the same terms are equal, from the links of the right summands."""
        text = "aligned terms: the order of summation does not matter"
        return self.derive("accumulate", text, [same(left, right)], links)[0]

    def opposite_sum(
        self,
        left: z3.BitVecRef,
        right: z3.BitVecRef,
        links: Sequence[Link],
        count: int,
        bits: int | None = None,
    ) -> Link:
        """Return the link that says that the sum of negated terms is the negated sum: partial sum by partial sum.

        With `bits`, the terms' magnitudes have no more than that, and the sum is far from the least number.
        """
        xs, ys = summands(left, count), summands(right, count)
        text = "the sum of negated terms is the negated sum"
        if len(xs) != count or len(ys) != count:
            return self.derive("accumulate", text, [link_opposite(left, right)], links)[0]
        x, y, running = xs[0], ys[0], links[0]
        for n, (u, v, link) in enumerate(zip(xs[1:], ys[1:], links[1:], strict=True), 2):
            x, y = x + u, y + v
            bound = None if bits is None else n * ((1 << bits) - 1)
            running = self.derive("accumulate", text, [link_opposite(x, y, bound)], [running, link])[0]
        return running

    def bounded(self, total: z3.BitVecRef, count: int) -> Link:
        """Return the link that says that a sum is not beyond what its terms' magnitudes add up to: partial sum by
        partial sum."""
        running: Link | None = None
        x, bound = None, 0
        for term in summands(total, count):
            most = (1 << magnitude_bits(term)) - 1
            magnitudes = [term.arg(0), term.arg(2)] if z3.is_app_of(term, z3.Z3_OP_ITE) else [term]
            link = within(term, most)
            inputs = [*magnitudes[:1], *(y.arg(0) if y.num_args() == 1 else y for y in magnitudes[1:])]
            self.derive("accumulate", "a term is within its bits", [link], [], inputs)
            x, bound = term if x is None else x + term, bound + most
            before, running = running, within(x, bound)
            text = "a partial sum is within the sum of bounds"
            self.derive("accumulate", text, [running], [link] if before is None else [before, link])
        assert running is not None
        return running


def link_opposite(left: z3.BitVecRef, right: z3.BitVecRef, bound: int | None = None) -> Link:
    """Return the link that says that two's complement terms are each other's negatives, and not beyond ±bound."""
    claim = right == -left
    if bound is not None:
        demand(bound < 1 << (left.size() - 1), f"{bound} needs more than {left.size()} bits")
        claim = z3.And(claim, left <= bound, left >= -bound)
    return Link(claim, (left,), ((right, -left),))


# ---- how the two runs are related --------------------------------------------------------------------------------


class Same:
    """The second run is to give the same code as the first."""

    def code(self, left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
        return same(left, right)

    def operand(self, left: Operand, right: Operand) -> Link:
        return all_links(*(same(x, y) for x, y in zip(left, right, strict=True)))

    def decoded(self, left: Operand, right: Operand) -> Link:
        """Return the link of what decoding related codes gives."""
        return self.operand(left, right)

    def term(self, left: Term, right: Term) -> Link:
        return all_links(*(same(x, y) for x, y in zip(left, right, strict=True)))

    def special(self, left: Special, right: Special) -> Link:
        return all_links(*(same(x, y) for x, y in zip(left, right, strict=True)))

    def summand(self, left: z3.BitVecRef, right: z3.BitVecRef, bits: int | None = None) -> Link:
        return same(left, right)


class SameButZeroSigns(Same):
    """The second run is to give the same code as the first, but terms that are zero may have either sign."""

    def term(self, left: Term, right: Term) -> Link:
        claim = z3.Or(left.sign == right.sign, left.significand == 0)
        signs = Link(claim, (left.sign, right.sign, left.significand))
        return all_links(
            signs, same(left.exponent, right.exponent), same(left.significand, right.significand)
        )


class SameButNans(Same):
    """The second run is to give the same code; two NaNs may be any two: which one is met first depends on the order."""

    def code(self, left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
        nans = z3.And(is_nan(left, fmt), is_nan(right, fmt))
        return Link(z3.Or(left == right, nans), (left, right))


class Opposite:
    """The second run is on negated numbers."""

    def code(self, left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
        """Opposite codes, or both zero, or one and the same NaN."""
        top = fmt.storage_bits - 1
        low, other_low = z3.Extract(top - 1, 0, left), z3.Extract(top - 1, 0, right)
        flipped = z3.Extract(top, top, left) != z3.Extract(top, top, right)
        return Link(
            z3.And(low == other_low, z3.Or(flipped, magnitude_field(left, fmt) == 0, is_nan(left, fmt))),
            (left, right),
        )

    def operand(self, left: Operand, right: Operand) -> Link:
        links = [same(x, y) for x, y in zip(left[1:], right[1:], strict=True)]
        infinity = Link(z3.Implies(left.infinite, left.significand != 0), (left.infinite, left.significand))
        return all_links(self._sign(left, right), *links, infinity)

    def decoded(self, left: Operand, right: Operand) -> Link:
        """Opposite operands, or a NaN with whichever sign."""
        links = [same(x, y) for x, y in zip(left[1:], right[1:], strict=True)]
        claim = z3.Or(left.sign != right.sign, left.significand == 0, left.nan)
        sign = Link(claim, (left.sign, right.sign, left.significand, left.nan))
        infinity = Link(z3.Implies(left.infinite, left.significand != 0), (left.infinite, left.significand))
        return all_links(sign, *links, infinity)

    def term(self, left: Term, right: Term) -> Link:
        return all_links(
            self._sign(left, right),
            same(left.exponent, right.exponent),
            same(left.significand, right.significand),
        )

    @staticmethod
    def _sign(left: Operand | Term, right: Operand | Term) -> Link:
        claim = z3.Or(left.sign != right.sign, left.significand == 0)
        return Link(claim, (left.sign, right.sign, left.significand))

    def special(self, left: Special, right: Special) -> Link:
        """Infinities change places; and there is at most one special value."""
        exclusive = z3.Not(z3.And(left.positive_infinity, left.negative_infinity))
        return all_links(
            same(left.nan, right.nan),
            same(left.positive_infinity, right.negative_infinity),
            same(left.negative_infinity, right.positive_infinity),
            Link(exclusive, (left.positive_infinity, left.negative_infinity)),
        )

    def summand(self, left: z3.BitVecRef, right: z3.BitVecRef, bits: int | None = None) -> Link:
        """Opposite numbers, of a magnitude of so many bits."""
        return link_opposite(left, right, None if bits is None else (1 << bits) - 1)


RunRelation = Same | Opposite


# ---- the algorithms ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """Two traces; product j of the second is `match[j]` of the first, both counted over all K."""

    kind: RunRelation
    left_spec: DotAdd
    right_spec: DotAdd
    left: Trace[AnyStep]
    right: Trace[AnyStep]
    match: Sequence[int]
    dropped: Mapping[int, Link] = field(
        default_factory=dict
    )  #: products only of the first run: that each is zero
    nans_keep_sign: bool = False  #: whether the negative of a NaN code of a may be the same NaN
    #: codes of the first run whose signs are changed, and not those of the second that stand in their place; or turned
    turned: Sequence[tuple[z3.BitVecRef, z3.BitVecRef]] = ()


NestedTerms: TypeAlias = "z3.ExprRef | Sequence[NestedTerms]"  #: nested


def terms_of(*parts: NestedTerms) -> list[z3.ExprRef]:
    """All terms in nested tuples."""
    out: list[z3.ExprRef] = []
    for part in parts:
        out += terms_of(*part) if isinstance(part, (tuple, list)) else [part]
    return out


def _extended(wide: z3.BitVecRef, narrow: z3.BitVecRef, extra: int, bound: int) -> Link:
    """Return the link that says that two's complement terms are the same number, not beyond ±bound."""
    same_number = z3.SignExt(extra, narrow)
    claim = z3.And(wide == same_number, narrow <= bound, narrow >= -bound)
    return Link(claim, (narrow,), ((wide, same_number),))


def magnitude_bits(summand: z3.BitVecRef) -> int:
    """The bits of the magnitude in `If(sign, -x, x)`, x with zeros above it; all but the sign if it is not so made."""
    if z3.is_app_of(summand, z3.Z3_OP_ITE):
        magnitude = summand.arg(2)
        if z3.is_app_of(magnitude, z3.Z3_OP_ZERO_EXT):
            return int(magnitude.arg(0).size())
    return int(summand.size()) - 1


class Relating:
    """Links of single stages, whichever algorithm they are of."""

    argument: Pairing

    @property
    def kind(self) -> RunRelation:
        raise NotImplementedError

    def derive(
        self, stage: str, text: str, link: Link, given: Sequence[Link], inputs: Sequence[z3.ExprRef] = ()
    ) -> Link:
        return self.argument.derive(stage, text, [link], given, inputs)[0]

    # ---- products of the first run only, by their factors

    def zero_factors(self, x: Operand, y: Operand, zero: Link) -> Link:
        """Derives that the factors of a dropped product are finite and one is zero, from the claim about their
        codes."""
        flags = [flag for each in (x, y) for flag in (each.nan, each.infinite)]
        claim = all_of([*(z3.Not(f) for f in flags), z3.Or(x.significand == 0, y.significand == 0)])
        link = Link(claim, (*flags, x.significand, y.significand))
        text = "a dropped product has finite factors, one of them zero"
        return self.derive("decode", text, link, [zero], operand_codes(x, y))

    def adds_nothing(
        self, x: Operand, y: Operand, summand: z3.BitVecRef, e_max: z3.BitVecRef | None, zero: Link
    ) -> Link:
        """Derives that a dropped product adds nothing to a sum, from what is known of its factors."""
        inputs = [x.field, y.field, x.sign, y.sign, *([] if e_max is None else [e_max])]
        return self.derive_zero("align", "a dropped product adds nothing", summand, [zero], inputs)

    def derive_zero(
        self, stage: str, text: str, term: z3.BitVecRef, given: Sequence[Link], inputs: Sequence[z3.ExprRef]
    ) -> Link:
        link = Link(term == 0, (), ((term, z3.BitVecVal(0, term.size())),))
        return self.derive(stage, text, link, given, inputs)

    def below_another(
        self,
        x: Operand,
        y: Operand,
        product: Term,
        other: z3.BitVecRef,
        zero: Link,
        given: Sequence[Link],
        *inputs: NestedTerms,
    ) -> tuple[z3.BitVecRef, z3.BitVecRef, Link]:
        """Derives that a dropped product's exponent is at most another one of the first run's."""
        text = "the exponent of a dropped product is not above another"
        link = at_most(product.exponent, other)
        self.derive("align", text, link, [zero, *given], [x.field, y.field, *terms_of(*inputs)])
        return product.exponent, other, link

    # ---- stages

    def product(self, left: Term, right: Term, operands: NestedTerms, given: Sequence[Link]) -> Link:
        if all(x.eq(y) for x, y in zip(left, right, strict=True)) and isinstance(self.kind, Same):
            link = self.kind.term(left, right)
            return self.derive("identical", "a term is equal to itself", link, [], list(left))
        text = "products are related"
        return self.derive("multiply", text, self.kind.term(left, right), given, terms_of(*operands))

    def sum_of(
        self,
        left: z3.BitVecRef,
        right: z3.BitVecRef,
        order: Sequence[int],
        given: Sequence[Sequence[Link]],
        shared: Sequence[Link] = (),
        bits: int | None = None,
        nothing: Mapping[int, Callable[[z3.BitVecRef], Link]] | None = None,
    ) -> Link:
        """The link of two sums; summand j of the second is order[j] of the first, from the links given[j].

        `bits`: of the terms' magnitudes, where it matters that a negated sum is in range.  `nothing`: for summands
        of the first alone, the link that they are zero.
        """
        nothing = nothing or {}
        n = len(order)
        xs, ys = summands(left, n + len(nothing)), summands(right, n)
        if max(order) >= n + len(nothing):
            raise ArgumentError("a summand of one sum is a summand of another sum in the second run")
        if len(xs) != n + len(nothing) or len(ys) != n:
            links = [link for each in given for link in each]
            text = "the sums are related"
            return self.derive("accumulate", text, self.kind.summand(left, right), [*links, *shared])
        empty = {i: make(xs[i]) for i, make in nothing.items()}
        if left.size() != right.size():
            return self._wider_sum(xs, ys, order, [[*each, *shared] for each in given], empty)
        links = []
        for j, i in enumerate(order):
            text = "aligned terms are related"
            link = self.kind.summand(xs[i], ys[j], bits)
            if xs[i].eq(ys[j]) and isinstance(self.kind, Same):
                links.append(self.argument.identical(xs[i], ys[j]))
            else:
                links.append(self.derive("align", text, link, [*given[j], *shared]))
        if isinstance(self.kind, Same):
            return self.argument.permuted_sum(left, right, [*links, *empty.values()])
        return self.argument.opposite_sum(left, right, links, n, bits)

    def _wider_sum(
        self,
        xs: Sequence[z3.BitVecRef],
        ys: Sequence[z3.BitVecRef],
        order: Sequence[int],
        given: Sequence[Sequence[Link]],
        empty: Mapping[int, Link],
    ) -> Link:
        """Return the link that says that the first run's sum, in more bits, is the same number as the second's:
        partial sum by partial sum.

        The bits of a magnitude are those of the narrower run's summand that can be set.
        """
        place = {i: j for j, i in enumerate(order)}
        extra = xs[0].size() - ys[0].size()
        text = "a sum in more bits is the same number"
        running: Link | None = None
        x = y = None
        bound = 0
        for i, wide in enumerate(xs):
            x = wide if x is None else x + wide
            if i in empty:
                link = empty[i]
            else:
                narrow = ys[place[i]]
                y = narrow if y is None else y + narrow
                most = (1 << magnitude_bits(narrow)) - 1
                bound += most
                link = _extended(wide, narrow, extra, most)
                self.derive("align", "aligned terms are the same numbers", link, given[place[i]])
            assert y is not None, "the first summand is dropped"
            running, before = _extended(x, y, extra, bound), running
            self.derive("accumulate", text, running, [link] if before is None else [before, link])
        assert running is not None
        return running

    def sizes(
        self, left: z3.BitVecRef, right: z3.BitVecRef, total: Link, whole: bool = False, bounded: bool = False
    ) -> Link:
        """For opposite sums, that their magnitudes are one term, which is what is rounded.

        `whole`: all bits of it.  `bounded`: the sum is not the least number, so that it is zero if its magnitude is.
        """
        if isinstance(self.kind, Same):
            return self._same_size(left, right, total) if left.size() != right.size() else total
        (m, n), (other_m, other_n) = magnitude_and_sign(left, whole), magnitude_and_sign(right, whole)
        zeros = [(x == 0, m == 0) for x in (left, right)] if bounded else []
        claim = z3.And(m == other_m, z3.Or(n != other_n, m == 0), *(x == y for x, y in zeros))
        link = Link(claim, (m, n, other_n), ((other_m, m), *zeros))
        return self.derive("round", "opposite sums have the same magnitude", link, [total])

    def _same_size(self, left: z3.BitVecRef, right: z3.BitVecRef, total: Link) -> Link:
        (m, n), (other_m, other_n) = magnitude_and_sign(left), magnitude_and_sign(right)
        wide = z3.ZeroExt(left.size() - right.size(), other_m)
        link = Link(z3.And(m == wide, n == other_n), (other_m, other_n), ((m, wide), (n, other_n)))
        return self.derive("round", "the magnitudes are the same number", link, [total])


def magnitude_and_sign(total: z3.BitVecRef, whole: bool = False) -> tuple[z3.BitVecRef, z3.BitVecRef]:
    """(magnitude, sign) of a two's complement sum, as `normalise_and_round` has them."""
    width = total.size() - 1
    negative = z3.Extract(width, width, total)
    magnitude = negate_if(negative, total)
    return magnitude if whole else resize(magnitude, width), negative


def operand_codes(*operands: Operand) -> list[z3.ExprRef]:
    """The constants that operands are decoded from."""
    from mmaformal.solver.asking import constants_of

    found = {}
    for x in operands:
        for term in x:
            for constant in constants_of(term):
                found[constant.get_id()] = constant
    return list(found.values())
