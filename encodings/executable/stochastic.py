"""Stochastic rounding by given random bits, in lanes: StochasticA, B and C of IEEE's working group P3109.

Sections are of its interim report, version 4.0 of June 2026.
"""

from __future__ import annotations

from dataclasses import replace

from mmaformal.encodings.executable.blocks import Flag, Lane, Rounded, clamp, normalise_and_round, where
from mmaformal.rounding import Conversion, Rounding


def round_randomly(total: Lane, unit: Lane, rho: Conversion) -> Rounded:
    """Round `total · 2^unit`, |total| < 2^61, with ρ, whose rounding is stochastic."""
    floor = normalise_and_round(total, unit, _toward_zero(rho))
    magnitude = where(total < 0, -total, total)
    drop = floor.exponent - rho.fraction_bits - unit
    right = clamp(drop, 0, 62)
    remainder = magnitude - ((magnitude >> right) << right)
    up = _carries(remainder, drop, rho)
    return Rounded(floor.sign, floor.exponent, where(up, floor.significand + 1, floor.significand))


def _toward_zero(rho: Conversion) -> Conversion:
    return replace(rho, rounding=Rounding.RZ, random_bits=0, random=0)


def _carries(remainder: Lane, drop: Lane, rho: Conversion) -> Flag:
    """Whether what is lost, ν = remainder / 2^drop, and the random number R carry together (§4.7.4).

    A: ⌊ν·2^N⌋ + R ≥ 2^N; B: ⌊ν·2^(N + 1)⌋ + 2·R + 1 ≥ 2^(N + 1); C: ν·2^N rounded to nearest even, and R, ≥ 2^N.
    """
    places, number = rho.random_bits, rho.random
    if rho.rounding is Rounding.SB:
        places, number = places + 1, 2 * number + 1
    below = drop - places
    right, left = clamp(below, 0, 62), clamp(-below, 0, places)
    scaled = (remainder >> right) << left
    if rho.rounding is Rounding.SC:
        twice = (remainder - ((remainder >> right) << right)) * 2
        half = (remainder * 0 + 1) << right
        nearer = (twice > half) | ((twice == half) & ((scaled & 1) == 1))
        scaled = where(nearer & (right > 0), scaled + 1, scaled)
    return scaled + number >= 1 << places
