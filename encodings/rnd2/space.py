"""rnd2: how pairs of products are rounded, and sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from mmaformal.encodings.rnd2 import Rnd2
from mmaformal.rounding import NanRule, Rounding
from mmaformal.spaces.common import Types, conversions, signed_zeros, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Rnd2]:
    full = [rho for rho in conversions(types.d) if rho.fraction_bits == types.d.fraction_bits]
    for pair in full:
        for rho in full:
            yield from valid(Rnd2, pair, rho)


def details(parameters: Rnd2, types: Types) -> Iterator[Rnd2]:
    """With every sign of zeros, every rule of NaNs, and the pair negated or not: what else changes its sign is told
    beside (`spaces.details`)."""
    zeros = product(signed_zeros(parameters.pair), signed_zeros(parameters.rho))
    alike = not {parameters.pair.rounding, parameters.rho.rounding} & {Rounding.RD, Rounding.RU}
    for (pair, rho), nan, negate in product(
        zeros, NanRule, (False, True) if alike else (parameters.negate_pair,)
    ):
        yield replace(parameters, pair=pair, rho=rho, nan=nan, negate_pair=negate)
