"""gfdrda: as fdrda; in detail, also from where c is dropped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.fdrda import space as fdrda
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.spaces.common import Types


def choices(types: Types, k: int) -> Iterator[Gfdrda]:
    yield from fdrda.of_kind(Gfdrda, k)


def details(parameters: Gfdrda, types: Types) -> Iterator[Gfdrda]:
    for reach in (parameters.c_reach, *range(20, 40)):
        for each in fdrda.details(parameters, types):
            yield replace(each, c_reach=reach)


def sure(products: NDArray[np.int64], c: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Nor is c far below the products."""
    return np.asarray(fdrda.sure(products, c) & (c >= products.max(axis=1) - 15))
