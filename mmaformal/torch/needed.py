"""How many fractional bits a run needs: with so many, or more, no alignment of it loses a bit.

An accumulator that loses nothing gives the exact sum of each step, rounded once, however much wider it is.  So one run
on a wide one, of which no step needs more than F bits, is bit for bit the run of every width from F on: by induction
over its steps, since all that goes into a step is the same.

For each output the bound is (the largest exponent that any of its terms has) − (the lowest place in which any of them
has a bit).  Terms are the products of all steps of a chain, and c, which is a sum of earlier ones: its exponent is at
most that of Σ|a·b|, and its lowest place that of an earlier product, or a higher one where it was rounded.  A step may
need fewer, so that what is counted is enough, and perhaps more than enough.  It is so in whatever order products are
taken, but not where what an addition loses is added again (`accumulation` kahan and anti-kahan).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.formats import Format
from mmaformal.instruction import Instruction
from mmaformal.kernels.compiled import driver
from mmaformal.losses import LossModel
from mmaformal.quantise import Quantised

CountPlane: TypeAlias = NDArray[np.int16]
Values: TypeAlias = NDArray[np.float64]

#: An exponent below all, and a place above all, of a term that is zero; two of them and a scale fit 16 bits.
FAR = 8000
#: Σ|a·b| is added up in fp64, and c may have been rounded up at each step.
MARGIN = 1.001


class Needed:
    """The fractional bits that the products it was called with need, at most."""

    def __init__(self, instruction: Instruction) -> None:
        """Raises ValueError for what this is no bound for: other algorithms, other results than fp32, and zeros that
        have the exponents of their fields."""
        spec = instruction.spec
        e_zero = getattr(spec.parameters, "e_zero", None)
        known = spec.parameters.algorithm in ("fda", "gdfs") and e_zero is not None
        if not known or instruction.d_format.name != "fp32":
            raise ValueError(
                f"{instruction.label}: bits are counted of fda and gdfs that give fp32 (no paper-v1 zeros)"
            )
        self.spec, self.e_zero = spec, int(e_zero or 0)
        self.bits = 0

    def __call__(self, left: Quantised, right: Quantised, shape: tuple[int, int, int, int]) -> None:
        """`batch` products of M × K and K × N.  Raises ValueError for what is not finite."""
        batch, m, n, k = shape
        sides = (left, m, self.spec.a_format), (right, n, self.spec.b_format)
        (ea, la, va), (eb, lb, vb) = (self._terms(x, (batch, size, k), fmt) for x, size, fmt in sides)
        top = np.full((batch, m, n), -2 * FAR, np.int16)
        low = np.full((batch, m, n), 2 * FAR, np.int16)
        size = np.zeros((batch, m, n))
        _look(ea, eb, la, lb, va, vb, top, low, size)
        of_c = np.frexp(size * MARGIN)[1] - 1
        some = low < FAR
        self.bits = max(
            self.bits, int((np.maximum(np.maximum(top, of_c), self.e_zero) - low)[some].max(initial=0))
        )

    def _terms(
        self, x: Quantised, shape: tuple[int, int, int], fmt: Format
    ) -> tuple[CountPlane, CountPlane, Values]:
        """Exponents, lowest places and magnitudes, batch × K × rows."""
        exponents, places, magnitudes = (table[x.codes] for table in _tables(fmt))
        if x.scales is not None and self.spec.scale_format is not None:
            scales = (table[x.scales] for table in _tables(self.spec.scale_format))
            of_e, of_place, of_value = (
                each.repeat(self.spec.scale_block, axis=1)[:, : shape[2]] for each in scales
            )
            # the exponent of a group is that of its scales
            exponents = of_e if self.spec.parameters.loss is LossModel.GROUPS else exponents + of_e
            places, magnitudes = np.minimum(places + of_place, FAR), magnitudes * of_value
        if not np.isfinite(magnitudes).all():
            raise ValueError("an operand is not finite, so that no width gives the exact sum")

        def by_k(x: NDArray[Any]) -> NDArray[Any]:
            return np.ascontiguousarray(x.reshape(shape).transpose(0, 2, 1))

        return by_k(exponents), by_k(places), by_k(magnitudes)


@driver
def _look(
    ea: CountPlane,
    eb: CountPlane,
    la: CountPlane,
    lb: CountPlane,
    va: Values,
    vb: Values,
    top: CountPlane,
    low: CountPlane,
    size: Values,
) -> None:
    """The largest ea + eb, the lowest la + lb, and the sum of va · vb, over K, of each output."""
    batch, k, m = ea.shape
    for x in range(batch):
        for i in range(m):
            for s in range(k):
                e, place, value = ea[x, s, i], la[x, s, i], va[x, s, i]
                for j in range(eb.shape[2]):
                    top[x, i, j] = max(top[x, i, j], np.int16(e + eb[x, s, j]))
                    low[x, i, j] = min(low[x, i, j], np.int16(place + lb[x, s, j]))
                    size[x, i, j] += value * vb[x, s, j]


@lru_cache
def _tables(fmt: Format) -> tuple[CountPlane, CountPlane, Values]:
    """Exponent, place of the lowest bit, and magnitude of each code; NaN of what is no number."""
    exponents, places = np.full(fmt.codes, -FAR, np.int16), np.full(fmt.codes, FAR, np.int16)
    magnitudes = np.zeros(fmt.codes)
    for code in range(fmt.codes):
        if not fmt.is_finite(code):
            magnitudes[code] = np.nan
            continue
        value = abs(fmt.value(code))
        if value:
            magnitudes[code] = float(value)
            exponents[code] = max(int(np.frexp(float(value))[1]) - 1, fmt.min_exponent)
            low = value.numerator & -value.numerator
            places[code] = low.bit_length() - value.denominator.bit_length()
    return exponents, places, magnitudes
