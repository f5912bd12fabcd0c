"""Rules: what is to be proved of an operation on lanes, in terms of variables of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import z3

from mmaformal.lanes.nodes import LaneOrFlag, SymbolicFlag, SymbolicLane
from mmaformal.lanes.ranges import BITS, INTEGERS, Range, fit, lies_in, no_wrap, power_text


@dataclass(frozen=True)
class LaneRule:
    """An obligation about an operation, to be proved for all operands in their ranges."""

    statement: str
    claim: z3.BoolRef
    where: str  #: file, line and function of its first use
    hard: bool  #: whether it tells of several shifts by variable amounts


class Entry(NamedTuple):
    """A node among others: its operands by their numbers; of a constant its value, of a leaf its variable's number."""

    op: str
    operands: tuple[int, ...]
    range: Range | None = None  #: of a lane that is a leaf


def entries_of(node: LaneOrFlag, leaves: Iterable[LaneOrFlag]) -> tuple[list[Entry], dict[int, LaneOrFlag]]:
    """The node in terms of leaves, as a list in which operands come first and are given by number."""
    stop = {id(leaf) for leaf in leaves}
    entries: list[Entry] = []
    number: dict[int, int] = {}
    made: dict[int, LaneOrFlag] = {}
    first: dict[int, int] = {}

    def visit(x: LaneOrFlag, top: bool = False) -> int:
        if id(x) in number:
            return number[id(x)]
        if isinstance(x, SymbolicLane) and x.op == "constant":
            entry = Entry("constant", (x.range.low,))
        elif not top and (id(x) in stop or not x.operands):
            # Leaves of one term are one variable of the rule.
            same = first.setdefault(x.term.get_id(), len(entries))
            entry = Entry("lane", (same,), x.range) if isinstance(x, SymbolicLane) else Entry("flag", (same,))
        else:
            entry = Entry(x.op, tuple(visit(y) for y in x.operands))
        number[id(x)] = len(entries)
        made[len(entries)] = x
        entries.append(entry)
        return number[id(x)]

    visit(node, True)
    return entries, made


def ranges_of(made: Mapping[int, LaneOrFlag]) -> tuple[Range | None, ...]:
    """The widths of narrow terms depend on those of what they are made of, leaves or not."""
    return tuple(node.range if isinstance(node, SymbolicLane) else None for node in made.values())


def _short(text: str) -> str:
    """A shared part is written out as often as it is used, so a long text may be very long."""
    return text if len(text) <= 160 else "(…)"


@dataclass(frozen=True)
class Written:
    """Entries on 64 bits, as terms and as text, leaves being variables; and what is known of these."""

    values: list[z3.ExprRef] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    premises: list[z3.BoolRef] = field(default_factory=list)
    bounds: list[str] = field(default_factory=list)  #: the premises in words
    fresh: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = field(
        default_factory=dict
    )  #: each leaf, and its variable


def _written(entries: Sequence[Entry], made: Mapping[int, LaneOrFlag]) -> Written:
    written = Written()
    values, texts = written.values, written.texts
    for i, (op, rest, _) in enumerate(entries):
        x = made[i]
        if op == "constant":
            values.append(z3.BitVecVal(rest[0], BITS))
            texts.append(power_text(rest[0]))
        elif op in ("lane", "flag"):
            name = f"x{sum(text.startswith('x') for text in texts)}"
            texts.append(name)
            # Rules are proved many at a time, so a variable's name tells its sort.
            bits = f"_{x.range.bits}" if isinstance(x, SymbolicLane) else ""
            variable = written.fresh.setdefault(
                x.term.get_id(), (x.term, z3.Const(name + bits, x.term.sort()))
            )[1]
            values.append(fit(variable, x.range.signed, BITS) if isinstance(x, SymbolicLane) else variable)
            if isinstance(x, SymbolicLane):
                written.premises.append(lies_in(variable, x.range, x.range.signed))
                written.bounds.append(f"{name} in {x.range}")
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
                values.append(INTEGERS[op](u, v))
            texts.append(_short(f"({texts[rest[0]]} {op} {texts[rest[1]]})"))
    return written


def claim_of_node(
    node: LaneOrFlag,
    entries: Sequence[Entry],
    made: Mapping[int, LaneOrFlag],
    order: tuple[SymbolicLane, SymbolicLane] | None,
    maximum: bool,
) -> tuple[str, z3.BoolRef]:
    """Return what is to be proved of a node, in words and as a claim."""
    written = _written(entries, made)
    values, texts, premises, bounds = written.values, written.texts, written.premises, written.bounds
    number = {id(x): i for i, x in made.items()}
    if order is not None:
        small, large = (values[number[id(x)]] for x in order)
        premises.append(small <= large)
        bounds.append(f"{texts[number[id(order[0])]]} ≤ {texts[number[id(order[1])]]}")
    fresh = written.fresh.values()
    narrow = z3.substitute(node.term, *fresh) if fresh else node.term
    result = values[-1]
    text = texts[-1].removeprefix("(").removesuffix(")") if texts[-1].startswith("(") else texts[-1]
    given = f" for {', '.join(bounds)}" if bounds else ""
    if isinstance(node, SymbolicFlag):
        said = "is decided as on 64 bits" if node.value is None else f"is {str(node.value).lower()}"
        return f"`{text}` {said}{given}", z3.Implies(z3.And(premises), narrow == result)
    claims = [fit(narrow, node.range.signed, BITS) == result, lies_in(result, node.range, True)]
    op, rest, _ = entries[-1]
    if op in INTEGERS:
        claims += no_wrap(op, values[rest[0]], values[rest[1]], result)
    if maximum:
        claims += [values[j] <= result for j in rest[1:]]
    return (
        f"`{text}` does not wrap, lies in {node.range}, and is the {node.range.bits}-bit result{given}",
        z3.Implies(z3.And(premises), z3.And(claims)),
    )
