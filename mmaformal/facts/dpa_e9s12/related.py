"""Why a step of dpa_e9s12 has related results in two runs on the same products, in another order or exchanged.

Of negated inputs nothing of the kind holds: products are rounded down.
"""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.smt.dpa_e9s12 import Step as DpaStep
from mmaformal.facts.protocol import NoArgumentError
from mmaformal.facts.related_parts import rounded
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import Same, Step, same

#: Products of halves of exchanged factors: the two in the middle change places.
_EXCHANGED = (0, 2, 1, 3)


def derive(step: Step[DpaStep]) -> Link:
    left, right = step.left, step.right
    if not isinstance(step.kind, Same) or step.dropped:
        raise NoArgumentError("dpa_e9s12", "how runs on other than the same products are related")
    c = step.operand_c()
    terms, order = _terms(step)
    special = step.special([c, *terms], [left.a, left.b, right.a, right.b])
    addend = step.addend(c)
    exponents = [[product.exponent for product in run.products] for run in (left, right)]
    e_max = step.largest(left.e_max, exponents[0], right.e_max, exponents[1], terms)
    total = step.sum_of(left.partials[-1], right.partials[-1], order, [[term] for term in terms], [e_max])
    dot = step.derive(
        "multiply", "sums are related terms", step.kind.term(left.term, right.term), [total, e_max]
    )
    zero = step.derive(
        "multiply",
        "the signs of an exact zero are the same",
        same(left.zero_sign, right.zero_sign),
        [*terms, addend],
    )
    return rounded(step, left.sum, right.sum, [dot, addend], [special, zero])


def _terms(step: Step[DpaStep]) -> tuple[list[Link], Sequence[int]]:
    """The links of all E9S12 products, in the second run's order, and the places of those in the first's."""
    left, right = step.left, step.right
    each = len(left.products) // len(left.a)
    links, order = [], []
    for j, i in enumerate(step.order):
        exchanged = not right.a[j].significand.eq(left.a[i].significand)
        places = _EXCHANGED if each == 4 and exchanged else range(each)
        for t, place in enumerate(places):
            operands = [left.a[i], left.b[i], right.a[j], right.b[j]]
            mine, other = left.products[each * i + place], right.products[each * j + t]
            links.append(step.product(mine, other, operands, []))
            order.append(each * i + place)
    return links, order
