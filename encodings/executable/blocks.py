"""The stages that the executable algorithms are built from, in plain integer arithmetic on bit patterns.

A *lane* is a signed 64-bit integer.  The same functions run on three kinds of lanes:

- Python ints, for reading and debugging (these never wrap, so they also show that nothing needs more than 64 bits);
- NumPy int64 arrays, one row per dot product-add, for speed;
- symbolic lanes, objects with the operators of an int and a method `select(x, y)` on their flags, for proofs.

So there is no branching on data: `where` selects.  A *flag* is what comparing lanes gives.  Shift amounts are
always brought into 0 … 63 before a shift.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mmaformal.algorithms import Conversion, Rounding
from mmaformal.formats import Layout, Specials

Lane = Any  # int | NDArray[int64] | a symbolic lane; `Any` because the arithmetic is the same for all
Flag = Any  # bool | NDArray[bool] | a symbolic flag


class Operand(NamedTuple):
    """A decoded input: `(-1)^sign · significand · 2^(exponent - M)` with M the format's fraction bits.

    Invariant: if neither flag is set, 0 ≤ significand < 2^(M+1); the exponent is the one of the fields.
    """

    sign: Lane
    exponent: Lane
    significand: Lane
    infinite: Flag
    nan: Flag


class Term(NamedTuple):
    """A summand: `(-1)^sign · significand · 2^(exponent - f)`, f a constant of the place it stands in."""

    sign: Lane
    exponent: Lane
    significand: Lane


class Special(NamedTuple):
    """What the special values among the inputs decide; all false: nothing, the sum is computed."""

    nan: Flag
    positive_infinity: Flag
    negative_infinity: Flag


# ---- selection and small integer functions --------------------------------------------------------------------


def where(flag: Flag, x: Lane, y: Lane) -> Lane:
    """x where the flag is true, else y."""
    if isinstance(flag, (bool, np.bool_)):
        return x if flag else y
    if isinstance(flag, np.ndarray):
        return np.where(flag, x, y)
    return flag.select(x, y)


def invert(flag: Flag) -> Flag:
    return flag ^ True


def maximum(x: Lane, y: Lane) -> Lane:
    return where(x > y, x, y)


def minimum(x: Lane, y: Lane) -> Lane:
    return where(x < y, x, y)


def clamp(x: Lane, low: int, high: int) -> Lane:
    return minimum(maximum(x, low), high)


def bit_length(x: Lane) -> Lane:
    """Position of the leading one of 0 ≤ x < 2^63, counted from 1; 0 for x = 0."""
    length = x * 0
    for step in (32, 16, 8, 4, 2, 1):
        high = x >> step
        more = high > 0
        length = where(more, length + step, length)
        x = where(more, high, x)
    return length + x


# ---- decode -----------------------------------------------------------------------------------------------------


def decode(code: Lane, layout: Layout) -> Operand:
    """Decode one code of a format of at most 32 bits (IEEE 754-2019 §3.4; OCP and FNUZ for the 8-bit ones)."""
    word = code >> layout.ignored_low_bits
    fraction = word & ((1 << layout.fraction_bits) - 1)
    field = (word >> layout.fraction_bits) & ((1 << layout.exponent_bits) - 1)
    sign = (word >> (layout.fraction_bits + layout.exponent_bits)) & 1 if layout.signed else word & 0

    top = field == (1 << layout.exponent_bits) - 1
    never = field < 0
    infinite, nan = never, never
    if layout.specials == Specials.IEEE:
        infinite, nan = top & (fraction == 0), top & (fraction != 0)
    elif layout.specials == Specials.FN:
        nan = top & (fraction == (1 << layout.fraction_bits) - 1)
    elif layout.specials == Specials.FNUZ:
        nan = (sign == 1) & (field == 0) & (fraction == 0)
    elif not layout.has_zero:
        nan = top

    if not layout.has_zero:
        return Operand(sign, field - layout.bias, field * 0 + 1, infinite, nan)
    normal = field != 0
    significand = where(normal, fraction + (1 << layout.fraction_bits), fraction)
    return Operand(sign, where(normal, field, 1) - layout.bias, significand, infinite, nan)


# ---- classify ---------------------------------------------------------------------------------------------------


def is_zero(x: Operand) -> Flag:
    """Whether a finite operand is ±0; meaningless for infinities and NaNs, whose significand is not used."""
    return x.significand == 0


def classify_product(a: Operand, b: Operand) -> Special:
    """The special value that one product is: NaN for a NaN factor and 0·∞, an infinity for an infinite factor."""
    nan = a.nan | b.nan | (a.infinite & is_zero(b)) | (b.infinite & is_zero(a))
    infinite = a.infinite | b.infinite
    negative = (a.sign ^ b.sign) == 1
    return Special(nan, infinite & invert(negative), infinite & negative)


def classify_addend(c: Operand) -> Special:
    negative = c.sign == 1
    return Special(c.nan, c.infinite & invert(negative), c.infinite & negative)


def merge_special(x: Special, y: Special) -> Special:
    """Of two parts of a sum: infinities of both signs meet in `resolve`, not here, so merging is associative."""
    return Special(
        x.nan | y.nan,
        x.positive_infinity | y.positive_infinity,
        x.negative_infinity | y.negative_infinity,
    )


def resolve_special(x: Special) -> Special:
    """At most one flag set: infinities of both signs are a NaN, and a NaN hides everything."""
    nan = x.nan | (x.positive_infinity & x.negative_infinity)
    number = invert(nan)
    return Special(nan, x.positive_infinity & number, x.negative_infinity & number)


# ---- multiply, align --------------------------------------------------------------------------------------------


def multiply(a: Operand, b: Operand) -> Term:
    """The exact product, not renormalised; fractional bits: the sum of the factors'."""
    return Term(a.sign ^ b.sign, a.exponent + b.exponent, a.significand * b.significand)


def with_zero_exponent(x: Term, e_zero: int | None) -> Term:
    """A term that is exactly zero takes the exponent e_zero; None leaves it the exponent of its fields."""
    if e_zero is None:
        return x
    return Term(x.sign, where(x.significand == 0, e_zero, x.exponent), x.significand)


def align(x: Term, e_max: Lane, fraction_bits: int, F: int) -> Lane:
    """The term in units of 2^(e_max - F), cut toward zero on the magnitude; x.exponent ≤ e_max."""
    excess = max(fraction_bits - F, 0)
    shift = minimum(e_max - x.exponent + excess, 63)
    magnitude = (x.significand << max(F - fraction_bits, 0)) >> shift
    return where(x.sign == 1, -magnitude, magnitude)


# ---- normalise & round, encode ----------------------------------------------------------------------------------


class Rounded(NamedTuple):
    """A rounded magnitude: `significand · 2^(exponent - fraction bits of ρ)`, with exponent ≥ the format's least.

    Invariant: significand ≤ 2^(fraction bits + 1); below 2^(fraction bits) only at the least exponent.
    """

    sign: Lane
    exponent: Lane
    significand: Lane


def normalise_and_round(total: Lane, unit: Lane, rho: Conversion) -> Rounded:
    """Round `total · 2^unit`, |total| < 2^61, with ρ to a significand of ρ's fraction bits."""
    negative = total < 0
    magnitude = where(negative, -total, total)
    exponent = maximum(bit_length(magnitude) - 1 + unit, rho.format.min_exponent)
    drop = exponent - rho.fraction_bits - unit
    right, left = clamp(drop, 0, 62), clamp(-drop, 0, rho.fraction_bits + 1)
    kept = (magnitude >> right) << left
    if rho.rounding is Rounding.RNE:
        remainder = (magnitude - ((magnitude >> right) << right)) * 2
        one = magnitude * 0 + 1
        divisor = one << right
        up = (remainder > divisor) | ((remainder == divisor) & ((kept & 1) == 1))
        kept = where(up & (right > 0), kept + 1, kept)
    return Rounded(where(negative, 1, 0), exponent, kept)


def encode(x: Rounded, rho: Conversion) -> Lane:
    """The code of a rounded number; overflow is infinity, zero is +0.

    A significand that holds the leading bit, or that rounding carried to a power of two, adds its carry to the
    exponent field by itself.
    """
    target = rho.format
    narrow = ((x.exponent - target.min_exponent) << rho.fraction_bits) + x.significand
    infinity = ((1 << target.exponent_bits) - 1) << rho.fraction_bits
    code = minimum(narrow, infinity) << (target.fraction_bits - rho.fraction_bits)
    return where(code == 0, 0, code + (x.sign << (target.storage_bits - 1)))


def select_special(special: Special, code: Lane, rho: Conversion, canonical_nan: int) -> Lane:
    """The result: the special value where there is one, else the code of the sum."""
    target = rho.format
    infinity = ((1 << target.exponent_bits) - 1) << target.fraction_bits
    code = where(special.positive_infinity, infinity, code)
    code = where(special.negative_infinity, infinity + (1 << (target.storage_bits - 1)), code)
    return where(special.nan, canonical_nan, code)
