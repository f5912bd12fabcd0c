"""Attention of one head as PyTorch's CPU kernel makes it: blocks of queries and keys, each with a softmax of its own.

For each block of keys the scores are scaled, their exponentials summed, and what was summed before is scaled down where
the largest score grew (aten/src/ATen/native/cpu/FlashAttentionKernel.cpp).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from mmaformal.torch.replayed.lanes import (
    F32,
    by_halves,
    exp_of_bits,
    exp_within_20_ulp,
    fma,
    in_registers,
    sequential,
)

#: Keys of one block; queries of one, from how many queries on.
_KEYS = 512
_QUERIES = {768: 256, 192: 64, 0: 32}


class Multiply(Protocol):
    """A product of matrices in fp32, added to a third if one is given."""

    def __call__(self, a: F32, b: F32, c: F32 | None, *, turned: bool) -> F32: ...


class Functions(NamedTuple):
    """The functions that attention takes from libraries: a product, and e^x and log x of single numbers."""

    multiply: Multiply
    exp: Callable[[F32], F32]
    wide_exp: Callable[[F32], F32]  #: made in fp64 and rounded
    log: Callable[[F32], F32]
    width: int  #: numbers of fp32 in one register
    narrow: Callable[[F32], F32] | None  #: rounds to the type of the operands, where it is narrower than fp32


class Attended(NamedTuple):
    """The result of one head, and the logarithms of the sums of exponentials."""

    rows: F32
    logs: F32


def attend(
    q: F32, k: F32, v: F32, mask: F32 | None, *, causal: bool, scale: float, by: Functions
) -> Attended:
    """Returns softmax(q·kᵀ·scale + mask)·v of one head, q (queries, d), k and v (keys, d), in fp32."""
    each = min(next(size for least, size in _QUERIES.items() if len(q) >= least), len(q))
    blocks = []
    for first in range(0, len(q), each):
        some = slice(first, first + each)
        seen = min(first + len(q[some]), len(k)) if causal else len(k)
        part = None if mask is None else mask[some]
        blocks.append(_Block(q[some], first if causal else None, np.float32(scale), by).run(k, v, part, seen))
    rows, logs = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return Attended(rows, logs)


class _Block:
    """Queries of one block: their largest scores so far, sums of exponentials, and weighted sums of v."""

    def __init__(self, q: F32, first: int | None, scale: np.float32, by: Functions) -> None:
        self.q, self.first, self.scale, self.by = q, first, scale, by
        self.largest = np.full(len(q), -np.inf, np.float32)
        self.total = np.zeros(len(q), np.float32)
        self.rows: F32 | None = None

    def run(self, k: F32, v: F32, mask: F32 | None, seen: int) -> Attended:
        """Go over the keys that some of the queries see."""
        each = min(_KEYS, len(k))
        for start in range(0, seen, each):
            keys = slice(start, start + each)
            scores = self.by.multiply(self.q, k[keys].T, None, turned=True)
            if self.first is not None and seen - start <= each:
                last = self.first + np.arange(len(self.q)) - start
                scores = np.where(np.arange(scores.shape[1]) > last[:, None], np.float32(-np.inf), scores)
            scores = scores * self.scale if mask is None else fma(scores, self.scale, mask[:, keys])
            self._take(scores, v[keys])
        none = self.largest == -np.inf
        sums = np.where(self.total == 0, np.float32(1), self.total)
        rows = (np.asarray(self.rows) * (np.float32(1) / sums)[:, None]).astype(np.float32)
        largest = np.where(none, np.float32(0), self.largest).astype(np.float32)
        return Attended(rows, largest + self.by.log(sums))

    def _take(self, scores: F32, v: F32) -> None:
        """Add one block of keys; what a row without a key that it sees has had stays."""
        largest = np.maximum(self.largest, scores.max(axis=1))
        sees = largest > -np.inf
        shift = np.where(sees, largest, np.float32(0))
        powers, sums = self._powers(scores - shift[:, None])
        shrunk = np.where(sees, self.by.exp(self.largest - shift), np.float32(1))
        self.total = np.where(sees, fma(shrunk, self.total, sums), self.total)
        self.largest = largest
        before = None if self.rows is None else self.rows * shrunk[:, None]
        self.rows = self.by.multiply(powers, v, before, turned=False)

    def _powers(self, below: F32) -> tuple[F32, F32]:
        """The exponentials, as the product with v takes them, and their sums."""
        narrow, width = self.by.narrow, self.by.width
        whole = below.shape[1] // width * width
        powers = np.empty_like(below)
        exp = exp_within_20_ulp if narrow is None else exp_of_bits
        powers[:, :whole] = exp(np.ascontiguousarray(below[:, :whole]))
        powers[:, whole:] = self.by.wide_exp(below[:, whole:])
        if narrow is None:
            lanes = in_registers(powers, width)
        else:  # two registers at a time; one that is left goes with the first
            lanes = in_registers(powers[:, :whole], 2 * width)
            if whole % (2 * width):
                lanes[:, :width] += powers[:, whole - width : whole]
        sums = sequential(powers[:, whole:].T, by_halves(lanes))
        return (powers if narrow is None else narrow(powers)), sums
