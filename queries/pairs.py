"""Two runs in the SMT wing, the second on related inputs, and the argument that their results are related.

Step by step of the chain and stage by stage: each function derives, from links of what a stage reads, the link of
what it gives.  Everything is a lemma about fresh constants (`lemmas`), so a chain needs no induction beyond the
composition: a step's c is any code that is related to the other run's.

`Same` is for runs that are to give the same code: on permuted or exchanged products.  `Opposite` is for a run on
negated inputs: numbers are the negatives, NaNs stay NaNs, and the sign of a zero is left open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from mmaformal.algorithms import DotAdd
from mmaformal.encodings.smt import fdrda as smt_fdrda
from mmaformal.encodings.smt.blocks import (
    Operand,
    Special,
    StickySum,
    Term,
    all_of,
    any_of,
    negate_if,
    product_range,
    resize,
)
from mmaformal.encodings.smt.gps import flush
from mmaformal.encodings.smt.ieee import Addition
from mmaformal.formats import Format
from mmaformal.queries.failure import named
from mmaformal.queries.inputs import is_nan, magnitude_field
from mmaformal.queries.lanes import Tracer
from mmaformal.queries.lemmas import Argument, ArgumentError, Ledger, Lemma, Link, _is_maximum, at_most
from mmaformal.queries.sorted_pairs import same_number
from mmaformal.queries.stages import summands
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Portfolio


def same(left: z3.ExprRef, right: z3.ExprRef) -> Link:
    """That two terms are equal; where it is used, the right one is replaced by the left one.

    Raises ArgumentError if they are not of one sort.
    """
    if left.sort() != right.sort():
        widths = [f"{x.size()} bits" if z3.is_bv(x) else str(x.sort()) for x in (left, right)]
        raise ArgumentError(
            f"no lemma relates an interface of {widths[0]} in one run to one of {widths[1]} in the other, as where a "
            "product less makes a sum narrower"
        )
    return Link(right == left, (left,), ((right, left),))


def together(*links: Link) -> Link:
    """One link that says what all of them say."""
    return Link(
        all_of([link.claim for link in links]),
        tuple(term for link in links for term in link.free),
        tuple(pair for link in links for pair in link.defined),
    )


class Pairing(Argument):
    """An argument about two runs."""

    def __init__(self) -> None:
        super().__init__(Tracer())
        self._assumed: list[tuple[str, z3.BoolRef]] = []

    def assume(self, what: str, link: Link) -> Link:
        """A condition on the inputs under which the conclusion is claimed."""
        if link.defined:
            raise ArgumentError("what is assumed of the inputs is a claim, and determines nothing")
        self._assumed.append((what, self.letter(link)))
        return link

    def split(self, statement: str, terms: Sequence[z3.ExprRef], *links: Link) -> None:
        """That at least one of the links holds, whatever the terms."""
        self.derive("cases", statement, [Link(z3.Or([link.said for link in links]), ())], inputs=terms)
        self._steps[-1] = z3.Or([self.letter(link) for link in links])

    def split_given(self, statement: str, given: Link, *links: Link) -> None:
        """That at least one of the links follows from the given one."""
        self.derive("cases", statement, [Link(z3.Or([link.said for link in links]), ())], [given])
        self._steps[-1] = z3.Implies(self.letter(given), z3.Or([self.letter(link) for link in links]))

    def under(
        self, tree: z3.BitVecRef, terms: Sequence[z3.BitVecRef], wanted: Link, term: z3.BitVecRef
    ) -> None:
        """That a term is at most the maximum of all."""
        for each, link in zip(terms, self._not_below("align", "exponents", tree, terms), strict=True):
            if each.eq(term):
                self.derive("align", "a term's exponent is not above the largest", [wanted], [link])

    def conclude(self, link: Link, statement: str = "the results are related as claimed") -> None:
        """The conclusion follows from all derivations, and from what was assumed; each claim is a letter here."""
        assumed = [letter for _, letter in self._assumed]
        formula = z3.Implies(all_of([*assumed, *self._steps]), self.letter(link))
        given = [f"if {what}" for what in dict.fromkeys(what for what, _ in self._assumed)]
        self._add(Lemma("composition", ", ".join(["from all of these", *given, statement]), formula))

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
        """That the largest of both runs are equal, from the links of the right terms with left ones.

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
        if not (_is_maximum(left, left_terms) and _is_maximum(moved, matched)):
            return self.derive("align", text, [result], [*links, *(link for *_, link in below)], left_terms)[
                0
            ]
        what = "exponents"
        under_left = {
            term.get_id(): link
            for term, link in zip(left_terms, self._not_below("align", what, left, left_terms), strict=True)
        }
        under_moved = {
            term.get_id(): link
            for term, link in zip(matched, self._not_below("align", what, moved, matched), strict=True)
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
        """That a maximum is at most what each of its terms, by their ids, is at most."""
        return self._not_above("align", "exponents", tree, bound, below)

    def identical(self, left: z3.ExprRef, right: z3.ExprRef) -> Link:
        """That two terms are one and the same."""
        link = same(left, right)
        self.derive("identical", "a term is equal to itself", [link], inputs=[left])
        return link

    def permuted_sum(
        self, left: z3.BitVecRef, right: z3.BitVecRef, links: Sequence[Link], what: str = "aligned terms"
    ) -> Link:
        """That two sums of the same terms are equal, from the links of the right summands."""
        text = f"{what}: the order of summation does not matter"
        return self.derive("accumulate", text, [same(left, right)], links)[0]

    def opposite_sum(
        self,
        left: z3.BitVecRef,
        right: z3.BitVecRef,
        links: Sequence[Link],
        count: int,
        bits: int | None = None,
    ) -> Link:
        """That the sum of negated terms is the negated sum: partial sum by partial sum.

        With `bits`, the terms' magnitudes have no more than that, and the sum is far from the least number.
        """
        xs, ys = summands(left, count), summands(right, count)
        text = "the sum of negated terms is the negated sum"
        if len(xs) != count or len(ys) != count:
            return self.derive("accumulate", text, [opposite(left, right)], links)[0]
        x, y, running = xs[0], ys[0], links[0]
        for n, (u, v, link) in enumerate(zip(xs[1:], ys[1:], links[1:], strict=True), 2):
            x, y = x + u, y + v
            bound = None if bits is None else n * ((1 << bits) - 1)
            running = self.derive("accumulate", text, [opposite(x, y, bound)], [running, link])[0]
        return running

    def bounded(self, total: z3.BitVecRef, count: int) -> Link:
        """That a sum is not beyond what its terms' magnitudes add up to: partial sum by partial sum."""
        running: Link | None = None
        x, bound = None, 0
        for term in summands(total, count):
            most = (1 << _magnitude_bits(term)) - 1
            magnitudes = [term.arg(0), term.arg(2)] if z3.is_app_of(term, z3.Z3_OP_ITE) else [term]
            link = _within(term, most)
            inputs = [*magnitudes[:1], *(y.arg(0) if y.num_args() == 1 else y for y in magnitudes[1:])]
            self.derive("accumulate", "a term is within its bits", [link], [], inputs)
            x, bound = term if x is None else x + term, bound + most
            before, running = running, _within(x, bound)
            text = "a partial sum is within the sum of bounds"
            self.derive("accumulate", text, [running], [link] if before is None else [before, link])
        assert running is not None
        return running


def opposite(left: z3.BitVecRef, right: z3.BitVecRef, bound: int | None = None) -> Link:
    """That two's complement terms are each other's negatives, and not beyond ±bound."""
    claim = right == -left
    if bound is not None:
        assert bound < 1 << (left.size() - 1), f"{bound} needs more than {left.size()} bits"
        claim = z3.And(claim, left <= bound, left >= -bound)
    return Link(claim, (left,), ((right, -left),))


# ---- how the two runs are related --------------------------------------------------------------------------------


class Same:
    """The second run is to give the same code as the first."""

    def code(self, left: z3.BitVecRef, right: z3.BitVecRef, fmt: Format) -> Link:
        return same(left, right)

    def operand(self, left: Operand, right: Operand) -> Link:
        return together(*(same(x, y) for x, y in zip(left, right, strict=True)))

    def term(self, left: Term, right: Term) -> Link:
        return together(*(same(x, y) for x, y in zip(left, right, strict=True)))

    def special(self, left: Special, right: Special) -> Link:
        return together(*(same(x, y) for x, y in zip(left, right, strict=True)))

    def summand(self, left: z3.BitVecRef, right: z3.BitVecRef, bits: int | None = None) -> Link:
        return same(left, right)


class Lenient(Same):
    """The same, but terms that are zero may have either sign."""

    def term(self, left: Term, right: Term) -> Link:
        claim = z3.Or(left.sign == right.sign, left.significand == 0)
        signs = Link(claim, (left.sign, right.sign, left.significand))
        return together(signs, same(left.exponent, right.exponent), same(left.significand, right.significand))


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
        return together(self._sign(left, right), *links, infinity)

    def term(self, left: Term, right: Term) -> Link:
        return together(
            self._sign(left, right),
            same(left.exponent, right.exponent),
            same(left.significand, right.significand),
        )

    @staticmethod
    def _sign(left: Any, right: Any) -> Link:
        claim = z3.Or(left.sign != right.sign, left.significand == 0)
        return Link(claim, (left.sign, right.sign, left.significand))

    def special(self, left: Special, right: Special) -> Link:
        """Infinities change places; and there is at most one special value."""
        exclusive = z3.Not(z3.And(left.positive_infinity, left.negative_infinity))
        return together(
            same(left.nan, right.nan),
            same(left.positive_infinity, right.negative_infinity),
            same(left.negative_infinity, right.positive_infinity),
            Link(exclusive, (left.positive_infinity, left.negative_infinity)),
        )

    def summand(self, left: z3.BitVecRef, right: z3.BitVecRef, bits: int | None = None) -> Link:
        """Opposite numbers, of a magnitude of so many bits."""
        return opposite(left, right, None if bits is None else (1 << bits) - 1)


Kind = Same | Opposite


# ---- the algorithms ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Runs:
    """Two traces; product j of the second is `match[j]` of the first, both counted over all K."""

    kind: Kind
    left_spec: DotAdd
    right_spec: DotAdd
    left: Any
    right: Any
    match: Sequence[int]
    dropped: Mapping[int, Link] = field(
        default_factory=dict
    )  #: products only of the first run: that each is zero
    nans_keep_sign: bool = False  #: whether the negative of a NaN code of a may be the same NaN


def _terms(*parts: Any) -> list[z3.ExprRef]:
    """All terms in nested tuples."""
    out: list[z3.ExprRef] = []
    for part in parts:
        out += _terms(*part) if isinstance(part, (tuple, list)) else [part]
    return out


def _extended(wide: z3.BitVecRef, narrow: z3.BitVecRef, extra: int, bound: int) -> Link:
    """That two's complement terms are the same number, not beyond ±bound."""
    same_number = z3.SignExt(extra, narrow)
    claim = z3.And(wide == same_number, narrow <= bound, narrow >= -bound)
    return Link(claim, (narrow,), ((wide, same_number),))


def _within(x: z3.BitVecRef, bound: int) -> Link:
    return Link(z3.And(x <= bound, x >= -bound), (x,))


def _magnitude_bits(summand: z3.BitVecRef) -> int:
    """The bits of the magnitude in `If(sign, -x, x)`, x with zeros above it; all but the sign if it is not so made."""
    if z3.is_app_of(summand, z3.Z3_OP_ITE):
        magnitude = summand.arg(2)
        if z3.is_app_of(magnitude, z3.Z3_OP_ZERO_EXT):
            return int(magnitude.arg(0).size())
    return int(summand.size()) - 1


@dataclass
class Step:
    """One step of both runs, on the way from its c to its result."""

    argument: Pairing
    runs: Runs
    left: Any
    right: Any
    c: Link  #: of the codes
    order: Sequence[int]  #: product j of the second run's step is this one of the first's
    dropped: Mapping[int, Link] = field(
        default_factory=dict
    )  #: other products of the first's: that each is zero
    no_nan: dict[int, Link] = field(default_factory=dict)  #: that a flag is not set, where that is told apart

    @property
    def kind(self) -> Kind:
        return self.runs.kind

    def derive(
        self, stage: str, text: str, link: Link, given: Sequence[Link], inputs: Sequence[z3.ExprRef] = ()
    ) -> Link:
        return self.argument.derive(stage, text, [link], given, inputs)[0]

    def _number(self, x: Operand) -> list[Link]:
        return [self.no_nan[x.nan.get_id()]] if x.nan.get_id() in self.no_nan else []

    # ---- products of the first run only

    def zeros(self) -> dict[int, Link]:
        """For each dropped product, that its factors are finite and one is zero."""
        found = {}
        for i, zero in self.dropped.items():
            x, y = self.left.a[i], self.left.b[i]
            flags = [flag for each in (x, y) for flag in (each.nan, each.infinite)]
            claim = all_of([*(z3.Not(f) for f in flags), z3.Or(x.significand == 0, y.significand == 0)])
            link = Link(claim, (*flags, x.significand, y.significand))
            text = "a dropped product has finite factors, one of them zero"
            found[i] = self.derive("decode", text, link, [zero], operand_codes(x, y))
        return found

    def nothing(self, i: int, summand: z3.BitVecRef, e_max: z3.BitVecRef | None, zero: Link) -> Link:
        """That a dropped product adds nothing to a sum."""
        x, y = self.left.a[i], self.left.b[i]
        inputs = [x.field, y.field, x.sign, y.sign, *([] if e_max is None else [e_max])]
        link = Link(summand == 0, (), ((summand, z3.BitVecVal(0, summand.size())),))
        return self.derive("align", "a dropped product adds nothing", link, [zero], inputs)

    def quiet(self, i: int, zero: Link) -> Link:
        """That a dropped product is no infinity by its size."""
        x, y, product = self.left.a[i], self.left.b[i], self.left.products[i]
        link = Link(
            z3.And(product.significand == 0, product.exponent == 0), (product.exponent, product.significand)
        )
        text = "a dropped product is zero, with the least exponent"
        return self.derive("multiply", text, link, [zero], [x.field, y.field])

    def not_largest(
        self, i: int, product: Term, other: z3.BitVecRef, zero: Link, given: Sequence[Link], *inputs: Any
    ) -> tuple[Any, Any, Link]:
        """That a dropped product's exponent is at most another one of the first run's."""
        text = "the exponent of a dropped product is not above another"
        x, y = self.left.a[i], self.left.b[i]
        link = at_most(product.exponent, other)
        self.derive("align", text, link, [zero, *given], [x.field, y.field, *_terms(*inputs)])
        return product.exponent, other, link

    # ---- stages

    def operand_c(self) -> Link:
        text = "c is decoded to related operands"
        return self.derive(
            "decode", text, self.kind.operand(self.left.c, self.right.c), [self.c, *self._number(self.left.c)]
        )

    def factors(self) -> list[Link]:
        """The links of all a, by the second run's order, where they are not the same terms or exchanged ones."""
        if isinstance(self.kind, Same):
            return []
        links = []
        for j, i in enumerate(self.order):
            mine, other = self.left.a[i], self.right.a[j]
            link, codes = self.kind.operand(mine, other), operand_codes(mine, other)
            text = "negated codes are decoded to related operands"
            links.append(self.derive("decode", text, link, self._number(mine), codes))
        return links

    def special(self, given: Sequence[Link], *inputs: Any) -> Link:
        """Inputs are operands that are the same in both runs."""
        text = "special values are related"
        return self.derive(
            "classify", text, self.kind.special(self.left.special, self.right.special), given, _terms(*inputs)
        )

    def product(self, left: Any, right: Any, operands: Sequence[Any], given: Sequence[Link]) -> Link:
        if all(x.eq(y) for x, y in zip(left, right, strict=True)) and isinstance(self.kind, Same):
            link = self.kind.term(left, right)
            return self.derive("identical", "a term is equal to itself", link, [], list(left))
        text = "products are related"
        return self.derive("multiply", text, self.kind.term(left, right), given, _terms(*operands))

    def addend(self, c: Link) -> Link:
        text = "c is a related term"
        return self.derive("multiply", text, self.kind.term(self.left.addend, self.right.addend), [c])

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
        """That the first run's sum, in more bits, is the same number as the second's: partial sum by partial sum.

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
                most = (1 << _magnitude_bits(narrow)) - 1
                bound += most
                link = _extended(wide, narrow, extra, most)
                self.derive("align", "aligned terms are the same numbers", link, given[place[i]])
            assert y is not None, "the first summand is dropped"
            running, before = _extended(x, y, extra, bound), running
            self.derive("accumulate", text, running, [link] if before is None else [before, link])
        assert running is not None
        return running

    def bounded_groups(self, groups: Sequence[Link]) -> Link:
        """That the sum of two groups' sums, cut, is within the sum of their bounds."""
        right, bits = (
            self.right,
            _magnitude_bits(summands(self.right.groups[0], len(self.right.aligned[::2]))[0]),
        )
        bound = len(right.aligned) * ((1 << bits) - 1)
        inputs = [*right.e_groups, right.e_products]
        text = "a sum of groups is within the sum of their bounds"
        return self.derive("accumulate", text, _within(right.dot, bound), groups, inputs)

    def largest(
        self,
        left: z3.BitVecRef,
        lefts: Sequence[Any],
        right: z3.BitVecRef,
        rights: Sequence[Any],
        links: Sequence[Link],
        below: Sequence[tuple[Any, Any, Link]] = (),
    ) -> Link:
        return self.argument.maxima(left, lefts, right, rights, links, below)

    def result(self, total: Link, given: Sequence[Link], totals: tuple[Any, Any] | None = None) -> Link:
        """The link of the results, from that of the sums and whatever else they are made of."""
        link = self.kind.code(self.left.result, self.right.result, self.runs.left_spec.d_format)
        if totals is not None:
            total = self.sizes(*totals, total)
        return self.derive("round", "related sums are rounded to related results", link, [total, *given])

    def sizes(
        self, left: z3.BitVecRef, right: z3.BitVecRef, total: Link, whole: bool = False, bounded: bool = False
    ) -> Link:
        """For opposite sums, that their magnitudes are one term, which is what is rounded.

        `whole`: all bits of it.  `bounded`: the sum is not the least number, so that it is zero if its magnitude is.
        """
        if isinstance(self.kind, Same):
            return self._same_size(left, right, total) if left.size() != right.size() else total
        (m, n), (other_m, other_n) = _magnitude(left, whole), _magnitude(right, whole)
        zeros = [(x == 0, m == 0) for x in (left, right)] if bounded else []
        claim = z3.And(m == other_m, z3.Or(n != other_n, m == 0), *(x == y for x, y in zeros))
        link = Link(claim, (m, n, other_n), ((other_m, m), *zeros))
        return self.derive("round", "opposite sums have the same magnitude", link, [total])

    def _same_size(self, left: z3.BitVecRef, right: z3.BitVecRef, total: Link) -> Link:
        (m, n), (other_m, other_n) = _magnitude(left), _magnitude(right)
        wide = z3.ZeroExt(left.size() - right.size(), other_m)
        link = Link(z3.And(m == wide, n == other_n), (other_m, other_n), ((m, wide), (n, other_n)))
        return self.derive("round", "the magnitudes are the same number", link, [total])


def _magnitude(total: z3.BitVecRef, whole: bool = False) -> tuple[z3.BitVecRef, z3.BitVecRef]:
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


def _fda(step: Step) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b, left.scale_a, left.scale_b, right.scale_a, right.scale_b]
    terms = []
    for j, i in enumerate(step.order):
        own = [left.a[i], left.b[i], right.a[j], right.b[j]]
        own += [x for s in (left.scale_a, left.scale_b) for x in s[i : i + 1]]
        own += [x for s in (right.scale_a, right.scale_b) for x in s[j : j + 1]]
        given = [factors[j]] if factors else []
        terms.append(step.product(left.products[i], right.products[j], own, given))
    special = step.special([c, *factors, *terms, *zeros.values()], operands)
    return _fused(step, left.products, right.products, terms, c, special, step.order, zeros)


def _fused(
    step: Step,
    lefts: Any,
    rights: Any,
    terms: list[Link],
    c: Link,
    special: Link,
    order: Sequence[int],
    zeros: Mapping[int, Link] | None = None,
) -> Link:
    """Align, accumulate and round terms and c."""
    left, right, zeros = step.left, step.right, zeros or {}
    addend = step.addend(c)
    exponents = [[*(t.exponent for t in ts), s.addend.exponent] for ts, s in ((lefts, left), (rights, right))]
    below = [
        step.not_largest(
            i,
            lefts[i],
            left.addend.exponent,
            zero,
            [step.c],
            *left.scale_a[i : i + 1],
            *left.scale_b[i : i + 1],
        )
        for i, zero in zeros.items()
    ]
    e_max = step.largest(left.e_max, exponents[0], right.e_max, exponents[1], [*terms, addend], below)
    nothing = _nothing(step, zeros, left.e_max)
    total = step.sum_of(
        left.total,
        right.total,
        [*order, len(lefts)],
        [[t] for t in (*terms, addend)],
        [e_max],
        nothing=nothing,
    )
    return step.result(total, [e_max, special], (left.total, right.total))


def _gdfs(step: Step) -> Link:
    left, right = step.left, step.right
    G = step.runs.left_spec.parameters.G  # type: ignore[attr-defined]
    c, factors = step.operand_c(), step.factors()
    scales = [left.scale_a, left.scale_b, right.scale_a, right.scale_b]
    special = step.special([c], scales)
    groups, order, zeros = [], [], step.zeros()
    n = len(step.order) // len(left.groups)  # products of the second run's groups
    for g in range(len(left.groups)):
        mine = range(g * n, (g + 1) * n)
        h = step.order[g * n] // G  # the first run's group that this one of the second is
        order.append(h)
        inside = [step.order[j] - h * G for j in mine]
        gone = {i: zero for i, zero in zeros.items() if i // G == h}
        links = []
        for i in gone:
            magnitude = left.products[i][1]
            none = Link(magnitude == 0, (), ((magnitude, z3.BitVecVal(0, magnitude.size())),))
            codes = operand_codes(left.a[i], left.b[i])
            links.append(step.derive("multiply", "a dropped product is zero", none, [step.dropped[i]], codes))
        nothing = _nothing(step, gone, None, _inside(h * G))
        for j in mine:
            i = step.order[j]
            x, y = left.products[i], right.products[j]
            pair = Term(x[0], x[1], x[1]), Term(y[0], y[1], y[1])  # no exponent: it is fixed point
            own = [left.a[i], left.b[i], right.a[j], right.b[j]]
            links.append(step.product(*pair, own, [factors[j]] if factors else []))
        given = [[link] for link in links[-n:]]
        total = step.sum_of(left.sums[h], right.sums[g], inside, given, nothing=nothing)
        own = [x[i] for x, i in zip(scales, (h, h, g, g), strict=True)]
        groups.append(
            step.product(
                left.groups[h], right.groups[g], own, [step.sizes(left.sums[h], right.sums[g], total), *links]
            )
        )
    return _fused(step, left.groups, right.groups, groups, c, special, order)


def _inside(first: int) -> Callable[[int], int]:
    """The place of a product in its group."""
    return lambda i: i - first


def _products(step: Step, factors: Sequence[Link]) -> list[Link]:
    left, right = step.left, step.right
    return [
        step.product(
            left.products[i],
            right.products[j],
            [left.a[i], left.b[i], right.a[j], right.b[j]],
            [factors[j]] if factors else [],
        )
        for j, i in enumerate(step.order)
    ]


def _fdrda(step: Step) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b]
    terms = _products(step, factors)
    quiet = [step.quiet(i, zero) for i, zero in zeros.items()]
    special = step.special([c, *factors, *terms, *zeros.values(), *quiet], operands)
    exponents = [[p.exponent for p in s.products] for s in (left, right)]
    if hasattr(left, "groups"):
        dot, e_products = _groups(step, terms, exponents, zeros)
    else:
        below = [step.not_largest(i, left.products[i], exponents[0][0], z, []) for i, z in zeros.items()]
        tops = left.e_products, exponents[0], right.e_products, exponents[1]
        e_products = step.largest(*tops, terms, below)
        given = [[t] for t in terms]
        nothing = _nothing(step, zeros, left.e_products)
        dot = step.sum_of(left.dot, right.dot, step.order, given, [e_products], nothing=nothing)
    e_dot = step.derive(
        "align",
        "the exponents of the dot products are equal",
        same(left.e_dot, right.e_dot),
        [e_products, *factors, *zeros.values()],
        _terms(operands),
    )
    addend = step.addend(c)
    if left.total.size() == right.total.size():
        return step.result(dot, [e_dot, addend, special])
    extra = left.total.size() - right.total.size()
    if not hasattr(right, "groups"):
        bounds = [step.argument.bounded(right.dot, len(right.products))]
    else:
        each = [step.argument.bounded(x, len(right.aligned[g::2])) for g, x in enumerate(right.groups)]
        bounds = [step.bounded_groups(each)]
    e_max = step.derive(
        "align", "the largest exponents are equal", same(left.e_max, right.e_max), [e_dot, addend]
    )
    wide = z3.SignExt(extra, right.total)
    least = -1 << (right.total.size() - 1)
    claim = z3.And(left.total == wide, right.total != least)
    total = Link(claim, (right.total,), ((left.total, wide),))
    step.derive(
        "accumulate", "the sums with c are the same number", total, [dot, *bounds, e_dot, addend, e_max]
    )
    reach = _reach(step)
    return step.result(total, [e_max, special, *reach], (left.total, right.total))


def _reach(step: Step) -> list[Link]:
    """That the first run's largest exponent is in the range that exponents are held in."""
    left, spec = step.left, step.runs.left_spec
    own, wide = product_range(spec.a_format, spec.b_format), smt_fdrda.exponents_of(spec)
    if hasattr(left, "groups"):
        return []  # the bits of exponents hold nothing else
    highest = z3.BitVecVal(own.high - own.low, own.bits)
    below = {}
    for x, y, product in zip(left.a, left.b, left.products, strict=True):
        link = at_most(product.exponent, highest)
        codes = operand_codes(x, y)
        below[product.exponent.get_id()] = step.derive("multiply", "exponents are in range", link, [], codes)
    text = "the largest exponents are in range"
    top = step.argument.at_most_all(left.e_products, highest, below)
    last = z3.BitVecVal(wide.high - wide.low, wide.bits)
    operands = _terms([left.a, left.b])
    dot = step.derive("align", text, at_most(left.e_dot, last), [top], operands)
    c = step.derive("multiply", "c's exponent is in range", at_most(left.addend.exponent, last), [step.c])
    first = z3.BitVecVal(spec.c_format.min_exponent - wide.low, wide.bits)
    low = step.derive("multiply", "c's exponent is in range", at_most(first, left.addend.exponent), [step.c])
    return [
        step.derive("align", text, at_most(left.e_max, last), [dot, c]),
        step.derive("align", text, at_most(first, left.e_max), [low], [left.e_dot]),
    ]


def _nothing(
    step: Step,
    zeros: Mapping[int, Link],
    e_max: z3.BitVecRef | None,
    place: Callable[[int], int] = lambda i: i,
) -> dict[int, Callable[[z3.BitVecRef], Link]]:
    """For dropped products, by the places of their summands, the link that these are zero."""

    def make(i: int, zero: Link) -> Callable[[z3.BitVecRef], Link]:
        return lambda x: step.nothing(i, x, e_max, zero)

    return {place(i): make(i, zero) for i, zero in zeros.items()}


def _groups(
    step: Step, terms: Sequence[Link], exponents: Sequence[Sequence[Any]], zeros: Mapping[int, Link]
) -> tuple[Link, Link]:
    left, right = step.left, step.right
    sums, tops = [], []
    count = len(left.groups)
    for g in range(count):
        mine = range(g, len(step.order), count)
        links = [terms[j] for j in mine]
        lefts = exponents[0][g::count]
        rights = [exponents[1][k] for k in mine]
        own = {i: zero for i, zero in zeros.items() if i % count == g}
        below = [step.not_largest(i, left.products[i], lefts[0], zero, []) for i, zero in own.items()]
        top = step.largest(left.e_groups[g], lefts, right.e_groups[g], rights, links, below)
        inside = [step.order[j] // count for j in mine]
        nothing = _nothing(step, own, left.e_groups[g], lambda i: i // count)
        given = [[t] for t in links]
        sums.append(step.sum_of(left.groups[g], right.groups[g], inside, given, [top], nothing=nothing))
        tops.append(top)
    e_products = step.largest(left.e_products, left.e_groups, right.e_products, right.e_groups, tops)
    dot = step.sum_of(
        left.dot,
        right.dot,
        list(range(count)),
        [[s, t] for s, t in zip(sums, tops, strict=True)],
        [e_products],
    )
    return dot, e_products


def _efda(step: Step) -> Link:
    left, right = step.left, step.right
    c, factors, zeros = step.operand_c(), step.factors(), step.zeros()
    operands = [left.a, left.b, right.a, right.b]
    terms = _products(step, factors)
    special = step.special([c, *factors, *terms, *zeros.values()], operands)
    addend = step.addend(c)
    if hasattr(left, "placed"):
        nothing = _nothing(step, zeros, None)
        dot = step.sum_of(left.dot, right.dot, step.order, [[t] for t in terms], nothing=nothing)
        term = step.derive("multiply", "sums are related terms", step.kind.term(left.term, right.term), [dot])
        return _rounded(step, left.sum, right.sum, [term, addend], [special])
    links, permuted = [], isinstance(step.kind, Same) and list(step.order) != sorted(step.order)
    for j, i in enumerate(step.order):
        link = step.kind.term(left.terms[i], right.terms[j])
        links.append(step.derive("align", "normalised terms are related", link, [terms[j]]))
    for i, zero in zeros.items():  # the second run has a constant zero in its place
        x, y = left.a[i], left.b[i]
        link = step.kind.term(left.terms[i], right.terms[i])
        links.append(step.derive("align", "a dropped product is zero", link, [zero], [x.field, y.field]))
    link = step.kind.term(left.terms[-1], right.terms[-1])
    links.append(step.derive("align", "normalised terms are related", link, [addend]))
    if permuted:
        codes = [*(operand_codes(x, y) for x, y in zip(left.a, left.b, strict=True)), []]
        number = same_number(step, links, codes)
        text, result = "one number in two units is rounded alike", same(left.result, right.result)
        return step.derive("round", text, result, [number, special])
    sorted_ = []
    for x, y in zip(left.sorted, right.sorted, strict=True):
        sorted_.append(step.derive("align", "terms are sorted alike", step.kind.term(x, y), links))
    partial = step.kind.summand(left.partial.total, right.partial.total)
    e_partial = same(left.partial.e_max, right.partial.e_max)
    step.derive("accumulate", "partial sums are related", partial, sorted_)
    step.derive("accumulate", "partial sums are at the same exponent", e_partial, sorted_)
    sizes = step.sizes(left.partial.total, right.partial.total, partial)
    normal = step.kind.term(left.normal, right.normal)
    step.derive("accumulate", "partial sums are normalised alike", normal, [sizes, e_partial])
    return _sorted_result(step, [normal, *sorted_], special)


def _sorted_result(step: Step, given: Sequence[Link], special: Link) -> Link:
    x, y = step.left.sum, step.right.sum
    e_max, total = same(x.e_max, y.e_max), step.kind.summand(x.total, y.total, x.total.size() - 1)
    step.derive("accumulate", "sums are at the same exponent", e_max, given)
    step.derive("accumulate", "sums are related", total, given)
    result = step.kind.code(step.left.result, step.right.result, step.runs.left_spec.d_format)
    sizes = step.sizes(x.total, y.total, total, whole=True)
    return step.derive(
        "round", "related sums are rounded to related results", result, [sizes, e_max, special]
    )


def _rounded(step: Step, x: StickySum, y: StickySum, terms: Sequence[Link], given: Sequence[Link]) -> Link:
    """The link of the results, from the links of two terms that are added."""
    e_max = step.derive("align", "the sums are at the same exponent", same(x.e_max, y.e_max), terms)
    total = step.kind.summand(x.total, y.total, x.total.size() - 1)
    if isinstance(step.kind, Opposite):
        aligned = []
        for mine, other, term in ((x.x, y.x, terms[0]), (x.y, y.y, terms[1])):
            signs = term.free[:2]  # of `Opposite.term`
            flip = z3.Or(signs[0] != signs[1], mine == 0)
            link = Link(z3.And(mine == other, flip), (mine, *signs), ((other, mine),))
            aligned.append(step.derive("align", "aligned terms are opposite", link, [term, e_max]))
        step.derive("accumulate", "the sums are related", total, aligned)
    else:
        step.derive("accumulate", "the sums are related", total, [*terms, e_max])
    sizes = step.sizes(x.total, y.total, total, bounded=True)
    return step.result(sizes, [e_max, *terms, *given])


def _sfma(step: Step) -> Link:
    left, right = step.left, step.right
    c = step.operand_c()
    given = []
    if isinstance(step.kind, Opposite):
        codes = operand_codes(left.a, right.a)
        text = "negated codes are decoded to related operands"
        given.append(step.derive("decode", text, step.kind.operand(left.a, right.a), [], codes))
    operands = [left.a, left.b, right.a, right.b]
    product = step.product(left.product, right.product, operands, given)
    special = step.special([c, *given, product], operands)
    return _rounded(step, left.sum, right.sum, [product, step.addend(c)], [special])


def _gps(step: Step) -> Link:
    left, right, kind, fmt = step.left, step.right, step.kind, step.runs.left_spec.d_format
    G = len(step.order)
    codes: list[Link] = []
    factors = step.factors()
    for j, i in enumerate(step.order):
        link = kind.code(left.products[i], right.products[j], fmt)
        operands = _terms(left.a[i], left.b[i], right.a[j], right.b[j])
        codes.append(
            step.derive("multiply", "products are related", link, [factors[j]] if factors else [], operands)
        )
    # Sums of pairs, then of pairs of those: `order` are the places of the second run's numbers in the first.
    order, n, at = list(step.order), G, 0
    while n > 1:
        n //= 2
        pairs = []
        for j in range(n):
            i = order[2 * j] // 2
            pairs.append(_addition(step, left.sums[at + i], right.sums[at + j], codes[2 * j : 2 * j + 2]))
            order[j] = i
        codes, at = pairs, at + n
    return _addition(step, left.addition, right.addition, [step.c, *codes])


def _addition(step: Step, left: Addition, right: Addition, given: Sequence[Link]) -> Link:
    """The link of two sums of gps, flushed."""
    kind, fmt = step.kind, step.runs.left_spec.d_format
    link = kind.code(left.result, right.result, fmt)
    step.derive("accumulate", "sums of related numbers are related", link, given)
    x, y = (flush(each.result, keep_sign=True) for each in (left, right))
    return step.derive("encode", "flushed alike", kind.code(x, y, fmt), [link])


def _lowered(step: Step) -> Link:
    left, right, runs = step.left, step.right, step.runs
    specs = runs.left_spec, runs.right_spec
    (inner, other), (order, other_order) = (
        [spec.parameters.inner_dot_add(spec) for spec in specs],  # type: ignore[attr-defined]
        [spec.parameters.order for spec in specs],  # type: ignore[attr-defined]
    )
    zero = z3.BitVecVal(0, runs.left_spec.d_format.storage_bits)
    # order[t] is the place of the t-th product taken; the second run's t-th is the first's at[t]-th.
    at = [order.index(step.order[k]) for k in other_order]
    dropped = {order.index(k): link for k, link in step.dropped.items()}
    dot = step.kind.code(zero, zero, runs.left_spec.d_format)
    step.derive("inputs", "the inner steps start from +0", dot, [])
    dot = _chain(
        step.argument, Runs(step.kind, inner, other, left.inner, right.inner, at, dropped, True), dot
    )
    link = step.kind.code(left.result, right.result, runs.left_spec.d_format)
    return step.derive("accumulate", "sums of related numbers are related", link, [dot, step.c])


_STEPS: dict[str, Callable[[Step], Link]] = {
    "fda": _fda,
    "gdfs": _gdfs,
    "fdrda": _fdrda,
    "gfdrda": _fdrda,
    "efda": _efda,
    "sfma": _sfma,
    "gps": _gps,
    "lowered": _lowered,
}


def _chain(argument: Pairing, runs: Runs, c: Link) -> Link:
    """From the link of c, step by step, to that of d.

    Raises ArgumentError if products are not matched within steps.
    """
    n, m = (spec.parameters.step_products for spec in (runs.left_spec, runs.right_spec))
    for s, (left, right) in enumerate(zip(runs.left, runs.right, strict=True)):
        order = [k - s * n for k in runs.match[s * m : (s + 1) * m]]
        if not all(0 <= k < n for k in order):
            raise ArgumentError("no argument is known where products change from one step to another")
        dropped = {k - s * n: link for k, link in runs.dropped.items() if s * n <= k < (s + 1) * n}
        step = Step(argument, runs, left, right, c, order, dropped)
        if isinstance(runs.kind, Opposite) and isinstance(getattr(left, "c", None), Operand):
            c = _unless_nan(step)
        else:
            c = _STEPS[runs.left_spec.parameters.algorithm](step)
    return c


def _unless_nan(step: Step) -> Link:
    """The link of the results: that of numbers if there is no NaN to keep its sign, else that both are NaN."""
    left, right, argument = step.left, step.right, step.argument
    pairs = [(left.c, right.c)]
    if step.runs.nans_keep_sign:
        pairs += [(left.a[i], right.a[j]) for j, i in enumerate(step.order)]
    flags = [x.nan for x, _ in pairs if not z3.is_false(x.nan)]
    some, none = Link(any_of(flags), ()), Link(all_of([z3.Not(flag) for flag in flags]), ())
    argument.split("there is a NaN or not", flags, some, none)

    alike = []
    for x, y in pairs:
        if not z3.is_false(x.nan):
            link = Link(x.nan == y.nan, (x.nan, y.nan))
            given, inputs = ([step.c], []) if x is left.c else ([], operand_codes(x, y))
            alike.append(step.derive("classify", "negated NaNs are NaNs", link, given, inputs))
    yes, nans = z3.BoolVal(True), (left.special.nan, right.special.nan)
    both_nan = Link(z3.And(*nans), (), tuple((nan, yes) for nan in nans))
    step.derive("classify", "a NaN makes the result a NaN", both_nan, [*alike, some])
    result = step.kind.code(left.result, right.result, step.runs.left_spec.d_format)
    step.derive("encode", "two NaN results are related", result, [both_nan])

    for flag in flags:
        link = Link(z3.Not(flag), ())
        step.no_nan[flag.get_id()] = step.derive("cases", "none is a NaN", link, [none], flags)
    return _STEPS[step.runs.left_spec.parameters.algorithm](step)


def argue(
    runs: Runs, c: Link, statement: str, argument: Pairing, results: tuple[z3.BitVecRef, z3.BitVecRef]
) -> Pairing:
    """The argument that the results of both runs are related, from the link of both c.

    Whatever the last step gives: it is the codes of d that are to be related.
    """
    argument.interfaces = lambda: (*named("first.steps", runs.left), *named("second.steps", runs.right))
    _chain(argument, runs, c)
    argument.conclude(runs.kind.code(*results, runs.left_spec.d_format), statement)
    return argument


# ---- proving -----------------------------------------------------------------------------------------------------

_LEDGERS: dict[int, tuple[Portfolio, Ledger]] = {}


def ledger(asker: Asker) -> Ledger:
    """What was proved with one portfolio, so that it is not asked again; kept for the last portfolio only."""
    key = id(asker.portfolio)
    if key not in _LEDGERS:
        _LEDGERS.clear()
        _LEDGERS[key] = asker.portfolio, Ledger()
    return _LEDGERS[key][1]


def prove(asker: Asker, *arguments: Argument) -> Proof:
    """Prove every lemma of the arguments.  Raises UnprovedError."""
    obligations = {}
    for argument in arguments:
        for obligation in ledger(asker).settle(asker, argument):
            obligations[obligation.digest, obligation.name] = obligation
    return Proof(tuple(obligations.values()))
