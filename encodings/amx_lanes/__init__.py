"""Kinds of operations that Apple AMX's instructions do on single lanes, as data for both encodings.

Source: corsix/amx, the tables of ALU modes of vecfp, matfp, mac16, vecint, matint, extrh and extrv.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from mmaformal.formats import bf16
from mmaformal.rounding import Conversion, Rounding

#: To bf16, rounded once to nearest, ties to even.
IEEE_BF16 = Conversion("IEEE-BF16", bf16, 7, Rounding.RNE, signed_zero=True)

#: Results of floating-point operations on x, y and z.
FloatKind = Literal["z+xy", "z-xy", "xy", "z+x", "z+y", "x<=0?0:y", "min", "max"]
#: (x, y, z) that are skipped, of those that are an fma without something
SKIPS: dict[FloatKind, tuple[bool, bool, bool]] = {
    "z+xy": (False, False, False),
    "z-xy": (False, False, False),
    "xy": (False, False, True),
    "z+x": (False, True, False),
    "z+y": (True, False, False),
}


class Accumulation(NamedTuple):
    """An integer operation: z ± (term >> s), or without z; lanes and z as codes of so many bits."""

    term: Literal["xy", "x+y", "x", "y", "equal bits", "0"]
    x_bits: int = 16
    y_bits: int = 16
    z_bits: int = 16
    x_signed: bool = False
    y_signed: bool = False
    negative: bool = False  #: z − …
    with_z: bool = True
    high_half: bool = (
        False  #: the term is doubled, its high 16 bits are rounded to nearest, the sum saturates
    )


class Reduction(NamedTuple):
    """An integer shifted right, then saturated or not: from a code of `bits` to one of `out_bits`."""

    bits: int
    out_bits: int
    saturated_bits: int  #: of the range it saturates to
    signed: bool
    signed_range: bool
    rounding: bool  #: half a unit is added before the shift
    saturate: bool
