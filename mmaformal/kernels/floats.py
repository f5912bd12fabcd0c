"""Floats as their bits, and bits as floats, in compiled code."""

from __future__ import annotations

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from mmaformal.kernels.compiled import Numba


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
