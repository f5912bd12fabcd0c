"""The kernel of sfma in fp16: the processor's fp64 fused multiply-add, and a rounding to fp16's places.

What is rounded twice, to 53 bits and to 11, is rounded right.  The product p has 22 bits, c 11.  If their sum has more
than 53, one of both is far above the other.  Is it c, then p is below 2^-19 of c's last place: both roundings give c.
Is it p, then p is 2^27 or more, as no place of c is below 2^-24, and the result is infinite.

Rounding to a place of fp16 is an addition of 1.5·2^52 such places, which the processor rounds to nearest even, and its
subtraction, which is exact.  A NaN is the model's one; where a unit gives the first of the operands' NaNs, the
executable computes it again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.blocks import Lane, decode, quiet_nan
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import fp16
from mmaformal.kernels import staged
from mmaformal.kernels.again import AgainKernel
from mmaformal.kernels.compiled import driver, fma, inlined, power_of_two, stack, vectorised
from mmaformal.kernels.floats import double_bits, double_of
from mmaformal.kernels.kernel import CodeArray, Plane, Planes, in_panels
from mmaformal.kernels.processor import has_fma
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd

_EXPONENT, _SIGN = np.int64(0x7FF << 52), np.int64(-(1 << 63))
_LEAST, _MOST = np.int64(1023 - 14 << 52), np.int64(1023 + 20 << 52)  #: 2^-14, and more than any result
_PLACES = np.int64((42 << 52) | (1 << 51))  #: from 2^e to 1.5·2^52 places of a number of exponent e
_LARGEST = 65504.0


@inlined
def to_half(x: Lane) -> Lane:
    """x rounded to a number of fp16, to nearest even."""
    e = double_bits(x) & _EXPONENT
    e = e if e > _LEAST else _LEAST
    places = double_of((e if e < _MOST else _MOST) + _PLACES)
    rounded = (x + places) - places
    rounded = np.inf if abs(rounded) > _LARGEST else abs(rounded)
    return double_of(double_bits(rounded) | (double_bits(x) & _SIGN))


@inlined
def widened(code: Lane) -> Lane:
    """The number of a code."""
    x = decode(np.int64(code), fp16.layout)
    magnitude = np.float64(x.significand) * power_of_two(x.exponent - fp16.fraction_bits, np.float64(0))
    magnitude = np.inf if x.infinite else magnitude
    magnitude = np.nan if x.nan else magnitude
    return double_of(double_bits(magnitude) | (np.int64(x.sign) << 63))


@inlined
def code_of(x: Lane, nan: Lane) -> Lane:
    """The code of a number of fp16."""
    magnitude = abs(x)
    normal = (double_bits(magnitude) >> 42) - ((1023 - 15) << 10)
    code = normal if magnitude >= 2.0**-14 else np.int64(magnitude * 2.0**24)
    code = code if magnitude <= _LARGEST else np.int64(0x7C00)
    code = code | (np.int64(0x8000) if double_bits(x) < 0 else np.int64(0))
    return code if x == x else np.int64(nan)


@driver
def widen(codes: Plane, out: Plane) -> None:
    """The numbers of all codes."""
    vectorised()
    for i in range(codes.size):
        out[i] = widened(codes[i])


@driver
def run_halves(
    nan: Lane,
    first_nan: bool,
    a: Plane,
    b: Plane,
    d: Plane,
    after: Plane,
    doubtful: Plane,
    first: int,
    last: int,
) -> None:
    """`after` = fma(a_k, b_k, …) of d for k = first … last - 1; NaNs are doubtful, or `nan`."""
    vectorised()
    m, n = d.shape
    width = b.shape[2]
    row = stack(np.float64, width)
    for p in range((n + width - 1) // width):
        left, w = p * width, min(width, n - p * width)
        for i in range(m):
            for j in range(w):
                row[j] = widened(d[i, left + j])
            k = first
            while k + 2 <= last:
                x, y = a[i, k], a[i, k + 1]
                for j in range(w):
                    row[j] = to_half(fma(y, b[p, k + 1, j], to_half(fma(x, b[p, k, j], row[j]))))
                k += 2
            if k < last:
                x = a[i, k]
                for j in range(w):
                    row[j] = to_half(fma(x, b[p, k, j], row[j]))
            for j in range(w):
                z = row[j]
                after[i, left + j] = code_of(z, nan)
                doubtful[i, left + j] = first_nan & (z != z)


class HalvesKernel(AgainKernel):
    """sfma in fp16."""

    bytes_per_element = 10
    description = "sfma: the processor's float64 fused multiply-add, rounded to fp16"
    run_rows = staticmethod(staged.run_rows)

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        self.first_nan = bool(spec.parameters_as(Sfma).nan.order)
        if not self.first_nan:
            self.products_at_once = 1 << 12

    @classmethod
    def of(cls, spec: DotAdd) -> HalvesKernel | None:
        """None unless the processor has fma, and ρ is IEEE 754's, to nearest even."""
        rho = spec.parameters_as(Sfma).rho
        ieee = (
            rho.format == fp16
            and rho.fraction_bits == 10
            and rho.rounding is Rounding.RNE
            and rho.signed_zero
        )
        return cls(spec) if ieee and rho.saturation is None and has_fma() else None

    def _planes(self, codes: CodeArray) -> Planes:
        values = np.empty(codes.shape, np.float64)
        widen(codes.reshape(-1), values.reshape(-1))
        return values, codes

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self._planes(np.ascontiguousarray(codes))

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self._planes(in_panels(codes))

    def steps(
        self,
        a: Planes,
        b: Planes,
        d: CodeArray,
        after: CodeArray,
        doubtful: NDArray[np.bool_],
        first: int,
        last: int,
    ) -> None:
        run_halves(quiet_nan(fp16), self.first_nan, a[0], b[0], d, after, doubtful, first, last)
