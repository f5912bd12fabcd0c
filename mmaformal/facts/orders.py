"""Permutations of the products of a model that its result does not depend on, and the argument that it does not."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import pairwise

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.relations import CaseT, Image
from mmaformal.cases.symmetries import symmetry_classes
from mmaformal.facts.related import argue_same
from mmaformal.proof.related_runs import Pairing
from mmaformal.spec import DotAdd

Permutation = tuple[int, ...]  #: the k-th product of the second run is this one of the first's


def products_together(spec: DotAdd) -> list[list[int]]:
    """The products that are summed together: those of one step, of one group of it, and with the same scales."""
    members: dict[Hashable, list[int]] = {}
    for k, key in enumerate(symmetry_classes(spec, spec)):
        members.setdefault(key, []).append(k)
    return list(members.values())


def within_blocks(spec: DotAdd) -> list[Permutation]:
    """Permutations that generate all those of each block."""
    orders = []
    for block in products_together(spec):
        if len(block) > 1:
            orders.append(_moved(spec, block[:2], [block[1], block[0]]))
        if len(block) > 2:
            orders.append(_moved(spec, block, [*block[1:], block[0]]))
    return orders


def across_blocks(spec: DotAdd) -> list[Permutation]:
    """Exchanges of two products that, with those within blocks, generate all permutations there are."""
    orders, every = [], products_together(spec)
    for one, other in pairwise(every):
        if spec.scale_format is None or one[0] // spec.scale_block == other[0] // spec.scale_block:
            orders.append(_moved(spec, [one[0], other[0]], [other[0], one[0]]))
    if spec.scale_format is not None:
        S = spec.scale_block
        for first in range(0, spec.k - S, S):
            both = list(range(first, first + 2 * S))
            orders.append(_moved(spec, both, [*both[S:], *both[:S]]))
    return orders


def _moved(spec: DotAdd, places: Sequence[int], products: Sequence[int]) -> Permutation:
    order = list(range(spec.k))
    for place, product in zip(places, products, strict=True):
        order[place] = product
    return tuple(order)


def reordered(spec: DotAdd, order: Permutation) -> Image:
    """Inputs with the products, and the scales that blocks of them share, in another order."""

    def image(x: CaseT) -> CaseT:
        y = replace(x, a=tuple(x.a[k] for k in order), b=tuple(x.b[k] for k in order))
        if spec.scale_format is None:
            return y
        blocks = [order[i * spec.scale_block] // spec.scale_block for i in range(spec.scales)]
        scale_a, scale_b = (tuple(side[block] for block in blocks) for side in (x.scale_a, x.scale_b))
        return replace(y, scale_a=scale_a, scale_b=scale_b)

    return image


def argue_alike(x: DotAdd, y: DotAdd) -> Pairing:
    """Argue that two models that take their products in another order give the same code.

    Raises ArgumentError if products are of another step.
    """
    inputs = symbolic_inputs(x)
    return argue_same(x, y, inputs, inputs, range(x.k))


def argue_order(spec: DotAdd, order: Permutation) -> Pairing:
    """Argue that a permutation within blocks leaves the result as it is."""
    inputs = symbolic_inputs(spec)
    return argue_same(spec, spec, inputs, reordered(spec, order)(inputs), order)
