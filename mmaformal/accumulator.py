"""Numbers and words for how much an instruction keeps of its terms while it sums them.

The widths are arithmetic on the types; that they hold for all inputs, and that no fewer bits do, is what the property
`accumulator-width` proves (tests/package/test_listing.py compares the two).
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaformal.display import ShortRepr, counted
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class SumWidth(ShortRepr):
    """Bits of the magnitudes of one step's fixed-point sum."""

    term: int  #: of the largest aligned term
    total: int  #: of the largest sum

    @property
    def carry(self) -> int:
        """Bits of the sum above the largest term."""
        return self.total - self.term


def sum_width(spec: DotAdd) -> SumWidth | None:
    """The widths of the first fixed-point sum of a step; None for an algorithm that has no such sum."""
    bounds = spec.parameters.sum_bounds(spec)
    if bounds is None:
        return None
    return SumWidth(max(bounds).bit_length(), sum(bounds).bit_length())


def accumulator_in_words(spec: DotAdd) -> list[str]:
    """Return a sentence or two on what the accumulator keeps, for a person who has not read the papers."""
    lines, width = [spec.parameters.keeps(spec)], sum_width(spec)
    if width is not None:
        lines.append(
            f"{spec.parameters.summed} takes {counted(width.total, 'bit')} and a sign: "
            f"{width.term} of one term, {width.carry} for carries"
        )
    return lines
