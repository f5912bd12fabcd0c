"""Why a step of gdfs has related results in two runs on related inputs."""

from __future__ import annotations

from collections.abc import Callable

import z3

from mmaformal.encodings.gdfs import smt as gdfs
from mmaformal.encodings.smt.blocks import (
    Term,
)
from mmaformal.facts.related_parts import dropped_terms, fused
from mmaformal.proof.lemmas import Link
from mmaformal.proof.related_runs import (
    Step,
    operand_codes,
)


def derive(step: Step[gdfs.Step]) -> Link:
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
        nothing = dropped_terms(step, gone, None, _inside(h * G))
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
    return fused(step, left.groups, rights=right.groups, terms=groups, c=c, special=special, order=order)


def _inside(first: int) -> Callable[[int], int]:
    """The place of a product in its group."""
    return lambda i: i - first
