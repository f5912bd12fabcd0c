"""Attention by blocks of keys, as flash attention makes it, on an instruction: the model, and how far a sum is off.

    run = FlashAttention(hopper["QGMMA.64x8x32.F32.E4M3.E4M3"], keys=128, promote_every=4).run(Q, K, V)
    run.d, run.bound()

A row of the output O is kept as fp32 numbers.  For each block of keys: scores s = Q·Kᵀ on the instruction, times the
scale in fp32; m' the largest score so far; weights p = exp(s − m') in fp32, rounded to the type of the instruction's a;
O = O·α, α = exp(m − m'), and the sum of the weights times α, both rounded to fp32; then p·V is added to O:

- a chain of instructions that begins at O (`promote_every=None`), or
- sums of n instructions each, from +0, that are added to O in fp32 one after the other (`promote_every=n`).

In the end O is divided by the sum of the weights.  Of what the exponentials gave, let x be the exact O: of the rounded
p and of the α, as they are.  With u = 2^−24, m instructions in a block and s sums of them, where nothing overflows,

    |O − x| ≤ (Q − 1)·σ,   Q the product of all (1 + u)·(1 + U)^m,   or   Q = (1 + U)^n·(1 + u)^(Σ (1 + s)),

σ being what the weights of all terms come to: after each block α·σ + Σ w(p)·w(v) and the least normal number of fp32,
once, and once for each sum.  For a product with α is off by u·max(|α·O|, least) at most, so that

    α·(Q − 1)·σ + u·(α·Q·σ + least) ≤ ((1 + u)·Q − 1)·(α·σ + least);

the rest is that of any product (`analysis/units`).  `queries/flash_attention` proves it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mmaformal.analysis.units import Unit, raised, weights
from mmaformal.checked import integer
from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import quiet_nan
from mmaformal.formats import fp32
from mmaformal.gemm import matmul, rounded_codes, values
from mmaformal.instruction import Instruction
from mmaformal.operands import Matrix, as_operand

Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]
#: The most that one rounding to fp32 is off, relative to a normal number; and the least of these.
_U, _LEAST = Fraction(1, 1 << 24), 2.0**fp32.min_exponent
#: Room for the sums of float64 in a bound, of so many terms that it is enough for every K below 2^20.
_UP = 1 + 2.0**-30


@dataclass(frozen=True, repr=False)
class FlashAttention(ShortRepr):
    """The kernel: raises ValueError for an instruction that does not chain fp32, and for no keys."""

    instruction: Instruction
    keys: int = 128  #: of a block
    promote_every: int | None = (
        None  #: instructions of a sum that is added to O in fp32; None: chains go on from O
    )

    def __post_init__(self) -> None:
        i = self.instruction
        if i.spec.scale_format is not None or not i.c_format == i.d_format == fp32:
            raise ValueError(f"{i.label} does not add products to fp32 without scales")
        for name, size in (("keys", self.keys), ("promote_every", self.promote_every)):
            if size is not None and integer(size, name) < 1:
                raise ValueError(f"{name} is {size}; it counts from 1")

    def sums(self, keys: int) -> int:
        """How many sums from +0 a block of so many keys is added as; 0 where its chain goes on from O."""
        instructions = -(-keys // self.instruction.k)
        return 0 if self.promote_every is None else -(-instructions // self.promote_every)

    def factor(self, keys: int) -> Fraction:
        """Q − 1 of so many keys: what O is off at most, relative to the weights of all terms."""
        unit, whole = Unit.of(self.instruction), keys // self.keys
        blocks = [(self.keys, whole), (keys - whole * self.keys, 1)]
        roundings = sum(count * (1 + self.sums(size)) for size, count in blocks if size)
        found = raised(1 + _U, roundings)
        if self.promote_every is not None:
            longest = min(self.promote_every * self.instruction.k, self.keys, keys)
            return found * (1 + unit.factor(longest)) - 1
        for size, count in blocks:
            found *= raised(1 + unit.factor(size), count) if size else 1
        return found - 1

    def run(
        self,
        Q: Matrix,
        K: Matrix,
        V: Matrix,
        *,
        scale: float | None = None,
        causal: bool = False,
        exp: Callable[[Singles], Singles] = np.exp,
        jobs: int | None = None,
    ) -> FlashRun:
        """Attention of queries Q (M, d) to keys K (N, d) with values V (N, v).

        Q is of the instruction's a, K and V of its b: bit patterns, or floats of exactly these.  scale: of the scores,
        1/√d if it is not given.  causal: query i sees keys up to i + N − M.  exp: of fp32 numbers, elementwise.

        Raises ValueError for shapes that do not fit and a query that sees no key, TypeError as `matmul`.
        """
        i = self.instruction
        q, k, v = (
            as_operand(x, fmt, name).codes
            for x, fmt, name in ((Q, i.a_format, "Q"), (K, i.b_format, "K"), (V, i.b_format, "V"))
        )
        if not (q.ndim == k.ndim == v.ndim == 2 and q.shape[1] == k.shape[1] and len(k) == len(v)):
            raise ValueError(f"Q {q.shape}, K {k.shape}, V {v.shape}: (M, d), (N, d) and (N, v) are needed")
        if not q.size or not v.size or (causal and len(q) > len(k)):
            raise ValueError("each query sees a key at least, and there are queries, keys and values")
        factor = np.float32(q.shape[1] ** -0.5 if scale is None else scale)
        state = FlashRun.begun(self, len(q), len(k), v.shape[1])
        for first in range(0, len(k), self.keys):
            block = slice(first, first + self.keys)
            codes = matmul(q, np.ascontiguousarray(k[block].T), instruction=i, jobs=jobs, progress=False)
            scores = values(np.asarray(codes), fp32, fp32) * factor
            if causal:
                seen = np.arange(len(q))[:, None] + len(k) - len(q) >= np.arange(len(k))[block]
                scores = np.where(seen, scores, np.float32(-np.inf))
            state = state.after(scores, np.ascontiguousarray(v[block]), exp, jobs)
        return state


class KeyBlock(NamedTuple):
    """A block of keys, as it was added: the factor, the weights and the values."""

    alpha: Singles  #: (M, 1): what O was multiplied by before
    p: NDArray[np.unsignedinteger]  #: (M, keys): weights, as codes of the instruction's a
    v: NDArray[np.unsignedinteger]  #: (keys, v): values, as codes of its b


@dataclass(frozen=True, repr=False)
class FlashRun(ShortRepr):
    """Attention after some blocks of keys."""

    attention: FlashAttention
    N: int  #: keys, in all
    o: Singles  #: (M, v)
    largest: Singles  #: (M, 1): scores
    total: Singles  #: (M, 1): of the weights
    blocks: tuple[KeyBlock, ...]

    @classmethod
    def begun(cls, attention: FlashAttention, M: int, N: int, v: int) -> FlashRun:
        """Before the first block."""
        zero = np.zeros((M, 1), np.float32)
        return cls(attention, N, np.zeros((M, v), np.float32), zero - np.inf, zero, ())

    def after(
        self,
        scores: Singles,
        v: NDArray[np.unsignedinteger],
        exp: Callable[[Singles], Singles],
        jobs: int | None = None,
    ) -> FlashRun:
        """After one more block, of these scores (M, keys) and values."""
        i = self.attention.instruction
        largest = np.maximum(self.largest, scores.max(axis=1, keepdims=True))
        alpha, p = exp(self.largest - largest), exp(scores - largest)
        total = self.total * alpha
        for column in p.T[..., None]:
            total = total + column
        codes = rounded_codes(p, fp32, i.a_format, quiet_nan(i.a_format))
        o = matmul(
            codes,
            v,
            (self.o * alpha).view(np.uint32),
            instruction=i,
            promote_every=self.attention.promote_every,
            jobs=jobs,
            progress=False,
        )
        blocks = (*self.blocks, KeyBlock(alpha, codes, v))
        return FlashRun(self.attention, self.N, np.asarray(o).view(np.float32), largest, total, blocks)

    @property
    def d(self) -> Singles:
        """(M, v): the output, fp32."""
        return self.o / self.total

    def sigma(self) -> Doubles:
        """σ of each element of O."""
        i = self.attention.instruction
        sigma: Doubles = np.zeros(self.o.shape)
        for each in self.blocks:
            sums = 1 + self.attention.sums(len(each.v))
            terms = weights(each.p, i.a_format, "P") @ weights(each.v, i.b_format, "V")
            sigma = (each.alpha * sigma + terms + sums * _LEAST) * _UP
        return sigma

    def bound(self) -> Doubles:
        """Return what each element of `d` is off at most: of exact sums of these weights and values, over `total`."""
        total, u = self.total.astype(np.float64), float(_U)
        sigma = self.sigma() / total
        error = float(self.attention.factor(self.N)) * sigma * _UP
        return np.asarray((error + u * np.maximum(sigma + error, _LEAST)) * _UP)


__all__ = ["FlashAttention", "FlashRun", "KeyBlock"]
