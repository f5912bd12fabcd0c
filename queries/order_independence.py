"""Does the order of the products matter?

Within a block, the products that one step aligns and sums exactly: two permutations, the exchange of the block's
first two products and the rotation of all of it, leave the result as it is; every permutation is made of these.
Across blocks, any two products may change places.  With block scales, products keep to those that share their
scales, and blocks of products change places together with their scales.
"""

from __future__ import annotations

from dataclasses import replace

from mmaformal.cases.codes import same_code
from mmaformal.cases.relations import Relation
from mmaformal.facts.orders import (
    Permutation,
    across_blocks,
    argue_order,
    products_together,
    reordered,
    within_blocks,
)
from mmaformal.facts.settling import settle
from mmaformal.instruction import Instruction
from mmaformal.proof.kernel import by_rule
from mmaformal.queries.property import Property, nans_aside
from mmaformal.solver.answers import Answer, Holds
from mmaformal.solver.asking import Asker
from mmaformal.spec import DotAdd


def relation_reordered(spec: DotAdd, order: Permutation) -> Relation:
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
    )


_GENERATED = (
    "permutations: an exchange of the first two of a block and a rotation of it make all its permutations; with an "
    "exchange between each block and the next, all there are"
)


def _settle(instruction: Instruction, asker: Asker, question: str, orders: list[Permutation]) -> Answer:
    spec = instruction.spec
    if not orders:
        said = f"{question}: there is nothing to permute"
        return settle(instruction, asker, said, [], lambda: [argue_order(spec, tuple(range(spec.k)))])
    answer = settle(
        instruction,
        asker,
        question,
        [relation_reordered(spec, order) for order in orders],
        lambda: (argue_order(spec, order) for order in orders),
    )
    return replace(answer, proof=by_rule(_GENERATED, answer.proof)) if isinstance(answer, Holds) else answer


def settle_within(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    text = ", ".join(map(str, sorted({len(block) for block in products_together(spec)})))
    question = f"{instruction.label} gives the same code for every order of the products of a block ({text} products)"
    return _settle(instruction, asker, question + nans_aside(spec), within_blocks(spec))


def settle_across(instruction: Instruction, asker: Asker) -> Answer:
    spec = instruction.spec
    question = f"{instruction.label} gives the same code for every order of its {spec.k} products"
    if spec.scale_format is not None:
        question += ", each with its scales"
    question += nans_aside(spec)
    return _settle(instruction, asker, question, [*across_blocks(spec), *within_blocks(spec)])


PROPERTY = Property(
    "order-independence",
    "the order of the products within a block does not matter",
    settle_within,
    of_integers=True,
)
ACROSS = Property(
    "order-independence-across-blocks",
    "the order of all products does not matter",
    settle_across,
    of_integers=True,
)
