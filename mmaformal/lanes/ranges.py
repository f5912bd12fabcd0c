"""Ranges of integers, those of what operations give, and the operations on 64 bits and on integers as terms."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

import z3

BITS = 64


class LaneError(ArithmeticError):
    """An operation of the executable encoding may leave 64 bits, or shift by an amount outside 0 … 63."""


class Range(NamedTuple):
    """The integers low … high."""

    low: int
    high: int

    @property
    def signed(self) -> bool:
        return self.low < 0

    @property
    def bits(self) -> int:
        """The bits of the narrowest bit-vector that holds them: unsigned, or two's complement if any is negative."""
        if self.signed:
            return max((-self.low - 1).bit_length(), self.high.bit_length()) + 1
        return max(1, self.high.bit_length())

    def __str__(self) -> str:
        return f"{power_text(self.low)} … {power_text(self.high)}"

    def inside(self, other: Range) -> bool:
        return other.low <= self.low and self.high <= other.high

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))


INT64 = Range(-(1 << (BITS - 1)), (1 << (BITS - 1)) - 1)
AMOUNTS = Range(0, BITS - 1)


def power_text(x: int) -> str:
    """Large powers of two and their neighbours as such."""
    for offset, tail in ((0, ""), (1, " - 1"), (-1, " + 1")):
        power = abs(x) + offset
        if power >= 1 << 12 and power & (power - 1) == 0:
            text = f"2^{power.bit_length() - 1}{tail}"
            return text if x > 0 else f"-{text}" if not tail else f"-({text})"
    return str(x)


# ---- operations: interval, narrow term, 64-bit term ----------------------------------------------------------


def fit(term: z3.BitVecRef, signed: bool, bits: int) -> z3.BitVecRef:
    """Return the number, or its residue, in `bits` bits."""
    have = term.size()
    if bits > have:
        return z3.SignExt(bits - have, term) if signed else z3.ZeroExt(bits - have, term)
    return z3.Extract(bits - 1, 0, term) if bits < have else term


def _corners(f: Callable[[int, int], int], x: Range, y: Range) -> Range:
    values = [f(u, v) for u in x for v in y]
    return Range(min(values), max(values))


def _amounts(n: Range) -> Range:
    return n.meet(AMOUNTS) if n.inside(AMOUNTS) else AMOUNTS


def _shift_left(x: Range, n: Range) -> Range:
    return _corners(lambda u, v: u << v, x, _amounts(n))


def _shift_right(x: Range, n: Range) -> Range:
    return _corners(lambda u, v: u >> v, x, _amounts(n))


def _bitwise(x: Range, y: Range) -> Range:
    """Return the range of | and ^: all of the bits that either has."""
    bits = max(x.high.bit_length(), y.high.bit_length(), (~x.low).bit_length(), (~y.low).bit_length())
    if x.signed or y.signed:
        return Range(-(1 << bits), (1 << bits) - 1)
    return Range(0, (1 << max(x.high.bit_length(), y.high.bit_length())) - 1)


def _and(x: Range, y: Range) -> Range:
    if x.signed and y.signed:
        return _bitwise(x, y)
    return Range(0, min(r.high for r in (x, y) if not r.signed))


INTERVALS: dict[str, Callable[[Range, Range], Range]] = {
    "+": lambda x, y: Range(x.low + y.low, x.high + y.high),
    "-": lambda x, y: Range(x.low - y.high, x.high - y.low),
    "*": lambda x, y: _corners(lambda u, v: u * v, x, y),
    "<<": _shift_left,
    ">>": _shift_right,
    "&": _and,
    "|": _bitwise,
    "^": _bitwise,
}

INTEGERS = {  # of samples too
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def comparison(op: str, x: z3.BitVecRef, y: z3.BitVecRef, signed: bool) -> z3.BoolRef:
    if not signed and op in _UNSIGNED:
        return _UNSIGNED[op](x, y)
    return INTEGERS[op](x, y)


_UNSIGNED: dict[str, Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]] = {
    "<": z3.ULT,
    "<=": z3.ULE,
    ">": z3.UGT,
    ">=": z3.UGE,
}


def no_wrap(op: str, x: z3.BitVecRef, y: z3.BitVecRef, z: z3.BitVecRef) -> list[z3.BoolRef]:
    """Return claims that the 64-bit z is the integer `x op y`, not a residue of it."""
    if op == "<<":
        return [z >> y == x]
    if op not in ("+", "-", "*"):
        return []  # nothing else wraps
    more = BITS if op == "*" else 1
    return [INTEGERS[op](z3.SignExt(more, x), z3.SignExt(more, y)) == z3.SignExt(more, z)]


def lies_in(term: z3.BitVecRef, range_: Range, signed: bool) -> z3.BoolRef:
    bits, claims = term.size(), []
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if range_.low > least:
        claims.append(comparison(">=", term, z3.BitVecVal(range_.low, bits), signed))
    if range_.high < most:
        claims.append(comparison("<=", term, z3.BitVecVal(range_.high, bits), signed))
    return z3.And(claims)
