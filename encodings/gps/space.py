"""gps: how many products make a group."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.encodings.gps import Gps
from mmaformal.spaces.common import Types

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Gps]:
    yield from (Gps(G) for G in (2, 4, 8) if k % G == 0)
