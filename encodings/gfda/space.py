"""gfda: groups, the bits that they and their sum keep, ρ; in detail the exponent of a zero term, and signed zeros."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.gfda import Gfda
from mmaformal.spaces.common import Types, conversions, divisors, valid, varied

ORDERED = True
#: of a sum, and how many more a group keeps: beyond these no design is known
PLACES, MORE = range(8, 36), (0, 4, 8)


def choices(types: Types, k: int) -> Iterator[Gfda]:
    full = [rho for rho in conversions(types.d) if rho.fraction_bits == types.d.fraction_bits]
    for L in reversed(divisors(k)):
        for G in (each for each in divisors(L) if 1 < each < L):
            for rho in full:
                for F in PLACES:
                    for more in MORE:
                        yield from valid(Gfda, F, G, L, F + more, rho, None)


details = varied("e_zero", "rho")
