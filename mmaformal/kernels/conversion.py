"""Numbers rounded to codes of any format, to nearest even; compiled, and the format's parameters are arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.formats import Format, Specials, fp64
from mmaformal.kernels.compiled import driver, inlined, power_of_two, vectorised
from mmaformal.kernels.kernel import CodeArray, Plane


class _Target(NamedTuple):
    """A format, as its codes are made of numbers."""

    fraction_bits: int
    min_exponent: int
    low_bits: int
    largest: int  #: the code of the largest number, without the bits that the unit does not read
    beyond: int  #: of what is rounded to more than that
    infinity: int
    nan: int
    sign: int
    minus_zero: int  #: the sign of a zero that is rounded from a negative number

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, fmt: Format, saturate: bool) -> _Target:
        """Raises ValueError for a format that has no zero, which is one of scales, or no fraction bits, where the even
        one of two codes is not told by the significand."""
        if not fmt.has_zero:
            raise ValueError(f"{fmt} has no zero: numbers are not rounded to it")
        if not fmt.fraction_bits:
            raise ValueError(f"{fmt} has no fraction bits: numbers are not rounded to it")
        bits = fmt.fraction_bits
        largest = largest_code(fmt)
        nan = fmt.code("nan") >> fmt.ignored_low_bits if has_nan(fmt) else largest
        infinity = nan if fmt.infinity is None else fmt.infinity >> fmt.ignored_low_bits
        sign = fmt.sign_mask >> fmt.ignored_low_bits
        minus_zero = sign if fmt.has_minus_zero else 0
        beyond = largest if saturate else infinity
        return cls(
            bits, fmt.min_exponent, fmt.ignored_low_bits, largest, beyond, infinity, nan, sign, minus_zero
        )


def has_nan(fmt: Format) -> bool:
    return fmt.specials is not Specials.NONE


def largest_code(fmt: Format) -> int:
    """The code of the largest number, shifted right by the bits that the unit does not read."""
    return fmt.largest >> fmt.ignored_low_bits


@inlined
def rounded_code(x: Lane, target: _Target) -> Lane:
    """The code of x.

    With e the exponent of x, at least that of subnormals, x is r · 2^(e − p), and r rounded to an integer is the
    significand.  Its leading bit adds one to the exponent field, which for subnormals is 0, and so does a carry.
    """
    magnitude: Lane = abs(x)
    field = (np.float64(magnitude).view(np.int64) >> 52) - 1023
    e: Lane = max(field, target.min_exponent)
    r = np.rint(magnitude * power_of_two(target.fraction_bits - e, magnitude))
    finite = magnitude < np.inf
    code: Lane = ((e - target.min_exponent) << target.fraction_bits) + np.int64(r if finite else 0.0)
    code = code if code <= target.largest else target.beyond
    code = code if finite else (target.infinity if magnitude == np.inf else target.nan)
    sign = target.sign if code != 0 else target.minus_zero
    negative = np.float64(x).view(np.int64) < 0 and magnitude == magnitude
    return (code | (sign if negative else 0)) << target.low_bits


@driver
def round_plane(target: _Target, x: Plane, scale: Plane, block: int, out: Plane) -> None:
    """out[i, k] = the code of x[i, k] / scale[i, k // block]; a `scale` of one row is for all."""
    vectorised()
    rows, k = x.shape
    for i in range(rows):
        own = i if scale.shape[0] > 1 else 0
        for first in range(0, k, block):
            divisor = scale[own, first // block]
            part, codes = x[i, first : first + block], out[i, first : first + block]
            for j in range(part.size):
                codes[j] = rounded_code(np.float64(part[j]) / divisor, target)


def round_to(
    x: NDArray[np.floating],
    fmt: Format,
    *,
    saturate: bool,
    scale: NDArray[np.float64] | None = None,
    block: int | None = None,
) -> CodeArray:
    """Codes of x (rows × K), each divided by its scale: (rows or 1) × ⌈K / block⌉, one for all of K without `block`.

    To nearest even.  What is larger than the largest number becomes that with `saturate`, else infinity; infinity and
    NaN stay what they are, where the format has them: infinity is else NaN, and NaN the largest number.
    """
    if scale is None and fmt.dtype is not None and x.dtype == fmt.dtype and not fmt.ignored_low_bits:
        return np.ascontiguousarray(x).view(fmt.word)
    if fmt == fp64:
        exact = x.astype(np.float64)
        if scale is not None:
            exact /= np.repeat(scale, block or x.shape[1], axis=1)[:, : x.shape[1]]
        return exact.view(fmt.word)
    out = np.empty(x.shape, fmt.word)
    divisor = np.ones((1, 1)) if scale is None else scale
    round_plane(_Target.of(fmt, saturate), np.ascontiguousarray(x), divisor, block or max(x.shape[1], 1), out)
    return out
