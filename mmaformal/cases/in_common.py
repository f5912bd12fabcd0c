"""Traits that some rows have in common and others do not: cancellation, ties, subnormal numbers, how many products."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.inputs import Codes, Rows
from mmaformal.display import ShortRepr
from mmaformal.formats import Format, exponent_of
from mmaformal.solver.deadline import checking

#: Rows of each kind that are looked at.
_MOST = 250
#: A fact is common to some rows where it is true of this part of them, and of the others of so much less.
_COMMON, _TELLS = 0.7, 0.3
#: Facts that are said.
_SAID = 3


@dataclass(frozen=True, repr=False)
class Trait(ShortRepr):
    """A fact that most of some rows have in common, and few of the others."""

    fact: str
    part: float  #: of the rows
    others: float  #: of the other rows

    def __str__(self) -> str:
        return f"{self.fact} ({_percent(self.part)} of them; of the other rows {_percent(self.others)})"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


@dataclass(frozen=True)
class _Terms:
    """One row of finite numbers: its terms that are not zero, and their exact sum."""

    products: tuple[Fraction, ...]
    c: Fraction

    @property
    def sum(self) -> Fraction:
        return sum(self.products, self.c)

    @property
    def exponents(self) -> list[int]:
        return [exponent_of(x) for x in (*self.products, self.c) if x]


def in_common(formats: Sequence[Format], rows: Rows, some: NDArray[np.bool_], block: int = 0) -> list[Trait]:
    """Facts that most of `some` rows have in common and most others do not, the most telling first.

    `formats`: of a, b, c, d, and of block scales, one for each `block` products.
    """
    where = [np.nonzero(x)[0][:: max(1, int(x.sum()) // _MOST)] for x in (some, ~some)]
    if not len(where[0]):
        return []
    facts = [[_facts(formats, rows[int(i)], block) for i in checking(part)] for part in where]
    found = [trait for name in _FACTS for trait in _trait(name, *facts)]
    found.sort(key=lambda trait: trait.others - trait.part)
    return found[:_SAID]


def _trait(
    name: str, mine: Sequence[Mapping[str, int | None]], others: Sequence[Mapping[str, int | None]]
) -> list[Trait]:
    """The fact, if it is common; of a number, that it is so large: as tells the rows best from the others."""
    mine_of, others_of = (
        [x for each in part if (x := each.get(name)) is not None] for part in (mine, others)
    )
    found: list[Trait] = []
    for least in sorted(set(mine_of)):
        part = sum(x >= least for x in mine_of) / len(mine)
        if part < _COMMON:
            break
        of_others = sum(x >= least for x in others_of) / max(len(others), 1)
        found.append(Trait(_FACTS[name].format(least), part, of_others))
    best = max(found, key=lambda trait: trait.part - trait.others, default=None)
    return [best] if best is not None and best.part - best.others >= _TELLS else []


#: name → what it says; with `{}`, of a number
_FACTS: Mapping[str, str] = {
    "special": "a NaN or an infinity among the inputs",
    "subnormal a or b": "a subnormal factor",
    "subnormal c": "a subnormal c",
    "zero product": "a product that is zero",
    "products": "{} or more products that are not zero",
    "spread": "terms whose exponents are {} or more apart",
    "cancelled": "terms that cancel: the sum is {} or more places below the largest of them",
    "zero sum": "terms whose sum is zero",
    "tie": "a sum halfway between two numbers of d",
    "inexact": "a sum that is no number of d",
    "subnormal sum": "a sum that is subnormal in d",
    "large sum": "a sum beyond d's largest number",
}


def _facts(formats: Sequence[Format], row: Codes, block: int) -> dict[str, int | None]:
    """Facts of one row; a fact that is not there is not true of it."""
    terms = _terms(formats, row, block)
    found: dict[str, int | None] = {}
    if _has_subnormal(formats[0], row.a) or _has_subnormal(formats[1], row.b):
        found["subnormal a or b"] = 1
    if _has_subnormal(formats[2], (row.c,)):
        found["subnormal c"] = 1
    if terms is None:
        return found | {"special": 1}
    if len(terms.products) < len(row.a):
        found["zero product"] = 1
    found["products"] = len(terms.products)
    if exponents := terms.exponents:
        found["spread"] = max(exponents) - min(exponents)
    return found | _of_sum(formats[3], terms)


def _has_subnormal(fmt: Format, codes: Iterable[int]) -> bool:
    return fmt.has_zero and any(fraction and not field for _, field, fraction in map(fmt.fields, codes))


def _of_sum(d: Format, terms: _Terms) -> dict[str, int | None]:
    total = terms.sum
    if not total:
        return {"zero sum": 1} if terms.exponents else {}
    exponent = exponent_of(total)
    halves = abs(total) * Fraction(2) ** (d.fraction_bits + 1 - max(exponent, d.min_exponent))
    found: dict[str, int | None] = {"cancelled": max(terms.exponents) - exponent}
    if halves.denominator != 1 or halves % 2:
        found["inexact"] = 1
    if halves.denominator == 1 and halves % 2:
        found["tie"] = 1
    if exponent < d.min_exponent:
        found["subnormal sum"] = 1
    if exponent > d.max_exponent:
        found["large sum"] = 1
    return found


def _terms(formats: Sequence[Format], row: Codes, block: int) -> _Terms | None:
    """The terms of a row; None if one of its codes is no number."""
    sides = [(formats[0], row.a), (formats[1], row.b), (formats[2], (row.c,))]
    if block:
        sides += [(formats[4], row.scale_a), (formats[4], row.scale_b)]
    if not all(fmt.is_finite(code) for fmt, codes in sides for code in codes):
        return None
    a, b, (c,), *scales = ([fmt.value(code) for code in codes] for fmt, codes in sides)
    products = [x * y for x, y in zip(a, b, strict=True)]
    if block:
        products = [x * scales[0][i // block] * scales[1][i // block] for i, x in enumerate(products)]
    return _Terms(tuple(x for x in products if x), c)
