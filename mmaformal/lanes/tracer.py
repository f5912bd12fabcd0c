"""Tracing: lanes are made here, each with a range and a rule for the operation that it is of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import FrameType, MappingProxyType
from typing import Final

import numpy as np
import z3

from mmaformal.lanes.nodes import (
    LaneOrFlag,
    LaneRanges,
    Sample,
    SymbolicFlag,
    SymbolicLane,
    facts_of_order,
    whole_of,
)
from mmaformal.lanes.places import place_of, running_frames
from mmaformal.lanes.ranges import (
    AMOUNTS,
    BITS,
    INT64,
    INTEGERS,
    INTERVALS,
    OPPOSITE,
    LaneError,
    Range,
    comparison,
    fit,
    no_wrap,
    power_text,
)
from mmaformal.lanes.rules import LaneRule, claim_of_node, entries_of, ranges_of


class Tracer:
    """Makes lanes, and collects the rules of the operations on them, each once.

    A tracer that is not `strict` traces what wraps, too, as 64-bit hardware computes it: there are no rules then, but
    `violations`, conditions under which an operation wraps or a shift amount is outside 0 … 63.
    """

    def __init__(self, strict: bool = True) -> None:
        self.strict: Final = strict
        self._rules: dict[tuple[object, ...], LaneRule] = {}
        self.violations: list[z3.BoolRef] = []
        self._made: dict[SymbolicLane, tuple[Range, z3.BitVecRef]] = {}

    @property
    def rules(self) -> Mapping[tuple[object, ...], LaneRule]:
        """The obligations about operations.  Nothing can be taken out of it: the ranges of lanes rest on them all."""
        return MappingProxyType(self._rules)

    @property
    def made(self) -> tuple[SymbolicLane, ...]:
        """All lanes that a strict tracer made."""
        return tuple(self._made)

    def _lane(
        self,
        op: str,
        operands: tuple[LaneOrFlag, ...],
        range_: Range,
        term: z3.BitVecRef,
        sample: Sample,
        beneath: frozenset[SymbolicLane] = frozenset(),
        frames: tuple[FrameType, ...] = (),
    ) -> SymbolicLane:
        """A lane that this tracer made, and knows that it did."""
        lane = SymbolicLane(self, op, operands, range_, term, sample, beneath, frames)
        if self.strict:
            self._made[lane] = lane.range, lane.term
        return lane

    def _has_made(self, lane: SymbolicLane) -> bool:
        range_, term = self._made.get(lane, (None, None))
        return range_ == lane.range and term is lane.term

    def input(self, term: z3.BitVecRef, sample: Sample) -> SymbolicLane:
        """A lane that holds a code: unsigned, or the signed 64-bit number; the sample are values that it takes.

        Raises LaneError for a term of more than 64 bits.
        """
        if term.size() > BITS:
            raise LaneError(f"{term} has {term.size()} bits: a lane has {BITS}")
        range_ = INT64 if term.size() == BITS else Range(0, (1 << term.size()) - 1)
        return self._lane("input", (), range_, term, sample)

    def lift(self, x: SymbolicLane | int, frames: Sequence[FrameType] = ()) -> SymbolicLane:
        if isinstance(x, SymbolicLane):
            self.own(x)
            return x
        if type(x) is not int:  # a float, say, which NumPy would compute with
            raise LaneError(f"{place_of(frames or running_frames())}: {x!r} is no integer")
        range_ = Range(x, x)
        if not range_.inside(INT64):
            raise LaneError(f"{place_of(frames)}: {power_text(x)} is outside 64 bits")
        term = z3.BitVecVal(range_.low, range_.bits)
        return self._lane("constant", (), range_, term, np.array(range_.low, np.int64))

    def own(self, *nodes: LaneOrFlag) -> None:
        """Raises LaneError for a lane or flag of another tracer, and a lane of a range that no tracer gave: its rules
        are not here."""
        for node in nodes:
            if node.tracer is not self:
                raise LaneError(f"{place_of(running_frames())}: lanes of two tracers in one operation")
            if self.strict and isinstance(node, SymbolicLane) and not self._has_made(node):
                raise LaneError(
                    f"{place_of(running_frames())}: a lane that its tracer did not make, or another range"
                )

    def flag(self, value: bool) -> SymbolicFlag:
        return SymbolicFlag(self, "constant", (), z3.BoolVal(value), np.array(value), value)

    def binary(self, op: str, x: SymbolicLane, y: SymbolicLane) -> SymbolicLane:
        self.own(x, y)
        frames = running_frames()
        if op in ("<<", ">>") and not y.range.inside(AMOUNTS):
            violation = z3.Or(y.fit(BITS) < 0, y.fit(BITS) > BITS - 1)
            self._violated(f"a shift by {y.range}, outside 0 … 63", violation, frames)
        elif x.op == y.op == "constant":
            return self.lift(INTEGERS[op](x.range.low, y.range.low), frames)
        out = INTERVALS[op](x.range, y.range)
        leaves: Sequence[LaneOrFlag] = (x, y)
        order: tuple[SymbolicLane, SymbolicLane] | None = None
        if op == "<<" and x.op == ">>" and x.operands[1] is y:
            whole = x.operands[0]
            assert isinstance(whole, SymbolicLane)
            if not whole.range.signed:
                out, leaves = Range(0, whole.range.high), (whole, y)
        elif op == "-" and _kept_part_of(x, y) is not None:
            n = _kept_part_of(x, y)
            assert n is not None
            out, leaves = Range(0, min(x.range.high, (1 << n.range.high) - 1)), (x, n)
        elif op == "-" and y in x.beneath:
            out, order = Range(max(out.low, 0), out.high), (y, x)
        with np.errstate(all="ignore"):
            sample = INTEGERS[op](x.sample, y.sample)
        if not out.inside(INT64):
            if self.strict and frames:
                out, leaves = _guess(out, sample, _crossing(op, x)), _leaves((x, y), frames[0])
            else:
                message = f"x {op} y may leave 64 bits: it is in {out}, for x in {x.range}, y in {y.range}"
                result = INTEGERS[op](x.fit(BITS), y.fit(BITS))
                exact = no_wrap(op, x.fit(BITS), y.fit(BITS), result)
                self._violated(message, z3.Not(z3.And(exact)), frames)
                out = INT64
        term = z3.BitVecVal(out.low, out.bits) if out.low == out.high else narrow_result(op, x, y, out)
        lane = self._lane(op, (x, y), out, term, sample, frames=frames)
        self._rule(lane, leaves, order, frames)
        return lane

    def _violated(self, message: str, condition: z3.BoolRef, frames: Sequence[FrameType]) -> None:
        if self.strict:
            raise LaneError(f"{place_of(frames)}: {message}")
        self.violations.append(condition)

    def select(self, flag: SymbolicFlag, x: SymbolicLane, y: SymbolicLane) -> SymbolicLane:
        self.own(flag, x, y)
        frames = running_frames()
        if x is y:
            return x
        ranges, leaves, used = [], [], False
        for lane, facts in ((x, flag.facts(True)), (y, flag.facts(False))):
            refined, below = _refine(lane, facts)
            ranges.append(refined)
            leaves += below
            used |= refined != lane.range
        out = ranges[0].union(ranges[1])
        beneath = frozenset[SymbolicLane]()
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
            leaves = [leaf for leaf in leaves if id(whole_of(leaf)) not in given]
        else:
            leaves = [flag, x, y]
        self._rule(lane, leaves, None, frames, maximum)
        return lane

    def compare(self, op: str, x: SymbolicLane, y: SymbolicLane) -> SymbolicFlag:
        self.own(x, y)
        if x is y:
            return self.flag(op in ("<=", ">=", "=="))
        facts = [facts_of_order(o, x, y) for o in (op, OPPOSITE[op])]
        possible = [all(r.low <= r.high for r in f.values()) for f in facts]
        value = None if all(possible) else possible[0]
        sample = INTEGERS[op](x.sample, y.sample)
        if x.op == y.op == "constant":
            return self.flag(INTEGERS[op](x.range.low, y.range.low))
        signed = x.range.signed or y.range.signed
        bits = max(z.term.size() + (signed and not z.range.signed) for z in (x, y))
        flag = SymbolicFlag(self, op, (x, y), comparison(op, x.fit(bits), y.fit(bits), signed), sample, value)
        self._rule(flag, (x, y), None, running_frames())
        return flag

    def _rule(
        self,
        node: LaneOrFlag,
        leaves: Iterable[LaneOrFlag],
        order: tuple[SymbolicLane, SymbolicLane] | None,
        frames: tuple[FrameType, ...],
        maximum: bool = False,
    ) -> None:
        if not self.strict:
            return
        entries, order_of = entries_of(node, leaves)
        range_ = node.range if isinstance(node, SymbolicLane) else node.value
        key = (tuple(entries), ranges_of(order_of), range_, order is not None, maximum)
        if key not in self._rules:
            statement, claim = claim_of_node(node, entries, order_of, order, maximum)
            shifts = [
                entry
                for entry in entries
                if entry.op in ("<<", ">>") and entries[entry.operands[1]].op != "constant"
            ]
            self._rules[key] = LaneRule(statement, claim, place_of(frames), len(shifts) > 1)


def _crossing(op: str, x: SymbolicLane) -> int:
    """The bits of a limb (`encodings/executable/limbs`), where what a shift leaves out is put on top of the next one,
    which samples of narrow formats may not fill; 0 elsewhere."""
    parts = x.operands if op == "<<" and x.op == "-" else ()
    left = len(parts) == 2 and all(isinstance(each, SymbolicLane) for each in parts)
    return 56 if left and _kept_part_of(*parts) is not None else 0  # type: ignore[arg-type]


def _guess(out: Range, sample: Sample, least: int) -> Range:
    """The range that a sample suggests, up to powers of two."""
    low, high = int(sample.min()), int(sample.max())
    bits = max(high.bit_length(), (~low).bit_length(), least)
    return Range(-(1 << bits) if out.signed and low < 0 else 0, (1 << bits) - 1)


def _are(nodes: Sequence[LaneOrFlag], *others: LaneOrFlag) -> bool:
    return len(nodes) == len(others) and all(x is y for x, y in zip(nodes, others, strict=True))


def _kept_part_of(x: SymbolicLane, y: SymbolicLane) -> SymbolicLane | None:
    """n, if y is `(x >> n) << n`, of an x ≥ 0."""
    if y.op != "<<" or x.range.signed:
        return None
    kept, n = y.operands
    if (
        isinstance(n, SymbolicLane)
        and isinstance(kept, SymbolicLane)
        and kept.op == ">>"
        and _are(kept.operands, x, n)
    ):
        return n
    return None


def _refine(lane: SymbolicLane, facts: LaneRanges, depth: int = 3) -> tuple[Range, list[LaneOrFlag]]:
    """The range of a lane under what is known of others; and what it is then to be told in terms of.

    Sums and differences are looked into `depth` operations deep.
    """
    better: Range = lane.range
    below: list[LaneOrFlag] = [lane]
    if lane in facts:
        better = facts[lane].meet(lane.range)
    elif lane.op in INTERVALS:
        depth = depth - 1 if lane.op in ("+", "-") else 0
        operands = [x for x in lane.operands if isinstance(x, SymbolicLane)]
        parts = [_refine(x, facts, depth) if depth or x in facts else (x.range, [x]) for x in operands]
        x, y = (range_ for range_, _ in parts)
        if lane.op not in ("<<", ">>") or y.inside(AMOUNTS):
            better = INTERVALS[lane.op](x, y).meet(lane.range)
            below = [leaf for _, leaves in parts for leaf in leaves]
    if better == lane.range or better.low > better.high:  # no news, or a branch that is never taken
        return lane.range, [lane]
    return better, [*below]


def _lanes_of(flag: SymbolicFlag) -> list[LaneOrFlag]:
    """Return what a flag compares; or the flag itself where facts cannot be had of it."""
    if flag.op in ("&", "|", "not"):
        return [lane for part in flag.operands for lane in _lanes_of(part)]  # type: ignore[arg-type]
    if flag.op not in OPPOSITE:
        return [flag]
    wholes = [whole_of(lane) for lane in flag.operands]
    return [whole if whole is not None else x for whole, x in zip(wholes, flag.operands, strict=True)]


def _leaves(nodes: Iterable[LaneOrFlag], frame: FrameType) -> list[LaneOrFlag]:
    """Return what came into a call: the nodes not computed in it from which the given ones were."""
    out: list[LaneOrFlag] = []
    seen: set[int] = set()
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, SymbolicLane) and frame not in node.frames:
            out.append(node)
        else:
            stack.extend(node.operands)
    return out


def narrow_result(op: str, x: SymbolicLane, y: SymbolicLane, out: Range) -> z3.BitVecRef:
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
    return INTEGERS[op](x.fit(out.bits), y.fit(out.bits))
