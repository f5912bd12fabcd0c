"""pfma: how many products one instruction takes."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.algorithms import Pfma
from mmaformal.spaces.common import Types, divisors

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Pfma]:
    yield from (Pfma(L) for L in divisors(k) if L % 2 == 0)
