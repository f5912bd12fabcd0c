"""sticky: fda, lowered and gfda with `cut` RO: the last bit that an alignment keeps is set if anything is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaformal.algorithms import Fda, Gfda, Lowered, Rounding
from mmaformal.spaces import fda, gfda, lowered
from mmaformal.spaces.common import Types, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Fda | Lowered | Gfda]:
    for space in (fda, lowered, gfda):
        for parameters in space.choices(types, k):
            yield from valid(replace, parameters, cut=Rounding.RO)
