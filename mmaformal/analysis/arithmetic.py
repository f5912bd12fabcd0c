"""The floating-point arithmetics of Model 1 (§2.1): a precision, a range of exponents, subnormals or none.

`Arithmetic.fl` is rounding by its definition, in rationals.  What computes is compiled (`rounding`), and tested against
it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import ml_dtypes
import numpy as np

from mmaformal.checked import integer, some_text, truth
from mmaformal.formats import FORMATS, Format, exponent_of

#: The paper's names of formats (Table 2.1), and the names here.
TABLE_2_1 = {
    "binary64": "fp64",
    "binary32": "fp32",
    "tf32": "tf32",
    "bfloat16": "bf16",
    "binary16": "fp16",
    "fp8-E4M3": "e4m3",
    "fp8-E5M2": "e5m2",
    "fp6-E2M3": "e2m3",
    "fp6-E3M2": "e3m2",
    "fp4-E2M1": "e2m1",
}

#: Input and accumulation formats of devices (Table 2.2).  MI300's fp8 formats have another bias than OCP's, which the
#: paper's footnote says and docs/semantics.md §1 has.
DEVICES = {
    "NVIDIA": (
        ("e5m2", "fp32"),
        ("e4m3", "fp32"),
        ("fp16", "fp16"),
        ("fp16", "fp32"),
        ("bf16", "fp32"),
        ("tf32", "fp32"),
    ),
    "AMD MI300": (
        ("e5m2fnuz", "fp32"),
        ("e4m3fnuz", "fp32"),
        ("fp16", "fp32"),
        ("bf16", "fp32"),
        ("tf32", "fp32"),
    ),
}

#: The precision of what computes, binary64.
PRECISION = 53

#: Results of this precision and less, rounded to binary64 first and then to their own, are rounded as if at once:
#: 2t + 2 ≤ 53 suffices for sums and products (S. Figueroa, *When is double rounding innocuous?*, 1995).
MOST_EMULATED = (PRECISION - 2) // 2

#: Exponents that sums of products of an emulated arithmetic may have in binary64.
_LEAST_EXPONENT, _MOST_EXPONENT = -400, 400


@dataclass(frozen=True)
class FloatArithmetic:
    """t bits of precision, exponents e_min … e_max, f_max its largest number; round to nearest, ties to even.

    Unbounded, it has neither underflow nor overflow.  Where two numbers are as near, that with an even significand is
    taken; without subnormals, 0 and not f_min.  Raises ValueError for what cannot be computed in binary64: t of 26 to
    52, exponents beyond ±400, and binary64 itself but as it is.
    """

    name: str
    t: int
    e_min: int
    e_max: int
    f_max: Fraction
    subnormals: bool = True
    bounded: bool = True

    def __post_init__(self) -> None:
        some_text(self.name, "an arithmetic's name")
        for name in ("t", "e_min", "e_max"):
            object.__setattr__(self, name, integer(getattr(self, name), f"{self.name}: {name}"))
        for name in ("subnormals", "bounded"):
            object.__setattr__(self, name, truth(getattr(self, name), f"{self.name}: {name}"))
        if self.is_binary64:
            if not (self.subnormals and self.bounded):
                raise ValueError(
                    f"{self.name} is the arithmetic that computes: with subnormals, and bounded, as it is"
                )
            return
        if not 2 <= self.t <= MOST_EMULATED:
            raise ValueError(
                f"{self.name} has 2 to {MOST_EMULATED} bits of precision, or {PRECISION}, not {self.t}"
            )
        if not _LEAST_EXPONENT <= self.e_min < self.e_max <= _MOST_EXPONENT:
            raise ValueError(
                f"{self.name}: exponents {self.e_min} … {self.e_max} are not within ±400 in order"
            )
        if not 1 <= self.f_max / Fraction(2) ** self.e_max < 2 or self.f_max != self._nearest(self.f_max):
            raise ValueError(f"{self.name}: f_max is a number of {self.t} bits with exponent {self.e_max}")

    def __repr__(self) -> str:
        return f"<Arithmetic {self}>"

    def __str__(self) -> str:
        if not self.bounded:
            return f"{self.name} of unbounded exponents"
        return self.name if self.subnormals else f"{self.name} without subnormals"

    @classmethod
    def of(cls, fmt: Format, *, subnormals: bool = True, bounded: bool = True) -> FloatArithmetic:
        """Return the arithmetic of a format.  Raises ValueError for ue8m0 and ue4m3, which have no sign."""
        if not (fmt.signed and fmt.has_zero):
            raise ValueError(f"{fmt.name} has no negative numbers, so nothing is rounded to it")
        t, e_min, e_max = fmt.fraction_bits + 1, fmt.min_exponent, fmt.max_exponent
        return cls(fmt.name, t, e_min, e_max, _largest(fmt), subnormals, bounded)

    @classmethod
    def named(cls, name: str, *, subnormals: bool = True, bounded: bool = True) -> FloatArithmetic:
        """Return the arithmetic of a format by its name here or in the paper's Table 2.1, or of a type of ml_dtypes."""
        some_text(name, "a format's name")
        known = {paper.lower(): ours for paper, ours in TABLE_2_1.items()}.get(name.lower(), name)
        if known in FORMATS:
            return cls.of(FORMATS[known], subnormals=subnormals, bounded=bounded)
        dtype = getattr(ml_dtypes, known, None)
        try:
            limits = ml_dtypes.finfo(known if dtype is None else dtype)
        except (TypeError, ValueError):
            names = ", ".join((*FORMATS, *TABLE_2_1))
            raise ValueError(f"no format {name!r}; there are {names}, and the types of ml_dtypes") from None
        largest, least = Fraction(float(limits.max)), float(limits.smallest_normal)
        return cls(
            name,
            limits.nmant + 1,
            exponent_of(Fraction(least)),
            exponent_of(largest),
            largest,
            subnormals,
            bounded,
        )

    @property
    def is_binary64(self) -> bool:
        return self.t == PRECISION

    @property
    def unbounded(self) -> FloatArithmetic:
        """The arithmetic without limits of the exponent; binary64 itself, whose limits no product here comes near."""
        return self if self.is_binary64 else replace(self, bounded=False)

    @cached_property
    def u(self) -> Fraction:
        """The unit roundoff."""
        return Fraction(1, 1 << self.t)

    @cached_property
    def f_min(self) -> Fraction:
        """The smallest normal number."""
        return Fraction(2) ** self.e_min

    @cached_property
    def g_min(self) -> Fraction:
        """(2.1), (2.2): the most that a number below f_min is off when it is rounded; 0 without limits."""
        if not self.bounded:
            return Fraction(0)
        return self.u * self.f_min if self.subnormals else self.f_min / 2

    @cached_property
    def step(self) -> Fraction:
        """The number that all numbers up to f_min are multiples of; not if it is unbounded."""
        return 2 * self.g_min

    def fl(self, x: Fraction) -> Fraction | None:
        """The number nearest to x; None where it overflows, which is when that nearest of t bits is above f_max."""
        nearest = self._nearest(x)
        return None if self.bounded and abs(nearest) > self.f_max else nearest

    def _nearest(self, x: Fraction) -> Fraction:
        if x == 0:
            return x
        return round(x / self._last_place(x)) * self._last_place(x)  # Python's rounds ties to even

    def below(self, x: Fraction) -> Fraction:
        """The largest number that is at most x, of a positive x.  Raises ValueError if there is no positive one."""
        x = min(x, self.f_max) if self.bounded else x
        found = x // self._last_place(x) * self._last_place(x)
        if found <= 0:
            raise ValueError(f"{self} has no positive number below {float(x):.3g}")
        return found

    def _last_place(self, x: Fraction) -> Fraction:
        """Return the number that the numbers next to x are multiples of."""
        place = Fraction(2) ** (exponent_of(abs(x)) - self.t + 1)
        if not self.bounded or abs(x) >= self.f_min:
            return place
        return self.step


def _largest(fmt: Format) -> Fraction:
    """The largest number of a format with signs: the code before infinity, or the last or last but one."""
    infinity = fmt.infinity
    above = (
        1 << (fmt.exponent_bits + fmt.fraction_bits) if infinity is None else infinity >> fmt.ignored_low_bits
    )
    codes = [(above - n) << fmt.ignored_low_bits for n in (1, 2)]
    return next(fmt.value(code) for code in codes if fmt.is_finite(code))


def as_floats(x: object, name: str) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """A matrix as binary64, which holds it exactly.  Raises TypeError, ValueError."""
    array = np.asarray(x)
    if array.dtype.kind not in "fiu" and array.dtype.name not in dir(ml_dtypes):
        raise TypeError(f"{name} is a matrix of numbers, not of {array.dtype}")
    floats = np.ascontiguousarray(array, np.float64)
    if floats.ndim != 2 or 0 in floats.shape:
        raise ValueError(f"{name} is a matrix, not of shape {floats.shape}")
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} has infinities or NaNs")
    return floats
