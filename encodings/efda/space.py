"""efda: L, ρ."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.efda import Efda
from mmaformal.spaces.common import Types, conversions, divisors, valid, varied

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Efda]:
    for L in divisors(k):
        for rho in conversions(types.d):
            yield from (p for p in valid(Efda, L, rho) if not _in_limbs(p, types, k))


def _in_limbs(p: Efda, types: Types, k: int) -> bool:
    """Whether the sum is held in a row of limbs: no unit is known to be such, and designs are named where they are."""
    try:
        return p.is_long(types.model(k, p))
    except ValueError:
        return False


details = varied("rho")
