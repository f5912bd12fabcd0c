"""One step of a chain, as a model of its own."""

from __future__ import annotations

from collections.abc import Sequence

import z3

from mmaformal.instruction import Instruction
from mmaformal.spec import DotAdd


def one_step(spec: DotAdd) -> DotAdd:
    """A model of K = one step, in the order of its products, if that is within a step."""
    step = spec.parameters.step_products
    if spec.k == step:
        return spec
    block = {"scale_block": step} if spec.scale_block > step else {}
    return spec.replace(k=step, **block, **_order(spec))


def _order(spec: DotAdd) -> dict[str, object]:
    """The order that a step takes in place of a longer one, which only says which products a step is of."""
    return {"product_order": ()} if len(spec.product_order) > spec.parameters.step_products else {}


def as_one_step(instruction: Instruction) -> Instruction:
    """The hypothetical instruction of `one_step`."""
    spec = one_step(instruction.spec)
    block = {"scale_block": spec.scale_block} if spec.scale_block else {}
    return instruction.replace(k=spec.k, **block, **_order(instruction.spec))


def scales_of_step(spec: DotAdd, scales: Sequence[z3.BitVecRef], start: int) -> Sequence[z3.BitVecRef]:
    """The scales of the step that begins at the product `start`."""
    if spec.scale_format is None:
        return ()
    first, L = start // spec.scale_block, spec.parameters.step_products
    return scales[first : first + max(1, L // spec.scale_block)]
