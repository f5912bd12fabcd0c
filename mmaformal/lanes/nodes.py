"""Lanes and flags: what they hold, what they were made of, and what a flag says of the lanes that it compares."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

import z3
from numpy.typing import NDArray

from mmaformal.lanes.places import place_of, running_frames
from mmaformal.lanes.ranges import INTEGERS, OPPOSITE, LaneError, Range, fit, lies_in

if TYPE_CHECKING:
    from mmaformal.lanes.tracer import Tracer

Sample: TypeAlias = "NDArray[Any]"
LaneOrFlag: TypeAlias = "SymbolicLane | SymbolicFlag"
LaneRanges: TypeAlias = "dict[SymbolicLane, Range]"


class SymbolicFlag:
    """The result of comparing lanes: a Bool, what it was made of, and its value where the ranges decide it."""

    __slots__ = ("op", "operands", "sample", "term", "tracer", "value")

    def __init__(
        self, tracer: Tracer, op: str, operands: tuple[LaneOrFlag, ...], term: z3.BoolRef, sample: Sample,
        value: bool | None = None,
    ) -> None:  # fmt: skip
        self.tracer, self.op, self.operands, self.sample, self.value = tracer, op, operands, sample, value
        self.term = term if value is None else z3.BoolVal(value)

    def _combine(self, op: str, other: SymbolicFlag | bool) -> SymbolicFlag:
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
                return SymbolicFlag(self.tracer, "not", (unknown,), z3.Not(unknown.term), ~unknown.sample)
        term = {"&": z3.And, "|": z3.Or, "^": z3.Xor}[op](self.term, other.term)
        sample = INTEGERS[op](self.sample, other.sample)
        return SymbolicFlag(self.tracer, op, (self, other), term, sample)

    def __and__(self, other: SymbolicFlag | bool) -> SymbolicFlag:
        return self._combine("&", other)

    def __or__(self, other: SymbolicFlag | bool) -> SymbolicFlag:
        return self._combine("|", other)

    def __xor__(self, other: SymbolicFlag | bool) -> SymbolicFlag:
        return self._combine("^", other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        raise LaneError(f"{place_of(running_frames())}: flags are not compared: use `^`")

    def __bool__(self) -> bool:
        raise LaneError(
            f"{place_of(running_frames())}: a symbolic flag is neither true nor false: use `where`"
        )

    def select(self, x: SymbolicLane | int, y: SymbolicLane | int) -> SymbolicLane:
        """x where the flag is true, else y."""
        if self.value is not None:
            return self.tracer.lift(x if self.value else y)
        return self.tracer.select(self, self.tracer.lift(x), self.tracer.lift(y))

    def facts(self, value: bool) -> LaneRanges:
        """Return what is known of lanes where the flag has this value."""
        if self.op == "not":
            return self.operands[0].facts(not value)  # type: ignore[union-attr]
        if (self.op, value) in (("&", True), ("|", False)):
            both = [flag.facts(value) for flag in self.operands]  # type: ignore[union-attr]
            return _meet_facts(*both)
        if self.op in OPPOSITE:
            x, y = self.operands
            assert isinstance(x, SymbolicLane)
            assert isinstance(y, SymbolicLane)
            facts = facts_of_order(self.op if value else OPPOSITE[self.op], x, y)
            return facts | _before_shift(facts)
        return {}


def _meet_facts(x: LaneRanges, y: LaneRanges) -> LaneRanges:
    return {**x, **y, **{lane: x[lane].meet(y[lane]) for lane in x.keys() & y.keys()}}


def _before_shift(facts: LaneRanges) -> LaneRanges:
    """Return what the range of `x >> n`, n constant, says of x."""
    out = {}
    for lane, range_ in facts.items():
        whole = whole_of(lane)
        if whole is not None:
            n = lane.operands[1].range.low  # type: ignore[union-attr]
            out[whole] = Range(range_.low << n, ((range_.high + 1) << n) - 1).meet(whole.range)
    return out


def whole_of(node: LaneOrFlag) -> SymbolicLane | None:
    """x, if the node is `x >> n` of a constant n."""
    if node.op == ">>" and node.operands[1].op == "constant":
        x = node.operands[0]
        assert isinstance(x, SymbolicLane)
        return x
    return None


def facts_of_order(op: str, x: SymbolicLane, y: SymbolicLane) -> LaneRanges:
    """The ranges of x and y where `x op y`."""
    if op in (">", ">="):
        return facts_of_order({">": "<", ">=": "<="}[op], y, x)
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


class SymbolicLane:
    """An integer of known range; see the module.  Made by `Tracer.input` and by operations."""

    __slots__ = ("beneath", "frames", "op", "operands", "range", "sample", "term", "tracer")

    def __init__(
        self, tracer: Tracer, op: str, operands: tuple[LaneOrFlag, ...], range_: Range, term: z3.BitVecRef,
        sample: Sample, beneath: frozenset[SymbolicLane] = frozenset(), frames: tuple[FrameType, ...] = (),
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
        """Return the claim that the term lies in the range, as far as its width does not say so."""
        return lies_in(self.term, self.range, self.range.signed)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise LaneError(f"{place_of(running_frames())}: a symbolic lane has no truth value: use `where`")

    def __neg__(self) -> SymbolicLane:
        return self.tracer.binary("-", self.tracer.lift(0), self)


def _operator(
    op: str,
) -> tuple[
    Callable[[SymbolicLane, SymbolicLane | int], SymbolicLane],
    Callable[[SymbolicLane, SymbolicLane | int], SymbolicLane],
]:
    def forward(self: SymbolicLane, other: SymbolicLane | int) -> SymbolicLane:
        return self.tracer.binary(op, self, self.tracer.lift(other))

    def backward(self: SymbolicLane, other: SymbolicLane | int) -> SymbolicLane:
        return self.tracer.binary(op, self.tracer.lift(other), self)

    return forward, backward


def _comparison(op: str) -> Callable[[SymbolicLane, SymbolicLane | int], SymbolicFlag]:
    def compare(self: SymbolicLane, other: SymbolicLane | int) -> SymbolicFlag:
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


def _in_place(self: LaneOrFlag, other: object) -> LaneOrFlag:
    raise LaneError(
        f"{place_of(running_frames())}: an array would be changed under its other names too: write `x = x + y`"
    )


for _op, _name in _NAMES.items():
    _forward, _backward = _operator(_op)
    setattr(SymbolicLane, f"__{_name}__", _forward)
    setattr(SymbolicLane, f"__r{_name}__", _backward)
    setattr(SymbolicLane, f"__i{_name}__", _in_place)
    setattr(SymbolicFlag, f"__i{_name}__", _in_place)
for _op, _name in _ORDERS.items():
    setattr(SymbolicLane, f"__{_name}__", _comparison(_op))
