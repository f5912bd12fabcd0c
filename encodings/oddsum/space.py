"""oddsum: ρ, of those that leave tiny what is tiny before rounding."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.oddsum import Oddsum
from mmaformal.rounding import RO_FP32, Conversion
from mmaformal.spaces.common import Types

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Oddsum]:
    if k % 2 == 0:
        yield from (Oddsum(rho) for rho in (RO_FP32, Conversion.named("RZ-FP32±0")))
