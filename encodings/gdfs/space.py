"""gdfs: F, G, L, ρ; in detail the exponent of a zero term, and the sign of an exact zero."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.gdfs import Gdfs
from mmaformal.spaces.common import Types, conversions, divisors, valid, varied

PLACES = range(8, 41)


def choices(types: Types, k: int) -> Iterator[Gdfs]:
    for L in reversed(divisors(k)):
        for G in divisors(L):
            for rho in conversions(types.d):
                for F in PLACES:
                    yield from valid(Gdfs, F, G, L, rho, None)


details = varied("e_zero", "rho")
