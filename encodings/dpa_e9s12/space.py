"""dpa_e9s12: N, L, ρ, and whether zeros are detected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaformal.encodings.dpa_e9s12 import DpaE9s12
from mmaformal.formats import bf16, fp16, fp32
from mmaformal.rounding import CONVERSIONS
from mmaformal.spaces.common import Types, divisors, valid

ORDERED = True


def choices(types: Types, k: int) -> Iterator[DpaE9s12]:
    """Yield operators of the widths that fp32's products need, or more; ρ is to nearest, with the sign of zero."""
    if types.a != types.b or types.a not in (fp16, bf16, fp32) or types.c != fp32 or types.d != fp32:
        return
    for N in divisors(k):
        for accumulator_bits in range(48, 86):
            yield from valid(DpaE9s12, N, accumulator_bits, CONVERSIONS["IEEE-FP32"])


def details(parameters: DpaE9s12, types: Types) -> Iterator[DpaE9s12]:
    for rho in (CONVERSIONS["RNE-FP32"], CONVERSIONS["IEEE-FP32"]):
        for detects_zeros in (True, False):
            yield replace(parameters, rho=rho, detects_zeros=detects_zeros)
