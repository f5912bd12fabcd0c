"""Rounding to fewer bits in binary64, and sums of products rounded at each operation; compiled.

x is rounded to a multiple of q, a power of two, by (x + m) − m with m = 3·2^51·q, in round to nearest: the sum lies
between 2^52·q and 2^53·q, where binary64 has multiples of q only, and m is an even one.  q is the last place that x has
in t bits: 2^(e − t + 1), e its exponent; below f_min, that of subnormals; without subnormals it is f_min there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.analysis.arithmetic import PRECISION, FloatArithmetic
from mmaformal.kernels.compiled import driver, inlined, vectorised
from mmaformal.kernels.processor import check_processor

Floats = NDArray[np.float64]

_EXPONENT = np.int64(0x7FF0000000000000)

#: Columns are padded to a multiple of as many, which is a vector.
WIDTH = 8


class DoubleArithmetic(NamedTuple):
    """An arithmetic in numbers of binary64."""

    rounds: bool  #: whether there is anything to do: not for binary64
    magic: float  #: m for a number whose exponent is 0
    f_min: float  #: 0 where it is unbounded
    low_magic: float  #: m for a number below f_min
    f_max: float  #: infinity where it is unbounded

    @classmethod
    def of(cls, arithmetic: FloatArithmetic) -> DoubleArithmetic:
        if arithmetic.is_binary64:
            return cls(False, 0.0, 0.0, 0.0, np.inf)
        magic = 1.5 * 2.0 ** (PRECISION - arithmetic.t)
        if not arithmetic.bounded:
            return cls(True, magic, 0.0, 0.0, np.inf)
        low = 1.5 * 2.0 ** (PRECISION - 1) * float(arithmetic.step)
        return cls(True, magic, float(arithmetic.f_min), low, float(arithmetic.f_max))


@inlined
def _nearest(x: float, magic: float, f_min: float, low_magic: float, f_max: float) -> float:
    """x rounded; infinity beyond f_max.  A zero has any sign."""
    power = np.int64(np.float64(x).view(np.int64) & _EXPONENT).view(np.float64)
    m = power * magic if power >= f_min else low_magic
    rounded = (x + m) - m
    if rounded > f_max:
        rounded = np.inf
    if rounded < -f_max:
        rounded = -np.inf
    return rounded


@driver
def round_all(x: Floats, magic: float, f_min: float, low_magic: float, f_max: float) -> None:
    """Round the elements of a flat array, in place."""
    vectorised()
    for i in range(x.size):
        x[i] = _nearest(x[i], magic, f_min, low_magic, f_max)


@driver
def _accumulate(
    a: Floats,
    b: Floats,
    total: Floats,
    scale: float,
    magic: float,
    f_min: float,
    low_magic: float,
    f_max: float,
) -> None:
    """total = FL(total + scale · FL(a_k · b_k)) for k = 0 …; a is (m, n), b (n, q), total (m, q).

    `scale` is a power of two, by which nothing is rounded.
    """
    vectorised()
    m, q = total.shape
    for k in range(a.shape[1]):
        for i in range(m):
            x = a[i, k]
            for j in range(q):
                product = scale * _nearest(x * b[k, j], magic, f_min, low_magic, f_max)
                total[i, j] = _nearest(total[i, j] + product, magic, f_min, low_magic, f_max)


@driver
def accumulate_as_it_is(a: Floats, b: Floats, total: Floats, scale: float) -> None:
    """Add scale·a·b to the total in binary64, one product after the other, rounded as binary64 rounds."""
    vectorised()
    m, q = total.shape
    for k in range(a.shape[1]):
        for i in range(m):
            x = a[i, k]
            for j in range(q):
                total[i, j] += scale * (x * b[k, j])


def round_floats(x: Floats, arithmetic: FloatArithmetic) -> Floats:
    """fl(x): every element rounded; infinity where it overflows."""
    check_processor()
    result = np.array(x, np.float64, order="C")
    limits = DoubleArithmetic.of(arithmetic)
    if limits.rounds:
        round_all(result.reshape(-1), *limits[1:])
    return result


def add_rounded_products(
    a: Floats, b: Floats, total: Floats, scale: float, arithmetic: FloatArithmetic
) -> None:
    """Add scale · a·b to `total`, product by product, every operation rounded."""
    check_processor()
    limits = DoubleArithmetic.of(arithmetic)
    if limits.rounds:
        _accumulate(a, b, total, scale, *limits[1:])
    else:
        accumulate_as_it_is(a, b, total, scale)
