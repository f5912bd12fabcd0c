"""fma: ρ; in detail IEEE 754's overflow and zeros, which NaN, and what is flushed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from mmaformal.encodings.fma import Fma
from mmaformal.rounding import NanRule, Tininess
from mmaformal.spaces.common import Types, conversions, ieee, signed_zeros, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Fma]:
    for rho in conversions(types.d):
        yield from valid(Fma, rho)


def details(parameters: Fma, types: Types) -> Iterator[Fma]:
    roundings = (*signed_zeros(parameters.rho), *ieee(parameters.rho))
    for flushed, tiny, rho, nan, ones in product(
        (False, True), (None, *Tininess), roundings, NanRule, (False, True)
    ):
        yield from valid(Fma, rho, nan, ones, flushed, tiny)
