"""Kinds of losses of a step before it rounds, and roundings on a product's way to d, of units that flush."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mmaformal.display import ShortRepr


class LossModel(Enum):
    """The loss of a step against the exact sum of its products and c, before it rounds to the code that it gives."""

    NOTHING = "nothing: the exact sum is rounded"
    OVERFLOW = "nothing, but where an integer is too large: it is clamped, or wraps around"
    OPERATIONS = "what each of several IEEE operations rounds away"
    PRODUCTS = "what each product is rounded by, before it is added"
    TERMS = "what each product, and c, lose where they are aligned to the largest of them"
    GROUPS = "what the exact sums of groups, and c, lose where they are aligned to the largest of them"
    TERMS_AND_GROUPS = "what products lose in their group, and groups and c where they are aligned"
    ROUND_DOWN = (
        "what products lose where they are aligned, and their sum and c where they are aligned and added"
    )
    HALVES = "what products of halves lose where they are aligned; c is added exactly"
    PASSES = "what products of halves, and the accumulator, lose in each pass"
    INNER = "what the steps of another algorithm lose, to whose result c is added"
    PROGRAM = "what instructions lose, and what is lost between them"


@dataclass(frozen=True, repr=False)
class Flushing(ShortRepr):
    """Roundings of a unit that takes subnormal numbers for zero, on a product's way to d."""

    first: int  #: before it is added to what c became
    operations: (
        int  #: for so many products as are added to c at once, each of which may put a tiny result to zero
    )
