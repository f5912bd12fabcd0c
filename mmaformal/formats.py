"""Every number format, as one table of data.

A finite code is read off its fields: with exponent field `E` and trailing significand field `T`,

    E > 0 (normal):     (-1)^sign · (1 + T / 2^M) · 2^(E - bias)
    E = 0 (subnormal):  (-1)^sign · (T / 2^M)     · 2^(1 - bias)

What codes are set aside for infinities and NaNs differs, and is the `specials` column.  Sources: IEEE 754-2019
for fp64, fp32 and fp16; OCP 8-bit and Microscaling (MX) specifications for e5m2, e4m3, e3m2, e2m3, e2m1 and ue8m0;
Noune et al. (arXiv 2206.02915) for the FNUZ formats; MMA-Sim (seed 000, Appendix A and §IV) for tf32 and ue4m3.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np


class Specials(IntEnum):
    """Which codes are infinities and NaNs."""

    NONE = 0  #: every code is a number
    IEEE = 1  #: exponent all ones: infinity if the trailing significand is 0, else NaN
    FN = 2  #: no infinity; the magnitude of all ones is the NaN
    FNUZ = 3  #: no infinity, no −0; the code of −0 is the NaN


class Layout(NamedTuple):
    """A format reduced to the integers its arithmetic needs."""

    exponent_bits: int
    fraction_bits: int  #: M, the width of the trailing significand
    bias: int
    specials: int  #: a `Specials`
    ignored_low_bits: int  #: low bits of the storage word that the unit reads as 0 (tf32: 13)
    signed: bool  #: whether the top bit is a sign; if not, it is ignored (ue4m3)
    has_zero: bool  #: False: exponent only, significand always 1, the code 0 is 2^-bias (ue8m0)


@dataclass(frozen=True)
class Format:
    """One number format; `storage_bits` is the width of a code as the hardware holds it."""

    name: str
    storage_bits: int
    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: Specials
    dtype: np.dtype[Any] | None  #: the NumPy dtype of float arrays in this format, if there is one
    ignored_low_bits: int = 0
    signed: bool = True
    has_zero: bool = True

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Format {self.name}>"

    @cached_property
    def layout(self) -> Layout:
        return Layout(
            self.exponent_bits,
            self.fraction_bits,
            self.bias,
            int(self.specials),
            self.ignored_low_bits,
            self.signed,
            self.has_zero,
        )

    @property
    def word(self) -> np.dtype[Any]:
        """The unsigned NumPy dtype that holds one code."""
        return _dtype(f"uint{self.word_bits}")

    @property
    def word_bits(self) -> int:
        return 8 if self.storage_bits < 8 else self.storage_bits

    @property
    def codes(self) -> int:
        """How many codes there are; a code is an integer in `range(codes)`."""
        return 1 << self.storage_bits

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number and of every subnormal one."""
        return 1 - self.bias if self.has_zero else -self.bias

    @property
    def max_exponent(self) -> int:
        """Largest exponent of a finite code."""
        top = (1 << self.exponent_bits) - 1
        all_ones_is_special = self.specials == Specials.IEEE or not self.has_zero
        return top - self.bias - (1 if all_ones_is_special else 0)

    @property
    def sign_mask(self) -> int:
        return 1 << (self.storage_bits - 1) if self.signed else 0

    @property
    def infinity(self) -> int | None:
        """The code of +∞, or None."""
        if self.specials != Specials.IEEE:
            return None
        return ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.ignored_low_bits)

    def fields(self, code: int) -> tuple[int, int, int]:
        """(sign, exponent field, trailing significand field) of a code.

        Raises ValueError for a code outside `range(self.codes)`.
        """
        if not 0 <= code < self.codes:
            raise ValueError(f"{self.name} has no code {code:#x}: codes are 0 to {self.codes - 1:#x}")
        word = code >> self.ignored_low_bits
        fraction = word & ((1 << self.fraction_bits) - 1)
        exponent = (word >> self.fraction_bits) & ((1 << self.exponent_bits) - 1)
        sign = (word >> (self.fraction_bits + self.exponent_bits)) & 1 if self.signed else 0
        return sign, exponent, fraction

    def is_nan(self, code: int) -> bool:
        sign, exponent, fraction = self.fields(code)
        top = exponent == (1 << self.exponent_bits) - 1
        if not self.has_zero:
            return top
        if self.specials == Specials.IEEE:
            return top and fraction != 0
        if self.specials == Specials.FN:
            return top and fraction == (1 << self.fraction_bits) - 1
        if self.specials == Specials.FNUZ:
            return (sign, exponent, fraction) == (1, 0, 0)
        return False

    def is_infinite(self, code: int) -> bool:
        _, exponent, fraction = self.fields(code)
        return self.specials == Specials.IEEE and exponent == (1 << self.exponent_bits) - 1 and fraction == 0

    def is_finite(self, code: int) -> bool:
        return not (self.is_nan(code) or self.is_infinite(code))

    def value(self, code: int) -> Fraction:
        """The exact value of a finite code.  Raises ValueError for infinities and NaNs."""
        if not self.is_finite(code):
            raise ValueError(f"{self.name} {code:#x} is {self.text(code)}, not a number")
        sign, exponent, fraction = self.fields(code)
        if not self.has_zero:
            return Fraction(2) ** (exponent - self.bias)
        significand = fraction + (1 << self.fraction_bits if exponent else 0)
        magnitude = Fraction(significand) * Fraction(2) ** (max(exponent, 1) - self.bias - self.fraction_bits)
        return -magnitude if sign else magnitude

    def code(self, text: str) -> int:
        """The code of a number written as a decimal, fraction or hexadecimal float, or of `inf`, `-inf`, `nan`.

        Raises ValueError if the format has no such value: nothing is rounded.
        """
        word = text.strip().lower()
        negative = word.startswith("-")
        if word.lstrip("+-") in ("inf", "infinity"):
            if self.infinity is None:
                raise ValueError(f"{self.name} has no infinity")
            return self.infinity | (self.sign_mask if negative else 0)
        if word == "nan":
            found = next((c for c in _nan_candidates(self) if self.is_nan(c)), None)
            if found is None:
                raise ValueError(f"{self.name} has no NaN")
            return found
        try:
            value = Fraction(float.fromhex(word)) if "0x" in word else Fraction(word)
        except (ValueError, OverflowError, ZeroDivisionError):
            raise ValueError(f"{text!r} is no number") from None
        low, high = 0, 1 << (self.exponent_bits + self.fraction_bits)
        while low < high:  # magnitudes are ordered as their codes are; infinities and NaNs come last
            middle = (low + high) // 2
            code = middle << self.ignored_low_bits
            if not self.is_finite(code) or self.value(code) >= abs(value):
                high = middle
            else:
                low = middle + 1
        code = low << self.ignored_low_bits
        if negative and self.sign_mask and not self.is_nan(code | self.sign_mask):
            code |= self.sign_mask
        if code >= self.codes or not self.is_finite(code) or self.value(code) != value:
            raise ValueError(f"{text} is not a value of {self.name}: give one exactly, or a code as 0x…")
        return code

    def text(self, code: int) -> str:
        """A code for a person: `nan`, `-inf`, `-0`, or its exact value as a hexadecimal float."""
        if self.is_nan(code):
            return "nan"
        sign = self.fields(code)[0]
        if self.is_infinite(code):
            return "-inf" if sign else "inf"
        return hex_float(self.value(code), negative_zero=bool(sign))


def _nan_candidates(fmt: Format) -> tuple[int, ...]:
    ones = fmt.codes - 1
    return (ones & ~fmt.sign_mask, fmt.sign_mask, ones)


def hex_float(value: Fraction, *, negative_zero: bool = False) -> str:
    """An exact dyadic rational as a hexadecimal float, of any size: `0x1.8p-150`.

    Raises ValueError if the denominator is not a power of two.
    """
    if value == 0:
        return "-0x0p+0" if negative_zero else "0x0p+0"
    if value.denominator & (value.denominator - 1):
        raise ValueError(f"{value} is not a binary fraction")
    sign = "-" if value < 0 else ""
    numerator = abs(value.numerator)
    exponent = numerator.bit_length() - value.denominator.bit_length()
    fraction = numerator - (1 << (numerator.bit_length() - 1))
    digits = -(-(numerator.bit_length() - 1) // 4)
    fraction <<= 4 * digits - (numerator.bit_length() - 1)
    tail = f"{fraction:0{digits}x}".rstrip("0") if digits else ""
    return f"{sign}0x1{'.' + tail if tail else ''}p{exponent:+d}"


def _dtype(scalar: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(scalar)
    return dtype


_IEEE, _FN, _FNUZ, _NONE = Specials.IEEE, Specials.FN, Specials.FNUZ, Specials.NONE

#: name, storage bits, exponent bits, fraction bits, bias, specials, dtype
_TABLE = (
    Format("fp64", 64, 11, 52, 1023, _IEEE, _dtype(np.float64)),
    Format("fp32", 32, 8, 23, 127, _IEEE, _dtype(np.float32)),
    Format("tf32", 32, 8, 10, 127, _IEEE, _dtype(np.float32), ignored_low_bits=13),
    Format("bf16", 16, 8, 7, 127, _IEEE, _dtype(ml_dtypes.bfloat16)),
    Format("fp16", 16, 5, 10, 15, _IEEE, _dtype(np.float16)),
    Format("e5m2", 8, 5, 2, 15, _IEEE, _dtype(ml_dtypes.float8_e5m2)),
    Format("e4m3", 8, 4, 3, 7, _FN, _dtype(ml_dtypes.float8_e4m3fn)),
    Format("e5m2fnuz", 8, 5, 2, 16, _FNUZ, _dtype(ml_dtypes.float8_e5m2fnuz)),
    Format("e4m3fnuz", 8, 4, 3, 8, _FNUZ, _dtype(ml_dtypes.float8_e4m3fnuz)),
    Format("e3m2", 6, 3, 2, 3, _NONE, _dtype(ml_dtypes.float6_e3m2fn)),
    Format("e2m3", 6, 2, 3, 1, _NONE, _dtype(ml_dtypes.float6_e2m3fn)),
    Format("e2m1", 4, 2, 1, 1, _NONE, _dtype(ml_dtypes.float4_e2m1fn)),
    Format("ue8m0", 8, 8, 0, 127, _NONE, _dtype(ml_dtypes.float8_e8m0fnu), signed=False, has_zero=False),
    Format("ue4m3", 8, 4, 3, 7, _FN, None, signed=False),
)

FORMATS: dict[str, Format] = {entry.name: entry for entry in _TABLE}

fp64, fp32, tf32, bf16, fp16 = (FORMATS[n] for n in ("fp64", "fp32", "tf32", "bf16", "fp16"))
e5m2, e4m3, e5m2fnuz, e4m3fnuz = (FORMATS[n] for n in ("e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz"))
e3m2, e2m3, e2m1, ue8m0, ue4m3 = (FORMATS[n] for n in ("e3m2", "e2m3", "e2m1", "ue8m0", "ue4m3"))
