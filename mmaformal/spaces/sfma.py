"""sfma: ρ."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.algorithms import Sfma
from mmaformal.spaces.common import Types, conversions, signed_zeros, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Sfma]:
    for rho in conversions(types.d):
        yield from valid(Sfma, rho)


def details(parameters: Sfma, types: Types) -> Iterator[Sfma]:
    for rho in signed_zeros(parameters.rho):
        yield Sfma(rho)
