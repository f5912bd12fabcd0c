"""What steps of several algorithms have in common, in two runs on related inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import z3

from mmaformal.cases.interfaces import AnyStep, Decodes, Multiplies
from mmaformal.encodings.smt.blocks import (
    StickySum,
)
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import (
    Opposite,
    RelatedStep,
    same,
)


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
