"""Subnormal numbers, NaNs, infinities, overflow (MMA-Sim §III-F)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from mmaformal.display import ShortRepr
from mmaformal.formats import Format, Specials
from mmaformal.probes.box import Box, Response, Terms, exact_code, power


@dataclass(frozen=True, repr=False)
class Behaviour(ShortRepr):
    """A unit's behaviour in one special case, with the answers that show it."""

    case: str
    does: str | None  #: None: these types cannot tell
    rows: tuple[Response, ...] = ()

    @property
    def found(self) -> str:
        """`kept`, say."""
        return self.does or "cannot be told by these types"

    @property
    def says(self) -> str:
        """`a subnormal c: kept`."""
        return f"{self.case}: {self.found}"

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {"case": self.case, "does": self.does, "rows": [row.to_json() for row in self.rows]}


# ---- subnormal numbers -----------------------------------------------------------------------------------------


def subnormals(box: Box) -> tuple[Behaviour, ...]:
    """Whether subnormal operands and results are kept."""
    addend = _subnormal_c(box)
    product, total = _subnormal_product(box), _subnormal_sum(box)
    if addend.does == "kept":  # so a subnormal number can be a result
        total = total if total.does else Behaviour(total.case, "kept", addend.rows)
    return (*(_subnormal_factor(box, side) for side in "ab"), addend, product, total)


def _told(case: str, asked: Response, right: bool, twin: Response, twin_right: bool, zero: bool) -> Behaviour:
    """`kept`, `flushed`, or something else; the twin is a normal number with a bit in the same place."""
    if right:
        return Behaviour(case, "kept", (asked,))
    if not twin_right:
        return Behaviour(case, None, (asked, twin))
    return Behaviour(case, "flushed to zero" if zero else "changed", (asked, twin))


def _compare(box: Box, case: str, small: Terms, twin: Terms) -> Behaviour:
    """Whether the sum of terms that is subnormal is the result, and that of its twin."""
    if not (box.can_hold(small) and box.can_hold(twin)):
        return Behaviour(case, None)
    asked, other = box.ask([small, twin])
    right = [box.number(row) == sum(x.values()) for row, x in ((asked, small), (other, twin))]
    return _told(case, asked, right[0], other, right[1], box.number(asked) == 0)


def _subnormal_factor(box: Box, side: str) -> Behaviour:
    mine, others = (box.types.a, box.types.b) if side == "a" else (box.types.b, box.types.a)
    case = f"a subnormal {side}"
    up = min(others.max_exponent, 1 - mine.min_exponent)
    code, twin = (exact_code(mine, power(mine.min_exponent - x)) for x in (1, 0))
    factor = exact_code(others, power(up))
    exponent = mine.min_exponent - 1 + up
    if code is None or twin is None or factor is None or exponent < box.types.d.min_exponent:
        return Behaviour(case, None)
    pairs = [(x, factor) if side == "a" else (factor, x) for x in (code, twin)]
    asked, other = box.ask_codes([({0: pair}, 0) for pair in pairs])
    right, twin_right = box.number(asked) == power(exponent), box.number(other) == power(exponent + 1)
    return _told(case, asked, right, other, twin_right, box.number(asked) == 0)


def _subnormal_c(box: Box) -> Behaviour:
    least = power(box.types.c.min_exponent)
    return _compare(box, "a subnormal c", {box.c: least / 2}, {box.c: least * 3 / 2})


def _subnormal_product(box: Box) -> Behaviour:
    least, case = power(box.types.d.min_exponent), "a product that is subnormal in d"
    if box.types.d.min_exponent - 1 < box.least_product:
        return Behaviour(case, None)
    return _compare(box, case, {0: least / 2}, {0: least * 3 / 2})


def _subnormal_sum(box: Box) -> Behaviour:
    least, case = power(box.types.d.min_exponent), "a sum that is subnormal in d"
    large, rest = least * 3 / 2, -least
    normal = box.types.c.min_exponent <= box.types.d.min_exponent
    for i, j in ((box.c, 0), (0, box.c), (0, 1)):
        if (box.c in (i, j) and not normal) or max(i, j) > box.k or (i, j) == (0, box.c) == (0, 1):
            continue
        if box.least_product > box.types.d.min_exponent:
            continue
        alone: list[Terms] = [{i: large}, {j: rest}]
        if not all(map(box.can_hold, alone)):
            continue
        if any(box.number(row) not in x.values() for row, x in zip(box.ask(alone), alone, strict=True)):
            continue  # a zero term cuts them
        found = _compare(box, case, {i: large, j: rest}, {i: large})
        if found.does:
            return found
    return Behaviour(case, None)


# ---- infinities and overflow -----------------------------------------------------------------------------------


def read_overflow(box: Box) -> tuple[Behaviour, ...]:
    """Return the behaviour of results, products and sums that are too large."""
    return (_result_overflow(box), _between_overflow(box), _product_overflow(box), *_infinities(box))


def _result_overflow(box: Box) -> Behaviour:
    """At the largest number and some quarters of its last place; where that is out of reach, at twice 2^e."""
    case, d = "a result beyond d's largest number", box.types.d
    last = power(d.max_exponent - d.fraction_bits)
    largest = power(d.max_exponent + 1) - last
    parts = [Fraction(n, 4) for n in (1, 2, 3, 4)]
    cases: list[Terms] = [{box.c: largest, 0: x * last} for x in parts]
    if all(map(box.can_hold, cases)):
        rows = box.ask(cases)
        ends = [_end(box, row) for row in rows]
        first = next((i for i, end in enumerate(ends) if end != "the largest number"), None)
        if first is None:
            return Behaviour(case, "is the largest number", tuple(rows))
        if len(set(ends[first:])) == 1:
            quarters = ("a quarter of", "half", "three quarters of", "")[first]
            beyond = f"{quarters} its last place".strip()
            return Behaviour(case, f"is {ends[first]}, from {beyond} beyond it on", tuple(rows))
        return Behaviour(case, f"is {', '.join(ends)} by quarters of its last place", tuple(rows))
    twice: Terms = {box.c: power(d.max_exponent), 0: power(d.max_exponent)}
    if not box.can_hold(twice):
        twice = dict.fromkeys(box.products, power(box.largest_product))
        if box.k * power(box.largest_product) < power(d.max_exponent + 1):
            return Behaviour(case, None)
    row = box.ask([twice])[0]
    return Behaviour(case, f"is {_end(box, row)}", (row,))


def _end(box: Box, row: Response) -> str:
    d = box.types.d
    if d.is_infinite(row.d):
        return "infinity"
    number = box.number(row)
    if number is None:
        return "a NaN"
    largest = power(d.max_exponent + 1) - power(d.max_exponent - d.fraction_bits)
    return "the largest number" if abs(number) == largest else d.text(row.d)


def _between_overflow(box: Box) -> Behaviour:
    """2^e + 2^e − 2^e: each may be in d, the sum of two is not."""
    case, top = "a sum that leaves d's range and comes back", power(box.types.d.max_exponent)
    places = [0, box.k - 1, box.c] if box.k > 1 else []
    orders = [{i: top, j: top, k: -top} for i, j, k in _turns(places)]
    if not orders or not all(map(box.can_hold, orders)):
        return Behaviour(case, None)
    rows = box.ask(orders)
    lost = [row for row in rows if box.number(row) != top]
    if not lost:
        return Behaviour(case, "is right", tuple(rows))
    if len(lost) == len(rows):
        return Behaviour(case, f"is {_end(box, lost[0])}", tuple(rows))
    return Behaviour(case, f"is {_end(box, lost[0])}, where it does so between two sums", tuple(rows))


def _turns(places: list[int]) -> Iterator[tuple[int, int, int]]:
    for i, j in combinations(places, 2):
        yield i, j, next(k for k in places if k not in (i, j))


def _product_overflow(box: Box) -> Behaviour:
    case, top = "a product beyond d's range, brought back by c", power(box.types.d.max_exponent)
    terms: Terms = {0: 2 * top, box.c: -top}
    if not box.can_hold(terms):
        return Behaviour(case, None)
    row = box.ask([terms])[0]
    return Behaviour(case, "is right" if box.number(row) == top else f"is {_end(box, row)}", (row,))


def _infinities(box: Box) -> Iterator[Behaviour]:
    t = box.types
    for name, fmt in (("a", t.a), ("b", t.b), ("c", t.c)):
        if fmt.infinity is not None:
            rows = box.ask_codes([_with(box, name, fmt.infinity)])
            yield Behaviour(f"an infinite {name}", f"gives {t.d.text(rows[0].d)}", tuple(rows))


def _with(box: Box, name: str, code: int) -> tuple[dict[int, tuple[int, int]], int]:
    """One code at a[0], b[0] or c, the other factor being 1."""
    one_a, one_b = exact_code(box.types.a, Fraction(1)), exact_code(box.types.b, Fraction(1))
    assert one_a is not None
    assert one_b is not None
    if name == "c":
        return {}, code
    return {0: (code, one_b) if name == "a" else (one_a, code)}, 0


# ---- NaNs ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Nans(ShortRepr):
    """Which NaN results there are."""

    rule: str | None  #: None: these types have no NaN and no infinity
    codes: tuple[tuple[str, int], ...]  #: what each case gives
    rows: tuple[Response, ...]

    @property
    def says(self) -> str:
        """One sentence."""
        return self.rule or "NaN: none can be made by these types"

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "rule": self.rule,
            "codes": {case: hex(code) for case, code in self.codes},
            "rows": [row.to_json() for row in self.rows],
        }


def nans(box: Box) -> Nans:
    """NaNs of NaN operands, alone and in pairs, and of operations that have no result."""
    cases = [*_invalid(box), *_operands(box)]
    rows = box.ask_codes([case for _, case in cases])
    codes = tuple((name, row.d) for (name, _), row in zip(cases, rows, strict=True))
    if not codes:
        return Nans(None, (), ())
    fmt = box.types.d
    wrong = [name for name, code in codes if not fmt.is_nan(code)]
    if wrong:
        return Nans(f"NaN: no NaN of {'; '.join(wrong)}", codes, tuple(rows))
    made = {code for _, code in codes}
    if len(made) == 1:
        return Nans(f"NaN: always {made.pop():#x}", codes, tuple(rows))
    return Nans(_preference(box, dict(codes)), codes, tuple(rows))


def _invalid(box: Box) -> Iterator[tuple[str, tuple[dict[int, tuple[int, int]], int]]]:
    t = box.types
    one_a, one_b = exact_code(t.a, Fraction(1)), exact_code(t.b, Fraction(1))
    assert one_a is not None
    assert one_b is not None
    if t.a.infinity is not None:
        yield "∞·0", ({0: (t.a.infinity, 0)}, 0)
    if t.b.infinity is not None:
        yield "0·∞", ({0: (0, t.b.infinity)}, 0)
    if t.a.infinity is not None and t.c.infinity is not None:
        yield "∞·1 − ∞", ({0: (t.a.infinity, one_b)}, t.c.infinity | t.c.sign_mask)
    if t.a.infinity is not None and box.k > 1:
        minus = t.a.infinity | t.a.sign_mask
        yield "∞·1 + (−∞)·1", ({0: (t.a.infinity, one_b), 1: (minus, one_b)}, 0)


def _operands(box: Box) -> Iterator[tuple[str, tuple[dict[int, tuple[int, int]], int]]]:
    t = box.types
    one_a, one_b = exact_code(t.a, Fraction(1)), exact_code(t.b, Fraction(1))
    assert one_a is not None
    assert one_b is not None
    given = {name: _some_nans(fmt) for name, fmt in (("a", t.a), ("b", t.b), ("c", t.c))}
    for name in "abc":
        for kind, code in given[name].items():
            yield f"{name} = {kind} NaN", _with(box, name, code)
    quiet = {
        name: _tagged(fmt, tag) for tag, (name, fmt) in enumerate((("a", t.a), ("b", t.b), ("c", t.c)), 1)
    }
    if all(code is not None for code in quiet.values()):
        a, b, c = (code or 0 for code in quiet.values())
        yield "a and b", ({0: (a, b)}, 0)
        yield "a and c", ({0: (a, one_b)}, c)
        yield "b and c", ({0: (one_a, b)}, c)


def _some_nans(fmt: Format) -> dict[str, int]:
    """A NaN or a few, by kind."""
    if fmt.specials is Specials.IEEE:
        assert fmt.infinity is not None
        low = 1 << fmt.ignored_low_bits
        quiet = fmt.infinity | low << (fmt.fraction_bits - 1)
        found = {"quiet": quiet | low, "negative quiet": quiet | low | fmt.sign_mask}
        return {**found, "signalling": fmt.infinity | low} if fmt.fraction_bits > 1 else found
    return {"the": code} if (code := _only_nan(fmt)) is not None else {}


def _only_nan(fmt: Format) -> int | None:
    return next((x for x in (fmt.sign_mask, fmt.sign_mask - 1) if fmt.is_nan(x)), None)


def _tagged(fmt: Format, tag: int) -> int | None:
    """A quiet NaN with a payload of its own, in the upper bits, that all formats of results have; or None."""
    if fmt.specials is not Specials.IEEE or fmt.fraction_bits < 4 or fmt.infinity is None:
        return None
    return fmt.infinity | (0b100 | tag) << (fmt.fraction_bits - 3 + fmt.ignored_low_bits)


def _preference(box: Box, codes: dict[str, int]) -> str:
    """Which of two NaNs is the result."""
    invalid = sorted({code for name, code in codes.items() if "∞" in name})
    made = f"; an operation without result gives {', '.join(map(hex, invalid))}" if invalid else ""
    wanted = {name: _tagged(box.types.d, tag) for tag, name in enumerate("abc", 1)}
    wins = {pair: next((x for x, code in wanted.items() if codes.get(pair) == code), None) for pair in _PAIRS}
    scores = {name: sum(name == winner for winner in wins.values()) for name in "abc"}
    if None in wins.values() or sorted(scores.values()) != [0, 1, 2]:
        return (
            f"NaN: several ({', '.join(sorted({hex(x) for x in codes.values()}))}), by no order of operands"
        )
    order = sorted("abc", key=lambda name: -scores[name])
    return f"NaN: the first of {', '.join(order)}, made quiet{made}"


_PAIRS = ("a and b", "a and c", "b and c")
