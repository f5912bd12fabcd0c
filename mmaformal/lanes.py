"""Symbolic 64-bit lanes, on which the executable encoding is traced: the very functions that run, as terms.

A lane is an integer with a known range, held as a bit-vector just wide enough for that range, so that the terms of
a trace are no wider than its numbers.  Every operation does two things:

- it computes the range of its result, and with it a narrow term;
- it leaves a *rule*, to be proved: for all operands in their ranges, the operation on 64-bit two's complement does
  not wrap, its result lies in the range computed, and the narrow term is that result.

With its rules proved, a trace says what the 64-bit lanes of NumPy compute, and what Python's integers do: they agree
where nothing wraps.  No range is taken on trust, however it was found; so the ways of finding one may be clever:

- intervals, of the operands alone;
- `where`: a branch counts only for the values for which it is taken, as in `where(x < 0, -x, x)`;
- `(x >> n) << n` lies between 0 and x, and what it leaves out, `x - ((x >> n) << n)`, does too;
- a maximum is not below what it was taken of, so that `e_max - e` is no negative shift amount;
- where all that leaves a wrap possible, the range is guessed from samples that run along with the trace, and the
  rule tells the whole function that the operation stands in, in terms of what came into it.

Where no range within 64 bits, or no shift amount within 0 … 63, is found, a `LaneError` says where.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import z3
from numpy.typing import NDArray

BITS = 64
_TRACED = "executable"  # the folder, and the file of each algorithm, whose functions are traced


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
        """Of the narrowest bit-vector that holds them: unsigned, or two's complement if any is negative."""
        if self.signed:
            return max((-self.low - 1).bit_length(), self.high.bit_length()) + 1
        return max(1, self.high.bit_length())

    def __str__(self) -> str:
        return f"{_power_text(self.low)} … {_power_text(self.high)}"

    def inside(self, other: Range) -> bool:
        return other.low <= self.low and self.high <= other.high

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    def meet(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))


INT64 = Range(-(1 << (BITS - 1)), (1 << (BITS - 1)) - 1)
_AMOUNTS = Range(0, BITS - 1)


def _power_text(x: int) -> str:
    """Large powers of two and their neighbours as such."""
    for offset, tail in ((0, ""), (1, " - 1"), (-1, " + 1")):
        power = abs(x) + offset
        if power >= 1 << 12 and power & (power - 1) == 0:
            text = f"2^{power.bit_length() - 1}{tail}"
            return text if x > 0 else f"-{text}" if not tail else f"-({text})"
    return str(x)


# ---- operations: interval, narrow term, 64-bit term ----------------------------------------------------------


def fit(term: z3.BitVecRef, signed: bool, bits: int) -> z3.BitVecRef:
    """The same number, or its residue, in `bits` bits."""
    have = term.size()
    if bits > have:
        return z3.SignExt(bits - have, term) if signed else z3.ZeroExt(bits - have, term)
    return z3.Extract(bits - 1, 0, term) if bits < have else term


def _corners(f: Callable[[int, int], int], x: Range, y: Range) -> Range:
    values = [f(u, v) for u in x for v in y]
    return Range(min(values), max(values))


def _amounts(n: Range) -> Range:
    return n.meet(_AMOUNTS) if n.inside(_AMOUNTS) else _AMOUNTS


def _shift_left(x: Range, n: Range) -> Range:
    return _corners(lambda u, v: u << v, x, _amounts(n))


def _shift_right(x: Range, n: Range) -> Range:
    return _corners(lambda u, v: u >> v, x, _amounts(n))


def _bitwise(x: Range, y: Range) -> Range:
    """Of | and ^: all of the bits that either has."""
    bits = max(x.high.bit_length(), y.high.bit_length(), (~x.low).bit_length(), (~y.low).bit_length())
    if x.signed or y.signed:
        return Range(-(1 << bits), (1 << bits) - 1)
    return Range(0, (1 << max(x.high.bit_length(), y.high.bit_length())) - 1)


def _and(x: Range, y: Range) -> Range:
    if x.signed and y.signed:
        return _bitwise(x, y)
    return Range(0, min(r.high for r in (x, y) if not r.signed))


_INTERVALS: dict[str, Callable[[Range, Range], Range]] = {
    "+": lambda x, y: Range(x.low + y.low, x.high + y.high),
    "-": lambda x, y: Range(x.low - y.high, x.high - y.low),
    "*": lambda x, y: _corners(lambda u, v: u * v, x, y),
    "<<": _shift_left,
    ">>": _shift_right,
    "&": _and,
    "|": _bitwise,
    "^": _bitwise,
}

_INTEGERS = {  # of samples too
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

_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}


def _narrow(op: str, x: Lane, y: Lane, out: Range) -> z3.BitVecRef:
    """The result as a term of `out.bits` bits; all of these but >> are right modulo any power of two."""
    if op == ">>":
        if y.range.low == y.range.high:
            n = min(y.range.low, x.term.size() - 1 + (not x.range.signed))
            if n == x.term.size():
                return z3.BitVecVal(0, out.bits)
            return fit(z3.Extract(x.term.size() - 1, n, x.term), x.range.signed, out.bits)
        bits = max(x.term.size(), y.term.size())
        wide, amount = x.fit(bits), y.fit(bits)
        return fit(wide >> amount if x.range.signed else z3.LShR(wide, amount), x.range.signed, out.bits)
    if op == "<<":
        if y.range.low == y.range.high:
            n = y.range.low
            if n >= out.bits:
                return z3.BitVecVal(0, out.bits)
            return z3.Concat(x.fit(out.bits - n), z3.BitVecVal(0, n)) if n else x.fit(out.bits)
        bits = max(out.bits, y.term.size())
        return fit(x.fit(bits) << y.fit(bits), False, out.bits)
    return _INTEGERS[op](x.fit(out.bits), y.fit(out.bits))


def _compare(op: str, x: z3.BitVecRef, y: z3.BitVecRef, signed: bool) -> z3.BoolRef:
    if not signed and op in _UNSIGNED:
        return _UNSIGNED[op](x, y)
    return _INTEGERS[op](x, y)


_UNSIGNED: dict[str, Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]] = {
    "<": z3.ULT,
    "<=": z3.ULE,
    ">": z3.UGT,
    ">=": z3.UGE,
}


def _exact(op: str, x: z3.BitVecRef, y: z3.BitVecRef, z: z3.BitVecRef) -> list[z3.BoolRef]:
    """That the 64-bit z is the integer `x op y`, not a residue of it."""
    if op == "<<":
        return [z >> y == x]
    if op not in ("+", "-", "*"):
        return []  # nothing else wraps
    more = BITS if op == "*" else 1
    return [_INTEGERS[op](z3.SignExt(more, x), z3.SignExt(more, y)) == z3.SignExt(more, z)]


# ---- lanes and flags -----------------------------------------------------------------------------------------

Sample: TypeAlias = "NDArray[Any]"
Node: TypeAlias = "Lane | Flag"
Facts: TypeAlias = "dict[Lane, Range]"


class Flag:
    """What comparing lanes gives: a Bool, what it was made of, and its value where the ranges decide it."""

    __slots__ = ("op", "operands", "sample", "term", "tracer", "value")

    def __init__(
        self, tracer: Tracer, op: str, operands: tuple[Node, ...], term: z3.BoolRef, sample: Sample,
        value: bool | None = None,
    ) -> None:  # fmt: skip
        self.tracer, self.op, self.operands, self.sample, self.value = tracer, op, operands, sample, value
        self.term = term if value is None else z3.BoolVal(value)

    def _combine(self, op: str, other: Flag | bool) -> Flag:
        if isinstance(other, bool):
            other = self.tracer.flag(other)
        self.tracer.own(other)
        for known, unknown in ((self, other), (other, self)):
            if known.value is not None:
                if op == "&":
                    return unknown if known.value else known
                if op == "|":
                    return known if known.value else unknown
                if not known.value:
                    return unknown
                if unknown.value is not None:
                    return self.tracer.flag(not unknown.value)
                return Flag(self.tracer, "not", (unknown,), z3.Not(unknown.term), ~unknown.sample)
        term = {"&": z3.And, "|": z3.Or, "^": z3.Xor}[op](self.term, other.term)
        sample = _INTEGERS[op](self.sample, other.sample)
        return Flag(self.tracer, op, (self, other), term, sample)

    def __and__(self, other: Flag | bool) -> Flag:
        return self._combine("&", other)

    def __or__(self, other: Flag | bool) -> Flag:
        return self._combine("|", other)

    def __xor__(self, other: Flag | bool) -> Flag:
        return self._combine("^", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        raise LaneError(f"{_place(_frames())}: flags are not compared: use `^`")

    def __bool__(self) -> bool:
        raise LaneError(f"{_place(_frames())}: a symbolic flag is neither true nor false: use `where`")

    def select(self, x: Lane | int, y: Lane | int) -> Lane:
        """x where the flag is true, else y."""
        if self.value is not None:
            return self.tracer.lift(x if self.value else y)
        return self.tracer.select(self, self.tracer.lift(x), self.tracer.lift(y))

    def facts(self, value: bool) -> Facts:
        """What is known of lanes where the flag has this value."""
        if self.op == "not":
            return self.operands[0].facts(not value)  # type: ignore[union-attr]
        if (self.op, value) in (("&", True), ("|", False)):
            both = [flag.facts(value) for flag in self.operands]  # type: ignore[union-attr]
            return _meet_facts(*both)
        if self.op in _OPPOSITE:
            x, y = self.operands
            assert isinstance(x, Lane)
            assert isinstance(y, Lane)
            facts = _order_facts(self.op if value else _OPPOSITE[self.op], x, y)
            return facts | _before_shift(facts)
        return {}


def _meet_facts(x: Facts, y: Facts) -> Facts:
    return {**x, **y, **{lane: x[lane].meet(y[lane]) for lane in x.keys() & y.keys()}}


def _before_shift(facts: Facts) -> Facts:
    """What the range of `x >> n`, n constant, says of x."""
    out = {}
    for lane, range_ in facts.items():
        whole = _shifted(lane)
        if whole is not None:
            n = lane.operands[1].range.low  # type: ignore[union-attr]
            out[whole] = Range(range_.low << n, ((range_.high + 1) << n) - 1).meet(whole.range)
    return out


def _shifted(node: Node) -> Lane | None:
    """x, if the node is `x >> n` of a constant n."""
    if node.op == ">>" and node.operands[1].op == "constant":
        x = node.operands[0]
        assert isinstance(x, Lane)
        return x
    return None


def _order_facts(op: str, x: Lane, y: Lane) -> Facts:
    """The ranges of x and y where `x op y`."""
    if op in (">", ">="):
        return _order_facts({">": "<", ">=": "<="}[op], y, x)
    (a, b), (c, d) = x.range, y.range
    if op in ("<", "<="):
        gap = 1 if op == "<" else 0
        return {x: Range(a, min(b, d - gap)), y: Range(max(c, a + gap), d)}
    if op == "==":
        return {x: x.range.meet(y.range), y: x.range.meet(y.range)}
    out = {}
    for lane, other in ((x, y), (y, x)):
        low, high = lane.range
        if other.range.low == other.range.high:
            low, high = low + (low == other.range.low), high - (high == other.range.low)
        out[lane] = Range(low, high)
    return out


class Lane:
    """An integer of known range; see the module.  Made by `Tracer.input` and by operations."""

    __slots__ = ("beneath", "frames", "op", "operands", "range", "sample", "term", "tracer")

    def __init__(
        self, tracer: Tracer, op: str, operands: tuple[Node, ...], range_: Range, term: z3.BitVecRef,
        sample: Sample, beneath: frozenset[Lane] = frozenset(), frames: tuple[FrameType, ...] = (),
    ) -> None:  # fmt: skip
        if term.size() != range_.bits:
            raise LaneError(f"a term of {term.size()} bits for a lane in {range_}")
        self.tracer, self.op, self.operands, self.range = tracer, op, operands, range_
        self.term, self.sample = term, sample
        self.beneath = beneath  #: lanes known not to be above this one
        self.frames = (
            frames  #: the calls of the executable encoding in which it was computed, the innermost first
        )

    def fit(self, bits: int) -> z3.BitVecRef:
        """The number, or its residue, in `bits` bits."""
        return fit(self.term, self.range.signed, bits)

    @property
    def in_range(self) -> z3.BoolRef:
        """That the term lies in the range, as far as its width does not say so."""
        return _within(self.term, self.range, self.range.signed)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise LaneError(f"{_place(_frames())}: a symbolic lane has no truth value: use `where`")

    def __neg__(self) -> Lane:
        return self.tracer.binary("-", self.tracer.lift(0), self)


def _operator(op: str) -> tuple[Callable[[Lane, Lane | int], Lane], Callable[[Lane, Lane | int], Lane]]:
    def forward(self: Lane, other: Lane | int) -> Lane:
        return self.tracer.binary(op, self, self.tracer.lift(other))

    def backward(self: Lane, other: Lane | int) -> Lane:
        return self.tracer.binary(op, self.tracer.lift(other), self)

    return forward, backward


def _comparison(op: str) -> Callable[[Lane, Lane | int], Flag]:
    def compare(self: Lane, other: Lane | int) -> Flag:
        return self.tracer.compare(op, self, self.tracer.lift(other))

    return compare


_NAMES = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "<<": "lshift",
    ">>": "rshift",
    "&": "and",
    "|": "or",
    "^": "xor",
}
_ORDERS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def _in_place(self: Node, other: object) -> Node:
    raise LaneError(
        f"{_place(_frames())}: an array would be changed under its other names too: write `x = x + y`"
    )


for _op, _name in _NAMES.items():
    _forward, _backward = _operator(_op)
    setattr(Lane, f"__{_name}__", _forward)
    setattr(Lane, f"__r{_name}__", _backward)
    setattr(Lane, f"__i{_name}__", _in_place)
    setattr(Flag, f"__i{_name}__", _in_place)
for _op, _name in _ORDERS.items():
    setattr(Lane, f"__{_name}__", _comparison(_op))


def _within(term: z3.BitVecRef, range_: Range, signed: bool) -> z3.BoolRef:
    bits, claims = term.size(), []
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if range_.low > least:
        claims.append(_compare(">=", term, z3.BitVecVal(range_.low, bits), signed))
    if range_.high < most:
        claims.append(_compare("<=", term, z3.BitVecVal(range_.high, bits), signed))
    return z3.And(claims)


# ---- tracing -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """What is to be proved of an operation, for all operands in their ranges."""

    statement: str
    claim: z3.BoolRef
    where: str  #: file, line and function of its first use
    hard: bool  #: whether it tells of several shifts by variable amounts


class Tracer:
    """Makes lanes, and collects the rules of the operations on them, each once.

    A tracer that is not `strict` traces what wraps, too, as 64-bit hardware computes it: there are no rules then, but
    `violations`, conditions under which an operation wraps or a shift amount is outside 0 … 63.
    """

    def __init__(self, strict: bool = True) -> None:
        self.strict: Final = strict
        self._rules: dict[tuple[object, ...], Rule] = {}
        self.violations: list[z3.BoolRef] = []
        self._made: dict[Lane, tuple[Range, z3.BitVecRef]] = {}

    @property
    def rules(self) -> Mapping[tuple[object, ...], Rule]:
        """What is to be proved of the operations.  Nothing can be taken out of it: ranges of lanes rest on them all."""
        return MappingProxyType(self._rules)

    def _lane(
        self,
        op: str,
        operands: tuple[Node, ...],
        range_: Range,
        term: z3.BitVecRef,
        sample: Sample,
        beneath: frozenset[Lane] = frozenset(),
        frames: tuple[FrameType, ...] = (),
    ) -> Lane:
        """A lane that this tracer made, and knows that it did."""
        lane = Lane(self, op, operands, range_, term, sample, beneath, frames)
        if self.strict:
            self._made[lane] = lane.range, lane.term
        return lane

    def _has_made(self, lane: Lane) -> bool:
        range_, term = self._made.get(lane, (None, None))
        return range_ == lane.range and term is lane.term

    def input(self, term: z3.BitVecRef, sample: Sample) -> Lane:
        """A lane that holds a code: unsigned, or the signed 64-bit number; the sample are values that it takes.

        Raises LaneError for a term of more than 64 bits.
        """
        if term.size() > BITS:
            raise LaneError(f"{term} has {term.size()} bits: a lane has {BITS}")
        range_ = INT64 if term.size() == BITS else Range(0, (1 << term.size()) - 1)
        return self._lane("input", (), range_, term, sample)

    def lift(self, x: Lane | int, frames: Sequence[FrameType] = ()) -> Lane:
        if isinstance(x, Lane):
            self.own(x)
            return x
        if type(x) is not int:  # a float, say, which NumPy would compute with
            raise LaneError(f"{_place(frames or _frames())}: {x!r} is no integer")
        range_ = Range(x, x)
        if not range_.inside(INT64):
            raise LaneError(f"{_place(frames)}: {_power_text(x)} is outside 64 bits")
        term = z3.BitVecVal(range_.low, range_.bits)
        return self._lane("constant", (), range_, term, np.array(range_.low, np.int64))

    def own(self, *nodes: Node) -> None:
        """Raises LaneError for a lane or flag of another tracer, and a lane of a range that no tracer gave: its rules
        are not here."""
        for node in nodes:
            if node.tracer is not self:
                raise LaneError(f"{_place(_frames())}: lanes of two tracers in one operation")
            if self.strict and isinstance(node, Lane) and not self._has_made(node):
                raise LaneError(f"{_place(_frames())}: a lane that its tracer did not make, or another range")

    def flag(self, value: bool) -> Flag:
        return Flag(self, "constant", (), z3.BoolVal(value), np.array(value), value)

    def binary(self, op: str, x: Lane, y: Lane) -> Lane:
        self.own(x, y)
        frames = _frames()
        if op in ("<<", ">>") and not y.range.inside(_AMOUNTS):
            violation = z3.Or(y.fit(BITS) < 0, y.fit(BITS) > BITS - 1)
            self._violated(f"a shift by {y.range}, outside 0 … 63", violation, frames)
        elif x.op == y.op == "constant":
            return self.lift(_INTEGERS[op](x.range.low, y.range.low), frames)
        out = _INTERVALS[op](x.range, y.range)
        leaves: Sequence[Node] = (x, y)
        order: tuple[Lane, Lane] | None = None
        if op == "<<" and x.op == ">>" and x.operands[1] is y:
            whole = x.operands[0]
            assert isinstance(whole, Lane)
            if not whole.range.signed:
                out, leaves = Range(0, whole.range.high), (whole, y)
        elif op == "-" and _kept_part_of(x, y) is not None:
            n = _kept_part_of(x, y)
            assert n is not None
            out, leaves = Range(0, min(x.range.high, (1 << n.range.high) - 1)), (x, n)
        elif op == "-" and y in x.beneath:
            out, order = Range(max(out.low, 0), out.high), (y, x)
        with np.errstate(all="ignore"):
            sample = _INTEGERS[op](x.sample, y.sample)
        if not out.inside(INT64):
            if self.strict and frames:
                out, leaves = _guess(out, sample), _leaves((x, y), frames[0])
            else:
                message = f"x {op} y may leave 64 bits: it is in {out}, for x in {x.range}, y in {y.range}"
                result = _INTEGERS[op](x.fit(BITS), y.fit(BITS))
                exact = _exact(op, x.fit(BITS), y.fit(BITS), result)
                self._violated(message, z3.Not(z3.And(exact)), frames)
                out = INT64
        term = z3.BitVecVal(out.low, out.bits) if out.low == out.high else _narrow(op, x, y, out)
        lane = self._lane(op, (x, y), out, term, sample, frames=frames)
        self._rule(lane, leaves, order, frames)
        return lane

    def _violated(self, message: str, condition: z3.BoolRef, frames: Sequence[FrameType]) -> None:
        if self.strict:
            raise LaneError(f"{_place(frames)}: {message}")
        self.violations.append(condition)

    def select(self, flag: Flag, x: Lane, y: Lane) -> Lane:
        self.own(flag, x, y)
        frames = _frames()
        if x is y:
            return x
        ranges, leaves, used = [], [], False
        for lane, facts in ((x, flag.facts(True)), (y, flag.facts(False))):
            refined, below = _refine(lane, facts)
            ranges.append(refined)
            leaves += below
            used |= refined != lane.range
        out = ranges[0].union(ranges[1])
        beneath = frozenset[Lane]()
        maximum = _are(flag.operands, x, y) and flag.op in (">", ">=")
        maximum |= _are(flag.operands, y, x) and flag.op in ("<", "<=")
        if maximum:
            beneath = x.beneath | y.beneath | {x, y}
        term = z3.If(flag.term, x.fit(out.bits), y.fit(out.bits))
        if out.low == out.high:
            term = z3.BitVecVal(out.low, out.bits)
        sample = np.where(flag.sample, x.sample, y.sample)
        lane = self._lane("select", (flag, x, y), out, term, sample, beneath, frames)
        if used or maximum:
            leaves = [*leaves, *_lanes_of(flag)]
            given = {id(leaf) for leaf in leaves}
            leaves = [leaf for leaf in leaves if id(_shifted(leaf)) not in given]
        else:
            leaves = [flag, x, y]
        self._rule(lane, leaves, None, frames, maximum)
        return lane

    def compare(self, op: str, x: Lane, y: Lane) -> Flag:
        self.own(x, y)
        if x is y:
            return self.flag(op in ("<=", ">=", "=="))
        facts = [_order_facts(o, x, y) for o in (op, _OPPOSITE[op])]
        possible = [all(r.low <= r.high for r in f.values()) for f in facts]
        value = None if all(possible) else possible[0]
        sample = _INTEGERS[op](x.sample, y.sample)
        if x.op == y.op == "constant":
            return self.flag(_INTEGERS[op](x.range.low, y.range.low))
        signed = x.range.signed or y.range.signed
        bits = max(z.term.size() + (signed and not z.range.signed) for z in (x, y))
        flag = Flag(self, op, (x, y), _compare(op, x.fit(bits), y.fit(bits), signed), sample, value)
        self._rule(flag, (x, y), None, _frames())
        return flag

    def _rule(
        self,
        node: Node,
        leaves: Iterable[Node],
        order: tuple[Lane, Lane] | None,
        frames: tuple[FrameType, ...],
        maximum: bool = False,
    ) -> None:
        if not self.strict:
            return
        entries, order_of = _entries(node, leaves)
        range_ = node.range if isinstance(node, Lane) else node.value
        key = (tuple(entries), _ranges(order_of), range_, order is not None, maximum)
        if key not in self._rules:
            statement, claim = _claim(node, entries, order_of, order, maximum)
            shifts = [
                entry
                for entry in entries
                if entry.op in ("<<", ">>") and entries[entry.operands[1]].op != "constant"
            ]
            self._rules[key] = Rule(statement, claim, _place(frames), len(shifts) > 1)


def _guess(out: Range, sample: Sample) -> Range:
    """The range that a sample suggests, up to powers of two."""
    low, high = int(sample.min()), int(sample.max())
    bits = max(high.bit_length(), (~low).bit_length())
    return Range(-(1 << bits) if out.signed and low < 0 else 0, (1 << bits) - 1)


def _are(nodes: Sequence[Node], *others: Node) -> bool:
    return len(nodes) == len(others) and all(x is y for x, y in zip(nodes, others, strict=True))


def _kept_part_of(x: Lane, y: Lane) -> Lane | None:
    """n, if y is `(x >> n) << n`, of an x ≥ 0."""
    if y.op != "<<" or x.range.signed:
        return None
    kept, n = y.operands
    if isinstance(n, Lane) and isinstance(kept, Lane) and kept.op == ">>" and _are(kept.operands, x, n):
        return n
    return None


def _refine(lane: Lane, facts: Facts, depth: int = 3) -> tuple[Range, list[Node]]:
    """The range of a lane under what is known of others; and what it is then to be told in terms of.

    Sums and differences are looked into `depth` operations deep.
    """
    better: Range = lane.range
    below: list[Node] = [lane]
    if lane in facts:
        better = facts[lane].meet(lane.range)
    elif lane.op in _INTERVALS:
        depth = depth - 1 if lane.op in ("+", "-") else 0
        operands = [x for x in lane.operands if isinstance(x, Lane)]
        parts = [_refine(x, facts, depth) if depth or x in facts else (x.range, [x]) for x in operands]
        x, y = (range_ for range_, _ in parts)
        if lane.op not in ("<<", ">>") or y.inside(_AMOUNTS):
            better = _INTERVALS[lane.op](x, y).meet(lane.range)
            below = [leaf for _, leaves in parts for leaf in leaves]
    if better == lane.range or better.low > better.high:  # no news, or a branch that is never taken
        return lane.range, [lane]
    return better, [*below]


def _lanes_of(flag: Flag) -> list[Node]:
    """What a flag compares; or the flag itself where facts cannot be had of it."""
    if flag.op in ("&", "|", "not"):
        return [lane for part in flag.operands for lane in _lanes_of(part)]  # type: ignore[arg-type]
    if flag.op not in _OPPOSITE:
        return [flag]
    wholes = [_shifted(lane) for lane in flag.operands]
    return [whole if whole is not None else x for whole, x in zip(wholes, flag.operands, strict=True)]


def _leaves(nodes: Iterable[Node], frame: FrameType) -> list[Node]:
    """What came into a call: the nodes not computed in it from which the given ones were."""
    out: list[Node] = []
    seen: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Lane) and frame not in node.frames:
            out.append(node)
        else:
            stack.extend(node.operands)
    return out


# ---- rules ---------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """A node among others: its operands by their numbers; of a constant its value, of a leaf its variable's number."""

    op: str
    operands: tuple[int, ...]
    range: Range | None = None  #: of a lane that is a leaf


def _entries(node: Node, leaves: Iterable[Node]) -> tuple[list[Entry], dict[int, Node]]:
    """The node in terms of leaves, as a list in which operands come first and are given by number."""
    stop = {id(leaf) for leaf in leaves}
    entries: list[Entry] = []
    number: dict[int, int] = {}
    made: dict[int, Node] = {}
    first: dict[int, int] = {}

    def visit(x: Node, top: bool = False) -> int:
        if id(x) in number:
            return number[id(x)]
        if isinstance(x, Lane) and x.op == "constant":
            entry = Entry("constant", (x.range.low,))
        elif not top and (id(x) in stop or not x.operands):
            # Leaves of one term are one variable of the rule.
            same = first.setdefault(x.term.get_id(), len(entries))
            entry = Entry("lane", (same,), x.range) if isinstance(x, Lane) else Entry("flag", (same,))
        else:
            entry = Entry(x.op, tuple(visit(y) for y in x.operands))
        number[id(x)] = len(entries)
        made[len(entries)] = x
        entries.append(entry)
        return number[id(x)]

    visit(node, True)
    return entries, made


def _ranges(made: Mapping[int, Node]) -> tuple[Range | None, ...]:
    """The widths of narrow terms depend on those of what they are made of, leaves or not."""
    return tuple(node.range if isinstance(node, Lane) else None for node in made.values())


def _short(text: str) -> str:
    """A shared part is written out as often as it is used, so a long text may be very long."""
    return text if len(text) <= 160 else "(…)"


def _claim(
    node: Node,
    entries: Sequence[Entry],
    made: Mapping[int, Node],
    order: tuple[Lane, Lane] | None,
    maximum: bool,
) -> tuple[str, z3.BoolRef]:
    values: list[z3.ExprRef] = []
    texts: list[str] = []
    premises: list[z3.BoolRef] = []
    bounds: list[str] = []
    fresh: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}
    for i, (op, rest, _) in enumerate(entries):
        x = made[i]
        if op == "constant":
            values.append(z3.BitVecVal(rest[0], BITS))
            texts.append(_power_text(rest[0]))
        elif op in ("lane", "flag"):
            name = f"x{sum(text.startswith('x') for text in texts)}"
            texts.append(name)
            # Rules are proved many at a time, so a variable's name tells its sort.
            bits = f"_{x.range.bits}" if isinstance(x, Lane) else ""
            variable = fresh.setdefault(x.term.get_id(), (x.term, z3.Const(name + bits, x.term.sort())))[1]
            values.append(fit(variable, x.range.signed, BITS) if isinstance(x, Lane) else variable)
            if isinstance(x, Lane):
                premises.append(_within(variable, x.range, x.range.signed))
                bounds.append(f"{name} in {x.range}")
        elif op == "select":
            values.append(z3.If(*(values[j] for j in rest)))
            texts.append(_short("where({}, {}, {})".format(*(texts[j] for j in rest))))
        elif op == "not":
            values.append(z3.Not(values[rest[0]]))
            texts.append(f"not {texts[rest[0]]}")
        else:
            u, v = (values[j] for j in rest)
            if isinstance(u, z3.BoolRef):
                values.append({"&": z3.And, "|": z3.Or, "^": z3.Xor}[op](u, v))
            else:
                values.append(_INTEGERS[op](u, v))
            texts.append(_short(f"({texts[rest[0]]} {op} {texts[rest[1]]})"))
    number = {id(x): i for i, x in made.items()}
    if order is not None:
        small, large = (values[number[id(x)]] for x in order)
        premises.append(small <= large)
        bounds.append(f"{texts[number[id(order[0])]]} ≤ {texts[number[id(order[1])]]}")
    narrow = z3.substitute(node.term, *fresh.values()) if fresh else node.term
    result = values[-1]
    text = texts[-1].removeprefix("(").removesuffix(")") if texts[-1].startswith("(") else texts[-1]
    given = f" for {', '.join(bounds)}" if bounds else ""
    if isinstance(node, Flag):
        said = "is decided as on 64 bits" if node.value is None else f"is {str(node.value).lower()}"
        return f"`{text}` {said}{given}", z3.Implies(z3.And(premises), narrow == result)
    claims = [fit(narrow, node.range.signed, BITS) == result, _within(result, node.range, True)]
    op, rest, _ = entries[-1]
    if op in _INTEGERS:
        claims += _exact(op, values[rest[0]], values[rest[1]], result)
    if maximum:
        claims += [values[j] <= result for j in rest[1:]]
    return (
        f"`{text}` does not wrap, lies in {node.range}, and is the {node.range.bits}-bit result{given}",
        z3.Implies(z3.And(premises), z3.And(claims)),
    )


# ---- places in the executable encoding ---------------------------------------------------------------------------

#: Functions that stand for one operation: what holds of a lane is to be told in terms of their caller.
_HELPERS = ("where", "maximum", "minimum", "clamp", "invert")


def _frames() -> tuple[FrameType, ...]:
    """The calls of the executable encoding that are running, the innermost first, without helpers."""
    frames = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_name not in _HELPERS and _is_traced(code.co_filename):
            frames.append(frame)
        frame = frame.f_back
    return tuple(frames)


_traced: dict[str, bool] = {}


def _is_traced(filename: str) -> bool:
    if filename not in _traced:
        path = Path(filename)
        _traced[filename] = _TRACED in (path.parent.name, path.stem)
    return _traced[filename]


def _place(frames: Sequence[FrameType]) -> str:
    if not frames:
        return "outside the executable encoding"
    frame = frames[0]
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
