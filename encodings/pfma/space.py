"""pfma: how many products one instruction takes; in detail, when a result counts as tiny."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.pfma import Pfma
from mmaformal.rounding import Tininess
from mmaformal.spaces.common import Types, divisors

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Pfma]:
    yield from (Pfma(L) for L in divisors(k) if L % 2 == 0)


def details(parameters: Pfma, types: Types) -> Iterator[Pfma]:
    """With two products each is added to 0, and of 16 bits: what is tiny after rounding was before."""
    if parameters.L > 2:
        yield from (replace(parameters, tiny=tiny) for tiny in Tininess)


def sure(products: NDArray[np.int64], c: NDArray[np.int64]) -> NDArray[np.bool_]:
    """No sum has places below 2^-149, so none that is below 2^-126 is rounded."""
    return np.asarray((products > -130).all(axis=1))
