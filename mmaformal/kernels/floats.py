"""Floats as their bits, and bits as floats, in compiled code."""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from mmaformal.encodings.executable.blocks import Lane
from mmaformal.kernels.compiled import Numba, inlined


def _cast(given: Numba, target: Numba, make: Numba) -> Numba:
    @intrinsic
    def cast(typing: Numba, x: Numba) -> Numba:
        def generate(context: Numba, builder: Numba, signature: Numba, arguments: Numba) -> Numba:
            return builder.bitcast(arguments[0], make)

        return target(given), generate

    return cast


single_of = _cast(types.int32, types.float32, ir.FloatType())
single_bits = _cast(types.float32, types.int32, ir.IntType(32))
double_of = _cast(types.int64, types.float64, ir.DoubleType())
double_bits = _cast(types.float64, types.int64, ir.IntType(64))

EXPONENT, _SIGN = np.int32(0x7F800000), np.int32(-(1 << 31))  #: of fp32
_MAGNITUDE, _LEAST = np.int32(0x7FFFFFFF), np.int32(0x00800000)


@inlined
def flush(x: Lane) -> Lane:
    """A subnormal becomes zero of the same sign."""
    bits = single_bits(x)
    return single_of(np.int32(bits & _SIGN) if bits & EXPONENT == 0 else bits)


@inlined
def is_least(x: Lane) -> Lane:
    """1 where |x| is the least normal number, else 0."""
    return np.int32(single_bits(x) & _MAGNITUDE == _LEAST)
