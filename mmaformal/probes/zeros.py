"""Signs of zero, and what exponent a zero term has where terms are aligned (MMA-Sim §III-F; e_zero of semantics §3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from mmaformal.display import ShortRepr
from mmaformal.probes.box import Box, Response, Terms, exact_code, power


@dataclass(frozen=True, repr=False)
class ZeroSign(ShortRepr):
    """Which zero one case gives."""

    case: str
    sign: str  #: `+0`, `−0`, or the text of another result
    row: Response


def signs(box: Box) -> tuple[ZeroSign, ...]:
    """Zeros by what they are of; those that the types have."""
    found = []
    for name, factors, addend in _zero_cases(box):
        row = box.ask_codes([(factors, addend)])[0]
        found.append(ZeroSign(name, _zero_text(box, row), row))
    return tuple(found)


def _zero_cases(box: Box) -> Iterator[tuple[str, dict[int, tuple[int, int]], int]]:
    t = box.types
    one, minus = (exact_code(t.b, Fraction(x)) for x in (1, -1))
    c_one = exact_code(t.c, Fraction(1))
    assert one is not None
    assert minus is not None
    assert c_one is not None
    negative = dict.fromkeys(box.products, (0, minus))
    minus_zero = t.c.sign_mask
    if t.c.is_finite(minus_zero):
        yield "all terms −0", negative, minus_zero
        yield "products +0, c −0", {}, minus_zero
    yield "products −0, c +0", negative, 0
    a_one = exact_code(t.a, Fraction(1))
    assert a_one is not None
    yield "c = 1 and a product of −1", {0: (a_one, minus)}, c_one
    below = power(box.least_result - 3)
    if box.holds(0, -below):
        yield "a negative product an eighth of d's least number", *box.codes({0: -below})


def _zero_text(box: Box, row: Response) -> str:
    fmt = box.types.d
    if row.d == 0:
        return "+0"
    return "−0" if fmt.sign_mask and row.d == fmt.sign_mask and fmt.is_finite(row.d) else fmt.text(row.d)


@dataclass(frozen=True, repr=False)
class ZeroExponent(ShortRepr):
    """The exponent that zero terms have in an aligned sum."""

    exponent: int | None  #: that of 0·0 and c = 0; None: not told
    at_most: int | None  #: where it is not told, it is this or lower
    fields: bool | None  #: whether a product 0·x has an exponent that grows with x; None: not told
    rows: tuple[Response, ...]

    @property
    def says(self) -> str:
        """One sentence."""
        raised = {
            True: "; 0·x has a higher one where x is large",
            False: "; 0·x has no higher one where x is large",
            None: "; whether 0·x has a higher one where x is large cannot be told by these types",
        }[self.fields]
        if self.exponent is not None:
            return f"a zero term counts with exponent {self.exponent}{raised}"
        if self.at_most is None:
            return f"the exponent of a zero term cannot be told by these types{raised}"
        return f"the exponent of a zero term is {self.at_most} or lower: these types tell no more{raised}"

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        rows = [row.to_json() for row in self.rows]
        return {"exponent": self.exponent, "at_most": self.at_most, "fields": self.fields, "rows": rows}


@dataclass(frozen=True, repr=False)
class KnownZeros(ShortRepr):
    """Knowledge of a fused sum before zeros are asked about: places kept."""

    products: tuple[int, int]  #: two of its products
    kept: int  #: of a product beside a larger term that is not in its group
    product: int | None  #: of a product beside a larger product
    c: int | None  #: of c, where it is one of the terms
    result: int | None  #: fractional places of the result


def read_zero_exponent(box: Box, known: KnownZeros) -> ZeroExponent:
    """Return the exponent that zeros have in a fused sum, as far as it can be told."""
    rows: list[Response] = []
    bounds: list[int] = []
    value = None
    if known.c is not None:
        value = _by_lonely_c(box, known.c, known.result, bounds, rows)
    if value is None and known.result is not None and known.product is not None:
        value = _by_products(box, known, box.types.d.min_exponent - known.result, bounds, rows)
    fields = _fields(box, known, rows)
    return ZeroExponent(value, None if value is not None or not bounds else min(bounds), fields, tuple(rows))


def _by_lonely_c(
    box: Box, kept: int, result: int | None, bounds: list[int], rows: list[Response]
) -> int | None:
    """From the smallest c that is its own result, all products being zero."""
    ladder = _lonely(box)
    if not ladder:
        return None
    least, row, lost = ladder
    rows += [row] if lost is None else [row, lost]
    fmt = box.types.c
    ends = (fmt.min_exponent, box.types.d.min_exponent)  # a smaller one may be flushed
    exponent = (
        least + kept
    )  # a subnormal c has the least exponent itself, and its own last places are cut by it
    of_result = result is None or least <= box.types.d.min_exponent - result
    if lost is None or least in ends or of_result or exponent <= fmt.min_exponent:
        bounds.append(exponent)
        return None
    return exponent


def _lonely(box: Box) -> tuple[int, Response, Response | None] | None:
    """The exponent of the smallest c that is its own result, its row, and that of the next smaller one."""
    c, d = box.types.c, box.types.d
    low = max(c.min_exponent - c.fraction_bits, box.least_result)
    exponents = list(range(min(c.max_exponent, d.max_exponent, 0), low - 1, -1))
    found: tuple[int, Response, Response | None] | None = None
    for exponent, row in zip(exponents, box.ask([{box.c: power(e)} for e in exponents]), strict=True):
        if box.number(row) != power(exponent):
            return None if found is None else (found[0], found[1], row)
        found = (exponent, row, None)
    return found


def _by_products(
    box: Box, known: KnownZeros, least: int, bounds: list[int], rows: list[Response]
) -> int | None:
    """From the smallest product that is seen beside 2^least, the smallest result, or half of it; all else is zero."""
    base, tiny = known.products
    ends = []
    for top in (least, least - 1):
        for sign in (1, -1):
            for side in (1, -1):
                found = _faintest(box, {base: sign * power(top)}, tiny, side * sign, top)
                if found is not None:
                    ends.append((top, *found))
    if not ends:
        return None
    top, last, lost, shown = max(ends, key=lambda end: end[1])  # where the least is seen
    rows += shown
    exponent = last + known.kept
    by_itself = known.product is not None and last == top - known.product  # cut beside the base
    if lost and exponent > top and not by_itself:
        return exponent
    if not by_itself or known.kept == known.product:
        bounds.append(max(exponent, top))
    return None


def _faintest(
    box: Box, base: Terms, place: int, sign: int, top: int
) -> tuple[int, bool, tuple[Response, ...]] | None:
    """The exponent of the smallest product seen beside `base`, whether a smaller one is not, and both rows."""
    least = box.least_product - box.types.a.fraction_bits - box.types.b.fraction_bits
    exponents = [e for e in range(top - 2, max(least, top - 80) - 1, -1) if box.holds(place, power(e))]
    if not exponents or not box.can_hold(base):
        return None
    alone, *answers = box.ask([base, *({**base, place: sign * power(e)} for e in exponents)])
    seen = [row.d != alone.d for row in answers]
    n = seen.index(False) if False in seen else len(seen)
    if n == 0:
        return None
    return exponents[n - 1], n < len(seen), tuple(answers[n - 1 : n + 1])


def _fields(box: Box, known: KnownZeros, rows: list[Response]) -> bool | None:
    """Whether 0·x, x being large, makes a small term be cut."""
    t = box.types
    high = max(t.a.max_exponent + t.b.min_exponent, t.a.min_exponent + t.b.max_exponent)
    left, right = exact_code(t.a, power(t.a.max_exponent)), exact_code(t.b, power(t.b.max_exponent))
    assert left is not None
    assert right is not None
    zeros = ((left, 0), (0, right))
    reach = False
    small: list[tuple[int, int, int]] = []  # place, exponent, places kept
    passing = _least_product_alone(box, known.products[0])
    if passing is not None:
        small.append((known.products[0], passing, known.kept))
    if known.c is not None and (found := _lonely(box)):
        small.append((box.c, found[0], known.c))
    for place, exponent, places in small:
        factors, addend = box.codes({place: power(exponent)})
        asked = box.ask_codes([({**factors, known.products[1]: zero}, addend) for zero in zeros])
        rows += asked[:1]
        if any(box.number(row) != power(exponent) for row in asked):
            return True
        reach = reach or high - exponent > places
    return False if reach else None


def _least_product_alone(box: Box, place: int) -> int | None:
    low = max(box.least_product, box.least_result)
    exponents = [e for e in range(0, low - 1, -1) if box.holds(place, power(e))]
    found = None
    for exponent, row in zip(exponents, box.ask([{place: power(e)} for e in exponents]), strict=True):
        if box.number(row) != power(exponent):
            break
        found = exponent
    return found
