"""A design as an instruction's d: read, its ports wired to operands, its registers folded or unrolled.

What was done is told in lines: the ports, what is tied, the latency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.checked import Progress
from mmaformal.display import LastingLine, ShortRepr, counted
from mmaformal.hardware.module import HardwareError, Module, with_codes
from mmaformal.hardware.ports import LAYOUTS, Place, PortMap, Tie, Wiring, read_place, wiring
from mmaformal.hardware.read_btor2 import sliced
from mmaformal.hardware.rebuild import constants_in, is_value
from mmaformal.hardware.sequential import Folded, Sequential, fold_registers, unroll
from mmaformal.hardware.sources import Sources
from mmaformal.hardware.undefined import ProgramBehaviour
from mmaformal.hardware.yosys import read_design
from mmaformal.spec import DotAdd

#: Cycles for which a design is held in reset before it is unrolled.
_RESET_CYCLES = 2
_MOST_CYCLES = 1 << 12
#: The modules that read programs, by the suffixes of files: each has a `read_program`, with the arguments of `wired`
#: but `held`.
_READERS = {**dict.fromkeys((".c", ".cc", ".cpp"), "llvm_design"), ".py": "python_design"}


@dataclass(frozen=True, repr=False)
class Driven(ShortRepr):
    """How a design's ports are driven so that d is there: what a testbench does."""

    wiring: Wiring
    inputs: Mapping[str, int]  #: bits of each
    outputs: Mapping[str, int]
    clock: str  #: the input, or a bit of one, that is the clock; empty if there is none
    rising: bool  #: which edge of it counts
    cycles: int  #: cycles after which d is there: the latency, or those after reset
    reset: int  #: cycles of reset before


@dataclass(frozen=True, repr=False)
class Wired(ShortRepr):
    """A design whose one output is d, over the codes of an instruction's operands."""

    module: Module
    told: tuple[
        str, ...
    ]  #: what its ports are, what is tied, and its latency; empty where nothing had to be said
    driven: Driven
    behaviour: ProgramBehaviour | None = None  #: of a program


def wired(
    sources: Sources,
    spec: DotAdd,
    said: PortMap | None = None,
    *,
    held: bool = False,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Wired:
    """Read a design, and wire it to the operands of an instruction, whose codes are those of `symbolic_inputs`.

    said: what is known of its ports, and for how many cycles it is unrolled.  held: whether an operand may go through
    different numbers of registers, since it is held.  progress: is called with the wiring.

    Raises HardwareError for a design that cannot be read, wired or folded.
    """
    said, sources = said or PortMap(), sources.complete()
    if sources.program:
        return _program(sources, spec, said, timeout, progress)
    design = read_design(sources, None, timeout, progress)
    bound, module, cycles, more = _as_operands(design, spec, said, held)
    found, say = bound.wiring, progress or (lambda _: None)
    plain = not found.guessed and not said.ports and not said.ties
    told = [*([] if plain else found.told()), *more]
    for line in told:
        say(LastingLine(line))
    registers = design.registers
    reset = _RESET_CYCLES if found.resets and registers.clock else 0
    inputs, outputs = _widths(design)
    driven = Driven(found, inputs, outputs, registers.clock, registers.rising, cycles, reset)
    return Wired(bound.as_module(module), tuple(told), driven)


def _program(
    sources: Sources, spec: DotAdd, said: PortMap, timeout: float | None, progress: Progress | None
) -> Wired:
    """The function of a program.  Raises HardwareError as `wired` does."""
    if said.cycles is not None:
        raise HardwareError("a function of a program has no cycles: leave out --cycles")
    reader = import_module(f"mmaformal.hardware.programs.{_READERS[sources.files[0].suffix]}")
    found = reader.read_program(sources, spec, said, timeout, progress)
    assert isinstance(found, Wired)
    return found


def _widths(design: Sequential) -> tuple[dict[str, int], dict[str, int]]:
    """The bits of each input and of each output."""
    inputs, outputs = (
        {name: term.size() for name, term in side.items()} for side in (design.inputs, design.outputs)
    )
    return inputs, outputs


def _as_operands(
    design: Sequential, spec: DotAdd, said: PortMap, held: bool
) -> tuple[Bound, Module, int, list[str]]:
    """A design's logic over the operands, the cycles until d is there, and what else is to be told.

    Where operands are guessed to be in one port, the order is the first in which 2·2 + 0 is 4; if there is none, the
    first one of `LAYOUTS`, and it is told.  Raises HardwareError as `wired` does.
    """
    inputs, outputs = _widths(design)
    first: tuple[Bound, Module, int, list[str]] | HardwareError | None = None
    for layout in LAYOUTS:
        found = wiring(spec, inputs, outputs, design.registers.clock, said, layout)
        bound = Bound(design, symbolic_inputs(spec), found)
        try:
            module, cycles, more = bound.logic(said.cycles, held)
        except HardwareError as error:
            if not found.vector:
                raise
            first = first or error
            continue
        others = [name for name in outputs if name != found.result.port]
        more = [*([f"outputs left out: {', '.join(others)}"] if others else []), *more]
        if not found.vector:
            return bound, module, cycles, [*more, *bound.warned(module, spec)]
        if bound.two_by_two(module, spec) == "4":
            names = _operands_in(found)
            return bound, module, cycles, [f"order guessed: {names} {layout}, since then 2·2 + 0 is 4", *more]
        first = first or (bound, module, cycles, more)
    if isinstance(first, HardwareError):
        raise first
    assert first is not None
    bound, module, cycles, more = first
    taken = f"warning: {_operands_in(bound.wiring)} are taken {LAYOUTS[0]}"
    why = "and 2·2 + 0 is 4 in no order: look at what is tied, or say --port a=…"
    return bound, module, cycles, [f"{taken}, {why}", *more]


def _operands_in(found: Wiring) -> str:
    """The operands in the port that has several: `a, b, c in operands_i`."""
    names = dict.fromkeys(part.operand for part in found.parts if part.place.port == found.vector)
    return f"{', '.join(names)} in {found.vector}"


class Bound:
    """The inputs of a design as terms over codes."""

    def __init__(self, design: Sequential, codes: Inputs, found: Wiring) -> None:
        self.design, self.codes, self.wiring = design, codes, found
        self.operands = with_codes(codes)
        self.free: dict[str, z3.BitVecRef] = {}  #: what an input may be anything

    def values(self, cycle: int, reset: bool = False) -> dict[str, z3.BitVecRef]:
        """A term for each input in a cycle after reset, or in reset."""
        at: dict[str, list[tuple[Place, z3.BitVecRef]]] = {}
        for part in self.wiring.parts:
            high, low = part.low + part.bits - 1, part.low
            if part.place.cycle in (None, cycle):
                at.setdefault(part.place.port, []).append(
                    (part.place, sliced(self.operands[part.operand], high, low))
                )
        for tie in (*self.wiring.ties, *self.wiring.resets):
            value = self._tied(tie, cycle, reset and tie in self.wiring.resets)
            at.setdefault(tie.place.port, []).append((tie.place, value))
        if clock := self.design.registers.clock:
            place = read_place(clock)
            level = z3.BitVecVal(
                int(not self.design.registers.rising), 1
            )  # as it is before the edge that counts
            at.setdefault(place.port, []).append((replace(place, high=place.low), level))
        return {
            name: self._whole(name, term.size(), at.get(name, []), cycle) for name, term in self._inputs()
        }

    def _inputs(self) -> list[tuple[str, z3.BitVecRef]]:
        return [*self.design.inputs.items()]

    def _tied(self, tie: Tie, cycle: int, reset: bool) -> z3.BitVecRef:
        bits = tie.place.bits
        if not tie.values:
            return self._any(str(tie.place), bits)
        value = tie.values[min(cycle, len(tie.values) - 1)]
        return z3.BitVecVal(~value if reset else value, bits)

    def _any(self, name: str, bits: int) -> z3.BitVecRef:
        return self.free.setdefault(f"{name} ", z3.BitVec(f"{name} (any)", bits))

    def _whole(
        self, name: str, bits: int, pieces: Sequence[tuple[Place, z3.BitVecRef]], cycle: int
    ) -> z3.BitVecRef:
        """An input put together from what its bits are; others, of the clock and of operands not there yet, are any."""
        found: list[z3.BitVecRef] = []
        low = 0
        for place, term in sorted(pieces, key=lambda each: each[0].low):
            if place.low > low:
                found.append(self._any(f"{name}[{place.low - 1}:{low}] in cycle {cycle}", place.low - low))
            found.append(term)
            low = place.high + 1
        if low < bits:
            found.append(self._any(f"{name}[{bits - 1}:{low}] in cycle {cycle}", bits - low))
        parts = [part for term in reversed(found) for part in _parts(term)]
        return z3.Concat(*parts) if len(parts) > 1 else parts[0]

    def logic(self, cycles: int | None, held: bool) -> tuple[Module, int, list[str]]:
        """The design unrolled for so many cycles, or its pipeline folded; the cycles until d is there, and a line of
        it.

        Raises HardwareError where it cannot be folded, and where an operand is not held and the pipeline not balanced.
        """
        if cycles is not None:
            module = self.unrolled(cycles)
            if not self._depends(module):
                raise HardwareError(
                    f"{counted(cycles, 'cycle')} after reset d depends on no operand yet: more --cycles"
                )
            return module, cycles, [f"d is read {counted(cycles, 'cycle')} after reset"]
        folded = fold_registers(self.design, self.values(0), [self.wiring.result.port])
        latency = max((n for each in folded.latency.values() for n in each), default=0)
        return folded.module, latency, self.latency(folded, held)

    def warned(self, module: Module, spec: DotAdd) -> list[str]:
        """A warning where the design's d of 2·2 + 0 is not 4."""
        four = self.two_by_two(module, spec)
        said = f"warning: d of 2·2 + 0 is {four}: look at the ports and at what is tied"
        return [] if four in ("", "4") else [said]

    def two_by_two(self, module: Module, spec: DotAdd) -> str:
        """The design's d of 2·2 + 0, all other products being of zeros; empty where a format has no such numbers, and
        where it depends on something else.
        """
        place = self.wiring.result
        if (
            spec.d_format.is_integer and not spec.a_format.is_integer
        ):  # no number, but what an operation raises
            return ""
        try:
            codes = {"a0": spec.a_format.code("2"), "b0": spec.b_format.code("2")}
            four = spec.d_format.code("4")
        except ValueError:
            return ""
        d = sliced(module.outputs[place.port], place.high, place.low)
        one = 0 if spec.scale_format is None else spec.scale_format.code("1")
        pairs = []
        for term in self.codes.flat():
            default = one if str(term).startswith("s") else 0
            pairs.append((term, z3.BitVecVal(codes.get(str(term), default), term.size())))
        value = z3.simplify(z3.substitute(d, *pairs))
        if not z3.is_bv_value(value):
            return ""
        return "4" if value.as_long() == four else spec.d_format.text(value.as_long())

    def unrolled(self, cycles: int) -> Module:
        """The logic of so many cycles after reset."""
        if not 1 <= cycles <= _MOST_CYCLES:
            raise HardwareError(f"a design is unrolled for 1 to {_MOST_CYCLES} cycles, not {cycles}")
        reset = [self.values(0, reset=True)] * (_RESET_CYCLES if self.wiring.resets else 0)
        return unroll(
            self.design, [*reset, *(self.values(t) for t in range(cycles + 1))], [self.wiring.result.port]
        )

    def _depends(self, module: Module) -> bool:
        """Whether there is an operand in a design's d."""
        codes, seen = {x.get_id() for x in self.codes.flat()}, set[int]()
        stack: list[z3.ExprRef] = [module.outputs[self.wiring.result.port]]
        while stack:
            term = stack.pop()
            if term.get_id() in codes:
                return True
            if term.get_id() not in seen:
                seen.add(term.get_id())
                stack += term.children()
        return False

    def latency(self, folded: Folded, held: bool) -> list[str]:
        """Say how many registers each operand goes through.

        Raises HardwareError where one goes through different numbers of them, and is not held.
        """
        by_operand = {
            name: sorted({n for code in codes for n in folded.latency.get(str(code), ())})
            for name, codes in self._codes().items()
        }
        counts = {tuple(each) for each in by_operand.values() if each}
        for name, each in by_operand.items():
            if len(each) > 1 and not held:
                cycles = " and ".join(map(str, each))
                raise HardwareError(
                    f"d depends on {name} as it was {cycles} cycles before, so that a pipeline is not balanced; --held "
                    f"takes operands as held until d is there"
                )
        if counts <= {(0,)}:
            return []
        if len(counts) == 1:
            return [f"latency: {_cycles(next(iter(counts)))}"]
        said = [
            f"{name} {' and '.join(map(str, each))} cycles before"
            for name, each in by_operand.items()
            if each
        ]
        return [f"latency: d depends on {', '.join(said)}"]

    def _codes(self) -> dict[str, Sequence[z3.BitVecRef]]:
        x = self.codes
        found = {"a": x.a, "b": x.b, "c": (x.c,), "scale_a": x.scale_a, "scale_b": x.scale_b}
        return {name: codes for name, codes in found.items() if codes}

    def as_module(self, module: Module) -> Module:
        """The module with d as its one output."""
        place = self.wiring.result
        d = sliced(module.outputs[place.port], place.high, place.low)
        wires = {name: term for name, term in module.wires.items() if not is_value(term)}
        used = constants_in([d])
        undefined = {key: term for key, term in module.undefined.items() if str(term) in used}
        free = {key: term for key, term in self.free.items() if str(term) in used}
        return Module(module.name, self.operands, {"d": d}, wires, {**undefined, **free})


def _parts(term: z3.BitVecRef) -> list[z3.BitVecRef]:
    """Return the parts that a term is put together from, the highest bits first."""
    if not z3.is_app_of(term, z3.Z3_OP_CONCAT):
        return [term]
    return [part for each in term.children() for part in _parts(each)]


def _cycles(counts: Sequence[int]) -> str:
    """`3 cycles`, `2 and 3 cycles`."""
    return f"{' and '.join(map(str, counts))} cycle{'' if list(counts) == [1] else 's'}"
