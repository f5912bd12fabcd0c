"""efda: L, ρ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaformal.encodings.efda import Efda
from mmaformal.spaces.common import Types, conversions, divisors, signed_zeros, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Efda]:
    for L in divisors(k):
        for rho in conversions(types.d):
            yield from valid(Efda, L, rho)


def details(parameters: Efda, types: Types) -> Iterator[Efda]:
    for rho in signed_zeros(parameters.rho):
        yield replace(parameters, rho=rho)
