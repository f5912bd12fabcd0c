"""Integers of a program: linear forms of bit-vector terms, each with the range that it is known to be in.

A number is held in as few bits as its range needs.  Ranges are interval arithmetic, with three things that it does not
see: what a condition says of a number in the branch where it holds, that a difference to a maximum is not positive, and
what was proved (`facts`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import z3

#: Terms and claims that are known by their numbers: z3 gives the number of one that is gone to another.
KEPT: list[z3.ExprRef] = []
TermT = TypeVar("TermT", bound=z3.ExprRef)


def keep(term: TermT) -> TermT:
    """The term, whose number is its own until the next reading."""
    KEPT.append(term)
    return term


FormKey = tuple[tuple[int, int], ...]  #: of a linear form: ids of its atoms and their factors


@dataclass(frozen=True, eq=False)
class Atom:
    """A bit-vector term as a number."""

    term: z3.BitVecRef
    signed: bool

    def wide(self, bits: int) -> z3.BitVecRef:
        """The number modulo 2^bits."""
        more = bits - self.term.size()
        if more <= 0:
            return z3.Extract(bits - 1, 0, self.term) if more else self.term
        return z3.SignExt(more, self.term) if self.signed else z3.ZeroExt(more, self.term)


@dataclass(frozen=True, eq=False)
class Integer:
    """The integer Σ factor · atom + constant, in low … high."""

    atoms: tuple[tuple[Atom, int], ...]
    constant: int
    least: int
    most: int

    @staticmethod
    def of(value: int) -> Integer:
        return Integer((), int(value), int(value), int(value))

    @staticmethod
    def atom(term: z3.BitVecRef, signed: bool, low: int | None = None, high: int | None = None) -> Integer:
        """A term as a number; the range is what its bits can hold unless a smaller one is known."""
        if z3.is_bv_value(term):
            return Integer.of(term.as_signed_long() if signed else term.as_long())
        bits = term.size()
        least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        least, most = max(least, least if low is None else low), min(most, most if high is None else high)
        return (
            Integer.of(least) if least == most else Integer(((Atom(keep(term), signed), 1),), 0, least, most)
        )

    # ---- what is known ----

    @property
    def key(self) -> FormKey:
        return tuple((x.term.get_id(), factor) for x, factor in self.atoms)

    @property
    def low(self) -> int:
        found = _assumed(self.key, self.constant)[0]
        return self.least if found is None else max(self.least, found)

    @property
    def high(self) -> int:
        found = _assumed(self.key, self.constant)[1]
        return self.most if found is None else min(self.most, found)

    @property
    def value(self) -> int | None:
        """The one number that it is, if it is."""
        return self.low if self.low == self.high else None

    @property
    def bits(self) -> int:
        """Those that two's complement needs for it."""
        return _bits(self.least, self.most)

    def within(self, low: int | None, high: int | None) -> Integer:
        """Returns this number, known to be in a range."""
        least = self.low if low is None else max(self.low, low)
        most = self.high if high is None else min(self.high, high)
        if least > most:  # where this is computed is never reached
            return Integer.of(least)
        return Integer(self.atoms, self.constant, least, most)

    # ---- terms ----

    def term(self, bits: int) -> z3.BitVecRef:
        """The number modulo 2^bits."""
        if not self.atoms or self.least == self.most:
            return z3.BitVecVal((self.constant if not self.atoms else self.least) % (1 << bits), bits)
        total: z3.BitVecRef | None = None
        for x, factor in sorted(self.atoms, key=lambda each: each[1] < 0):
            part = x.wide(bits)
            size = abs(factor)
            if size != 1:
                part = part << size.bit_length() - 1 if size & size - 1 == 0 else part * size
            part = part if factor > 0 or total is not None else -part
            total = part if total is None else total + part if factor > 0 else total - part
        assert total is not None
        return total + z3.BitVecVal(self.constant % (1 << bits), bits) if self.constant else total

    def own(self) -> z3.BitVecRef:
        """The number in two's complement of as few bits as hold it."""
        return self.term(self.bits)

    def unsigned(self) -> z3.BitVecRef:
        """The number, which is not negative, in as few bits as hold it."""
        return self.term(max(1, self.most.bit_length()))

    # ---- arithmetic ----

    def __add__(self, other: Integer | int) -> Integer:
        other = other if not isinstance(other, int) else Integer.of(other)
        factors: dict[int, tuple[Atom, int]] = {x.term.get_id(): (x, f) for x, f in self.atoms}
        for x, factor in other.atoms:
            before = factors.get(x.term.get_id(), (x, 0))[1]
            factors[x.term.get_id()] = (x, before + factor)
        atoms = tuple(each for _, each in sorted(factors.items()) if each[1])
        constant = self.constant + other.constant
        if not atoms:
            return Integer.of(constant)
        low, high = _linear(atoms, constant)
        return Integer(atoms, constant, max(low, self.low + other.low), min(high, self.high + other.high))

    def __neg__(self) -> Integer:
        return self * -1

    def __sub__(self, other: Integer | int) -> Integer:
        other = other if not isinstance(other, int) else Integer.of(other)
        found = self + -other
        least, most = _above(self, other), _above(other, self)
        return found.within(least, None if most is None else -most)

    def __mul__(self, factor: int) -> Integer:
        if not factor:
            return Integer.of(0)
        ends = sorted((self.low * factor, self.high * factor))
        return Integer(tuple((x, f * factor) for x, f in self.atoms), self.constant * factor, *ends)

    def times(self, other: Integer) -> Integer:
        """The product."""
        for x, y in ((self, other), (other, self)):
            if x.value is not None:
                return y * x.value
        ends = [x * y for x in (self.low, self.high) for y in (other.low, other.high)]
        bits = max(_bits(min(ends), max(ends)), 2)
        return Integer.atom(self.term(bits) * other.term(bits), True, min(ends), max(ends))


def _bits(low: int, high: int) -> int:
    return max((x if x >= 0 else ~x).bit_length() for x in (low, high)) + 1


def _linear(atoms: tuple[tuple[Atom, int], ...], constant: int) -> tuple[int, int]:
    """The range that a linear form has by its atoms' bits."""
    low = high = constant
    for x, factor in atoms:
        bits = x.term.size()
        ends = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if x.signed else (0, (1 << bits) - 1)
        both = sorted(factor * end for end in ends)
        low, high = low + both[0], high + both[1]
    return low, high


#: Maxima, by the ids of their terms: linear forms that are not above them, each with the largest
#: constant of which that is known.
MAXIMA: dict[int, tuple[z3.BitVecRef | None, dict[FormKey, int]]] = {}


@dataclass
class _Assumed:
    ranges: dict[FormKey, tuple[int | None, int | None]] = field(default_factory=dict)


_ASSUMED = _Assumed()


def _assumed(key: FormKey, constant: int) -> tuple[int | None, int | None]:
    low, high = _ASSUMED.ranges.get(key, (None, None)) if key else (None, None)
    return None if low is None else low + constant, None if high is None else high + constant


@contextlib.contextmanager
def assumed(ranges: Mapping[FormKey, tuple[int | None, int | None]]) -> Iterator[None]:
    """Let numbers be known to be in ranges while this is open; each of a linear form without its constant."""
    before = _ASSUMED.ranges
    _ASSUMED.ranges = dict(before)
    for key, (low, high) in ranges.items():
        assume(key, low, high)
    try:
        yield
    finally:
        _ASSUMED.ranges = before


def assume(key: FormKey, low: int | None, high: int | None) -> None:
    """Add a range, until the `assumed` that is open ends."""
    least, most = _ASSUMED.ranges.get(key, (None, None))
    low = least if low is None else low if least is None else max(low, least)
    high = most if high is None else high if most is None else min(high, most)
    _ASSUMED.ranges[key] = (low, high)


def larger_whole(x: Integer, y: Integer) -> Integer:
    """The larger of two numbers."""
    if x.low >= y.high or (x.key == y.key and x.constant == y.constant):
        return x
    if y.low >= x.high:
        return y
    least = min(x.low, y.low)
    bits = max(1, (max(x.high, y.high) - least).bit_length())
    bits = max(
        bits, *(each.term.size() for each, _ in (*x.atoms, *y.atoms))
    )  # all bits, whatever is known of them
    u, v = (x - least).term(bits), (y - least).term(bits)  # unsigned, as models compare exponents
    made = Integer.atom(z3.If(z3.UGT(u, v), u, v), False)
    below: dict[FormKey, int] = {}
    for each in (x, y):
        for key, constant in (*_below(each).items(), (each.key, each.constant)):
            below[key] = max(below.get(key, constant - least), constant - least)
    term = made.atoms[0][0].term
    MAXIMA[term.get_id()] = (term, below)
    return (made + least).within(max(x.low, y.low), max(x.high, y.high))


def _above(x: Integer, y: Integer) -> int | None:
    """By how much a maximum is at least above a number, if that is known."""
    if len(x.atoms) != 1 or x.atoms[0][1] != 1:
        return None
    found = MAXIMA.get(x.atoms[0][0].term.get_id(), (None, {}))[1].get(y.key)
    return None if found is None else found + x.constant - y.constant


def _below(x: Integer) -> dict[FormKey, int]:
    """Return the numbers known not to be above a maximum, each with how far below it is at least."""
    if len(x.atoms) != 1 or x.atoms[0][1] != 1:
        return {}
    found = MAXIMA.get(x.atoms[0][0].term.get_id(), (None, {}))[1]
    return {key: constant + x.constant for key, constant in found.items()}


def smaller_whole(x: Integer, y: Integer) -> Integer:
    """The smaller of two numbers."""
    return -larger_whole(-x, -y)
