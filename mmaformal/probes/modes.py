"""Roundings as functions, and which of them give the answers that a unit gave (MMA-Sim §III-E, Tables I and II).

A value between two places is told by how many places it is above zero: 1.25, −0.5.  For each of `POINTS` a rounding has
an answer in whole places; all roundings here differ in at least one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction

_HALF = Fraction(1, 2)


def _nearest(x: Fraction, tie: Callable[[int], int]) -> int:
    """To the nearest whole number; `tie` chooses from n and n + 1, given n."""
    low = math.floor(x)
    above = x - low
    if above == _HALF:
        return tie(low)
    return low + (above > _HALF)


def _to_odd(x: Fraction) -> int:
    cut = math.trunc(x)
    if cut == x or cut % 2:
        return cut
    return cut + (1 if x > 0 else -1)


#: name → what it does to a number of places
MODES: Mapping[str, Callable[[Fraction], int]] = {
    "RZ": math.trunc,
    "RD": math.floor,
    "RU": math.ceil,
    "RA": lambda x: math.ceil(x) if x > 0 else math.floor(x),
    "RNE": lambda x: _nearest(x, lambda n: n + n % 2),
    "RNA": lambda x: _nearest(x, lambda n: n + 1 if x > 0 else n),
    "RNZ": lambda x: _nearest(x, lambda n: n if x > 0 else n + 1),
    "RNU": lambda x: _nearest(x, lambda n: n + 1),
    "RND": lambda x: _nearest(x, lambda n: n),
    "RNO": lambda x: _nearest(x, lambda n: n + 1 - n % 2),
    "RO": _to_odd,
}

#: name → in words
WORDS: Mapping[str, str] = {
    "RZ": "toward zero",
    "RD": "down, toward −∞",
    "RU": "up, toward +∞",
    "RA": "away from zero",
    "RNE": "to nearest, ties to even",
    "RNA": "to nearest, ties away from zero",
    "RNZ": "to nearest, ties toward zero",
    "RNU": "to nearest, ties up",
    "RND": "to nearest, ties down",
    "RNO": "to nearest, ties to odd",
    "RO": "to odd: toward zero, and the last bit set if anything was lost",
}

#: where roundings differ, in places
POINTS: tuple[Fraction, ...] = tuple(
    sign * Fraction(quarters, 4) for sign in (1, -1) for quarters in (1, 2, 3, 6)
)


def agreeing(answers: Mapping[Fraction, Fraction | None]) -> tuple[str, ...]:
    """The roundings that give these answers, by name; several where the points asked do not tell them apart."""
    return tuple(
        name for name, mode in MODES.items() if all(mode(x) == answer for x, answer in answers.items())
    )
