"""A unit as a black box: terms go in as numbers, results come out, and every answer is a row that can be shown.

A *place* is where a term enters: 0 … K−1 are the products, K is c.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import ShortRepr
from mmaformal.formats import Format, exponent_of, hex_float
from mmaformal.solver.deadline import check_time
from mmaformal.spaces.common import Types

#: A unit that is probed: codes of a and b of shape (n, K) and of c, (n,), give codes of d, (n,).
ProbedUnit: TypeAlias = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], NDArray[Any]]

#: Divisors up to this are tried.
_DIVISORS = 1 << 12

#: Numbers at places; the rest is +0.
Terms: TypeAlias = Mapping[int, Fraction]


@dataclass(frozen=True, repr=False)
class Response(ShortRepr):
    """One answer of the unit, as codes."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    c: int
    d: int

    def text(self, types: Types) -> str:
        """`a[0]·b[0] = 0x1p+0·0x1p+0, c = -0x1p-24 → 0x1p+0`; products of two zero codes are left out."""
        products = (
            f"a[{k}]·b[{k}] = {types.a.text(x)}·{types.b.text(y)}"
            for k, (x, y) in enumerate(zip(self.a, self.b, strict=True))
            if x or y
        )
        return f"{', '.join([*products, f'c = {types.c.text(self.c)}'])} → {types.d.text(self.d)}"

    def to_json(self) -> dict[str, object]:
        """Plain values."""
        sides = {"a": [hex(x) for x in self.a], "b": [hex(x) for x in self.b]}
        return {**sides, "c": hex(self.c), "d": hex(self.d)}


@dataclass(repr=False)
class Box(ShortRepr):
    """A unit with its types and K, and how many rows it was asked."""

    unit: ProbedUnit
    types: Types
    k: int
    asked: int = field(default=0, init=False)

    @property
    def c(self) -> int:
        """The place of c."""
        return self.k

    @property
    def products(self) -> range:
        """The places of the products."""
        return range(self.k)

    def run(self, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[np.uint64]:
        """The answers to many rows of codes.

        Raises ValueError where the unit's answer is not one code of d for each row, TypeError where it is no array of
        unsigned integers.
        """
        check_time()
        t = self.types
        d = np.asarray(self.unit(a.astype(t.a.word), b.astype(t.b.word), c.astype(t.c.word)))
        if d.dtype.kind != "u":
            raise TypeError(f"dot_add gives {d.dtype}; bit patterns of {t.d} are unsigned ({t.d.word})")
        if d.shape != c.shape:
            raise ValueError(f"dot_add gives an array of shape {d.shape} for {c.shape[0]} rows")
        if d.size and int(d.max()) >= t.d.codes:
            raise ValueError(f"dot_add gives {int(d.max()):#x}, which is no code of {t.d}")
        self.asked += len(c)
        return d.astype(np.uint64)

    def ask_codes(self, cases: Iterable[tuple[Mapping[int, tuple[int, int]], int]]) -> list[Response]:
        """The answers to cases: codes of a and b at some places, and a code of c."""
        listed = list(cases)
        a, b = (np.zeros((len(listed), self.k), np.uint64) for _ in range(2))
        c = np.zeros(len(listed), np.uint64)
        for row, (factors, addend) in enumerate(listed):
            c[row] = addend
            for place, (x, y) in factors.items():
                a[row, place], b[row, place] = x, y
        d = self.run(a, b, c) if listed else c
        return [
            Response(tuple(x), tuple(y), z, w)
            for x, y, z, w in zip(a.tolist(), b.tolist(), c.tolist(), d.tolist(), strict=True)
        ]

    def ask(self, cases: Sequence[Terms]) -> list[Response]:
        """The answers to terms, all of which `can_hold`."""
        return self.ask_codes(map(self.codes, cases))

    def can_hold(self, terms: Terms) -> bool:
        """Whether every term is a product of two codes, or a code of c."""
        return all(self.holds(place, value) for place, value in terms.items())

    def holds(self, place: int, value: Fraction) -> bool:
        """Whether a place can hold a number."""
        if place == self.c:
            return exact_code(self.types.c, value) is not None
        return factors_of(self.types.a, self.types.b, value) is not None

    def codes(self, terms: Terms) -> tuple[dict[int, tuple[int, int]], int]:
        """Codes of terms that it `can_hold`: of factors, by place, and of c."""
        factors = {}
        for place, value in terms.items():
            if place != self.c:
                found = factors_of(self.types.a, self.types.b, value)
                assert found is not None
                factors[place] = found
        addend = exact_code(self.types.c, terms.get(self.c, Fraction(0)))
        assert addend is not None
        return factors, addend

    def number(self, row: Response) -> Fraction | None:
        """The result as a number; None if it is none."""
        fmt = self.types.d
        return fmt.value(row.d) if fmt.is_finite(row.d) else None

    # ---- ranges ------------------------------------------------------------------------------------------

    @property
    def largest_product(self) -> int:
        """The exponent of the largest power of two that is a product."""
        return self.types.a.max_exponent + self.types.b.max_exponent

    @property
    def least_product(self) -> int:
        """The exponent of the smallest power of two that is a product of normal numbers."""
        return self.types.a.min_exponent + self.types.b.min_exponent

    @property
    def least_result(self) -> int:
        """The exponent of the smallest number of d."""
        return self.types.d.min_exponent - self.types.d.fraction_bits


def power(exponent: int) -> Fraction:
    """2^exponent."""
    return Fraction(2) ** exponent


@lru_cache(maxsize=1 << 16)
def exact_code(fmt: Format, value: Fraction) -> int | None:
    """The code of a number; None if the format does not have it."""
    if value == 0:
        return 0
    exponent = max(exponent_of(value), fmt.min_exponent)
    significand = abs(value) / power(exponent - fmt.fraction_bits)
    if exponent > fmt.max_exponent or significand.denominator != 1:
        return None
    normal = significand >= 1 << fmt.fraction_bits
    field_ = exponent + fmt.bias if normal else 0
    fraction = int(significand) & ((1 << fmt.fraction_bits) - 1)
    code = (field_ << fmt.fraction_bits | fraction) << fmt.ignored_low_bits
    code |= fmt.sign_mask if value < 0 else 0
    return code if fmt.is_finite(code) and fmt.value(code) == value else None


@lru_cache(maxsize=1 << 16)
def factors_of(a: Format, b: Format, value: Fraction) -> tuple[int, int] | None:
    """Codes whose product is a number, both normal if that can be, their exponents far from the ends; None if none."""
    if value == 0:
        return 0, 0
    odd = _odd(value)
    low, high = a.min_exponent - a.fraction_bits, a.max_exponent
    spare = None
    for factor in _factors(odd, 2 << a.fraction_bits, 2 << b.fraction_bits):
        width = factor.bit_length() - 1
        middle = (exponent_of(value) + a.bias - b.bias) // 2  # as far from the ends of a as of those of b
        for exponent in sorted(range(low, high + 1), key=lambda e: abs(e - middle)):
            x = Fraction(factor) * power(exponent - width)
            first, second = exact_code(a, x), exact_code(b, value / x)
            if first is None or second is None:
                continue
            if a.fields(first)[1] and b.fields(second)[1]:
                return first, second
            spare = spare or (first, second)
    return spare


def divides(a: Format, b: Format, value: Fraction) -> bool:
    """Whether two significands have the product of a number's, if exponents are no matter."""
    return value == 0 or bool(_factors(_odd(value), 2 << a.fraction_bits, 2 << b.fraction_bits))


def _odd(value: Fraction) -> int:
    n = abs(value.numerator)
    return n // (n & -n)


@lru_cache(maxsize=1 << 12)
def _factors(odd: int, most: int, other: int) -> list[int]:
    """Divisors of an odd number below `most`, whose quotients are below `other`; not all of them of a large number."""
    if odd >= most * other:
        return []
    small = [x for x in range(1, min(odd, _DIVISORS) + 1, 2) if odd % x == 0]
    found = sorted({*small, *(odd // x for x in small)})
    return [x for x in found if x < most and odd // x < other]


def dyadic_text(value: Fraction) -> str:
    """`2^-24`, `-2^3`, or the number in hexadecimal."""
    exponent = exponent_of(value) if value else 0
    if value and abs(value) == power(exponent):
        return f"{'−' if value < 0 else ''}2^{exponent}".replace("^-", "^−")
    return hex_float(value)
