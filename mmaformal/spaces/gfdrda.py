"""gfdrda: as fdrda; in detail, also from where c is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mmaformal.algorithms import Gfdrda
from mmaformal.spaces import fdrda
from mmaformal.spaces.common import Types


def choices(types: Types, k: int) -> Iterator[Gfdrda]:
    yield from fdrda.of_kind(Gfdrda, k)


def details(parameters: Gfdrda, types: Types) -> Iterator[Gfdrda]:
    for reach in (parameters.c_reach, *range(20, 40)):
        for each in fdrda.details(parameters, types):
            yield replace(each, c_reach=reach)
