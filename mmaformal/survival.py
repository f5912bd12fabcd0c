"""The bits of a product that survive beside a larger term, by the distance of their exponents: measured, not argued.

c = 2^t, one product −2^t, another one x of exponent t − distance: what is left is what the unit has kept of x.  The
executable encoding is run on x of all bits set, and of two bits set, each distance of these; the bits kept are those
that all of these have.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import results
from mmaformal.display import ShortRepr
from mmaformal.formats import Format, exponent_of
from mmaformal.spec import DotAdd

#: The largest distance that is looked at, and the exponent of the larger term.
_FARTHEST, _LARGER = 128, 60


@dataclass(frozen=True, repr=False)
class Survival(ShortRepr):
    """Bits kept of a product of `bits` significand bits, for each distance from 0 on."""

    bits: int
    kept: tuple[int, ...]

    @property
    def in_words(self) -> str:
        """Ranges of distances with the bits that are kept there, as `0–13: 4; 14: 3`."""
        told, start = [], 0
        for distance in range(1, len(self.kept) + 1):
            if distance == len(self.kept) or self.kept[distance] != self.kept[start]:
                last = distance - 1
                told.append(f"{start if start == last else f'{start}–{last}'}: {self.kept[start]}")
                start = distance
        return "; ".join(told)


def _normal(fmt: Format, exponent: int, fraction: int = 0) -> int:
    """The code of a positive normal number."""
    return ((exponent - fmt.min_exponent + 1) << fmt.fraction_bits | fraction) << fmt.ignored_low_bits


@lru_cache(maxsize=512)
def survival(spec: DotAdd) -> Survival | None:
    """The bits that a unit keeps of a product beside a larger one and c; None where its types hold no such terms.

    Formats of more than 24 significand bits are left out.
    """
    a, b, c, d = spec.a_format, spec.b_format, spec.c_format, spec.d_format
    floats = all(f.exponent_bits and f.signed and f.has_zero for f in (a, b, c, d))
    if not floats or not spec.reads_c or spec.is_signed or a.fraction_bits >= 24:
        return None
    t = min(a.max_exponent - 1 + b.max_exponent, c.max_exponent - 1, d.max_exponent - 1, _LARGER)
    M, k = a.fraction_bits, max(spec.k, 2)
    spec = spec.replace(k=-(-k // spec.period) * spec.period)
    lowest = max(a.min_exponent + b.min_exponent, d.min_exponent)
    distances = range(min(t - lowest, _FARTHEST) + 1)
    if len(distances) < 2:
        return None
    fractions = [1 << j for j in range(M)] + [(1 << M) - 1]
    larger = min(a.max_exponent, t)
    cases: list[tuple[int, int]] = []
    for e in (t - distance for distance in distances):
        upper = max(min(a.max_exponent - 1, e - b.min_exponent), a.min_exponent, e - b.max_exponent)
        cases += [(_normal(a, upper, f), _normal(b, e - upper)) for f in fractions]
    codes = np.zeros((2, len(cases), spec.k), np.uint64)
    codes[:, :, 0] = np.array(cases, np.uint64).T
    codes[:, :, 1] = np.array([_normal(a, larger) | a.sign_mask, _normal(b, t - larger)], np.uint64)[:, None]
    one = 0 if spec.scale_format is None else spec.scale_format.code("1")
    scale = np.full((len(cases), spec.scales if spec.scale_format is not None else 0), one, np.uint64)
    above = np.full(len(cases), _normal(c, t), np.uint64)
    found = results(spec, Rows(codes[0], codes[1], above, scale, scale).codes).tolist()
    many, kept = len(fractions), []
    for distance in distances:
        here = slice(distance * many, (distance + 1) * many)
        off = max(
            abs(a.value(x) * b.value(y) - d.value(got))
            for (x, y), got in zip(cases[here], found[here], strict=True)
        )
        kept.append(M + 1 if off == 0 else max(0, min(M + 1, t - distance - exponent_of(off))))
        if kept[-2:] == [0, 0]:
            break
    return Survival(M + 1, tuple(kept)) if kept[0] else None  # none where products are negated
