"""That d does not grow with every product, of pfma: a subnormal factor counts as zero."""

from __future__ import annotations

from functools import partial

from mmaformal.cases.descents import Descends
from mmaformal.cases.falling_products import falls_with_a_product, flushed_cases
from mmaformal.instruction import Instruction


def in_product(instruction: Instruction) -> Descends | None:
    """An input on which a larger product gives a smaller d."""
    return falls_with_a_product(instruction, [partial(flushed_cases, instruction.spec)])
