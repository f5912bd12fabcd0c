"""esda: how many products are summed exactly, and how sums are rounded; in detail, flushing and NaNs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaformal.encodings.esda import Esda
from mmaformal.rounding import NanRule
from mmaformal.spaces.common import Types, conversions, divisors, signed_zeros, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Esda]:
    full = [rho for rho in conversions(types.d) if rho.fraction_bits == types.d.fraction_bits]
    for L in divisors(k):
        for dot in full:
            for rho in full:
                yield from valid(Esda, L, dot, rho, False, NanRule.DEFAULT)


def details(parameters: Esda, types: Types) -> Iterator[Esda]:
    for dot in signed_zeros(parameters.dot):
        for rho in signed_zeros(parameters.rho):
            for flush in (False, True):
                for nan in (NanRule.DEFAULT, NanRule.INDEFINITE):
                    yield replace(parameters, dot=dot, rho=rho, flush=flush, nan=nan)
