"""sticky: fda, lowered and gfda with `cut` RO: the last bit that an alignment keeps is set if anything is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaformal.encodings.fda import Fda
from mmaformal.encodings.fda import space as fda
from mmaformal.encodings.gfda import Gfda
from mmaformal.encodings.gfda import space as gfda
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered import space as lowered
from mmaformal.rounding import Rounding
from mmaformal.spaces.common import Types, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Fda | Lowered | Gfda]:
    for space in (fda, lowered, gfda):
        for parameters in space.choices(types, k):
            if parameters.cut is not Rounding.RO:
                yield from valid(replace, parameters, cut=Rounding.RO)
