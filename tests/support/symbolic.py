"""Lanes of any width as terms, on which functions of lanes run; and claims about them, put to Bitwuzla."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import z3
from bitwuzla import Bitwuzla, Options, Parser, Result, TermManager


class Flag:
    """A truth: a comparison gives it."""

    def __init__(self, term: z3.BoolRef) -> None:
        self.term = term

    def __and__(self, other: Flag) -> Flag:
        return Flag(z3.And(self.term, other.term))

    def __or__(self, other: Flag) -> Flag:
        return Flag(z3.Or(self.term, other.term))

    def __xor__(self, other: Flag | bool) -> Flag:
        return Flag(z3.Xor(self.term, z3.BoolVal(other) if isinstance(other, bool) else other.term))

    def select(self, x: Any, y: Any) -> Any:
        if isinstance(x, Flag):
            return Flag(z3.If(self.term, x.term, y.term))
        lane = next((each for each in (x, y) if isinstance(each, Lane)), Lane(z3.BitVecVal(0, 64)))
        return Lane(z3.If(self.term, lane.of(x), lane.of(y)))


class Lane:
    """A lane of as many bits as its term, which wraps; comparisons are of signed numbers."""

    def __init__(self, term: z3.BitVecRef) -> None:
        self.term = term

    def of(self, x: Lane | int) -> z3.BitVecRef:
        return x.term if isinstance(x, Lane) else z3.BitVecVal(x, self.term.size())

    def __neg__(self) -> Lane:
        return Lane(-self.term)

    def logical(self, n: Lane) -> Lane:
        return Lane(z3.LShR(self.term, self.of(n)))

    def leading_zeros(self) -> Lane:
        bits = self.term.size()
        count = z3.BitVecVal(bits, bits)
        for place in range(bits):
            count = z3.If(z3.Extract(place, place, self.term) == 1, self.of(bits - 1 - place), count)
        return Lane(count)


def _operator(op: Callable[[Any, Any], Any], kind: type) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def left(self: Lane, other: Lane | int) -> Any:
        return kind(op(self.term, self.of(other)))

    def right(self: Lane, other: int) -> Any:
        return kind(op(self.of(other), self.term))

    return left, right


for _name in ("add", "sub", "mul", "and", "or", "xor", "lshift", "rshift"):
    _op = getattr(operator, f"{_name}_" if _name in ("and", "or") else _name)
    _left, _right = _operator(_op, Lane)
    setattr(Lane, f"__{_name}__", _left)
    setattr(Lane, f"__r{_name}__", _right)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Lane, f"__{_name}__", _operator(getattr(operator, _name), Flag)[0])


def holds(claim: z3.BoolRef) -> bool:
    """Whether a claim is valid."""
    solver = z3.Solver()
    solver.add(z3.Not(claim))
    parser = Parser(TermManager(), Options())
    parser.parse(f"(set-logic QF_BVFP)\n{solver.to_smt2()}".replace("(check-sat)", ""), True, False)
    asked: Bitwuzla = parser.bitwuzla()
    return asked.check_sat() == Result.UNSAT
