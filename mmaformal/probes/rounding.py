"""How a sum is rounded: to how many places, which way, and what becomes of ties (MMA-Sim §III-E, Tables I and II).

The sum is made to lie between two results.  Where the sum keeps no places below those of a result (F = 23 and fp32),
many equal terms carry it into a higher binade, whose last place is larger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from mmaformal.display import ShortRepr
from mmaformal.probes.box import Box, Response, divides, exact_code, factors_of, power
from mmaformal.probes.modes import POINTS, agreeing
from mmaformal.spaces.common import Types

_SHOWN = 8
_HALVES = tuple(Fraction(n, 2) for n in (1, 3, -1, -3))
#: ways to split 2 into two terms, the smaller of which has the half
_SPLITS = 16
#: No exponent is tried that is farther from 0.
_FAR = 160


@dataclass(frozen=True, repr=False)
class SumRounding(ShortRepr):
    """How one sum is rounded."""

    places: int | None  #: fractional places of the result; None: not told
    more: bool  #: so many or more
    names: tuple[str, ...]  #: roundings that give the answers; none: `why_not`, or none of those known
    why_not: str
    rows: tuple[Response, ...]
    cut_at: int | None = (
        None  #: places of a term that are kept beside a larger one, where no result is between
    )

    @property
    def told(self) -> bool:
        """Whether one rounding alone gives the answers."""
        return len(self.names) == 1

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        rows = [row.to_json() for row in self.rows]
        told = {"places": self.places, "or_more": self.more, "roundings": list(self.names)}
        return {**told, "cut_at": self.cut_at, "why_not": self.why_not, "rows": rows}


def read_rounding(box: Box, slots: Sequence[int], kept: int | None) -> SumRounding:
    """The rounding of a sum; `slots`: places that are added in it, one of each of its terms, c first if it is one.

    `kept`: places that it keeps below its largest term; None where that is not known.
    """
    places = _places(box, slots[0], slots[-1])
    if places is None:
        return SumRounding(None, False, (), "no two terms are so far apart in these types", ())
    if kept is None:
        return _of_unknown_sum(box, slots, places)
    if kept > places:
        return _carried(box, slots, places, kept)
    found, sure = _by_carries(box, slots, places)
    return _carried(box, slots, found, kept) if sure else _unsure(found, True)


_NO_HALVES = "these types have no two terms whose sum has half of a last place of the result"
_FEW_TERMS = "its terms are too few to carry the sum beyond the places that it keeps"


def _carried(box: Box, slots: Sequence[int], places: int, kept: int) -> SumRounding:
    """Read the rounding of a sum of so many places that keeps `kept` of its terms: by quarters of its last, or by
    halves."""
    carry = max(places + 2 - kept, 0)
    if 1 << carry > len(slots) - 1:
        return _by_halves(box, slots, places, _FEW_TERMS) if kept >= places else _unsure(places, False)
    return _rounding(box, slots, places, carry)


def _of_unknown_sum(box: Box, slots: Sequence[int], places: int) -> SumRounding:
    """Read the rounding of a sum that may be exact, or may keep few places: quarters of a last place may be lost.

    A sum that is carried into a higher binade tells: halves of the last place there are sums of bits that were kept.
    """
    found, sure = _by_carries(box, slots, places)
    if found > places:  # the result has more places than were kept of a term
        return replace(_unsure(found, not sure), cut_at=places)
    exact, halves = _rounding(box, slots, places, 0), _by_halves(box, slots, places, "")
    if exact.names and set(exact.names) <= set(halves.names):
        return exact
    why = "its answers are not those of an exact sum that is rounded: quarters of a last place may be lost before"
    return replace(halves, why_not=why)


def _unsure(places: int, more: bool) -> SumRounding:
    return SumRounding(places, more, (), _FEW_TERMS, ())


def _by_halves(box: Box, slots: Sequence[int], places: int, why_not: str) -> SumRounding:
    """Halves of the last place of a sum of two terms that is about 2; one term has the half, and both have few bits."""
    cases = {}
    for x in _HALVES:
        case = _half(box, slots[0], slots[-1], x, places)
        if case is None:
            return SumRounding(places, False, (), why_not or _NO_HALVES, ())
        cases[x] = case
    answers = {}
    rows = box.ask(list(cases.values()))
    for (x, case), row in zip(cases.items(), rows, strict=True):
        number, last = (
            box.number(row),
            abs(sum(case.values()) / (2 + abs(x) * power(1 - places))) * power(1 - places),
        )
        answers[x] = None if number is None else number / last - 2 * _sign(x) * power(places - 1)
    return SumRounding(places, False, agreeing(answers), why_not, tuple(rows))


def _half(box: Box, first: int, last: int, x: Fraction, places: int) -> dict[int, Fraction] | None:
    """Terms whose sum is 2 and x of its last places, times a power of two."""
    for exponent in range(_SPLITS):
        small = power(-exponent)
        terms = {first: small + abs(x) * power(1 - places), last: 2 - small}
        case = _fitted(box, {place: _sign(x) * term for place, term in terms.items()})
        if case is not None:
            return case
    return None


def _rounding(box: Box, slots: Sequence[int], places: int, carry: int) -> SumRounding:
    """2^carry equal terms, and in the last place of the result some quarters."""
    ones, part = slots[: 1 << carry], slots[-1]
    cases, points = [], []
    for x in POINTS:
        case = _fitted(box, {**dict.fromkeys(ones, _sign(x)), part: x * power(carry - places)})
        if case is not None:
            cases.append(case)
            points.append(x)
    rows = box.ask(cases)
    answers = {}
    for x, case, row in zip(points, cases, rows, strict=True):
        number, whole = box.number(row), (1 << carry) * case[ones[0]]
        last = power(carry - places) * abs(case[ones[0]])
        answers[x] = None if number is None else (number - whole) / last
    if len(answers) < len(POINTS) // 2:
        return SumRounding(places, False, (), "these types have no terms for a sum between two results", ())
    return SumRounding(places, False, agreeing(answers), "", tuple(rows[:_SHOWN]))


def _sign(x: Fraction) -> Fraction:
    return Fraction(1 if x > 0 else -1)


def _places(box: Box, base: int, part: int) -> int | None:
    """The most places of 1 + 2^−places that are in the result."""
    found = None
    cases = [
        (places, case)
        for places in range(1, box.types.d.fraction_bits + 1)
        if (case := _fitted(box, {base: Fraction(1), part: power(-places)})) is not None
    ]
    rows = box.ask([case for _, case in cases])
    for (places, case), row in zip(cases, rows, strict=True):
        if box.number(row) != sum(case.values()):
            break
        found = places
    return found


def _by_carries(box: Box, slots: Sequence[int], kept: int) -> tuple[int, bool]:
    """The places of a result whose terms keep so many, and whether there are no more: by sums just above 2, 4, …"""
    most = box.types.d.fraction_bits
    if kept >= most:
        return most, True
    for carry in range(1, len(slots)):
        if 1 << carry > len(slots):
            break
        ones = dict.fromkeys(slots[: (1 << carry) - 1], Fraction(1))
        case = _fitted(box, {**ones, slots[-1]: 1 + power(-kept)}) or _fitted(
            box, {**ones, slots[0]: 1 + power(-kept), slots[-1]: Fraction(1)}
        )
        if case is None:
            return kept + carry - 1, False
        if box.number(box.ask([case])[0]) != sum(case.values()):
            return kept + carry - 1, True
        if kept + carry >= most:
            return most, True
    return min(kept + len(slots).bit_length() - 1, most), False


def _fitted(box: Box, terms: Mapping[int, Fraction]) -> dict[int, Fraction] | None:
    """The terms times a power of two with which the types hold them, its exponent as near to 0 as can be."""
    addends = frozenset(x for place, x in terms.items() if place == box.c)
    exponent = _exponent(box.types, addends, frozenset(x for place, x in terms.items() if place != box.c))
    return None if exponent is None else {place: x * power(exponent) for place, x in terms.items()}


@lru_cache(maxsize=1 << 12)
def _exponent(types: Types, addends: frozenset[Fraction], products: frozenset[Fraction]) -> int | None:
    """Return the exponent of a power of two with which c holds some numbers, and products others; None without one."""
    if not all(divides(types.a, types.b, x) for x in products):
        return None
    low, high = max(types.d.min_exponent, -_FAR), min(types.d.max_exponent - 4, _FAR)
    for exponent in sorted(range(low, high + 1), key=abs):
        scale = power(exponent)
        if all(exact_code(types.c, x * scale) is not None for x in addends) and all(
            factors_of(types.a, types.b, x * scale) is not None for x in products
        ):
            return exponent
    return None
