"""ffma: in detail, when a result counts as tiny; the order of its products is distinguished from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.ffma import Ffma
from mmaformal.rounding import Tininess
from mmaformal.spaces.common import Types

ORDERED = True


def choices(types: Types, k: int) -> Iterator[Ffma]:
    yield Ffma()


def details(parameters: Ffma, types: Types) -> Iterator[Ffma]:
    yield from (replace(parameters, tiny=tiny) for tiny in Tininess)


def sure(products: NDArray[np.int64], c: NDArray[np.int64]) -> NDArray[np.bool_]:
    """No sum has places below 2^-149, so none that is below 2^-126 is rounded."""
    return np.asarray((products > -130).all(axis=1))
