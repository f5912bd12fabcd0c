"""Steps of two runs on related inputs, of algorithms that do not record their stages: fdrda, gfdrda and dpa_e9s12."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import z3

from mmaformal.cases.interfaces import AddsC, AnyStep, Decodes, Judged, Multiplies
from mmaformal.encodings.gfdrda import smt as gfdrda
from mmaformal.encodings.smt.blocks import Operand, StickySum, Term
from mmaformal.proof.encoding_links import summands
from mmaformal.proof.kernel import Link
from mmaformal.proof.lemmas import within
from mmaformal.proof.related_runs import (
    NestedTerms,
    Opposite,
    Pairing,
    Relating,
    RunRelation,
    Runs,
    Same,
    magnitude_bits,
    operand_codes,
    same,
    terms_of,
)

StepT = TypeVar("StepT", bound=AnyStep, covariant=True)


@dataclass
class RelatedStep(Relating, Generic[StepT]):
    """One step of both runs, on the way from its c to its result."""

    argument: Pairing
    runs: Runs
    left: StepT
    right: StepT
    c: Link  #: of the codes
    order: Sequence[int]  #: product j of the second run's step is this one of the first's
    dropped: Mapping[int, Link] = field(
        default_factory=dict
    )  #: other products of the first's: that each is zero
    no_nan: dict[int, Link] = field(
        default_factory=dict
    )  #: that a flag is not set, where that is distinguished

    @property
    def kind(self) -> RunRelation:
        return self.runs.kind

    def number(self, x: Operand) -> list[Link]:
        """Derives that an operand is no NaN, where that is distinguished."""
        return [self.no_nan[x.nan.get_id()]] if x.nan.get_id() in self.no_nan else []

    # ---- products of the first run only

    def zeros(self: RelatedStep[Decodes]) -> dict[int, Link]:
        """For each dropped product, that its factors are finite and one is zero."""
        return {
            i: self.zero_factors(self.left.a[i], self.left.b[i], zero) for i, zero in self.dropped.items()
        }

    def nothing(
        self: RelatedStep[Decodes], i: int, summand: z3.BitVecRef, e_max: z3.BitVecRef | None, zero: Link
    ) -> Link:
        """Derives that a dropped product adds nothing to a sum."""
        return self.adds_nothing(self.left.a[i], self.left.b[i], summand, e_max, zero)

    def quiet(self: RelatedStep[Multiplies], i: int, zero: Link) -> Link:
        """Return the link that says that a dropped product is no infinity by its size."""
        x, y, product = self.left.a[i], self.left.b[i], self.left.products[i]
        link = Link(
            z3.And(product.significand == 0, product.exponent == 0), (product.exponent, product.significand)
        )
        text = "a dropped product is zero, with the least exponent"
        return self.derive("multiply", text, link, [zero], [x.field, y.field])

    def not_largest(
        self: RelatedStep[Decodes], i: int, product: Term, other: z3.BitVecRef, zero: Link
    ) -> tuple[z3.BitVecRef, z3.BitVecRef, Link]:
        """Derives that a dropped product's exponent is at most another one of the first run's."""
        return self.below_another(self.left.a[i], self.left.b[i], product, other, zero, [])

    # ---- stages

    def operand_c(self: RelatedStep[AddsC]) -> Link:
        text = "c is decoded to related operands"
        return self.derive(
            "decode", text, self.kind.operand(self.left.c, self.right.c), [self.c, *self.number(self.left.c)]
        )

    def factors(self: RelatedStep[Decodes]) -> list[Link]:
        """The links of all a, by the second run's order, where they are not the same terms or exchanged ones."""
        if isinstance(self.kind, Same):
            return []
        links = []
        for j, i in enumerate(self.order):
            mine, other = self.left.a[i], self.right.a[j]
            link, codes = self.kind.operand(mine, other), operand_codes(mine, other)
            text = "negated codes are decoded to related operands"
            links.append(self.derive("decode", text, link, self.number(mine), codes))
        return links

    def special(self: RelatedStep[Judged], given: Sequence[Link], *inputs: NestedTerms) -> Link:
        """Inputs are operands that are the same in both runs."""
        text = "special values are related"
        return self.derive(
            "classify",
            text,
            self.kind.special(self.left.special, self.right.special),
            given,
            terms_of(*inputs),
        )

    def addend(self: RelatedStep[AddsC], c: Link) -> Link:
        text = "c is a related term"
        return self.derive("multiply", text, self.kind.term(self.left.addend, self.right.addend), [c])

    def bounded_groups(self: RelatedStep[gfdrda.GfdrdaStep], groups: Sequence[Link]) -> Link:
        """Return the link that says that the sum of two groups' sums, cut, is within the sum of their bounds."""
        right, bits = (
            self.right,
            magnitude_bits(summands(self.right.groups[0], len(self.right.aligned[::2]))[0]),
        )
        bound = len(right.aligned) * ((1 << bits) - 1)
        inputs = [*right.e_groups, right.e_products]
        text = "a sum of groups is within the sum of their bounds"
        return self.derive("accumulate", text, within(right.dot, bound), groups, inputs)

    def largest(
        self,
        left: z3.BitVecRef,
        lefts: Sequence[z3.BitVecRef],
        right: z3.BitVecRef,
        rights: Sequence[z3.BitVecRef],
        links: Sequence[Link],
        below: Sequence[tuple[z3.BitVecRef, z3.BitVecRef, Link]] = (),
    ) -> Link:
        return self.argument.maxima(left, lefts, right, rights, links, below)

    def result(
        self,
        total: Link,
        given: Sequence[Link],
        totals: tuple[z3.BitVecRef, z3.BitVecRef] | None = None,
    ) -> Link:
        """The link of the results, from that of the sums and whatever else they are made of."""
        link = self.kind.code(self.left.result, self.right.result, self.runs.left_spec.d_format)
        if totals is not None:
            total = self.sizes(*totals, total)
        return self.derive("round", "related sums are rounded to related results", link, [total, *given])


# ---- what steps have in common


def products(step: RelatedStep[Multiplies], factors: Sequence[Link]) -> list[Link]:
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


def dropped_terms(
    step: RelatedStep[Decodes],
    zeros: Mapping[int, Link],
    e_max: z3.BitVecRef | None,
    place: Callable[[int], int] = lambda i: i,
) -> dict[int, Callable[[z3.BitVecRef], Link]]:
    """For dropped products, by the places of their summands, the link that these are zero."""

    def make(i: int, zero: Link) -> Callable[[z3.BitVecRef], Link]:
        return lambda x: step.nothing(i, x, e_max, zero)

    return {place(i): make(i, zero) for i, zero in zeros.items()}


def rounded(
    step: RelatedStep[AnyStep], x: StickySum, y: StickySum, terms: Sequence[Link], given: Sequence[Link]
) -> Link:
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
