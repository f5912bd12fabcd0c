"""sfma: ρ, and which NaN an fma gives."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.sfma import Sfma
from mmaformal.rounding import NanRule
from mmaformal.spaces.common import Types, conversions, signed_zeros, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Sfma]:
    for rho in conversions(types.d):
        yield from valid(Sfma, rho)


def details(parameters: Sfma, types: Types) -> Iterator[Sfma]:
    for rho in signed_zeros(parameters.rho):
        yield from (Sfma(rho, nan) for nan in NanRule)
