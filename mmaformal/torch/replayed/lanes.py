"""Numbers of fp32 in the vector registers of PyTorch's CPU kernels: eight lanes, or sixteen in some for AVX-512.

Sums are of arrays whose first axis is the terms' order; all that stands beside it is summed alike.  Fused steps are the
model of an IEEE 754 fma; other operations are NumPy's in fp32, which IEEE 754 defines too.
"""

from __future__ import annotations

from functools import cache
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from mmaformal.architectures.meant import instruction_meant
from mmaformal.instruction import Instruction
from mmaformal.kernels import rows

F32 = NDArray[np.float32]
#: Numbers of fp32 in one register of kernels that are compiled for AVX2 alone.
LANES = 8
#: And of those that are compiled for AVX-512 too, by what the processor has.
WIDTHS = {"AVX2": 8, "AVX512": 16}
#: Registers that a long sum is dealt to, and levels of its cascade.
_DEALT, _LEVELS = 4, 4


@cache
def fma_unit() -> Instruction:
    """Returns an instruction that is IEEE 754's fma in fp32, as each lane of a processor has it."""
    return instruction_meant("cdna1 v_mfma_f32_32x32x1f32")


def fma(a: F32 | np.float32, b: F32 | np.float32, c: F32 | np.float32) -> F32:
    """Returns a·b + c rounded once, to nearest even, of numbers that are broadcast to each other."""
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float32) for x in (a, b, c)))
    left, right, start = (np.ascontiguousarray(x).view(np.uint32).ravel() for x in (a, b, c))
    d = rows.dot_add(fma_unit().spec, left[:, None], right[:, None], start)
    return d.view(np.float32).reshape(a.shape)


# ---- sums ------------------------------------------------------------------------------------------------------------


def sequential(terms: F32, start: F32 | float = 0.0) -> F32:
    """Returns the sum of the terms one after the other, from +0 or from what is given."""
    total = np.zeros(terms.shape[1:], np.float32) + np.asarray(start, np.float32)
    for each in terms:
        total = total + each
    return total


def by_halves(lanes: F32) -> F32:
    """Returns the sum of a power of two of lanes, the last axis: each half is added to the other until one is left."""
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def cascaded(terms: F32) -> F32:
    """Returns the sum of the terms in a cascade: chains of 2^p terms, their sums in chains of 2^p, and so on.

    There are four levels, and p is a quarter of the number's logarithm, or 4.  What is left over in each level is added
    in the end, the lowest level first (aten/src/ATen/native/cpu/SumKernel.cpp).
    """
    left, chain = [], 1 << max(4, ceil(log2(max(len(terms), 1))) // _LEVELS)
    for _ in range(_LEVELS - 1):
        whole = len(terms) // chain * chain
        left.append(sequential(terms[whole:]))
        terms = sequential(np.moveaxis(terms[:whole].reshape(-1, chain, *terms.shape[1:]), 1, 0))
    total: F32 = left[0]
    for each in [*left[1:], sequential(terms)]:
        total = total + each
    return total


def dealt(terms: F32) -> F32:
    """Returns the sum of the terms dealt in turn to four cascades, which take the last ones and each other in order."""
    each = len(terms) // _DEALT
    cascades = cascaded(terms[: each * _DEALT].reshape(each, _DEALT, *terms.shape[1:]))
    first = sequential(terms[each * _DEALT :], cascades[0])
    return sequential(cascades[1:], first)


def in_registers(x: F32, lanes: int) -> F32:
    """Returns the sum of each row's whole registers, register by register from the first one on."""
    whole = x.shape[-1] // lanes
    terms = np.moveaxis(x[..., : whole * lanes].reshape(*x.shape[:-1], whole, lanes), -2, 0)
    return sequential(terms)


# ---- exponentials of their own ---------------------------------------------------------------------------------------


def _bits(code: int) -> np.float32:
    return np.uint32(code).view(np.float32)


_LOG2_E, _LN_2 = _bits(0x3FB8AA3B), _bits(0x3F317218)
#: Logarithms of the smallest normal number and of the largest one.
_LOWEST, _HIGHEST = _bits(0xC2AEAC50), _bits(0x42B17218)
_SERIES = np.array([0.00828929059, 0.0418978221, 0.166676521, 0.499991506, 0.999999701, 1], np.float32)
_CUBIC = np.array(
    [-0.079204240219773236, -0.22433836478672356, 0.30354260500649682, 0.00010703434948458272], np.float32
)


def _horner(x: F32, coefficients: F32) -> F32:
    """Returns a polynomial, the coefficient of the highest power first, by fused steps."""
    total = fma(x, coefficients[0], coefficients[1])
    for each in coefficients[2:]:
        total = fma(x, total, each)
    return total


def exp_within_20_ulp(x: F32) -> F32:
    """Returns e^x as attention in fp32 takes it: 2^n times a polynomial of degree 5 of the rest (`exp_u20`)."""
    inside = np.maximum(np.minimum(x, _HIGHEST), _LOWEST)
    n = np.floor(fma(inside, _LOG2_E, np.float32(0.5)))
    rest = fma(-n, _LN_2, inside)
    half = ((n.astype(np.int32) + 126) << 23).view(np.float32)
    power = np.where(x < _LOWEST, np.float32(0), half)
    return np.asarray(_horner(rest, _SERIES) * power * np.float32(2))


def exp_of_bits(x: F32) -> F32:
    """Returns e^x as attention of narrow types takes it: bits of a float made of x·log2 e and a cubic (`fexp_u20`)."""
    inside = np.minimum(np.maximum(x, _LOWEST), _HIGHEST)
    scaled = inside * _LOG2_E
    corrected = scaled - _horner(scaled - np.floor(scaled), _CUBIC)
    code = fma(np.float32(1 << 23), corrected, np.float32(127 << 23)).astype(np.int32).view(np.float32)
    return np.where(x < _LOWEST, np.float32(0), np.where(x > _HIGHEST, np.float32(np.inf), code))
