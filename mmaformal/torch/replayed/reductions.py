"""Sums, softmax and layer norm of rows, in the order of PyTorch's kernels for AVX2 and AVX-512.

Rows are arrays (rows, n) of fp32; `narrow` says that they are numbers of bf16, whose kernels take sixteen at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log2
from typing import NamedTuple

import numpy as np

from mmaformal.torch.replayed.lanes import F32, LANES, by_halves, dealt, fma, in_registers, sequential

#: Registers that Welford's method takes before moments are merged.
_CHUNK = 16


def row_sums(x: F32, narrow: bool) -> F32:
    """Returns the sum of each row: registers dealt to four cascades, then the last numbers, then the lanes in order.

    Of bf16 both halves of sixteen numbers are added first (SumKernel.cpp).
    """
    each = 2 * LANES if narrow else LANES
    if x.shape[1] < each:  # too short for a register: numbers are dealt as registers are
        return dealt(x.T)
    whole = x.shape[1] // each * each
    terms = np.moveaxis(x[:, :whole].reshape(len(x), -1, each // LANES, LANES), 0, 2)
    lanes = dealt(terms[:, 0] + terms[:, 1] if narrow else terms[:, 0])
    return sequential(lanes.T, sequential(x[:, whole:].T))


def softmax(
    x: F32, narrow: bool, exp: Callable[[F32], F32], exp_of_one: Callable[[F32], F32], width: int = LANES
) -> F32:
    """Returns the softmax of each row in fp32: exponentials are summed in registers, lanes by halves, and divided by.

    `exp` is that of vectors of `width` numbers, `exp_of_one` that of single numbers, which bf16 takes for those at a
    row's end.  In fp32 these are added to the first lanes (SoftMaxKernel.cpp, vec/functional_base.h).
    """
    n = x.shape[1]
    whole = n // width * width
    below = x - x.max(axis=1, keepdims=True)
    powers = exp(below)
    if narrow:
        powers[:, whole:] = exp_of_one(below[:, whole:])
        total = sequential(powers[:, whole:].T, by_halves(in_registers(powers, width)))
    elif not whole:
        total = sequential(powers.T[1:], powers[:, 0])
    else:
        lanes = in_registers(powers, width)
        lanes[:, : n - whole] += powers[:, whole:]
        total = by_halves(lanes)
    return powers * (np.float32(1) / total)[:, None]


# ---- layer norm ------------------------------------------------------------------------------------------------------


class WelfordMoments(NamedTuple):
    """How many numbers, their mean, and the sum of the squares of their distances from it."""

    number: int
    mean: F32
    squares: F32


def _merged(x: WelfordMoments, y: WelfordMoments) -> WelfordMoments:
    """Returns moments of both, y's added to those of x, by registers."""
    number = x.number + y.number
    share = np.float32(y.number) / np.float32(number)
    apart = y.mean - x.mean
    moved = share * apart
    squares = fma(apart * np.float32(x.number), moved, x.squares + y.squares)
    return WelfordMoments(number, x.mean + moved, squares)


def _merged_lane(x: WelfordMoments, y: WelfordMoments) -> WelfordMoments:
    """Returns the same of single numbers, whose compiled steps are fused elsewhere."""
    number = x.number + y.number
    share = np.float32(y.number) / np.float32(number)
    apart = y.mean - x.mean
    squares = x.squares + fma(apart * apart * share, np.float32(x.number), y.squares)
    return WelfordMoments(number, fma(share, apart, x.mean), squares)


def _welford(registers: F32) -> WelfordMoments:
    """Returns the moments of up to sixteen registers, the first axis."""
    mean = squares = np.zeros(registers.shape[1:], np.float32)
    for number, x in enumerate(registers, 1):
        apart = x - mean
        mean = fma(apart, np.float32(1) / np.float32(number), mean)
        squares = fma(apart, x - mean, squares)
    return WelfordMoments(len(registers), mean, squares)


def _lanes(x: F32, narrow: bool) -> WelfordMoments:
    """Returns the moments of each lane: chunks of sixteen registers, merged as a binary counter carries."""
    parts = 2 if narrow else 1
    registers = np.ascontiguousarray(np.moveaxis(x.reshape(len(x), -1, parts, LANES), 0, 2))
    chunks = -(-len(registers) // _CHUNK)
    depth = max(ceil(log2(max(chunks, 1))), 1)
    none = np.zeros((len(x), LANES), np.float32)
    stack = [WelfordMoments(0, none, none)] * depth
    for number in range(chunks):
        chunk = registers[number * _CHUNK : (number + 1) * _CHUNK]
        for part in range(parts):
            stack[0] = _merged(stack[0], _welford(chunk[:, part]))
        level, carry = 1, number + 1
        while level < depth and carry % 2 == 0:
            stack[level] = _merged(stack[level], stack[level - 1])
            stack[level - 1] = WelfordMoments(0, none, none)
            level, carry = level + 1, carry // 2
    total = stack[0]
    for each in stack[1:]:
        total = _merged(total, each) if total.number + each.number else total
    return total


def moments(x: F32, narrow: bool) -> tuple[F32, F32]:
    """Returns mean and variance of each row: lanes by themselves, then the row's last numbers, then lane by lane.

    Welford's method with cascades (native/cpu/moments_utils.h).
    """
    each = 2 * LANES if narrow else LANES
    whole = x.shape[1] // each * each
    lanes = _lanes(x[:, :whole], narrow)
    mean = squares = np.zeros(len(x), np.float32)
    for number, column in enumerate(x[:, whole:].T, 1):
        apart = column - mean
        mean = mean + apart / np.float32(number)
        squares = squares + apart * (column - mean)
    total = WelfordMoments(x.shape[1] - whole, mean, squares)
    for lane in range(LANES if whole else 0):
        total = _merged_lane(total, WelfordMoments(lanes.number, lanes.mean[:, lane], lanes.squares[:, lane]))
    return total.mean, total.squares / np.float32(x.shape[1])


class Normed(NamedTuple):
    """Rows after layer norm, their means, and one over their deviations."""

    rows: F32
    mean: F32
    scale: F32


def layer_norm(x: F32, weight: F32 | None, bias: F32 | None, epsilon: float, narrow: bool) -> Normed:
    """Returns the layer norm of each row in fp32.

    x − mean, times the scale, then fused with weight and bias; of bf16, x times the scale fused with −mean·scale
    first.  Without a weight, the scale is fused with the bias (layer_norm_kernel.cpp).
    """
    mean, variance = moments(x, narrow)
    scale = np.float32(1) / np.sqrt(variance + np.float32(epsilon))
    one, none = np.float32(1), np.float32(0)
    if narrow:
        normed = fma(x, scale[:, None], (-scale * mean)[:, None])
    elif weight is None and bias is not None:
        return Normed(fma(x - mean[:, None], scale[:, None], bias), mean, scale)
    else:
        normed = (x - mean[:, None]) * scale[:, None]
    return Normed(fma(normed, one if weight is None else weight, none if bias is None else bias), mean, scale)
