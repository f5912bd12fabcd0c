"""Designs with registers as logic: pipelines folded, and designs with feedback unrolled from reset.

A pipeline without feedback gives, once inputs have gone through it, what its logic gives: each register is what goes
into it.  How many registers each input goes through is its latency.  In a design with feedback all cycles are written
out; what registers hold before is undefined, a constant of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import z3

from mmaformal.display import ShortRepr
from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.rebuild import Reaches, Rebuilt, constants_in, is_value
from mmaformal.hardware.registers import Cut, Registers

#: Names of registers in a message.
_NAMED = 3


@dataclass(repr=False)
class Sequential(ShortRepr):
    """A design as it is read: its logic, with registers as inputs, and what goes into them as outputs."""

    logic: Module
    registers: Registers = field(default_factory=Registers)

    def __post_init__(self) -> None:
        cuts = self.registers.cuts
        inside = {cut.q for cut in cuts} | {port for cut in cuts for port in cut.inputs.values()}
        self.inputs = {name: x for name, x in self.logic.inputs.items() if name not in inside}
        self.outputs = {name: x for name, x in self.logic.outputs.items() if name not in inside}


@dataclass(frozen=True, repr=False)
class Folded(ShortRepr):
    """A pipeline as logic."""

    module: Module
    latency: Mapping[
        str, tuple[int, ...]
    ]  #: of each constant in the outputs asked for, the registers it goes through


def fold_registers(design: Sequential, values: Mapping[str, z3.BitVecRef], outputs: Sequence[str]) -> Folded:
    """The logic that a pipeline is, with values of its inputs.

    Raises HardwareError for registers that feed back to themselves, and for a reset that is active or no constant.
    """
    folder = _Folder(design, values)
    folder.settle(outputs)
    return folder.folded(outputs)


class _Folder:
    def __init__(self, design: Sequential, values: Mapping[str, z3.BitVecRef]) -> None:
        self.design, self.logic = design, design.logic
        self.undefined = {str(x): x for x in self.logic.undefined.values()}
        self.values: dict[str, z3.ExprRef] = dict(values)  #: of inputs, and of registers that are one number
        self.cuts = {cut.q: cut for cut in design.registers.cuts}
        self.settled: dict[
            str, z3.BitVecRef
        ] = {}  #: what goes into registers; in it, other settled registers

    def needed(self, terms: Iterable[z3.ExprRef]) -> list[str]:
        """Registers in some terms that are not settled yet."""
        return [name for name in constants_in(terms) if name in self.cuts and name not in self.settled]

    def settle(self, outputs: Sequence[str]) -> None:
        """Find what goes into each register that the outputs depend on."""
        while True:
            build = Rebuilt(self.values)
            waiting = self.needed(build(self.logic.outputs[name]) for name in outputs)
            if not waiting:
                return
            stuck: dict[str, list[str]] = {}
            progress = False
            while waiting:
                name = waiting.pop()
                if name in self.settled or name in stuck:
                    continue
                goes_in = next_of(self.logic, self.cuts[name], build)
                missing = self.needed([goes_in])
                if missing:
                    stuck[name] = missing
                    waiting += missing
                    continue
                self.settled[name] = goes_in
                progress = True
                if is_value(goes_in):
                    self.values[name] = goes_in
            if not progress:
                raise HardwareError(self._feedback(stuck))

    def _feedback(self, stuck: Mapping[str, Sequence[str]]) -> str:
        loop = _loop(stuck)
        names = [self.cuts[name].name for name in loop]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        through = f" (through {', '.join(names[1 : 1 + _NAMED])}{more})" if len(names) > 1 else ""
        return (
            f"the register {names[0]} feeds back to itself{through}: tie the enables and handshakes of a pipeline with "
            f"--tie, or unroll the design from reset with --cycles N"
        )

    def folded(self, outputs: Sequence[str]) -> Folded:
        """The outputs, and the wires, without registers."""
        kept = Rebuilt(self.values)
        first = {name: kept(self.logic.outputs[name]) for name in outputs}
        latency = self._latency(first)
        shared = self._shared([*self.settled.values(), *first.values()])
        whole: dict[str, z3.ExprRef] = {}  #: of registers alone: other constants may be called as inputs are
        build, undefined = Rebuilt(whole), dict(self.logic.undefined)
        for name, term in self.settled.items():
            term = build(term)
            again = [u for u in constants_in([term]) if u in shared]
            whole[name] = _renamed(term, again, f"in {self.cuts[name].name}", self.undefined, undefined)
        waits = Reaches(self.cuts.keys() - self.settled.keys())
        wires = {
            name: build(term)
            for name, term in ((name, kept(term)) for name, term in self.logic.wires.items())
            if not waits(term)
        }
        found = {name: build(term) for name, term in first.items()}
        used = constants_in([*found.values(), *wires.values()])
        undefined = {key: x for key, x in undefined.items() if str(x) in used}
        return Folded(Module(self.logic.name, self.design.inputs, found, wires, undefined), latency)

    def _latency(self, outputs: Mapping[str, z3.BitVecRef]) -> dict[str, tuple[int, ...]]:
        through: dict[str, dict[str, set[int]]] = {}
        for name, term in self.settled.items():
            through[name] = _after(constants_in([term]), through, 1)
        found = _after(constants_in(outputs.values()), through, 0)
        return {
            name: tuple(sorted(each))
            for name, each in found.items()
            if name not in self.cuts and name not in self.undefined
        }

    def _shared(self, terms: Iterable[z3.ExprRef]) -> set[str]:
        """Return the undefined bits used before more than one register, which may be other things in each cycle."""
        seen: dict[str, int] = {}
        for term in terms:
            for name in constants_in([term]):
                seen[name] = seen.get(name, 0) + (name in self.undefined)
        return {name for name, count in seen.items() if count > 1}


def _after(
    names: Iterable[str], through: Mapping[str, Mapping[str, set[int]]], more: int
) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for name in names:
        for leaf, counts in through.get(name, {name: {0}}).items():
            found.setdefault(leaf, set()).update(count + more for count in counts)
    return found


def _loop(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """Registers that need each other in a circle."""
    path = [next(iter(needs))]
    while True:
        after = next(name for name in needs[path[-1]] if name in needs)
        if after in path:
            return path[path.index(after) :]
        path.append(after)


def _renamed(
    term: z3.BitVecRef,
    again: Sequence[str],
    when: str,
    known: Mapping[str, z3.BitVecRef],
    undefined: dict[str, z3.BitVecRef],
) -> z3.BitVecRef:
    """A term with undefined constants of its own, which are added to those that there are."""
    pairs = []
    for name in again:
        key = f"{name} {when}"
        undefined[key] = z3.BitVec(key, known[name].size())
        pairs.append((known[name], undefined[key]))
    return z3.substitute(term, *pairs) if pairs else term


def next_of(logic: Module, cut: Cut, build: Rebuilt, *, resets: bool = False) -> z3.BitVecRef:
    """Return what a register holds after a clock edge.

    Raises HardwareError for a reset that is no constant, and, but with `resets`, for one that is active.
    """
    terms = {each: build(logic.outputs[port]) for each, port in cut.inputs.items()}
    q = build(logic.inputs[cut.q])
    value = terms["D"]
    gate = terms.get("GATE")
    enable = [terms["EN"] == cut.active["EN"]] if "EN" in terms else []
    if "SRST" in terms and cut.kind != "$sdffce":
        value = _either(enable, value, q)
        enable = []
    if "SRST" in terms:
        held = z3.BitVecVal(cut.value, cut.bits)
        value = _either([terms["SRST"] == cut.active["SRST"]], held, value)
    value = _either(enable, value, q)
    if gate is not None:
        value = _either([gate == (1 << gate.size()) - 1], value, q)
    asynchronous = _reset_of(logic, cut, build, resets)
    return value if asynchronous is None else asynchronous


def _reset_of(logic: Module, cut: Cut, build: Rebuilt, resets: bool) -> z3.BitVecRef | None:
    """Return what an asynchronous reset that is active makes of a register; None without one."""
    for name in ("ARST", "ALOAD"):
        if name not in cut.inputs:
            continue
        control = build(logic.outputs[cut.inputs[name]])
        if not is_value(control):
            among = [each for each in constants_in([control]) if each not in ("", cut.q)]
            raise HardwareError(
                f"the reset of {cut.name} is no constant (it depends on {', '.join(among[:_NAMED])}): tie it with "
                f"--tie"
            )
        if control.as_long() != cut.active[name]:
            continue
        if not resets:
            raise HardwareError(f"{cut.name} is held in reset: tie the reset to the other value with --tie")
        return (
            build(logic.outputs[cut.inputs["AD"]]) if name == "ALOAD" else z3.BitVecVal(cut.value, cut.bits)
        )
    return None


def _either(when: Sequence[z3.BoolRef], then: z3.BitVecRef, other: z3.BitVecRef) -> z3.BitVecRef:
    for each in when:
        flag = z3.simplify(each) if all(map(is_value, each.children())) else each
        if is_value(flag):
            return then if z3.is_true(flag) else other
        return then if then.eq(other) else z3.If(flag, then, other)
    return then


def unroll(
    design: Sequential, cycles: Sequence[Mapping[str, z3.BitVecRef]], outputs: Sequence[str]
) -> Module:
    """The outputs in the last of some cycles, of which `cycles` has the values of the inputs, the first being reset.

    What registers hold before the first is undefined.
    """
    logic, undefined = design.logic, dict[str, z3.BitVecRef]()
    known = {str(x): x for x in logic.undefined.values()}
    state: dict[str, z3.ExprRef] = {}
    for cut in design.registers.cuts:
        key = f"{cut.name} " if f"{cut.name} " not in undefined else f"{cut.name} ({cut.q}) "
        state[cut.q] = undefined[key] = z3.BitVec(f"{key}before the first cycle", cut.bits)
    for number, values in enumerate(cycles):
        fresh = {name: z3.BitVec(f"{name} in cycle {number}", x.size()) for name, x in known.items()}
        state = _seen(design, {**values, **state, **fresh})
        build = Rebuilt({**values, **state, **fresh})
        undefined |= {str(x): x for x in fresh.values()}
        if number < len(cycles) - 1:
            state = {cut.q: next_of(logic, cut, build, resets=True) for cut in design.registers.cuts}
    found = {name: build(logic.outputs[name]) for name in outputs}
    wires = {name: build(x) for name, x in logic.wires.items() if isinstance(x, z3.BitVecRef)}
    used = constants_in([*found.values(), *wires.values()])
    undefined = {key: x for key, x in undefined.items() if str(x) in used}
    return Module(logic.name, design.inputs, found, wires, undefined)


def _seen(design: Sequential, values: Mapping[str, z3.ExprRef]) -> dict[str, z3.ExprRef]:
    """Return the value of each register as it is seen in a cycle: asynchronous resets act at once."""
    build, seen = Rebuilt(values), {}
    for cut in design.registers.cuts:
        reset = _reset_of(design.logic, cut, build, True)
        seen[cut.q] = values[cut.q] if reset is None else reset
    return seen
