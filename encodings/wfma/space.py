"""wfma: ρ."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.wfma import Wfma
from mmaformal.spaces.common import Types, conversions, signed_zeros, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Wfma]:
    for rho in conversions(types.d):
        yield from valid(Wfma, rho)


def details(parameters: Wfma, types: Types) -> Iterator[Wfma]:
    for rho in signed_zeros(parameters.rho):
        yield Wfma(rho)
