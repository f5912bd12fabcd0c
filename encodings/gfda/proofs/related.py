"""Why a step of gfda has related results in two runs on related inputs: each group's sums are related, and with the
exponents of their groups they are the related terms of a fused sum."""

from __future__ import annotations

from collections.abc import Sequence

from mmaformal.encodings.gfda import smt as gfda
from mmaformal.facts.related_parts import fused, products
from mmaformal.proof.lemmas import ArgumentError, Link
from mmaformal.proof.related_runs import Step


def derive(step: Step[gfda.Step]) -> Link:
    """Raises ArgumentError where products change their groups, or are products of the first run alone."""
    if step.dropped:
        raise ArgumentError("no argument is known where a group has fewer products in one run")
    left, right = step.left, step.right
    G = len(step.order) // len(right.groups)
    c, factors = step.operand_c(), step.factors()
    each = products(step, factors)
    special = step.special([c, *factors, *each], left.a, left.b, right.a, right.b)
    groups, order = [], []
    for g in range(len(right.groups)):
        inside = step.order[g * G : (g + 1) * G]
        h = inside[0] // G  # the first run's group that this one of the second is
        if any(i // G != h for i in inside):
            raise ArgumentError("a product of one group is one of another in the second run")
        order.append(h)
        groups.append(_group(step, h, g, [i - h * G for i in inside], each[g * G : (g + 1) * G]))
    lefts, rights = ([group.term for group in run.groups] for run in (left, right))
    return fused(step, lefts, rights=rights, terms=groups, c=c, special=special, order=order)


def _group(step: Step[gfda.Step], h: int, g: int, inside: Sequence[int], each: Sequence[Link]) -> Link:
    """The link of a group's sum, as a term, from those of its products."""
    left, right, G = step.left.groups[h], step.right.groups[g], len(inside)
    exponents = [
        [product.exponent for product in run.products[first * G : (first + 1) * G]]
        for run, first in ((step.left, h), (step.right, g))
    ]
    e_max = step.largest(left.e_max, exponents[0], right.e_max, exponents[1], each)
    bits = left.aligned[0].size()
    total = step.sum_of(left.total, right.total, inside, [[link] for link in each], [e_max], bits)
    sizes = step.sizes(left.total, right.total, total)
    text = "sums of groups are related terms"
    return step.derive("accumulate", text, step.kind.term(left.term, right.term), [sizes, e_max])
