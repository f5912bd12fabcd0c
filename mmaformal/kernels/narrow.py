"""Once per output, fda on words of 32 bits: c's exponent, c aligned and added, rounding, the code.

These functions are written apart from the executable encoding's stages, for the processor: a count of leading zeros
in place of a comparison per bit, magnitudes of 32 bits without a sign.  That they are those stages bit for bit is
proved, function by function, for every conversion, format and F that `fits` lets through
(tests/kernels/test_narrow.py).  Special values among the operands are not their business.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from mmaformal.encodings.executable.blocks import Flag, where
from mmaformal.formats import Format, bf16, e5m2, fp16, fp32
from mmaformal.kernels.widths import Widths
from mmaformal.kernels.words import BITS, CompiledWord, leading_zeros, logical
from mmaformal.rounding import Conversion, Rounding

#: formats of c and d
FORMATS = (fp32, fp16, bf16, e5m2)
ROUNDINGS = (Rounding.RZ, Rounding.RNE)
#: The most fractional bits of sums: c is below 2^(F + 1), and below 2^32 together with any word.
MOST_BITS = 29
_SIGN = -(1 << (BITS - 1))


def fits_format(fmt: Format) -> bool:
    """Whether it is one that the proofs are about, a format of IEEE 754 of 32 bits at most."""
    return fmt in FORMATS


def fits_conversion(rho: Conversion) -> bool:
    """Whether `encoded` is this ρ."""
    rounding = rho.rounding in ROUNDINGS
    plain = not (rho.signed_zero or rho.ieee or rho.saturation is not None)
    return rounding and plain and fits_format(rho.format)


def fits(rho: Conversion, c_format: Format, F: int, cut: Rounding, L: int, wide: Widths) -> bool:
    """Whether sums of L products are of 32 bits, and so is all that follows."""
    sums = wide.term is np.int32 and wide.chunk >= L and 0 <= F <= MOST_BITS
    return sums and cut is Rounding.RZ and fits_conversion(rho) and fits_format(c_format)


# ---- functions of words ------------------------------------------------------------------------------------


class Addend(NamedTuple):
    """A decoded c, which may be a special value."""

    sign: CompiledWord  #: −1 or 0
    exponent: CompiledWord
    significand: CompiledWord
    special: Flag


class Magnitude(NamedTuple):
    """A sum: its sign, and an unsigned word."""

    negative: Flag
    size: CompiledWord


@register_jitable(forceinline=True)
def addend_of(code: CompiledWord, fmt: Format) -> Addend:
    """The addend of a code, in the low bits of a word."""
    field = (code >> fmt.fraction_bits) & ((1 << fmt.exponent_bits) - 1)
    fraction = code & ((1 << fmt.fraction_bits) - 1)
    normal = field > 0
    significand = where(normal, fraction | (1 << fmt.fraction_bits), fraction)
    sign = (code << (BITS - fmt.storage_bits)) >> (BITS - 1)
    exponent = where(normal, field, word_like(1, code)) - fmt.bias
    return Addend(sign, exponent, significand, field == (1 << fmt.exponent_bits) - 1)


@register_jitable(forceinline=True)
def word_like(number: int, x: CompiledWord) -> CompiledWord:
    """A number as a word, compiled or symbolic."""
    return (x & 0) + number


@register_jitable(forceinline=True)
def larger_word(x: CompiledWord, least: CompiledWord) -> CompiledWord:
    """The larger of both."""
    return where(x > least, x, least)


@register_jitable(forceinline=True)
def addend_exponent(c: Addend, e_zero: int) -> CompiledWord:
    """The exponent of c, which is `e_zero` if c is zero."""
    return where(c.significand == 0, word_like(e_zero, c.exponent), c.exponent)


@register_jitable(forceinline=True)
def plus_addend(total: CompiledWord, c: Addend, e_max: CompiledWord, fraction_bits: int, F: int) -> Magnitude:
    """The sum of `total` and c in units of 2^(e_max - F), c cut toward zero.

    Both may have one sign and wrap: then that is the sum's.
    """
    up, down = max(F - fraction_bits, 0), max(fraction_bits - F, 0)
    magnitude = logical(c.significand << up, e_max - c.exponent + down)
    aligned = (magnitude ^ c.sign) - c.sign
    x = total + aligned
    negative = where((total ^ aligned) < 0, x, total) < 0
    return Magnitude(negative, where(negative, -x, x))


@register_jitable(forceinline=True)
def encoded(x: Magnitude, unit: CompiledWord, rho: Conversion) -> CompiledWord:
    """The code, in the low bits, of a sum in units of 2^unit."""
    fmt, bits = rho.format, rho.fraction_bits
    least, most = fmt.min_exponent, fmt.max_exponent
    zeros = leading_zeros(x.size)
    exponent = where(x.size == 0, word_like(least, unit), unit + (BITS - 1) - zeros)
    shift = larger_word(least - exponent, word_like(0, unit)) + (BITS - 1 - bits)
    lifted = x.size << zeros
    significand = logical(lifted, shift)
    if rho.rounding is Rounding.RNE:
        # What is cut off, the half of a last place being the sign: up if more, or half and odd.
        rest = (lifted << (BITS - shift)) ^ _SIGN
        up = rest > -(significand & 1)
        significand = where(up, significand + 1, significand)
    field = larger_word(exponent - least, word_like(0, unit))
    infinity = word_like(((1 << fmt.exponent_bits) - 1) << bits, unit)
    code = where(exponent > most, infinity, (field << bits) + significand) << (fmt.fraction_bits - bits)
    return where(x.negative & (code != 0), code | (1 << (fmt.storage_bits - 1)), code)
