"""How many places of a small term a sum keeps beside a large one, and how it cuts the rest (MMA-Sim §III-D).

Places are counted below the exponent of the largest term: with F = 24, 2^−24 is kept beside 1 and 2^−25 is not.

Two ways.  `cancelling`: M, −M and a small term in one sum leave what was kept of it.  `beside_c`: c is large and
nothing cancels it; a term far below its last place is seen where the rounding of the result goes another way for it,
because the sum was just a number, or just between two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from mmaformal.display import ShortRepr
from mmaformal.formats import exponent_of
from mmaformal.probes.box import Box, Response, Terms, exact_code, power
from mmaformal.probes.modes import POINTS, agreeing

#: No more places than these are asked for.
MOST = 120
_SHOWN = 3


@dataclass(frozen=True, repr=False)
class KeptPlaces(ShortRepr):
    """The places of a small term that were kept below the largest of the terms it was summed with."""

    places: int
    more: bool  #: nothing was lost as far as the types reach: so many places or more
    cut: tuple[str, ...]  #: how the rest is cut: the roundings that give the answers; none: not told
    large: int  #: the exponent that the largest term had
    rows: tuple[Response, ...]
    reach: int | None = (
        None  #: a term farther below leaves nothing, where nearer ones do by how they are cut; None: not seen
    )

    @property
    def count(self) -> str:
        """`24`, or `58 or more`."""
        return f"{self.places} or more" if self.more else str(self.places)

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        rows = [row.to_json() for row in self.rows]
        return {
            "places": self.places,
            "or_more": self.more,
            "cut": list(self.cut),
            "reach": self.reach,
            "rows": rows,
        }


def cancelling(box: Box, large: tuple[int, int], small: int) -> KeptPlaces | None:
    """M and −M at two places, a small term at a third; None where these types do not reach."""
    top = min(box.largest_product, box.types.c.max_exponent, box.types.d.max_exponent)
    far = range(min(MOST, top - box.least_result) + 1)
    ladder = [e for e in far if box.holds(small, power(top - e))]
    if not ladder or not box.holds(large[0], power(top)) or not box.holds(large[1], power(top)):
        return None
    pair = {large[0]: power(top), large[1]: -power(top)}
    alone = box.ask([{small: power(top - e)} for e in ladder])
    beside = box.ask([{**pair, small: power(top - e)} for e in ladder])
    usable = _leading(box.number(row) == power(top - e) for row, e in zip(alone, ladder, strict=True))
    kept = _leading(box.number(row) == power(top - e) for row, e in zip(beside, ladder, strict=True))
    kept = min(kept, usable)
    if kept == 0 or ladder[:kept] != list(range(kept)):
        return None
    if kept == usable:
        return KeptPlaces(kept - 1, True, (), top, tuple(beside[kept - 1 : kept]))
    last = top - kept + 1
    cases = [(x, {**pair, small: x * power(last)}) for x in POINTS]
    cases = [(x, case) for x, case in cases if box.can_hold(case)]
    rows = box.ask([case for _, case in cases])
    answers = {x: _in_places(box, row, last) for (x, _), row in zip(cases, rows, strict=True)}
    cut, end = agreeing(answers), _trace(box, pair, small, last)
    if not cut and end is not None:
        cut = agreeing({x: y for x, y in answers.items() if exponent_of(x) >= end - last})
    reach = top - end if end is not None and set(cut) <= LEAVE_TRACES else None
    return KeptPlaces(kept - 1, False, cut, top, (*beside[kept - 1 : kept + 1], *rows[:_SHOWN]), reach)


#: roundings in which a term of some sign is seen however small it is
LEAVE_TRACES = {"RD", "RU", "RA", "RO"}


def carried(box: Box, places: tuple[int, int], after: int) -> KeptPlaces | None:
    """Return what a sum's result keeps for the next one: of M and a small term at two places of it, −M in the next sum.

    M is 3 · 2^e, so that the sum is of one binade on either side.
    """
    large, small = places
    top = min(box.largest_product, box.types.c.max_exponent, box.types.d.max_exponent) - 1
    least = max(box.least_result, top - MOST)
    ladder = [e for e in range(top - least + 1) if box.holds(small, power(top - e))]
    pair = {large: power(top) * 3 / 2, after: -power(top) * 3 / 2}
    if len(ladder) < 2 or not box.can_hold(pair) or not box.can_hold({x: -y for x, y in pair.items()}):
        return None
    rows = box.ask([{**pair, small: power(top - e)} for e in ladder])
    n = _leading(box.number(row) == power(top - e) for row, e in zip(rows, ladder, strict=True))
    if n == 0 or ladder[:n] != list(range(n)):
        return None
    if n == len(ladder):
        return KeptPlaces(n - 1, True, (), top, (rows[-1],))
    last, answers = power(top - n + 1), {}
    cases = {x: {**{k: _sign(x) * y for k, y in pair.items()}, small: x * last} for x in POINTS}
    cases = {x: case for x, case in cases.items() if box.can_hold(case)}
    for x, row in zip(cases, box.ask(list(cases.values())), strict=True):
        answers[x] = _in_places(box, row, top - n + 1)
    cut = agreeing(answers) if len(answers) > len(POINTS) // 2 else ()
    return KeptPlaces(n - 1, False, cut, top, tuple(rows[n - 1 : n + 1]))


def _sign(x: Fraction) -> int:
    return 1 if x > 0 else -1


def are_normalised(box: Box, places: tuple[int, int, int], kept: KeptPlaces) -> bool | None:
    """Whether a product of 2 or more is normalised before terms are aligned to it: then a term is lost that is kept
    beside 1; None where these types cannot tell."""
    x, y, small = places
    a, b, top = box.types.a, box.types.b, kept.large - 2
    exponent = min(max(top // 2, top - b.max_exponent), a.max_exponent)
    left, right = (exact_code(fmt, power(e) * 3 / 2) for fmt, e in ((a, exponent), (b, top - exponent)))
    term = {small: power(top - kept.places)}
    if kept.more or left is None or right is None or not box.can_hold(term):
        return None
    factors, c = box.codes(term)
    row = box.ask_codes([({x: (left, right), y: (left | a.sign_mask, right), **factors}, c)])[0]
    return box.number(row) != term[small]


def _trace(box: Box, pair: Terms, small: int, last: int) -> int | None:
    """The exponent of the smallest term that changes a sum, where terms of half a place do and smaller ones do not."""
    ends = []
    for sign in (1, -1):
        exponents = [e for e in range(last - 1, last - 1 - MOST, -1) if box.holds(small, power(e))]
        answers = box.ask([{**pair, small: sign * power(e)} for e in exponents])
        n = _leading(box.number(row) != 0 for row in answers)
        if 0 < n < len(exponents):
            ends.append(exponents[n - 1])
    return min(ends) if ends else None


def _leading(facts: Iterable[bool]) -> int:
    """How many are true before the first that is not."""
    n = 0
    for fact in facts:
        if not fact:
            break
        n += 1
    return n


def _in_places(box: Box, row: Response, last: int) -> Fraction | None:
    number = box.number(row)
    return None if number is None else number / power(last)


@dataclass(frozen=True, repr=False)
class Context(ShortRepr):
    """A sum, in units of c's exponent, in which one more small term can be seen; all of it times `sign`."""

    binade: int  #: the exponent of the sum, c's being 0
    c: Fraction
    tie: (
        Fraction | None
    )  #: a product that puts the sum halfway between two results; None: the sum is a result
    sign: int
    side: int  #: the sign of the small term, relative to the sum's


@dataclass(frozen=True, repr=False)
class SeenPlaces(ShortRepr):
    """How far below c's exponent a product is seen in one context."""

    context: Context
    places: int
    more: bool  #: seen as far as these types reach
    rows: tuple[Response, ...]


@dataclass(frozen=True, repr=False)
class BesideC(ShortRepr):
    """The places kept of products beside a larger c, as far as they were seen."""

    seen: tuple[SeenPlaces, ...]

    @property
    def kept(self) -> KeptPlaces | None:
        """The fewest places, where the sum has c's exponent."""
        level = [s for s in self.seen if s.context.binade == 0]
        if not level:
            return None
        least = _least(level)
        return KeptPlaces(least.places, least.more, self.cut, 0, least.rows)

    @property
    def least(self) -> SeenPlaces:
        """The context in which the fewest places are seen; of several, one in which it is sure that no more are."""
        return _least(self.seen)

    @property
    def cut(self) -> tuple[str, ...]:
        """How the sum of products is cut, where small terms of one sign are seen farther than those of the other."""
        levels = self.levels
        ends = [s for s in self.seen if s.context.tie is not None and s.context.binade in levels]
        low = {(s.context.sign, s.context.side) for s in ends if s.places == levels[s.context.binade]}
        if not low:
            return ()
        every = {(x, y) for x in (1, -1) for y in (1, -1)}
        if low == every:
            return ("RZ",)
        found = {
            "RD": {(x, y) for x, y in every if x * y > 0},
            "RU": {(x, y) for x, y in every if x * y < 0},
            "RZ": {(x, y) for x, y in every if y > 0},
        }
        return tuple(name for name, sides in found.items() if sides == low)

    @property
    def levels(self) -> dict[int, int]:
        """The fewest places by the exponent of the sum, where it was halfway between two results."""
        found: dict[int, int] = {}
        for s in self.seen:
            if s.context.tie is not None and not s.more:
                binade = s.context.binade
                found[binade] = min(found.get(binade, s.places), s.places)
        return found

    @property
    def normalised_cut(self) -> int | None:
        """Places of the sum below its own exponent, where it is cut again after it was normalised; None: not seen."""
        levels = self.levels
        if 0 in levels and levels.get(1) == levels[0] - 1 and levels.get(-1, 0) >= levels[0]:
            return levels[0]
        return None

    @property
    def aligned(self) -> tuple[int, bool] | None:
        """Places of the products' sum below c's exponent, and whether there may be more."""
        levels, cut = self.levels, self.normalised_cut
        if cut is None:
            return None
        return (levels[0], False) if levels.get(-1) == levels[0] else (levels[0] + 1, True)


def _least(seen: Sequence[SeenPlaces]) -> SeenPlaces:
    return min(seen, key=lambda s: (s.places + s.more, s.context.tie is not None))


def beside_c(box: Box, places: int, tie: int | None, small: int, kept: int) -> BesideC:
    """A large c, a product that makes the sum a tie, at `tie`, and a small one; d has `places` fractional places.

    `kept`: places of a product that are surely kept beside a larger one.  Of a small product that is farther from the
    tie it is not known beside which of the two it is lost.
    """
    found = []
    for context in contexts(places, tie is not None):
        seen = _seen(box, context, places, tie, small)
        if seen is None:
            continue
        if context.tie is not None and seen.places + exponent_of(context.tie) >= kept:
            seen = replace(seen, more=True)
        found.append(seen)
    return BesideC(tuple(found))


def contexts(places: int, ties: bool) -> Iterator[Context]:
    """Sums that are results, and sums that are halfway between two."""
    one = Fraction(1)
    for sign in (1, -1):
        for side in (-1, 1):
            yield Context(0, one * 3 / 2, None, sign, side)
            if ties:
                yield Context(0, one * 3 / 2, power(-places - 1), sign, side)
                yield Context(-1, one, -power(-places - 2), sign, side)
                yield Context(1, 2 - power(-places), power(1 - places), sign, side)


def terms(
    box: Box, context: Context, exponent: int, tie: int | None, small: Sequence[int], at: int
) -> dict[int, Fraction]:
    """The terms of a context, c's exponent being `exponent`, with 2^−at at each of the places `small`."""
    scale = context.sign * power(exponent)
    out = {box.c: context.c * scale}
    if context.tie is not None:
        assert tie is not None
        out[tie] = context.tie * scale
    return out | {k: context.side * power(-at) * scale for k in small}


def exponent_for(box: Box, context: Context, tie: int | None, small: Sequence[int], at: int) -> int | None:
    """An exponent of c for which every term of a context is a number of the types; None if there is none."""
    c, d = box.types.c, box.types.d
    low, high = max(c.min_exponent, d.min_exponent) + 2, min(c.max_exponent, d.max_exponent) - 2
    start = min(max(0, box.least_product + at, low), high)
    spare = range(start - 1, max(low, start - 40) - 1, -1)
    return next(
        (
            e
            for e in (start, *range(start + 1, min(start + 40, high) + 1), *spare)
            if box.can_hold(terms(box, context, e, tie, small, at))
        ),
        None,
    )


def _seen(box: Box, context: Context, places: int, tie: int | None, small: int) -> SeenPlaces | None:
    """None where the small term is not seen at all: this context is none for this unit."""
    first = places + 2 if context.tie is None else places + 4
    pairs = []
    for at in range(first, first + MOST // 2):
        exponent = exponent_for(box, context, tie, [small], at)
        if exponent is None:
            break
        case = terms(box, context, exponent, tie, [small], at)
        pairs += [{place: x for place, x in case.items() if place != small}, case]
    rows = box.ask(pairs)
    facts = [x.d != y.d for x, y in zip(rows[::2], rows[1::2], strict=True)]
    n = _leading(facts)
    if n == 0:
        return None
    return SeenPlaces(context, first + n - 1, n == len(facts), tuple(rows[2 * n - 1 : 2 * n + 2 : 2]))
