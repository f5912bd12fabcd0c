"""fda: F, L, ρ; in detail the exponent of a zero term, and the sign of an exact zero."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.fda import Fda
from mmaformal.spaces.common import Types, conversions, divisors, valid, varied

ORDERED = True
PLACES = range(1, 49)


def choices(types: Types, k: int) -> Iterator[Fda]:
    for L in reversed(divisors(k)):
        for rho in conversions(types.d):
            for F in PLACES:
                yield from valid(Fda, F, L, rho, None)


details = varied("e_zero", "rho")
