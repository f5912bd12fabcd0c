"""fdrda: L, how many places each cut keeps, and how it cuts; in detail what zero products and infinities do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.fdrda import Fdrda
from mmaformal.encodings.gfdrda import Gfdrda
from mmaformal.rounding import IEEE_FP32, RZ_FP32, Rounding
from mmaformal.spaces.common import Types, divisors, valid

F = TypeVar("F", Fdrda, Gfdrda)


def choices(types: Types, k: int) -> Iterator[Fdrda]:
    yield from of_kind(Fdrda, k)


def of_kind(kind: type[F], k: int) -> Iterator[F]:
    cuts = product(
        divisors(k), (IEEE_FP32, RZ_FP32), range(23, 27), (None, *range(28, 35)), (Rounding.RD, Rounding.RZ)
    )
    for L, rho, places, sum_bits, cut in cuts:
        for dot_bits in range(max(places, 29), 36):
            yield from valid(kind, places, L, rho, dot_bits, sum_bits, cut=cut)


def details(parameters: F, types: Types) -> Iterator[F]:
    for skip in (True, False):
        for first in (False, True):
            yield replace(parameters, skip_zero_products=skip, inputs_first=first)


def sure(products: NDArray[np.int64], c: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Nothing is near the largest number: an infinity is a special value to the next step."""
    return np.asarray((products.max(axis=1) < 100) & (c < 100))
