"""The terms of one sum as SVG, place below place, with what is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mmaformal.bits import last_place
from mmaformal.corridor import INK, KEPT, LABEL, QUIET, WIDTH, svg, text_at
from mmaformal.display import ShortRepr
from mmaformal.formats import exponent_of
from mmaformal.renderers.rows import Row
from mmaformal.shown_stages import NumberedStep

#: The most places that are drawn one by one, and the most of those that are cut off.
_PLACES, _CUT_PLACES = 120, 24


def alignment_svg(steps: Sequence[NumberedStep]) -> str:
    """The terms of each sum, place below place, what is cut off greyed; nothing where no sum cuts anything off."""
    drawn, y = [], 0.0
    for step in steps:
        of_step = f"step {step.numbers.start + 1}: " if steps[-1].numbers.stop > 1 else ""
        cut = [] if step.passes_c else [row for row in step.rows if row.exact is not None]
        for stage, unit in dict.fromkeys((row.stage, row.unit) for row in cut):
            rows = [row for row in cut if (row.stage, row.unit) == (stage, unit)]
            title = f"{of_step}{stage}; what is below 2^{unit} is cut off"
            drawn.append(text_at(0, y + 14, title, colour=QUIET))
            y += 20
            for line in _binary(rows):
                drawn.append(_line(line, y))
                y += 20
            y += 8
    if not drawn:
        return ""
    return svg(
        WIDTH, y, "terms aligned; digits to the right of the kept places are cut off", "\n".join(drawn)
    )


@dataclass(frozen=True, repr=False)
class _Binary(ShortRepr):
    """A term in binary: what is kept of its digits, and what is cut off."""

    label: str
    sign: str
    kept: str
    cut: str
    places: int  #: that are drawn in all


def _binary(rows: Sequence[Row]) -> list[_Binary]:
    unit = rows[0].unit
    values = [abs(row.exact or Fraction(0)) for row in rows]
    top = max([unit, *(exponent_of(x) for x in values if x)])
    bottom = max(min([unit, *(last_place(x) for x in values if x)]), unit - _CUT_PLACES)
    top = min(top, bottom + _PLACES - 1)
    lines = []
    for row, x in zip(rows, values, strict=True):
        digits = "".join(str(int(x / Fraction(2) ** place) & 1) for place in range(top, bottom - 1, -1))
        kept, cut = digits[: top - unit + 1], digits[top - unit + 1 :]
        more = "…" if x and last_place(x) < bottom else ""
        sign = "−" if row.exact is not None and row.exact < 0 else "+"
        lines.append(
            _Binary(row.label, sign, kept, (cut if more else cut.rstrip("0")) + more, len(digits) + 1)
        )
    return lines


def _line(line: _Binary, y: float) -> str:
    """A box for each digit; zeros before the first one are left empty."""
    place = min(14.0, (WIDTH - LABEL - 16) / line.places)
    size = min(12.0, place)
    first = line.kept.find("1")
    boxes = [text_at(0, y + 13, line.label[:22]), text_at(LABEL, y + 13, line.sign)]
    for number, digit in enumerate(line.kept + line.cut):
        x = LABEL + 14 + number * place
        kept = number < len(line.kept)
        shown = kept and 0 <= first <= number
        if kept:
            fill = KEPT if shown else "none"
            boxes.append(
                f'<rect x="{x:.1f}" y="{y:g}" width="{place:.1f}" height="17" fill="{fill}" stroke="{QUIET}"/>'
            )
        if shown or not kept:
            strike = "" if kept else ' text-decoration="line-through"'
            boxes.append(
                f'<text x="{x + place / 2:.1f}" y="{y + 13:g}" text-anchor="middle" font-size="{size:g}" '
                f'fill="{INK if kept else QUIET}"{strike}>{digit}</text>'
            )
    return "".join(boxes)
