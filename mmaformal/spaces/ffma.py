"""ffma: it has no parameters; the order of its products is told apart from it."""

from __future__ import annotations

from collections.abc import Iterator

from mmaformal.algorithms import Ffma
from mmaformal.spaces.common import Types

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Ffma]:
    yield Ffma()
