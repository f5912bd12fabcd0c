"""muladd: how products are rounded, and sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaformal.encodings.muladd import Muladd
from mmaformal.spaces.common import Types, conversions, signed_zeros, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Muladd]:
    full = [rho for rho in conversions(types.d) if rho.fraction_bits == types.d.fraction_bits]
    for product in conversions(types.d):
        for rho in full:
            yield from valid(Muladd, product, rho)


def details(parameters: Muladd, types: Types) -> Iterator[Muladd]:
    for product in signed_zeros(parameters.product):
        for rho in signed_zeros(parameters.rho):
            yield replace(parameters, product=product, rho=rho)
