"""lowered: as fda on converted operands, c last; which products an inner step takes is an order of its own.

Or bulk-normalised: operands as they are, everything to odd, and one NaN.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.lowered import Lowered
from mmaformal.formats import fp16, fp32
from mmaformal.rounding import Conversion, NanRule, Rounding
from mmaformal.spaces.common import (
    Types,
    conversions,
    divisors,
    named_conversion,
    orders,
    valid,
    varied,
)

#: beyond these no unit that runs a lowered instruction was seen
PLACES = range(8, 40)


def choices(types: Types, k: int) -> Iterator[Lowered]:
    d = types.d
    addition = Conversion(f"IEEE-{d.name.upper()}", d, d.fraction_bits, Rounding.RNE, signed_zero=True)
    full = [rho for rho in conversions(d) if rho.fraction_bits == d.fraction_bits]
    odd = [rho for rho in full if rho.rounding is Rounding.RO]
    for L, rho, F in product(reversed(divisors(k)), odd, PLACES):  # bulk-normalised, as RISC-V has it
        given = (
            F,
            L,
            rho,
            None,
            None,
            tuple(range(L)),
            named_conversion(replace(rho, name=f"{rho.name}±0", signed_zero=True)),
        )
        yield from valid(Lowered, *given, cut=Rounding.RO, nan=NanRule.DEFAULT)
    for L in reversed(divisors(k)):
        taken = (tuple(range(k)), *orders(k, L))
        for order, operands, rho, F in product(taken, (fp16, fp32), full, PLACES):
            yield from valid(Lowered, F, L, rho, None, operands, order, addition)


details = varied("e_zero", "rho")


def sure(products: NDArray[np.int64], c: NDArray[np.int64]) -> NDArray[np.bool_]:
    """An inner step begins with a zero: no product is below the largest exponent that it may have."""
    return np.asarray((products > 0).all(axis=1))
