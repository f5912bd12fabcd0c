"""Every number format, as one table of data.

A finite code is read off its fields: with exponent field `E` and trailing significand field `T`,

    E > 0 (normal):     (-1)^sign · (1 + T / 2^M) · 2^(E - bias)
    E = 0 (subnormal):  (-1)^sign · (T / 2^M)     · 2^(1 - bias)

What codes are set aside for infinities and NaNs differs, and is the `specials` column.  Sources: IEEE 754-2019
for fp64, fp32 and fp16; OCP 8-bit and Microscaling (MX) specifications for e5m2, e4m3, e3m2, e2m3, e2m1 and ue8m0;
Noune et al. (arXiv 2206.02915) for the FNUZ formats; MMA-Sim (Appendix A and §IV) for tf32 and ue4m3; the interim
report of IEEE's working group P3109 (version 4.0, June 2026, §3.1 and §4.7) for its formats, `binary8p4se` and so on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, floor
from operator import index
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from mmaformal.checked import integer, some_text, truth
from mmaformal.display import clipped


class Specials(IntEnum):
    """Which codes are infinities and NaNs."""

    NONE = 0  #: every code is a number
    IEEE = 1  #: exponent all ones: infinity if the trailing significand is 0, else NaN
    FN = 2  #: no infinity; the magnitude of all ones is the NaN
    FNUZ = 3  #: no infinity, no −0; the code of −0 is the NaN
    NUZ = 4  #: as FNUZ, but that the magnitude of all ones is infinity
    TOP = 5  #: of unsigned formats: the code of all ones is the NaN, that below it is infinity
    INTEGER = 6  #: every code is an integer, of a signed format in two's complement


#: The largest bias of formats with few exponent bits, whose numbers are all small (FPMR.LSCALE halves e5m2's 127 times)
_MOST_BIAS = 128


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
    """One number format; `storage_bits` is the width of a code as the hardware holds it.

    Raises ValueError for fields that do not fit each other or the encodings (at most 64 bits of storage, 11 of
    exponent and 52 of fraction), TypeError for what is no number.
    """

    name: str
    storage_bits: int
    exponent_bits: int
    fraction_bits: int
    bias: int
    specials: Specials
    dtype: np.dtype[Any] | None = None  #: the NumPy dtype of float arrays in this format, if there is one
    ignored_low_bits: int = 0
    signed: bool = True
    has_zero: bool = True

    def __post_init__(self) -> None:
        some_text(self.name, "a format's name")
        for name in ("storage_bits", "exponent_bits", "fraction_bits", "bias", "ignored_low_bits"):
            object.__setattr__(self, name, integer(getattr(self, name), f"{self.name}: {name}"))
        for name in ("signed", "has_zero"):
            object.__setattr__(self, name, truth(getattr(self, name), f"{self.name}: {name}"))
        if not isinstance(self.specials, Specials):
            raise TypeError(f"{self.name}: specials is a Specials, not {self.specials!r}")
        _check(self)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<Format {self.name}>"

    @classmethod
    def named(cls, value: object, name: str = "a format") -> Format:
        """A format, or the one of that name.  Raises ValueError for an unknown name, TypeError for anything else."""
        if isinstance(value, Format):
            return value
        if not isinstance(value, str):
            raise TypeError(f"{name} is a Format or its name, not {value!r}")
        if value not in FORMATS:
            raise ValueError(
                f"{name}: no format {value!r}; there are {', '.join(FORMATS)}, {P3109}, and {INTEGERS}"
            )
        return FORMATS[value]

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
        return _words[self.storage_bits]

    @property
    def word_bits(self) -> int:
        return int(self.word.itemsize) * 8

    @property
    def codes(self) -> int:
        """How many codes there are; a code is an integer in `range(codes)`."""
        return 1 << self.storage_bits

    @property
    def min_exponent(self) -> int:
        """Exponent of the smallest normal number and of every subnormal one."""
        return 1 - self.bias if self.has_zero else -self.bias

    @property
    def is_whole(self) -> bool:
        """Whether every bit of a code is one of the sign, the exponent or the trailing significand."""
        return self.signed + self.exponent_bits + self.fraction_bits == self.storage_bits

    @property
    def is_integer(self) -> bool:
        """Whether codes are integers."""
        return self.specials is Specials.INTEGER

    @property
    def has_minus_zero(self) -> bool:
        """Whether −0 is a number of its own."""
        without = (Specials.FNUZ, Specials.NUZ, Specials.INTEGER)
        return self.signed and self.has_zero and self.specials not in without

    @property
    def one_nan(self) -> int | None:
        """The code of the NaN, if there is one alone and every other code is a number of its own or an infinity (as of
        all formats of P3109, and of FNUZ); else None."""
        none = self.has_minus_zero or self.specials in (Specials.NONE, Specials.INTEGER)
        if not self.is_whole or not self.has_zero or none:
            return None
        return self.sign_mask if self.signed else self.codes - 1

    @property
    def largest(self) -> int:
        """The code of the largest number."""
        ones = (1 << (self.exponent_bits + self.fraction_bits)) - 1
        if self.specials is Specials.IEEE:
            ones -= 1 << self.fraction_bits
        elif self.specials is Specials.TOP:
            ones -= 2
        elif self.specials in (Specials.FN, Specials.NUZ) or not self.has_zero:
            ones -= 1
        return ones << self.ignored_low_bits

    @property
    def max_exponent(self) -> int:
        """Largest exponent of a finite code."""
        return (self.largest >> (self.fraction_bits + self.ignored_low_bits)) - self.bias

    @property
    def sign_mask(self) -> int:
        return 1 << (self.storage_bits - 1) if self.signed else 0

    @property
    def infinity(self) -> int | None:
        """The code of +∞, or None."""
        if self.specials in (Specials.NUZ, Specials.TOP):
            return self.largest + 1
        top = ((1 << self.exponent_bits) - 1) << (self.fraction_bits + self.ignored_low_bits)
        return top if self.specials == Specials.IEEE else None

    def fields(self, code: int) -> tuple[int, int, int]:
        """(sign, exponent field, trailing significand field) of a code.

        Raises ValueError for a code outside `range(self.codes)`, TypeError for what is no integer.
        """
        code = index(code)  # NumPy's integers would wrap
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
        if self.specials in (Specials.FNUZ, Specials.NUZ):
            return (sign, exponent, fraction) == (1, 0, 0)
        return self.specials == Specials.TOP and code == self.codes - 1

    def is_infinite(self, code: int) -> bool:
        _, exponent, fraction = self.fields(code)
        if self.specials == Specials.IEEE:
            return exponent == (1 << self.exponent_bits) - 1 and fraction == 0
        return self.infinity is not None and code & ~self.sign_mask == self.infinity

    def is_finite(self, code: int) -> bool:
        return not (self.is_nan(code) or self.is_infinite(code))

    def value(self, code: int) -> Fraction:
        """The exact value of a finite code.  Raises ValueError for infinities and NaNs."""
        if not self.is_finite(code):
            raise ValueError(f"{self.name} {code:#x} is {self.text(code)}, not a number")
        sign, exponent, fraction = self.fields(code)
        if self.is_integer:
            return Fraction(code - (self.codes if sign else 0))
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
            if negative and not self.signed:
                raise ValueError(f"{self.name} has no −∞")
            return self.infinity | (self.sign_mask if negative else 0)
        if word == "nan":
            found = next((c for c in _nan_candidates(self) if self.is_nan(c)), None)
            if found is None:
                raise ValueError(f"{self.name} has no NaN")
            return found
        value = exact_number(word)
        if self.is_integer:
            return self._integer(value, text)
        code = _magnitude_field(self, abs(value)) << self.ignored_low_bits
        if negative and self.sign_mask and not self.is_nan(code | self.sign_mask):
            code |= self.sign_mask
        if code >= self.codes or not self.is_finite(code) or self.value(code) != value:
            raise ValueError(
                f"{clipped(text, 60)} is not a value of {self.name}: give one exactly, or a code as 0x…"
            )
        return code

    def _integer(self, value: Fraction, text: str) -> int:
        """The code of an integer.  Raises ValueError where there is none."""
        least = -self.sign_mask
        if value.denominator != 1 or not least <= value <= self.largest:
            raise ValueError(f"{clipped(text, 60)} is not a value of {self.name}: {least} to {self.largest}")
        return int(value) % self.codes

    def nearest(self, text: str) -> tuple[int, int]:
        """The codes of the two finite numbers that a number, of which the format has none, lies between: the nearer
        one first; of two that are as near, the one with an even fraction.

        `text` as for `code`.  Raises ValueError for a number beyond the largest or the least of the format.
        """
        return _nearest(self, text)

    def text(self, code: int) -> str:
        """A code for a person: `nan`, `-inf`, `-0`, or its exact value as a hexadecimal float."""
        if self.is_nan(code):
            return "nan"
        sign = self.fields(code)[0]
        if self.is_integer:
            return str(self.value(code))
        if self.is_infinite(code):
            return "-inf" if sign else "inf"
        return hex_float(self.value(code), negative_zero=bool(sign))


def _check(fmt: Format) -> None:
    """Raises ValueError if the fields of a format do not fit each other, or the encodings."""

    def needs(condition: bool, what: str) -> None:
        if not condition:
            raise ValueError(f"the format {fmt.name} needs {what}")

    used = fmt.signed + fmt.exponent_bits + fmt.fraction_bits + fmt.ignored_low_bits
    needs(1 <= fmt.exponent_bits <= 11, f"1 to 11 exponent bits, not {fmt.exponent_bits}")
    needs(
        fmt.exponent_bits >= 2 or fmt.specials is not Specials.IEEE,
        "2 exponent bits or more, beside that of infinities and NaNs",
    )
    most = max(1 << fmt.exponent_bits, _MOST_BIAS)
    low = 1 - fmt.fraction_bits if fmt.is_integer else 0  #: the last place is 1
    needs(
        low <= fmt.bias <= (low if fmt.is_integer else most),
        f"a bias of at most {most}, not {fmt.bias}",
    )
    needs(
        not fmt.is_integer or (fmt.exponent_bits == 1 and fmt.is_whole),
        "one field, if codes are integers",
    )
    needs(fmt.ignored_low_bits >= 0, f"no {fmt.ignored_low_bits} ignored bits")
    if fmt.has_zero:
        least = 1 if fmt.has_minus_zero or not fmt.is_whole else 0
        needs(least <= fmt.fraction_bits <= 52, f"{least} to 52 fraction bits, not {fmt.fraction_bits}")
    else:
        needs(
            not fmt.fraction_bits and not fmt.signed and fmt.specials is Specials.NONE,
            "no sign, no fraction bits and Specials.NONE where there is no zero",
        )
    needs(used <= fmt.storage_bits <= 64, f"{used} to 64 bits of storage, not {fmt.storage_bits}")
    negated = fmt.specials in (Specials.FNUZ, Specials.NUZ)
    needs(not negated or fmt.signed, "a sign, the −0 of which is the NaN")
    alone = fmt.specials not in (Specials.NUZ, Specials.TOP) or fmt.is_whole
    needs(alone, "every bit of its word, where infinity is next to the NaN or has a code of all ones")
    needs(fmt.specials is not Specials.TOP or not fmt.signed, "no sign, if all ones are the NaN")
    if fmt.dtype is not None:
        needs(
            isinstance(fmt.dtype, np.dtype) and fmt.dtype.itemsize * 8 == fmt.word_bits,
            f"a NumPy dtype of {fmt.word_bits} bits, not {fmt.dtype!r}",
        )


def _magnitude_field(fmt: Format, magnitude: Fraction) -> int:
    """The first magnitude field, exponent and fraction, whose code is no smaller, or is no finite number."""
    low, high = 0, 1 << (fmt.exponent_bits + fmt.fraction_bits)
    while low < high:  # magnitudes are ordered as their codes are; infinities and NaNs come last
        middle = (low + high) // 2
        code = middle << fmt.ignored_low_bits
        if not fmt.is_finite(code) or fmt.value(code) >= magnitude:
            high = middle
        else:
            low = middle + 1
    return low


def _nearest(fmt: Format, text: str) -> tuple[int, int]:
    """`Format.nearest`."""
    value = exact_number(text)
    if fmt.is_integer:
        low, high = (fmt.code(str(side)) for side in (floor(value), ceil(value)))
        return (
            (low, high)
            if (value - floor(value), floor(value) % 2) < (ceil(value) - value, ceil(value) % 2)
            else (high, low)
        )
    above = _magnitude_field(fmt, abs(value))
    minus = fmt.sign_mask if text.strip().startswith("-") else 0
    codes = [field << fmt.ignored_low_bits | minus for field in (above - 1, above)]
    beyond = above == 0 or (value.numerator < 0 and not fmt.sign_mask)
    if beyond or not all(map(fmt.is_finite, codes)):
        raise ValueError(f"{clipped(text, 60)} is beyond the numbers of {fmt.name}")
    down, up = (abs(abs(fmt.value(code)) - abs(value)) for code in codes)
    odd = codes[0] >> fmt.ignored_low_bits & 1
    return (codes[0], codes[1]) if (down, odd) < (up, 1 - odd) else (codes[1], codes[0])


def _nan_candidates(fmt: Format) -> tuple[int, ...]:
    ones = fmt.codes - 1
    return (ones & ~fmt.sign_mask, fmt.sign_mask, ones)


#: Limits of a number's text: one beyond these is in no format, and its exact value would take a computer's memory.
_LONGEST_NUMBER, _LARGEST_EXPONENT = 2000, 5000

_HEXADECIMAL = re.compile(r"([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?[0-9]+))?")


def exact_number(text: str) -> Fraction:
    """The value of `-1.5e3`, `2/3` or `0x1.8p-4`, exactly.  Raises ValueError if it is no number, or out of reach."""
    word = text.strip().lower()
    shown = clipped(text, 60)
    exponent = re.search(r"[ep]([+-]?\d+)$", word)
    if len(word) > _LONGEST_NUMBER or (exponent and abs(int(exponent[1])) > _LARGEST_EXPONENT):
        raise ValueError(f"{shown!r} is too long, too large or too small to be a number of any format")
    if "0x" not in word:
        try:
            return Fraction(word)
        except (ValueError, ZeroDivisionError):
            raise ValueError(f"{shown!r} is no number") from None
    parts = _HEXADECIMAL.fullmatch(word)  # float.fromhex would round to 53 bits
    if parts is None or not (parts[2] or parts[3]):
        raise ValueError(f"{shown!r} is no number")
    magnitude = int(parts[2] + parts[3], 16) * Fraction(2) ** (int(parts[4] or 0) - 4 * len(parts[3]))
    return -magnitude if parts[1] == "-" else magnitude


def exponent_of(value: Fraction) -> int:
    """The largest e with 2^e ≤ |value|, which is not zero."""
    n, d = abs(value.numerator), value.denominator
    exponent = n.bit_length() - d.bit_length()
    return exponent if (n << max(-exponent, 0)) >= (d << max(exponent, 0)) else exponent - 1


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


#: The unsigned words that hold codes, by the bits of these.
_words = [np.dtype(f"u{max(1, (1 << (bits - 1).bit_length()) // 8)}") for bits in range(65)]


def _dtype(scalar: type[np.generic] | str) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(scalar)
    return dtype


#: Names of the formats of P3109, for a person.
P3109 = "binaryKpP[s|u][e|f] of P3109 (binary8p4se, binary6p3uf, …; K = 3 … 8)"

#: Names of integers, for a person.
INTEGERS = "integers (int3 … int32, uint2 … uint32)"

_P3109_NAME = re.compile(r"binary([3-8])p([1-8])([su])([ef])")


@lru_cache(maxsize=256)
def p3109(K: int, P: int, signed: bool = True, extended: bool = True) -> Format:
    """Return P3109's format of K bits and precision P, signed or not, with infinities (extended) or without (finite).

    A family: K = 3 … 8, and P from 1 to K − 1, or to K of unsigned ones (interim report §3.1: bias 2^(K−P−1), of
    unsigned formats 2^(K−P); one NaN, no −0, subnormals).  The signed finite ones have the codes of FNUZ formats:
    binary8p4sf is e4m3fnuz, binary8p3sf is e5m2fnuz, but for the name.

    Raises ValueError for another K or P.
    """
    if not 3 <= K <= 8 or not 1 <= P <= K - signed:
        bound = "K − 1" if signed else "K"
        raise ValueError(f"P3109: no format of K = {K}, P = {P} here: K = 3 … 8, P = 1 … {bound}")
    infinite, finite = (Specials.NUZ, Specials.FNUZ) if signed else (Specials.TOP, Specials.FN)
    name = f"binary{K}p{P}{'s' if signed else 'u'}{'e' if extended else 'f'}"
    exponent_bits, bias = K - P + (not signed), 1 << (K - P) >> signed
    return Format(name, K, exponent_bits, P - 1, bias, infinite if extended else finite, signed=signed)


def _p3109_named(name: object) -> Format | None:
    found = _P3109_NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None or not 1 <= int(found[2]) <= int(found[1]) - (found[3] == "s"):
        return None
    return p3109(int(found[1]), int(found[2]), found[3] == "s", found[4] == "e")


#: The formats of P3109, 120 of them.
P3109_FORMATS = tuple(
    p3109(K, P, signed, extended)
    for K in range(3, 9)
    for signed in (True, False)
    for P in range(1, K + 1 - signed)
    for extended in (True, False)
)


_INTEGER_NAME = re.compile(r"(u?)int([0-9]{1,2})")


@lru_cache(maxsize=64)
def integer_format(bits: int, signed: bool = True) -> Format:
    """Return the format of integers of 2 to 32 bits: int8 in two's complement, uint8 without a sign.

    Raises ValueError for other numbers of bits.
    """
    if not 2 + signed <= bits <= 32:
        raise ValueError(f"integers of {2 + signed} to 32 bits, not {bits}")
    name, places = f"{'' if signed else 'u'}int{bits}", bits - 1 - signed
    return Format(name, bits, 1, places, 1 - places, Specials.INTEGER, _integer_dtype(name), signed=signed)


def _integer_dtype(name: str) -> np.dtype[Any] | None:
    """The NumPy dtype of integers of that name, if there is one."""
    return _dtype(name) if name.removeprefix("u") in ("int8", "int16", "int32") else None


def _integer_named(name: object) -> Format | None:
    found = _INTEGER_NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None or not 2 + (not found[1]) <= int(found[2]) <= 32 or found[2].startswith("0"):
        return None
    return integer_format(int(found[2]), not found[1])


class _Registry(dict[str, Format]):
    """Formats by their names: those of the table, which it lists, and those of P3109 and integers, which it finds."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._found(name) is not None

    @staticmethod
    def _found(name: object) -> Format | None:
        return _p3109_named(name) or _integer_named(name)

    def __missing__(self, name: str) -> Format:
        found = self._found(name)
        if found is None:
            raise KeyError(name)
        return found


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

FORMATS: dict[str, Format] = _Registry({entry.name: entry for entry in _TABLE})

fp64, fp32, tf32, bf16, fp16 = (FORMATS[n] for n in ("fp64", "fp32", "tf32", "bf16", "fp16"))
e5m2, e4m3, e5m2fnuz, e4m3fnuz = (FORMATS[n] for n in ("e5m2", "e4m3", "e5m2fnuz", "e4m3fnuz"))
e3m2, e2m3, e2m1, ue8m0, ue4m3 = (FORMATS[n] for n in ("e3m2", "e2m3", "e2m1", "ue8m0", "ue4m3"))


def format_of_dtype(dtype: np.dtype[Any]) -> Format | None:
    """Return the format whose numbers an array of this dtype holds, if there is one; of float32 it is fp32."""
    return next((fmt for fmt in (fp32, *FORMATS.values()) if fmt.dtype == dtype), None)


#: Formats by the names of their types in NumPy with ml_dtypes, in torch, and in safetensors, in lower case.
_TYPE_NAMES = {
    "float64": fp64,
    "double": fp64,
    "f64": fp64,
    "float32": fp32,
    "float": fp32,
    "f32": fp32,
    "bfloat16": bf16,
    "float16": fp16,
    "half": fp16,
    "f16": fp16,
    "float8_e4m3fn": e4m3,
    "f8_e4m3": e4m3,
    "float8_e4m3fnuz": e4m3fnuz,
    "f8_e4m3fnuz": e4m3fnuz,
    "float8_e5m2": e5m2,
    "f8_e5m2": e5m2,
    "float8_e5m2fnuz": e5m2fnuz,
    "f8_e5m2fnuz": e5m2fnuz,
    "float8_e8m0fnu": ue8m0,
    "f8_e8m0": ue8m0,
    "float4_e2m1fn": e2m1,
}


def format_called(name: str) -> Format | None:
    """Return the format of a name: its own, or that of its type in NumPy, torch or safetensors (`torch.bfloat16`,
    `F8_E4M3`); None if there is none."""
    for spelled in (name, name.lower().removeprefix("torch.")):
        if spelled in FORMATS:
            return FORMATS[spelled]
    return _TYPE_NAMES.get(spelled)
