"""The accumulator of a step beside its terms, drawn to scale: as SVG, and in the characters of a terminal.

Colours are attributes, so that a page's style sheet may change them; a notebook shows them as they are.
"""

from __future__ import annotations

import html
from dataclasses import dataclass

from mmaformal.accumulator import sum_width
from mmaformal.display import ShortRepr, counted
from mmaformal.spec import DotAdd

#: The size of a drawing: columns for labels, and heights of lines.
WIDTH, ROW, LABEL = 860, 26, 150

INK, QUIET, KEPT, CARRY = "#1b1f24", "#8a939d", "#cfe3fa", "#f6e3b4"


@dataclass(frozen=True, repr=False)
class Band(ShortRepr):
    """Places of a number, 2^first down to 2^last, drawn as one box."""

    label: str  #: what stands before it
    first: int
    last: int
    text: str  #: what stands in it
    colour: str = KEPT
    dashed: bool = False


def svg(width: float, height: float, label: str, body: str) -> str:
    """A drawing of this size with a name for those who do not see it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="sans-serif" font-size="12" role="img" aria-label="{html.escape(label)}">\n'
        f"{body}\n</svg>\n"
    )


def text_at(x: float, y: float, text: str, anchor: str = "start", colour: str = INK) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{colour}">{html.escape(text)}</text>'
        if text
        else ""
    )


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
    carry = [Band("", top, whole, counted(width.carry, "carry bit"), CARRY)] if width.carry else []
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
    place = min(13.0, (WIDTH - LABEL) / (top - bottom + 1))

    def x(of: int) -> float:
        """The left edge of a place."""
        return round(LABEL + (top - of) * place, 1)

    drawn = []
    for number, line in enumerate(lines):
        y = number * ROW + 18
        drawn.append(text_at(0, y + 13, next(band.label for band in line if band.label)))
        drawn += [_box(band, x(band.first), x(band.last - 1), y) for band in line]
    height = len(lines) * ROW + 18
    point = x(-1)
    drawn.append(f'<path d="M{point:g} 14V{height:g}" stroke="{QUIET}" stroke-dasharray="2 3"/>')
    drawn.append(
        text_at(point, 11, "2^e, the largest exponent, is the place left of this line", "middle", QUIET)
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
        f'<rect x="{left:g}" y="{y:g}" width="{right - left:g}" height="{ROW - 6}" fill="{band.colour}" '
        f'stroke="{QUIET if band.dashed else INK}"{dash}/>'
    )
    room = (right - left) / 6.4
    text = band.text if len(band.text) <= room else band.text.split(",")[0].split()[0]
    shown = text_at((left + right) / 2, y + 14, text if len(text) <= room else "", "middle")
    return f"<g><title>{html.escape(band.text)}</title>{box}{shown}</g>"


def corridor_text(spec: DotAdd, columns: int) -> str:
    """The drawing of `corridor_svg` in characters, a place being one; nothing where so many columns do not hold it."""
    lines = bands(spec)
    every = [band for line in lines for band in line]
    if not every:
        return ""
    top, bottom = max(band.first for band in every), min(band.last for band in every)
    labels = [next(band.label for band in line if band.label) for line in lines]
    margin = max(map(len, labels)) + 2
    if margin + top - bottom + 1 > columns:
        return ""
    drawn = [f"{'':{margin + top}}2^e, the largest exponent"]
    for label, line in zip(labels, lines, strict=True):
        places = [" "] * (top - bottom + 1)
        for band in line:
            left, right = top - band.first, top - band.last
            places[left : right + 1] = _band(band, right - left + 1)
        drawn.append(f"{label:{margin}}{''.join(places)}".rstrip())
    drawn.insert(1, f"{'':{margin + top}}↓")
    return "\n".join(drawn)


def _band(band: Band, size: int) -> str:
    """So many characters: ends, a line, and in it as much of the text as there is room for."""
    line = "┄" if band.dashed else "─"
    number = band.text.split()[0]
    text = next((f" {x} " for x in (band.text, band.text.split(",")[0]) if len(x) + 4 <= size), "")
    text = text or (number if number.isdigit() and len(number) <= size - 2 else "")
    inside = text.center(size - 2, line) if size > 1 else ""
    ends = (line, line) if band.dashed else ("├", "┤")
    return f"{ends[0]}{inside}{ends[1]}" if size > 1 else "│"
