"""Kernels and the plain executable on the same matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmaformal import Instruction
from mmaformal.formats import Format
from mmaformal.kernels import kernel_for


def random_codes(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, fmt.codes - 1, shape, np.uint64, endpoint=True).astype(fmt.word)


def near_one(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Any:
    """Numbers of a few binades around 1, some zeros, few others: sums that cancel and round."""
    sign = rng.integers(0, 2, shape).astype(np.uint64) << np.uint64(fmt.storage_bits - 1 if fmt.signed else 0)
    spread = max(min(6, fmt.max_exponent), 0)
    field = np.clip(fmt.bias + rng.integers(-spread, spread, shape, endpoint=True), 0, None).astype(np.uint64)
    fraction = rng.integers(0, 1 << fmt.fraction_bits, shape).astype(np.uint64)
    word = (field << np.uint64(fmt.fraction_bits) | fraction) << np.uint64(fmt.ignored_low_bits)
    word = np.where(rng.random(shape) < 0.1, np.uint64(0), word)
    if fmt.signed:
        word |= np.where((word == 0) & (not fmt.has_minus_zero), np.uint64(0), sign)  # −0 would be NaN
    word = np.where(rng.random(shape) < 0.002, random_codes(rng, fmt, shape).astype(np.uint64), word)
    return (word & np.uint64(fmt.codes - 1)).astype(fmt.word)


def run(
    i: Instruction, a: Any, b: Any, c: Any, scale_a: Any = None, scale_b: Any = None, steps: int = 1
) -> Any:
    """A (m×K) · B (K×n) + C by the kernel."""
    kernel = kernel_for(i.spec)
    d = c.astype(max(c.dtype, i.d_format.word, key=lambda word: word.itemsize))
    kernel.run(kernel.rows(a, scale_a), kernel.columns(b, scale_b), d, 0, steps)
    return d.astype(i.d_format.word)


def executable(
    i: Instruction, a: Any, b: Any, c: Any, scale_a: Any = None, scale_b: Any = None, steps: int = 1
) -> Any:
    """Return A·B + C by the plain executable, one instruction after the other."""
    for step in range(steps):
        part = slice(step * i.k, (step + 1) * i.k)
        blocks = slice(step * i.spec.scales, (step + 1) * i.spec.scales)
        scaled = () if scale_a is None else (scale_a[:, None, blocks], scale_b[blocks].T[None])
        c = i.dot_add(a[:, None, part], b[part].T[None], c, *scaled)
    return c
