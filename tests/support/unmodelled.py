"""Units that no model of the spaces is, with fp16 products: for what identify and probe say of them.

Products of fp16 are exact in fp64, so that each is written in NumPy's own arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal import ARCHITECTURES
from mmaformal.instruction import Instruction

Codes: TypeAlias = NDArray[Any]
Unit: TypeAlias = Callable[[Codes, Codes, Codes], Codes]
Numbers: TypeAlias = NDArray[np.float64]

#: The types of all of them but `saturates`, and its own.
FP16: dict[str, Any] = {"a_format": "fp16", "b_format": "fp16", "c_format": "fp32", "d_format": "fp32"}
BF16: dict[str, Any] = {"a_format": "bf16", "b_format": "bf16", "c_format": "fp32", "d_format": "fp32"}

GPS: Instruction = ARCHITECTURES["cdna2"]["v_mfma_f32_32x32x8f16"]
BF16_FDA: Instruction = ARCHITECTURES["ampere"]["HMMA.1688.F32.BF16"].replace(k=4, L=4)
NAN, LARGEST, INFINITY, MAGNITUDE = (np.uint32(x) for x in (0x7FC00000, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF))


def fda(k: int = 4) -> Instruction:
    """fda F=24 L=4 ρ=RZ-FP32 of fp16, K = k."""
    return ARCHITECTURES["volta"]["HMMA.884.F32.F32"].replace(F=24, k=k, L=min(k, 4))


def _numbers(codes: Codes, kind: type[np.floating[Any]]) -> Numbers:
    with np.errstate(invalid="ignore"):
        return np.ascontiguousarray(codes).view(kind).astype(np.float64)


def _products(a: Codes, b: Codes) -> Numbers:
    with np.errstate(invalid="ignore"):
        return _numbers(a.astype(np.uint16), np.float16) * _numbers(b.astype(np.uint16), np.float16)


def _codes(x: NDArray[Any]) -> Codes:
    return np.asarray(x, np.float32).view(np.uint32)


def _kept(x: Numbers, bits: int) -> Numbers:
    """To the nearest number of so many significant bits, ties to even."""
    if bits >= 53:
        return x
    fraction, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.round(np.ldexp(fraction, bits)), exponent - bits))


def wide_chain(bits: int) -> Unit:
    """One product after the other into an accumulator of so many bits, from c on; rounded to fp32 in the end."""

    def unit(a: Codes, b: Codes, c: Codes) -> Codes:
        total = _numbers(c.astype(np.uint32), np.float32)
        with np.errstate(all="ignore"):
            for product in _products(a, b).T:
                total = _kept(total + product, bits)
            return _codes(total)

    return unit


def plain_loop(a: Codes, b: Codes, c: Codes) -> Codes:
    """Product after product added in fp32, as NumPy does it: a NaN is that of the first operand that is one."""
    total = c.astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        for product in _products(a, b).T.astype(np.float32):
            total = total + product
        return _codes(total)


def kahan(a: Codes, b: Codes, c: Codes) -> Codes:
    """Kahan's compensated sum in fp32."""
    total = c.astype(np.uint32).view(np.float32)
    lost = np.zeros_like(total)
    with np.errstate(all="ignore"):
        for product in _products(a, b).T.astype(np.float32):
            y = product - lost
            larger = total + y
            lost, total = (larger - total) - y, larger
        return _codes(total)


def tree(a: Codes, b: Codes, c: Codes) -> Codes:
    """Neighbours first, each sum rounded to fp32, subnormal numbers kept; c last."""
    with np.errstate(all="ignore"):
        level = _products(a, b).astype(np.float32)
        while level.shape[1] > 1:
            level = level[:, 0::2] + level[:, 1::2]
        return _codes(level[:, 0] + c.astype(np.uint32).view(np.float32))


def own_nan(a: Codes, b: Codes, c: Codes) -> Codes:
    """fda whose NaN is 0x7fc00000."""
    d = fda(a.shape[1]).dot_add(a, b, c)
    return np.where((d & MAGNITUDE) > INFINITY, NAN, d)


def _without_subnormal(codes: Codes) -> Codes:
    return np.where((codes & INFINITY) == 0, codes & ~MAGNITUDE, codes)


def flushes_c(a: Codes, b: Codes, c: Codes) -> Codes:
    """fda that takes a subnormal c for zero."""
    return fda(a.shape[1]).dot_add(a, b, _without_subnormal(c))


def flushes_results(a: Codes, b: Codes, c: Codes) -> Codes:
    """fda whose subnormal results are zeros of their sign."""
    return _without_subnormal(fda(a.shape[1]).dot_add(a, b, c))


def saturates(a: Codes, b: Codes, c: Codes) -> Codes:
    """fda of bf16 that gives the largest number where it would give an infinity and no input is one."""
    d = BF16_FDA.dot_add(a, b, c)
    finite = ((a & 0x7F80) != 0x7F80).all(axis=1) & ((b & 0x7F80) != 0x7F80).all(axis=1)
    finite &= (c & INFINITY) != INFINITY
    return np.where(finite & ((d & MAGNITUDE) == INFINITY), d & ~MAGNITUDE | LARGEST, d)


def minus_zeros(a: Codes, b: Codes, c: Codes) -> Codes:
    """fda whose zero results are all −0."""
    d = fda(a.shape[1]).dot_add(a, b, c)
    return np.where((d & MAGNITUDE) == 0, ~MAGNITUDE, d)


def noisy(part: float = 3e-3, seed: int = 0) -> Unit:
    """fda, with a bit turned over in some of its answers, by chance."""
    rng = np.random.default_rng(seed)

    def unit(a: Codes, b: Codes, c: Codes) -> Codes:
        d = fda(a.shape[1]).dot_add(a, b, c).copy()
        d[rng.random(len(d)) < part] ^= np.uint32(1 << 3)
        return d

    return unit


def _pair(k: int) -> tuple[Instruction, Instruction]:
    return fda(k), GPS.replace(k=k)


def by_call() -> Unit:
    """Two models by turns: each call is the other's."""
    calls = [0]

    def unit(a: Codes, b: Codes, c: Codes) -> Codes:
        calls[0] += 1
        return _pair(a.shape[1])[calls[0] % 2].dot_add(a, b, c)

    return unit


def by_place(a: Codes, b: Codes, c: Codes) -> Codes:
    """Two models: every other output is the other's."""
    one, other = (each.dot_add(a, b, c) for each in _pair(a.shape[1]))
    return np.where(np.arange(len(c)) % 2 == 0, one, other)


def cut_down(a: Codes, b: Codes, c: Codes) -> Codes:
    """Terms aligned to the largest, 24 fractional bits kept, the rest cut toward −∞; the sum toward zero."""
    terms = np.concatenate([_products(a, b), _numbers(c.astype(np.uint32), np.float32)[:, None]], axis=1)
    with np.errstate(all="ignore"):
        last = np.exp2(np.frexp(np.abs(terms).max(axis=1))[1].astype(np.float64) - 25)[:, None]
        exact = (np.floor(terms / last) * last).sum(axis=1)
        rounded = exact.astype(np.float32)
        beyond = np.abs(rounded.astype(np.float64)) > np.abs(exact)
        return _codes(np.where(beyond, np.nextafter(rounded, np.float32(0)), rounded))
