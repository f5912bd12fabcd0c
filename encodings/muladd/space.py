"""muladd: how products are rounded, and sums."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.muladd import Muladd
from mmaformal.spaces.common import Types, conversions, valid, varied

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Muladd]:
    full = [rho for rho in conversions(types.d) if rho.fraction_bits == types.d.fraction_bits]
    for product in conversions(types.d):
        for rho in full:
            yield from valid(Muladd, product, rho)


details = varied("product", "rho")
