"""wfma: ρ."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.wfma import Wfma
from mmaformal.spaces.common import Types, conversions, valid, varied

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Wfma]:
    for rho in conversions(types.d):
        yield from valid(Wfma, rho)


details = varied("rho")
