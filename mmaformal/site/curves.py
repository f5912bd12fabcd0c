"""Curves: a bound against the number of products, and the bits kept against the distance of exponents."""

from __future__ import annotations

import math

from mmaformal.corridor import INK, QUIET, svg, text_at
from mmaformal.site.records import UnitBound
from mmaformal.survival import Survival

#: The size of the curve in points, and the room around it for numbers.
_WIDE, _HIGH, _LEFT, _BELOW = 420, 150, 60, 34
#: How often K is doubled, from the products of one step on.
_DOUBLINGS = 12


def curve_points(bound: UnitBound) -> list[tuple[int, float]]:
    """Return K, doubled each time, and what a chain of K products is off at most, in units of 2^-24 of its terms."""
    return [(bound.step << n, bound.of(bound.step << n)) for n in range(_DOUBLINGS + 1)]


def error_text(bound: UnitBound) -> str:
    """Return the points of the curve, a line each."""
    return "\n".join(f"K = {k:,}: {off:.4g} · 2^-24" for k, off in curve_points(bound))


def error_svg(bound: UnitBound) -> str:
    """Return the curve, K to the right and the bound upwards; nothing of a unit whose bound is none."""
    at = curve_points(bound)
    if not all(0 < off < math.inf for _, off in at):
        return ""
    low, high = math.floor(math.log2(at[0][1])), math.ceil(math.log2(at[-1][1]))

    def x(k: int) -> float:
        return _LEFT + _WIDE * math.log2(k / at[0][0]) / _DOUBLINGS

    def y(off: float) -> float:
        return 10 + _HIGH * (high - math.log2(off)) / (high - low)

    body = [f'<rect x="{_LEFT}" y="10" width="{_WIDE}" height="{_HIGH}" fill="none" stroke="{QUIET}"/>']
    for place in range(low, high + 1, max(1, (high - low) // 5)):
        level = y(2.0**place)
        body.append(f'<path d="M{_LEFT} {level:.1f}h{_WIDE}" stroke="{QUIET}" stroke-dasharray="2 4"/>')
        body.append(text_at(_LEFT - 6, level + 4, f"2^{place - 24}", "end", QUIET))
    for k, _ in at[::2]:
        body.append(text_at(x(k), _HIGH + 26, f"{k:,}", "middle", QUIET))
    body.append(text_at(_LEFT + _WIDE + 30, _HIGH + 26, "K", "start", QUIET))
    line = " ".join(f"{x(k):.1f},{y(off):.1f}" for k, off in at)
    body.append(f'<polyline points="{line}" fill="none" stroke="{INK}" stroke-width="1.5"/>')
    label = f"the bound grows from {at[0][1]:.4g} to {at[-1][1]:.4g} · 2^-24, K from {at[0][0]:,} to {at[-1][0]:,}"
    return svg(_LEFT + _WIDE + 48, _HIGH + _BELOW, label, "\n".join(body))


def survival_svg(found: Survival) -> str:
    """Return the bits kept, upwards, against the distance of exponents, to the right, as steps."""
    steps = len(found.kept)

    def x(distance: float) -> float:
        return _LEFT + _WIDE * distance / steps

    def y(bits: int) -> float:
        return 10 + _HIGH * (1 - bits / found.bits)

    body = [f'<rect x="{_LEFT}" y="10" width="{_WIDE}" height="{_HIGH}" fill="none" stroke="{QUIET}"/>']
    for bits in range(0, found.bits + 1, max(1, found.bits // 4)):
        body.append(text_at(_LEFT - 6, y(bits) + 4, str(bits), "end", QUIET))
    for distance in range(0, steps, max(1, steps // 8)):
        body.append(text_at(x(distance + 0.5), _HIGH + 26, str(distance), "middle", QUIET))
    corners = [f"{x(n + side):.1f},{y(bits):.1f}" for n, bits in enumerate(found.kept) for side in (0, 1)]
    body.append(f'<polyline points="{" ".join(corners)}" fill="none" stroke="{INK}" stroke-width="1.5"/>')
    label = f"bits kept of {found.bits}, by the distance of exponents: {found.in_words}"
    return svg(_LEFT + _WIDE + 48, _HIGH + _BELOW, label, "\n".join(body))
