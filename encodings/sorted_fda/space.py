"""sorted_fda: F and G, two apart or as wide as a term allows, ρ; in detail the NaN and the sign of an exact zero."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.sorted_fda import SortedFda
from mmaformal.spaces.common import Types, conversions, valid, varied

PLACES = range(4, 56)


def choices(types: Types, k: int) -> Iterator[SortedFda]:
    for rho in conversions(types.d) if k % 2 == 0 else ():
        for F in PLACES:
            for between in (True, False):
                yield from valid(SortedFda, F, F + 2, rho, between)


details = varied("rho")
