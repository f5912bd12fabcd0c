"""gdfs: F, G, L, ρ; in detail the exponent of a zero term, and the sign of an exact zero."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.gdfs import Gdfs
from mmaformal.spaces.common import Types, conversions, divisors, signed_zeros, valid, zero_exponents

PLACES = range(8, 41)


def choices(types: Types, k: int) -> Iterator[Gdfs]:
    for L in reversed(divisors(k)):
        for G in divisors(L):
            for rho in conversions(types.d):
                for F in PLACES:
                    yield from valid(Gdfs, F, G, L, rho, None)


def details(parameters: Gdfs, types: Types) -> Iterator[Gdfs]:
    p = parameters
    for e_zero in zero_exponents(types):
        for rho in signed_zeros(p.rho):
            yield Gdfs(p.F, p.G, p.L, rho, e_zero)
