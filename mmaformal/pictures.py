"""Drawings as SVG: how wide an accumulator is beside its terms, and the terms of one sum with what is cut off.

Colours are attributes, so that a page's style sheet may change them; a notebook shows them as they are.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from mmaformal.accumulator import sum_width
from mmaformal.bits import last_place, top_place
from mmaformal.display import ShortRepr, counted
from mmaformal.renderers.rows import Row
from mmaformal.shown_stages import NumberedStep
from mmaformal.spec import DotAdd

_WIDTH, _ROW, _LABEL = 860, 26, 150
#: The most places that are drawn one by one, and the most of those that are cut off.
_PLACES, _CUT_PLACES = 120, 24

_INK, _QUIET, _KEPT, _CARRY = "#1b1f24", "#8a939d", "#cfe3fa", "#f6e3b4"


@dataclass(frozen=True, repr=False)
class Band(ShortRepr):
    """Places of a number, 2^first down to 2^last, drawn as one box."""

    label: str  #: what stands before it
    first: int
    last: int
    text: str  #: what stands in it
    colour: str = _KEPT
    dashed: bool = False


def svg(width: float, height: float, label: str, body: str) -> str:
    """A drawing of this size with a name for those who do not see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="sans-serif" font-size="12" role="img" aria-label="{html.escape(label)}">\n'
        f"{body}\n</svg>\n"
    )


def _text(x: float, y: float, text: str, anchor: str = "start", colour: str = _INK) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{html.escape(text)}</text>'
        if text
        else ""
    )


# ---- an accumulator ------------------------------------------------------------------------------------------------


def bands(spec: DotAdd) -> list[list[Band]]:
    """The widths of a step's sum beside those of its terms and of d, line by line; empty where it has no such sum.

    Places are counted from the largest exponent of a step, 2^0 being its place.
    """
    width, p = sum_width(spec), spec.parameters
    if width is None or not p.aligns:
        return []
    kept = p.kept_places(spec)
    whole = width.term - kept  # bits of the largest term at and above 2^0
    top = width.total - kept - 1
    product = spec.a_format.fraction_bits + spec.b_format.fraction_bits
    last = min(-kept, -product, -spec.c_format.fraction_bits) - 4
    carry = [Band("", top, whole, counted(width.carry, "carry bit"), _CARRY)] if width.carry else []
    return [
        [
            *carry,
            Band(
                "sum of a step", whole - 1, -kept, f"{counted(width.term, 'bit')}, {kept} of them fractional"
            ),
            Band("", -kept - 1, last, "cut off", "none", dashed=True),
        ],
        [Band("a product, at most", 1, -product, f"{product} fractional bits")],
        [
            Band(
                "c, at most",
                0,
                -spec.c_format.fraction_bits,
                f"{spec.c_format.fraction_bits} fractional bits",
            )
        ],
        [Band(f"d, {spec.d_format}", 0, -p.last_rounding.fraction_bits, _rounded(spec))],
    ]


def _rounded(spec: DotAdd) -> str:
    rho = spec.parameters.last_rounding
    return f"{rho.fraction_bits} fractional bits, {rho.rounding.name}"


def corridor_svg(spec: DotAdd) -> str:
    """The accumulator of a step drawn to scale; nothing for an algorithm that has no fixed-point sum."""
    lines = bands(spec)
    if not lines:
        return ""
    every = [band for line in lines for band in line]
    top, bottom = max(band.first for band in every), min(band.last for band in every)
    place = min(13.0, (_WIDTH - _LABEL) / (top - bottom + 1))

    def x(of: int) -> float:
        """The left edge of a place."""
        return round(_LABEL + (top - of) * place, 1)

    drawn = []
    for number, line in enumerate(lines):
        y = number * _ROW + 18
        drawn.append(_text(0, y + 13, next(band.label for band in line if band.label)))
        drawn += [_box(band, x(band.first), x(band.last - 1), y) for band in line]
    height = len(lines) * _ROW + 18
    point = x(-1)
    drawn.append(f'<path d="M{point:g} 14V{height:g}" stroke="{_QUIET}" stroke-dasharray="2 3"/>')
    drawn.append(
        _text(point, 11, "2^e, the largest exponent, is the place left of this line", "middle", _QUIET)
    )
    told = "; ".join(
        f"{line[0].label or line[1].label}: {', '.join(band.text for band in line)}" for line in lines
    )
    return svg(x(bottom - 1) + 2, height, told, "\n".join(drawn))


def widths_text(spec: DotAdd) -> str:
    """The widths that `corridor_svg` draws, in words, a line each."""
    named = [(next(band.label for band in line if band.label), line) for line in bands(spec)]
    return "\n".join(
        f"{label}: "
        + ", ".join(f"{band.text} (2^{band.first} … 2^{band.last})" for band in line if not band.dashed)
        for label, line in named
    )


def _box(band: Band, left: float, right: float, y: float) -> str:
    dash = ' stroke-dasharray="3 3"' if band.dashed else ""
    box = (
        f'<rect x="{left:g}" y="{y:g}" width="{right - left:g}" height="{_ROW - 6}" fill="{band.colour}" '
        f'stroke="{_QUIET if band.dashed else _INK}"{dash}/>'
    )
    room = (right - left) / 6.4
    text = band.text if len(band.text) <= room else band.text.split(",")[0].split()[0]
    shown = _text((left + right) / 2, y + 14, text if len(text) <= room else "", "middle")
    return f"<g><title>{html.escape(band.text)}</title>{box}{shown}</g>"


# ---- the terms of a sum --------------------------------------------------------------------------------------------


def alignment_svg(steps: Sequence[NumberedStep]) -> str:
    """The terms of each sum, place below place, what is cut off greyed; nothing where no sum cuts anything off."""
    drawn, y = [], 0.0
    for step in steps:
        of_step = f"step {step.numbers.start + 1}: " if steps[-1].numbers.stop > 1 else ""
        cut = [] if step.idle else [row for row in step.rows if row.exact is not None]
        for stage, unit in dict.fromkeys((row.stage, row.unit) for row in cut):
            rows = [row for row in cut if (row.stage, row.unit) == (stage, unit)]
            title = f"{of_step}{stage}; what is below 2^{unit} is cut off"
            drawn.append(_text(0, y + 14, title, colour=_QUIET))
            y += 20
            for line in _binary(rows):
                drawn.append(_line(line, y))
                y += 20
            y += 8
    if not drawn:
        return ""
    return svg(
        _WIDTH, y, "terms aligned; digits to the right of the kept places are cut off", "\n".join(drawn)
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
    top = max([unit, *(top_place(x) for x in values if x)])
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
    place = min(14.0, (_WIDTH - _LABEL - 16) / line.places)
    size = min(12.0, place)
    first = line.kept.find("1")
    boxes = [_text(0, y + 13, line.label[:22]), _text(_LABEL, y + 13, line.sign)]
    for number, digit in enumerate(line.kept + line.cut):
        x = _LABEL + 14 + number * place
        kept = number < len(line.kept)
        shown = kept and 0 <= first <= number
        if kept:
            fill = _KEPT if shown else "none"
            boxes.append(
                f'<rect x="{x:.1f}" y="{y:g}" width="{place:.1f}" height="17" fill="{fill}" stroke="{_QUIET}"/>'
            )
        if shown or not kept:
            strike = "" if kept else ' text-decoration="line-through"'
            boxes.append(
                f'<text x="{x + place / 2:.1f}" y="{y + 13:g}" text-anchor="middle" font-size="{size:g}" '
                f'fill="{_INK if kept else _QUIET}"{strike}>{digit}</text>'
            )
    return "".join(boxes)
