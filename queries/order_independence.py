"""Does the order of the products matter?

Within a block, the products that one step aligns and sums exactly: two permutations, the exchange of the block's
first two products and the rotation of all of it, leave the result as it is; every permutation is made of these.
Across blocks, any two products may change places.  With block scales, products keep to those that share their
scales, and blocks of products change places together with their scales.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from mmaformal.algorithms import DotAdd
from mmaformal.instruction import Instruction
from mmaformal.queries.find_difference import symmetry_classes
from mmaformal.queries.inputs import symbolic_inputs
from mmaformal.queries.pairs import Pairing, Runs, Same, argue, same
from mmaformal.queries.property import Property
from mmaformal.queries.relations import Relation, settle
from mmaformal.queries.relations import same as same_code
from mmaformal.solver.answers import Answer, Holds, Proof
from mmaformal.solver.asking import Asker

Order = tuple[int, ...]  #: the k-th product of the second run is this one of the first's


def blocks(spec: DotAdd) -> list[list[int]]:
    """The products that are summed together: those of one step, of one group of it, and with the same scales."""
    members: dict[Hashable, list[int]] = {}
    for k, key in enumerate(symmetry_classes(spec, spec)):
        members.setdefault(key, []).append(k)
    return list(members.values())


def within_blocks(spec: DotAdd) -> list[Order]:
    """Permutations that generate all those of each block."""
    orders = []
    for block in blocks(spec):
        if len(block) > 1:
            orders.append(_moved(spec, block[:2], [block[1], block[0]]))
        if len(block) > 2:
            orders.append(_moved(spec, block, [*block[1:], block[0]]))
    return orders


def across_blocks(spec: DotAdd) -> list[Order]:
    """Exchanges of two products that, with those within blocks, generate all permutations there are."""
    orders, every = [], blocks(spec)
    for one, other in pairwise(every):
        if spec.scale_format is None or one[0] // spec.scale_block == other[0] // spec.scale_block:
            orders.append(_moved(spec, [one[0], other[0]], [other[0], one[0]]))
    if spec.scale_format is not None:
        S = spec.scale_block
        for first in range(0, spec.k - S, S):
            both = list(range(first, first + 2 * S))
            orders.append(_moved(spec, both, [*both[S:], *both[:S]]))
    return orders


def _moved(spec: DotAdd, places: Sequence[int], products: Sequence[int]) -> Order:
    order = list(range(spec.k))
    for place, product in zip(places, products, strict=True):
        order[place] = product
    return tuple(order)


def reordered(spec: DotAdd, order: Order) -> Callable[[Any], Any]:
    """Inputs with the products, and the scales that blocks of them share, in another order."""

    def image(x: Any) -> Any:
        changes: dict[str, Any] = {side: tuple(getattr(x, side)[k] for k in order) for side in ("a", "b")}
        if spec.scale_format is not None:
            S = spec.scale_block
            for side in ("scale_a", "scale_b"):
                changes[side] = tuple(getattr(x, side)[order[i * S] // S] for i in range(spec.scales))
        return replace(x, **changes)

    return image


def relation(spec: DotAdd, order: Order) -> Relation:
    moved = [k for k in range(spec.k) if order[k] != k]
    if len(moved) == 2:
        second = f"products {moved[0]} and {moved[1]} exchanged"
    else:
        second = f"products {moved[0]} to {moved[-1]} in another order"
    return Relation(
        spec,
        spec,
        reordered(spec, order),
        lambda x, y: same_code(x, y, spec.d_format),
        second,
        apart=tuple(moved) if len(moved) == 2 else (),
    )


def argument(spec: DotAdd, order: Order) -> Pairing:
    """That a permutation within blocks leaves the result as it is."""
    pairing, inputs = Pairing(), symbolic_inputs(spec)
    left, right = relation(spec, order).traces(inputs)
    runs = Runs(Same(), spec, spec, left.steps, right.steps, order)
    c = pairing.derive("inputs", "both runs read the same c", [same(inputs.c, inputs.c)], inputs=[inputs.c])[
        0
    ]
    return argue(runs, c, "the results are equal", pairing, (left.result, right.result))


def _settle(instruction: Instruction, asker: Asker, question: str, orders: list[Order]) -> Answer:
    spec = instruction.spec
    if not orders:
        return Holds(f"{question}: there is nothing to permute", Proof(()), asker.elapsed)
    return settle(
        instruction,
        asker,
        question,
        [relation(spec, order) for order in orders],
        lambda: (argument(spec, order) for order in orders),
    )


def settle_within(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    text = ", ".join(map(str, sorted({len(block) for block in blocks(spec)})))
    question = f"{instruction.label} gives the same code for every order of the products of a block ({text} products)"
    return _settle(instruction, asker, question, within_blocks(spec))


def settle_across(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label} gives the same code for every order of its {spec.k} products"
    if spec.scale_format is not None:
        question += ", each with its scales"
    return _settle(instruction, asker, question, [*across_blocks(spec), *within_blocks(spec)])


PROPERTY = Property(
    "order-independence",
    "the order of the products within a block does not matter",
    settle_within,
)
ACROSS = Property(
    "order-independence-across-blocks",
    "the order of all products does not matter",
    settle_across,
)

main = PROPERTY.main

if __name__ == "__main__":
    sys.exit(main())
