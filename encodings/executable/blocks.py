"""The stages that the executable algorithms are built from, in plain integer arithmetic on bit patterns.

A *lane* is a signed 64-bit integer.  The same functions run on three kinds of lanes:

- Python ints, for reading and debugging;
- NumPy int64 arrays, one row per dot product-add, for speed;
- symbolic lanes, objects with the operators of an int and a method `select(x, y)` on their flags, for proofs.

So there is no branching on data: `where` selects.  A *flag* is what comparing lanes gives.  Shift amounts are
always brought into 0 … 63 before a shift, and no operation leaves the signed 64-bit range, so nothing wraps
(tests/encodings/test_executable.py runs every algorithm on lanes that check this).  An fp64 code is the lane with its
bits, which is negative for a negative number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from mmaformal.formats import Format, Layout, Specials
from mmaformal.rounding import Conversion, Rounding
from mmaformal.stages import Stage

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


class Sum(NamedTuple):
    """A sum `total · 2^unit`, or one that ρ rounds as it would the true sum.

    Where bits were dropped, the last bit kept is set (it is *sticky*) and lies below all that ρ looks at.

    Invariant: |total| < 2^61; total is 0 only if the true sum is.
    """

    total: Lane
    unit: Lane


class AnyExecutableStep(Protocol):
    """A step of whichever algorithm."""

    @property
    def result(self) -> Lane: ...


StepT = TypeVar("StepT", bound=AnyExecutableStep, covariant=True)


class Inner(NamedTuple):
    """The codes of the dot product-add within one that changes signs (`signs`)."""

    a: tuple[Lane, ...]
    c: Lane
    result: Lane
    before: Sequence[Stage]  #: what was done to a and c
    after: Sequence[Stage]  #: and to the result


@dataclass(frozen=True)
class Trace(Generic[StepT]):
    """The interfaces of every step, in order, and the result."""

    steps: tuple[StepT, ...]
    result: Lane
    stages: Sequence[Stage] = field(default=(), repr=False, compare=False)  #: what was done, in order
    inner: Inner | None = field(default=None, repr=False, compare=False)  #: where signs are changed


class Special(NamedTuple):
    """Flags of what the special values among the inputs decide; all false: nothing, the sum is computed."""

    nan: Flag
    positive_infinity: Flag
    negative_infinity: Flag


# ---- selection and small integer functions ---------------------------------------------------------------


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


# ---- decode ----------------------------------------------------------------------------------------------


def decode(code: Lane, layout: Layout) -> Operand:
    """Decode one code (IEEE 754-2019 §3.4; OCP and FNUZ for the 8-bit formats; P3109, interim report §4.7.2)."""
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
    elif layout.specials == Specials.NUZ:
        infinite = top & (fraction == (1 << layout.fraction_bits) - 1)
        nan = (sign == 1) & (field == 0) & (fraction == 0)
    elif layout.specials == Specials.TOP:
        beyond = (
            (field << layout.fraction_bits) + fraction - (1 << layout.exponent_bits + layout.fraction_bits)
        )
        infinite, nan = beyond == -2, beyond == -1
    elif not layout.has_zero:
        nan = top

    if not layout.has_zero:
        return Operand(sign, field - layout.bias, field * 0 + 1, infinite, nan)
    normal = field != 0
    significand = where(normal, fraction + (1 << layout.fraction_bits), fraction)
    return Operand(sign, where(normal, field, 1) - layout.bias, significand, infinite, nan)


# ---- classify --------------------------------------------------------------------------------------------


def is_zero(x: Operand) -> Flag:
    """Whether a finite operand is ±0; meaningless for infinities and NaNs, whose significand is not used."""
    return x.significand == 0


def classify_product(a: Operand, b: Operand) -> Special:
    """The special value that one product is: NaN for a NaN factor and 0·∞, ±∞ for an infinite factor."""
    nan = a.nan | b.nan | (a.infinite & is_zero(b)) | (b.infinite & is_zero(a))
    infinite = a.infinite | b.infinite
    negative = (a.sign ^ b.sign) == 1
    return Special(nan, infinite & invert(negative), infinite & negative)


def classify_addend(c: Operand) -> Special:
    negative = c.sign == 1
    return Special(c.nan, c.infinite & invert(negative), c.infinite & negative)


def classify_scale(scale: Operand) -> Special:
    """A NaN scale makes the result NaN; no scale is infinite."""
    never = scale.nan ^ scale.nan
    return Special(scale.nan, never, never)


def merge_special(x: Special, y: Special) -> Special:
    """Join the specials of two parts of a sum.  Infinities of both signs meet in `resolve_special`: it associates."""
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


# ---- multiply, align -------------------------------------------------------------------------------------


def multiply(a: Operand, b: Operand) -> Term:
    """The exact product, not renormalised; fractional bits: the sum of the factors'."""
    return Term(a.sign ^ b.sign, a.exponent + b.exponent, a.significand * b.significand)


def term(x: Operand) -> Term:
    """An operand as a summand."""
    return Term(x.sign, x.exponent, x.significand)


def with_scales(x: Term, scale_a: Operand, scale_b: Operand) -> Term:
    """A product with the exponents of its two power-of-two scales added."""
    return Term(x.sign, x.exponent + scale_a.exponent + scale_b.exponent, x.significand)


def with_zero_exponent(x: Term, e_zero: int | None) -> Term:
    """A term that is exactly zero takes the exponent e_zero; None leaves it the exponent of its fields."""
    if e_zero is None:
        return x
    return Term(x.sign, where(x.significand == 0, e_zero, x.exponent), x.significand)


def align(x: Term, e_max: Lane, fraction_bits: int, F: int) -> Lane:
    """The term in units of 2^(e_max - F), cut toward zero on the magnitude; x.exponent ≤ e_max."""
    excess = max(fraction_bits - F, 0)
    shift = minimum(e_max - x.exponent + excess, 63)
    return signed(x.sign, (x.significand << max(F - fraction_bits, 0)) >> shift)


def align_sticky(x: Term, e_max: Lane, fraction_bits: int, F: int) -> Lane:
    """Align a term as `align` does, the last bit of the magnitude made odd if anything but zeros was cut off."""
    excess = max(fraction_bits - F, 0)
    shift = e_max - x.exponent + excess
    return signed(x.sign, shift_right_sticky(x.significand << max(F - fraction_bits, 0), shift))


def shift_right(x: Lane, n: Lane, cut: Rounding) -> Lane:
    """x / 2^n for a signed x, |x| < 2^62, rounded down or toward zero."""
    n = clamp(n, 0, 63)
    if cut is Rounding.RD:
        return x >> n
    negative = x < 0
    magnitude = where(negative, -x, x) >> n
    return where(negative, -magnitude, magnitude)


def shift_right_sticky(x: Lane, n: Lane) -> Lane:
    """x / 2^n for 0 ≤ x < 2^62, the last bit made odd if anything but zeros was shifted out."""
    n = clamp(n, 0, 62)
    kept = x >> n
    return where((kept << n) == x, kept, kept | 1)


def signed(sign: Lane, magnitude: Lane) -> Lane:
    return where(sign == 1, -magnitude, magnitude)


# ---- accumulate ------------------------------------------------------------------------------------------


def add(x: Term, x_bits: int, y: Term, y_bits: int, frame: int) -> Sum:
    """x + y, fit for a ρ of p fractional bits.  `x_bits` and `y_bits` are the terms' fractional bits.

    Both terms are aligned to the larger exponent e and `frame` fractional bits are kept, the last one sticky.
    A zero must not have the larger exponent, unless that is the least of ρ.

    Let u be the term of exponent e, at least 2^(e-z) or with e the least exponent of ρ, and v the other.  Then it
    is enough that frame ≥ p + z + 3, frame ≥ z + 2 + the fractional bits of v, and frame ≥ 1 + those of u.
    For if v, of exponent e-d and less than 2^(e-d+2), loses bits, then d ≥ z + 3 and the sum exceeds 2^(e-z-1), so
    that ρ looks no further down than the half ulp 2^(e-z-1-p-1), or 2^(e-p-1) at its least exponent: above the
    sticky bit 2^(e-frame).  And u is a multiple of that bit's double: an odd multiple would turn the odd v into an
    even sum, with nothing left to tell it from a tie.
    """
    e_max = maximum(x.exponent, y.exponent)
    x_aligned = shift_right_sticky(x.significand << (frame - x_bits), e_max - x.exponent)
    y_aligned = shift_right_sticky(y.significand << (frame - y_bits), e_max - y.exponent)
    return Sum(signed(x.sign, x_aligned) + signed(y.sign, y_aligned), e_max - frame)


# ---- normalise & round, encode ---------------------------------------------------------------------------


class Rounded(NamedTuple):
    """A rounded magnitude: `significand · 2^(exponent - fraction bits of ρ)`, exponent ≥ the format's least.

    Invariant: significand ≤ 2^(fraction bits + 1); below 2^(fraction bits) only at the least exponent.
    """

    sign: Lane
    exponent: Lane
    significand: Lane


def normalise_and_round(total: Lane, unit: Lane, rho: Conversion) -> Rounded:
    """Round `total · 2^unit`, |total| < 2^61, with ρ to a significand of ρ's fraction bits."""
    negative = total < 0
    magnitude = where(negative, -total, total)
    least = rho.format.min_exponent
    exponent = where(magnitude == 0, least, maximum(bit_length(magnitude) - 1 + unit, least))
    drop = exponent - rho.fraction_bits - unit
    right, left = clamp(drop, 0, 62), clamp(-drop, 0, rho.fraction_bits + 1)
    kept = (magnitude >> right) << left
    if rho.rounding is Rounding.RNE:
        remainder = (magnitude - ((magnitude >> right) << right)) * 2
        one = magnitude * 0 + 1
        divisor = one << right
        last = kept if rho.fraction_bits else kept + exponent - least  # of the code: it may have no fraction
        up = (remainder > divisor) | ((remainder == divisor) & ((last & 1) == 1))
        kept = where(up & (right > 0), kept + 1, kept)
    elif rho.rounding is Rounding.RNA:
        remainder = (magnitude - ((magnitude >> right) << right)) * 2
        one = magnitude * 0 + 1
        kept = where((remainder >= one << right) & (right > 0), kept + 1, kept)
    elif rho.rounding is Rounding.RD:
        lost = (magnitude >> right) << right != magnitude
        kept = where(lost & negative, kept + 1, kept)
    elif rho.rounding is Rounding.RU:
        lost = (magnitude >> right) << right != magnitude
        kept = where(lost & invert(negative), kept + 1, kept)
    elif rho.rounding is Rounding.RO:
        lost = (magnitude >> right) << right != magnitude
        odd = kept | 1 if rho.fraction_bits else kept + ((kept + exponent - least + 1) & 1)
        kept = where(lost, odd, kept)
    return Rounded(where(negative, 1, 0), exponent, kept)


def encode(x: Rounded, rho: Conversion) -> Lane:
    """The code of a rounded number; overflow is infinity, or the largest number where one of IEEE 754's
    directed roundings goes toward zero, or ρ saturates; zero is +0 unless ρ keeps its sign.

    A significand that holds the leading bit, or that rounding carried to a power of two, adds its carry to
    the exponent field by itself.
    """
    target = rho.format
    exponent = minimum(x.exponent, target.max_exponent)
    narrow = ((exponent - target.min_exponent) << rho.fraction_bits) + x.significand
    infinity = ((1 << target.exponent_bits) - 1) << rho.fraction_bits
    narrow = where(x.exponent > target.max_exponent, infinity, minimum(narrow, infinity))
    negative = x.sign == 1
    if rho.stays:
        finite = minimum(narrow, infinity - 1)
        if rho.rounding is Rounding.RD:
            finite = where(negative, narrow, finite)
        elif rho.rounding is Rounding.RU:
            finite = where(negative, finite, narrow)
        narrow = finite
    code = narrow << (target.fraction_bits - rho.fraction_bits)
    if not rho.signed_zero:
        negative = negative & (code != 0)
    return where(negative, code + sign_word(target), code)


def select_special(special: Special, code: Lane, rho: Conversion, nan: Lane) -> Lane:
    """The result: the special value where there is one, else the code of the sum."""
    target = rho.format
    infinity = ((1 << target.exponent_bits) - 1) << target.fraction_bits
    code = where(special.positive_infinity, infinity, code)
    code = where(special.negative_infinity, infinity + sign_word(target), code)
    return where(special.nan, nan, code)


def sign_word(target: Format) -> int:
    """Return what a set sign bit adds to a lane that holds a code."""
    return -(1 << 63) if target.storage_bits == 64 else 1 << (target.storage_bits - 1)


def canonical_nan(target: Format) -> int:
    """NVIDIA's NaN, all ones but the sign: 0x7FFF, 0x7FFFFFFF (MMA-Sim §IV-C step 1)."""
    return (1 << (target.storage_bits - 1)) - 1


def quiet_nan(target: Format) -> int:
    """The quiet NaN without payload, given where the payload of the hardware's is not known."""
    return ((1 << (target.exponent_bits + 1)) - 1) << (target.fraction_bits - 1)


def round_sum(x: Sum, zero_sign: Lane, rho: Conversion) -> Rounded:
    """Round a sum; one that is exactly zero has the sign `zero_sign`."""
    rounded = normalise_and_round(x.total, x.unit, rho)
    return Rounded(where(x.total == 0, zero_sign, rounded.sign), rounded.exponent, rounded.significand)


def sum_sign(rho: Conversion, x: Lane, y: Lane) -> Lane:
    """The sign of an exact zero, the sum of terms with two signs: minus if both are, or if one is with IEEE's RD."""
    return x | y if rho.ieee and rho.rounding is Rounding.RD else x & y
