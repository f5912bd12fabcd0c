"""In which order `matmul` accumulates: the schemes of TensorGauge (`architectures/papers.py`) §IV-C, defined.

The paper names them ("best-case: compensated summation in the style of Kahan"; "natural"; "grouped: a two-level
reduction that bins terms by magnitude (exponent and top mantissa bits), reduces within bins, and then reduces across
bins"; "an anti-Kahan that, under an adversarial extreme ordering, persistently reinjects and accumulates rounding
residuals") and a random order, and gives no formulas.  Here, with an instruction of k products, p_1, p_2, … being what
it gives for the first, second, … k products from an accumulator of +0 (the last ones padded with zeros), and ⊕, ⊖ IEEE
754 operations to nearest even in the type of totals (fp32, or fp64 if fp32 does not hold C or D):

- `natural`: a chain of instructions in the order of K, each one's d the next one's c.
- `random`: the same of K permuted, by one permutation for the whole product: `permutation(K, seed)`.
- `grouped`: a product's key is |a·b| in float64, as far as the first `BIN_BITS` bits of its fraction.  The products of
  an output that have one key are a bin; each is a chain of instructions from +0, in the order of K.  The total, which
  starts as C, takes the sums of the bins one after the other, the smallest key first.
- `kahan` (Kahan, CACM 8, 1965, 40): s starts as C and e as 0; for each j, y = p_j ⊖ e, t = s ⊕ y, e = (t ⊖ s) ⊖ y,
  s = t.
- `anti-kahan`: the products of each output are taken by falling key (equal ones in the order of K), so that small ones
  meet a total that swamps them; and what Kahan subtracts is added, and kept: y = p_j ⊕ e, t = s ⊕ y,
  e = e ⊕ ((t ⊖ s) ⊖ y), s = t.

All but `natural` and `random` give s, rounded to D's type, to nearest even.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.encodings.executable.blocks import decode
from mmaformal.formats import Format
from mmaformal.kernels import rows
from mmaformal.spec import DotAdd

CodeArray = NDArray[Any]
AccumulationOrder = Literal["natural", "random", "grouped", "kahan", "anti-kahan"]
ACCUMULATIONS: tuple[str, ...] = get_args(AccumulationOrder)

#: Bits of the fraction that tell bins apart, beside the exponent: two bins to a power of two.
BIN_BITS = 1
_FRACTION = 52  #: bits of a float64's

#: products whose codes are put in order at a time
_AT_ONCE = 1 << 21


def permutation(K: int, seed: int) -> NDArray[np.int64]:
    """The order of K products that a seed means."""
    return np.random.default_rng(seed).permutation(K)


@dataclass(frozen=True, repr=False)
class Ordered(ShortRepr):
    """Products that each output takes in an order of its own."""

    spec: DotAdd
    a: CodeArray  #: (m, K)
    b: CodeArray  #: (n, K)
    widened: Callable[[CodeArray], CodeArray]  #: codes of d in the type of totals

    def grouped(self, outputs: slice, total: CodeArray) -> None:
        """Add the sums of bins to the totals of some outputs, counted row by row.  In place."""
        from mmaformal.kernels import ordering

        x, y, keys = self._ordered(outputs, falling=False)
        output, begin, length = (np.empty(keys.size, np.int64) for _ in range(3))
        count = ordering.bins_of(keys, output, begin, length)
        bins = output[:count], begin[:count], length[:count]
        k = self.spec.k
        d = np.zeros(count, self.spec.d_format.word)
        steps = -(-bins[2] // k)
        for step in range(int(steps.max(initial=0))):
            some = np.flatnonzero(steps > step)
            a, b = np.empty((len(some), k), x.dtype), np.empty((len(some), k), y.dtype)
            ordering.part_of_bins(x, *bins, some, step, a)
            ordering.part_of_bins(y, *bins, some, step, b)
            d[some] = rows.dot_add(self.spec, a, b, d[some])
        with np.errstate(all="ignore"):
            ordering.add_bins(bins[0], self.widened(d), total)

    def anti_kahan(self, outputs: slice, total: CodeArray) -> None:
        """Add products by falling magnitude, and what was lost, to the totals of some outputs.  In place."""
        from mmaformal.kernels import ordering

        x, y, _ = self._ordered(outputs, falling=True)
        k, missing = self.spec.k, -x.shape[1] % self.spec.k
        x, y = (np.pad(each, ((0, 0), (0, missing))) for each in (x, y))
        zero, lost = np.zeros(len(x), self.spec.c_format.word), np.zeros((1, len(x)), total.dtype)
        for start in range(0, x.shape[1], k):
            part = self.widened(
                rows.dot_add(self.spec, x[:, start : start + k], y[:, start : start + k], zero)
            )
            ordering.feed_back(part[None], total[None], lost)

    def parts(self, threads: int) -> list[slice]:
        """The outputs, as many at a time as are put in order at once."""
        count = len(self.a) * len(self.b)
        each = max(min(_AT_ONCE // max(self.a.shape[1], 1), -(-count // threads)), 1)
        return [slice(start, min(start + each, count)) for start in range(0, count, each)]

    def _ordered(self, outputs: slice, *, falling: bool) -> tuple[CodeArray, CodeArray, CodeArray]:
        from mmaformal.kernels import ordering

        shape = (outputs.stop - outputs.start, self.a.shape[1])
        x, y = np.empty(shape, self.a.dtype), np.empty(shape, self.b.dtype)
        keys = np.empty(shape, np.int64)
        va, vb = self._magnitudes
        shift = _FRACTION - BIN_BITS
        room = np.empty(shape[1]), np.empty(shape[1], np.int64), np.empty((1 << (63 - shift)) + 1, np.int64)
        ordering.by_magnitude(self.a, self.b, va, vb, outputs.start, shift, falling, x, y, keys, *room)
        return x, y, keys

    @cached_property
    def _magnitudes(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return _magnitudes(self.a, self.spec.a_format), _magnitudes(self.b, self.spec.b_format)


def _magnitudes(codes: CodeArray, fmt: Format) -> NDArray[np.float64]:
    """|x| of codes, as float64; a NaN is infinite."""
    x = decode(codes.astype(np.int64), fmt.layout)
    with np.errstate(all="ignore"):
        found = np.ldexp(x.significand.astype(np.float64), x.exponent - fmt.fraction_bits)
    return np.where(x.nan | x.infinite, np.inf, found)
