"""The curves of the paper's figures as they were published, and how ours compare.

https://github.com/north-numerical-computing/narrow-range-FP-underflow-experiments has a file for each combination; its
`bound` is (3.26) of one word, f_min in the place of g_min, whatever the words and with subnormals or without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mmaformal.analysis.rounding import Floats
from mmaformal.display import ShortRepr
from mmaformal.studies.narrow_range.experiments import Combination, CombinationErrors
from mmaformal.studies.rows import markdown

#: In Figure 5.1 exponents' limits begin to cost where n is above the largest number of binary16.
FIGURE_ABOVE = 65504

_NAMES = {"fp16": "binary16", "fp32": "binary32", "e4m3": "fp8-e4m3", "e5m2": "fp8-e5m2"}


@dataclass(frozen=True, repr=False)
class Curve(ShortRepr):
    """Errors over n, with limits of the exponents and without."""

    n: Floats
    error: Floats
    error_unbounded: Floats

    @classmethod
    def of(cls, rows: Sequence[CombinationErrors]) -> Curve:
        rows = sorted(rows, key=lambda row: row.n)
        columns = zip(*((row.n, row.error, row.error_unbounded) for row in rows), strict=True)
        return cls(*(np.array(column, np.float64) for column in columns))

    @property
    def slope(self) -> float:
        """d of c·n^d, fitted to the errors."""
        return float(np.polyfit(np.log10(self.n), np.log10(self.error), 1)[0])

    @property
    def level(self) -> float:
        """The mean of log10 of the errors."""
        return float(np.log10(self.error).mean())

    def divergence(self, above: int) -> float:
        """By what factor limits make errors larger where n > above; the geometric mean."""
        far = self.n > above
        return (
            float(10 ** np.log10(self.error[far] / self.error_unbounded[far]).mean())
            if far.any()
            else math.nan
        )


@dataclass(frozen=True, repr=False)
class CurveComparison(ShortRepr):
    """Our curve and the published one, at the same n.

    Of differences of log10: their mean, how far that is uncertain (one standard error), and what they scatter.
    """

    combination: Combination
    ours: Curve
    published: Curve
    offset: float
    uncertainty: float
    scatter: float

    @classmethod
    def of(cls, combination: Combination, ours: Curve, published: Curve) -> CurveComparison:
        """Raises ValueError if they have fewer than two n in common."""
        common, i, j = np.intersect1d(ours.n, published.n, return_indices=True)
        if len(common) < 2:
            raise ValueError(f"{combination}: no two n in common with the published curve")
        one, other = (Curve(c.n[k], c.error[k], c.error_unbounded[k]) for c, k in ((ours, i), (published, j)))
        apart = np.log10(one.error) - np.log10(other.error)
        scatter = float(apart.std(ddof=1))
        return cls(combination, one, other, float(apart.mean()), scatter / math.sqrt(len(apart)), scatter)


def curve(folder: Path, combination: Combination) -> Curve:
    """The published one.  Raises OSError if there is no such file, ValueError if it is not what it should be."""
    if missing := {combination.input, combination.accumulation} - _NAMES.keys():
        raise ValueError(f"no curve of {min(missing)} is published; there are those of {', '.join(_NAMES)}")
    one, other = _NAMES[combination.input], _NAMES[combination.accumulation]
    name = f"matmul_test_{one}_{other}_subnormals{combination.subnormals:d}_words_{combination.words}.dat"
    path = folder / name
    lines = path.read_text(encoding="utf-8").splitlines()
    if not lines or lines[0].split() != ["n", "error", "bound", "error-nrl", "bound-nrl"]:
        raise ValueError(f"{path} is not a published curve")
    table = np.array([[float(x) for x in line.split()] for line in lines[1:] if line.strip()])
    return Curve(table[:, 0], table[:, 1], table[:, 3])


def compare_curves(rows: Sequence[CombinationErrors], folder: Path) -> list[CurveComparison]:
    """Compare every combination, in the order of the rows.  Raises as `curve` and `Comparison.of`."""
    found = _by_combination(rows).items()
    return [CurveComparison.of(each, Curve.of(own), curve(folder, each)) for each, own in found]


def _by_combination(rows: Sequence[CombinationErrors]) -> dict[Combination, list[CombinationErrors]]:
    found: dict[Combination, list[CombinationErrors]] = {}
    for row in rows:
        found.setdefault(row.combination, []).append(row)
    return found


def published_table(
    rows: Sequence[CombinationErrors],
    comparisons: Mapping[Combination, CurveComparison],
    above: int = FIGURE_ABOVE,
) -> str:
    """A line of Markdown for each combination: levels and slopes, ours and the published ones, and how they differ.

    What limits of the exponents cost is of n > `above`; of curves that overflow somewhere, nothing else is told.
    """
    cost = f"n > {above}: limits cost" if above else "limits cost"
    head = ["input", "sums", "subnormals", "p", "level", "published", "apart by", "slope", "published", cost]
    lines = []
    for each, own in _by_combination(rows).items():
        mine, theirs = Curve.of(own), comparisons.get(each)
        told = [each.input, each.accumulation, "on" if each.subnormals else "off", str(each.words)]
        if any(row.overflowed for row in own):
            least = min(row.n for row in own if row.overflowed)
            lines.append([*told, f"overflows (n = {least})", *[""] * 7])
            continue
        told.append(f"{mine.level:.2f}")
        told.append("" if theirs is None else f"{theirs.published.level:.2f}")
        told.append("" if theirs is None else f"{theirs.offset:+.2f} ± {theirs.uncertainty:.2f}")
        told.append(f"{mine.slope:.2f}" if len(mine.n) > 1 else "")
        told.append("" if theirs is None else f"{theirs.published.slope:.2f}")
        told.append(_times(mine.divergence(above)))
        told.append("" if theirs is None else _times(theirs.published.divergence(above)))
        told.append(f"{max(row.nearest for row in own):.2g}")
        lines.append(told)
    return markdown([*head, "published", "nearest to its bound"], lines)


def _times(factor: float) -> str:
    """Nothing where no n is that large."""
    return "" if math.isnan(factor) else f"× {factor:.2f}"
