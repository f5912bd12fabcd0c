"""How narrow the numbers of a fused dot product may be: bounds computed from a `DotAdd`, none assumed.

A product is computed in the processor's floating point and aligned by it: with `p` the exact product as a float and
F, e_max as in the stage `align`, the aligned term is `p · 2^(F - e_max)` cut toward zero, which is what converting a
float to an integer does.  That is `align` bit for bit if no operation rounds:

- the significands' product has M_a + M_b + 2 bits, no more than the float's 24 (53);
- the least product, 2^(e_a + e_b - M_a - M_b) at the least exponents, and the largest, below 2^(e_a + e_b + 2) at
  the greatest, are normal floats;
- the scale 2^(F - e_max) is a normal float.  Where it would be too large, e_max is below the exponent of every
  product that is not zero: all are zero, and stay zero by any scale.  Where it is below 2^floor, floor = -(e_a + e_b +
  3) at the greatest exponents, that serves instead: every product times it is below 1, too, and cut to 0.  So no
  scaled product is subnormal, which would be slow, and would depend on whether the processor flushes it.

A term is at most (2^(M_a+1) - 1)·(2^(M_b+1) - 1) shifted from M_a + M_b to F fractional bits.  As many of these are
summed in 32 bits as fit (`chunk`); the sums of chunks and c's term are added in 64 bits.

Where the exponents of a format ask for 64 bits, and its significands do not, as of bf16 and tf32, `near_one` says
between which exponents 32 bits serve: planes that have no others are made of these.

tests/kernels/test_widths.py states each of these as an obligation, for every specification of the registry, and for
random formats that are in none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mmaformal.display import ShortRepr
from mmaformal.spec import DotAdd

_INT32 = (1 << 31) - 1
#: name, bits of the significand, least and greatest exponent of a normal number
_FLOATS: tuple[tuple[type[np.floating], int, int, int], ...] = (
    (np.float32, 24, -126, 127),
    (np.float64, 53, -1022, 1023),
)


@dataclass(frozen=True, repr=False)
class Widths(ShortRepr):
    """The types of the planes and sums of a fused dot product, and the numbers that mark zeros in them."""

    exponent: type[np.signedinteger]  #: of the exponents of operands, and of the sum of two
    value: type[np.floating]  #: of operands and products
    term: type[np.signedinteger]  #: of aligned terms
    chunk: int  #: how many terms a sum of that type holds
    least: int  #: the least exponent of a product that is not zero
    floor: int  #: the exponent of the least scale that need be applied
    zero: int  #: what a zero operand's exponent is, so that its products' are below `least`

    @property
    def bytes_per_element(self) -> int:
        return int(np.dtype(self.exponent).itemsize + np.dtype(self.value).itemsize + 1)

    def __str__(self) -> str:
        names = (np.dtype(x).name for x in (self.exponent, self.value, self.term))
        return "exponents {}, products {}, terms {}".format(*names) + f" in sums of {self.chunk}"


def widths(spec: DotAdd, F: int, L: int) -> Widths | None:
    """The narrowest types for sums of L products of `spec` aligned to F bits; None if there are none."""
    a, b = spec.a_format, spec.b_format
    bits = a.fraction_bits + b.fraction_bits
    least, greatest = a.min_exponent + b.min_exponent, a.max_exponent + b.max_exponent

    for float_type, significand, low, high in _FLOATS:
        exact = bits + 2 <= significand
        normal = least - bits >= low and min(x.min_exponent - x.fraction_bits for x in (a, b)) >= low
        floor = -(greatest + 3)
        bounded = greatest + 2 <= high and least - bits + floor >= low
        if exact and normal and bounded and F - least <= high:
            value = float_type
            break
    else:
        return None

    largest = (2 ** (a.fraction_bits + 1) - 1) * (2 ** (b.fraction_bits + 1) - 1)
    term = largest << (F - bits) if bits <= F else largest >> (bits - F)
    if L * term >= 1 << 62:
        return None
    term_type, chunk = (np.int32, min(L, _INT32 // term)) if term <= _INT32 else (np.int64, L)

    zero = least - max(a.max_exponent, b.max_exponent) - 1
    sums = (2 * zero, greatest)
    exponent = next(
        (t for t in (np.int8, np.int16) if np.iinfo(t).min <= sums[0] and sums[1] <= np.iinfo(t).max), None
    )
    if exponent is None:
        return None
    return Widths(exponent, value, term_type, chunk, least, floor, zero)


class Near(NamedTuple):
    """Exponents of operands between which products are exact in float32, and the exponent of the least scale there."""

    low: int
    high: int
    floor: int


def near_one(spec: DotAdd, F: int, wide: Widths) -> Near | None:
    """Return the exponents between which float32 serves for `spec`, aligned to F bits, where `wide` has float64.

    None where float32 holds no product's significand, or not the largest product, or subnormal numbers of the formats
    are among them.
    """
    _, significand, least, most = _FLOATS[0]
    a, b = spec.a_format, spec.b_format
    # A product of the least exponents and the least scale is normal: 2·low - (2·high + 3) ≥ least.  There is more room
    # below 1 than above, as in the numbers of a network.
    span = (-least - 3) // 2
    low = max(-(3 * span // 4), -((most - F) // 2))
    largest = 2 * (low + span) + 2
    fits = a.fraction_bits + b.fraction_bits + 2 <= significand and largest <= most
    fits = fits and low > max(a.min_exponent, b.min_exponent)
    return Near(low, low + span, -largest - 1) if fits and wide.value is not _FLOATS[0][0] else None
