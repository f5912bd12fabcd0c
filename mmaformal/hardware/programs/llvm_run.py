"""A function of LLVM's IR run on terms: calls inlined, loops unrolled, paths that meet merged.

What is undefined behaviour is not given a meaning: each way to it is a `Finding`, with the claim for which inputs it is
reached.  The terms of the results are right for all others.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import monotonic

import z3

from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.programs.llvm_flow import Item, Loop, PathClaims, alike, met, topological
from mmaformal.hardware.programs.llvm_memory import IrMemory, ReportCase, address_of, moved, same_place
from mmaformal.hardware.programs.llvm_operations import Made, binary, icmp, intrinsic, resized
from mmaformal.hardware.programs.llvm_text import Function, IrInstruction, IrOperand, Text, Type
from mmaformal.hardware.programs.llvm_values import (
    FALSE,
    TRUE,
    IrGroup,
    IrValue,
    IrWord,
    Pointer,
    all_true,
    bits_of,
    choice,
    claim,
    literal,
    of_bits,
    only_word,
    picked,
    unset_of,
    unset_value,
    untrue,
    zero_value,
)
from mmaformal.hardware.undefined import Finding

#: Instructions that are run at most, rounds of one loop, and calls in calls.
_MOST_RUN, _MOST_ROUNDS, _MOST_DEEP = 400_000, 1024, 64
#: Milliseconds in which z3 may see that a loop has ended.
_PATIENCE = 1000
_FLOATING = re.compile(r"f(add|sub|mul|div|rem|neg|cmp|ptrunc|pext|pto[us]i)|[us]itofp")
#: Functions that end the program.
_ENDS = ("@abort", "@__assert_fail", "@llvm.trap", "@llvm.ubsantrap", "@exit", "@_exit")


@dataclass
class IrState:
    """Where a path is: what it takes to be there, the values of names, and the memory."""

    path: PathClaims
    values: dict[str, IrValue]
    memory: IrMemory


@dataclass
class Runner:
    """Runs functions of a module."""

    text: Text
    findings: list[Finding] = field(default_factory=list)
    undefined: dict[str, z3.BitVecRef] = field(default_factory=dict)
    memory: IrMemory = field(default_factory=IrMemory)
    variables: dict[str, None] = field(default_factory=dict)  #: those of no function that are used
    until: float = inf  #: when reading is given up, by `time.monotonic`
    _run: int = 0
    _depth: int = 0
    _globals: dict[str, Pointer] = field(default_factory=dict)
    _line: str = ""

    def __post_init__(self) -> None:
        self.memory.fresh = self.fresh

    def fresh(self, name: str, bits: int) -> z3.BitVecRef:
        """A constant that may be anything; it has spaces in its name."""
        key = f"{name}, {len(self.undefined) + 1}"
        self.undefined[key] = z3.BitVec(key, bits)
        return self.undefined[key]

    def report(self, path: PathClaims, when: z3.BoolRef, what: str) -> None:
        """Note that a behaviour is undefined on a path where a claim is true."""
        whole = all_true(*path, when)
        if not z3.is_false(whole):
            self.findings.append(Finding(whole, what, self._line))

    # ---- functions --------------------------------------------------------------------------------------------

    def call(
        self, function: Function, arguments: Sequence[IrValue], memory: IrMemory, path: PathClaims
    ) -> IrState | None:
        """The state behind a function, its value under the name `return`; None where it never returns."""
        if not function.blocks:
            raise HardwareError(f"{function.name[1:]} is called, whose text is not here")
        if self._depth >= _MOST_DEEP:
            raise HardwareError(f"{function.name[1:]} calls itself more than {_MOST_DEEP} deep")
        self._depth += 1
        before = set(memory.bytes)
        values = {
            name: self._copied(attributes, each, memory, path) if "byval" in attributes else each
            for (name, _, attributes), each in zip(function.parameters, arguments, strict=True)
        }
        frame = _Frame(self, function)
        found = frame.run(IrState(path, values, memory))
        if found is not None:
            for number in [each for each in found.memory.bytes if each not in before]:
                del found.memory.bytes[number]
        self._depth -= 1
        return found

    def _copied(self, attributes: str, value: IrValue, memory: IrMemory, path: PathClaims) -> IrValue:
        """The address of a copy of a struct that is given by its value."""
        kind = self.text.type_of(attributes.partition("byval (")[2].partition(")")[0])
        copy = address_of(memory.new("a struct that is an argument", kind.size))
        assert isinstance(value, Pointer)
        memory.copy_bytes(copy, value, kind.size, lambda when, what: self.report(path, when, what))
        return copy

    def count(self, instruction: IrInstruction) -> None:
        """Note that an instruction is run.  Raises HardwareError for too many."""
        self._line = instruction.line or self._line
        self._run += 1
        if monotonic() > self.until:
            raise HardwareError(f"{self._line}: the time given was up in reading: a loop without a bound?")
        if self._run > _MOST_RUN:
            raise HardwareError(
                f"{self._line}: more than {_MOST_RUN} instructions are run: is there a loop without end?"
            )

    def set_variables(self) -> None:
        """Give the variables that are no function's their first values."""
        for name in self.text.variables:
            self._globals[name] = self._new(name, self.memory)

    def table(self, name: str, memory: IrMemory) -> Pointer:
        """The address of a constant table, or of a variable."""
        if name not in self._globals:
            if name in self.text.functions:  # which may be stored, as tables of methods do, and not called
                self._globals[name] = address_of(memory.new(name[1:], 0))
            elif name in self.text.constants:
                self._globals[name] = self._new(name, memory)
            else:
                raise HardwareError(f"{name[1:]} is used, whose value is not here")
            memory.make_constant(self._globals[name].targets[0].object)
        elif name in self.text.variables:
            self.variables[name[1:]] = None
        return self._globals[name]

    def _new(self, name: str, memory: IrMemory) -> Pointer:
        """The address of a new object that has its first value."""
        value = self.text.constants.get(name) or self.text.variables[name]
        address = address_of(memory.new(name[1:], value.type.size))
        memory.store(address, self.constant(value, memory), value.type, _never)
        return address

    def constant(self, operand: IrOperand, memory: IrMemory) -> IrValue:
        """The value of an operand that is no name of a function's."""
        kind = operand.type
        match operand.kind:
            case "int":
                return literal(operand.value, bits_of(kind))
            case "zero":
                return zero_value(kind)
            case "poison":
                return unset_value(kind)
            case "bytes":
                return IrGroup(tuple(literal(each, 8) for each in operand.data))
            case "many":
                return IrGroup(tuple(self.constant(each, memory) for each in operand.parts))
            case "global":
                return self.table(operand.name, memory)
            case "gep":
                first, *rest = (self.constant(each, memory) for each in operand.parts)
                assert operand.element is not None
                return address(first, rest, operand.element)
        raise HardwareError(
            f"{self._line}: the operand {operand.name or operand.kind} of type {kind} is not understood"
        )


def _never(when: z3.BoolRef, what: str) -> None:
    """A constant table is filled without any undefined behaviour."""


def address(base: IrValue, indices: Sequence[IrValue], kind: Type) -> Pointer:
    """The address of an element, as `getelementptr` has it."""
    if not isinstance(base, Pointer):
        raise HardwareError("a number is used as an address, which is not understood")
    found = base
    for depth, index in enumerate(indices):
        number = only_word(index).number
        if depth and kind.kind == "struct":
            assert number is not None
            found, kind = moved(found, kind.offset(number)), kind.fields[number]
            continue
        if depth:
            kind = kind.fields[0]
        if number is not None:
            bits = only_word(index).bits
            signed = number - (1 << bits) if number >> (bits - 1) else number
            found = moved(found, signed * kind.size)
        else:
            found = moved(found, 0, _of_64(only_word(index)), kind.size)
    return found


def _of_64(index: IrWord) -> IrWord:
    if index.bits == 64:
        return index
    made = resized("sext", index, 64).value
    assert isinstance(made, IrWord)
    return IrWord(made.term)


def _loaded(instruction: IrInstruction, at: IrValue, state: IrState, report: ReportCase) -> IrValue:
    """Returns the value of a type at an address."""
    assert isinstance(at, Pointer)
    found = state.memory.load(at, instruction.type, report)
    if "range" in instruction.flags and isinstance(found, IrWord):
        strange = all_true(untrue(found.unset), claim(z3.UGT(found.vector, 1)))
        report(strange, "a bool is read that is neither 0 nor 1")
    return found


def _allocated(instruction: IrInstruction, values: Sequence[IrValue], state: IrState) -> IrValue:
    """Returns the address of a new local variable."""
    count = only_word(values[0]).number if values else 1
    if count is None:
        raise HardwareError("an array of variable length is not read")
    name = instruction.result[1:].removesuffix(".addr")
    return address_of(state.memory.new(name, count * instruction.type.size))


def _method(runner: Runner, address: IrValue) -> str:
    """Returns the function that an address is known to be, as that of a method is which was found in a table."""
    targets = address.targets if isinstance(address, Pointer) else ()
    name = f"@{runner.memory.objects[targets[0].object].name}" if len(targets) == 1 else ""
    if name not in runner.text.functions or not z3.is_true(targets[0].when):
        raise HardwareError("a call through an address that depends on the inputs is not read")
    return name


class _Frame:
    """One call of a function."""

    def __init__(self, runner: Runner, function: Function) -> None:
        self.runner, self.function = runner, function
        self.waiting: dict[str, list[IrState]] = {}
        self.returned: list[IrState] = []
        self.after = {name: _labels(block[-1]) for name, block in function.blocks.items()}

    def run(self, start: IrState) -> IrState | None:
        """The state in which the function returns."""
        entry = next(iter(self.function.blocks))
        self.waiting[entry] = [start]
        self._items(topological(entry, self.after))
        return merged_states(self.returned)

    def _items(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, Loop):
                self._loop(item)
            elif (state := merged_states(self.waiting.pop(item, []))) is not None:
                self._block(item, state)

    def _loop(self, loop: Loop) -> None:
        first: PathClaims = ()
        for turn in range(_MOST_ROUNDS):
            state = merged_states(self.waiting.pop(loop.head, []))
            if state is None:
                return
            first = first if turn else state.path
            if len(state.path) > len(first) and not self._goes_on(state):
                when = all_true(*state.path)
                what = f"the loop has more than {turn} rounds"
                self.runner.findings.append(Finding(when, what, self.runner._line))
                return
            self._block(loop.head, state)
            self._items(loop.body)
        raise HardwareError(
            f"{self.runner._line}: a loop of {self.function.name[1:]} has not ended after {_MOST_ROUNDS} rounds"
        )

    def _goes_on(self, state: IrState) -> bool:
        """Whether there may be inputs for which a loop has another round; that there are none is proved later."""
        solver = z3.SolverFor("QF_BV")
        solver.set("timeout", _PATIENCE)
        solver.add(*state.path)
        return bool(solver.check() != z3.unsat)

    def _block(self, name: str, state: IrState) -> None:
        for instruction in self.function.blocks[name]:
            if instruction.op == "phi":
                continue
            self.runner.count(instruction)
            try:
                going_on = self._instruction(name, instruction, state)
            except HardwareError as error:
                raise _at(error, instruction) from None
            if not going_on:
                return

    def _go(self, label: str, name: str, state: IrState, path: PathClaims) -> None:
        """Let a path go on in another block, whose phis take what comes from here."""
        if any(map(z3.is_false, path)):
            return
        values = dict(state.values)
        for each in self.function.blocks[label]:
            if each.op != "phi":
                break
            values[each.result] = self._value(each.operands[each.labels.index(name)], state)
        self.waiting.setdefault(label, []).append(IrState(path, values, state.memory.copy()))

    # ---- instructions -----------------------------------------------------------------------------------------

    def _value(self, operand: IrOperand, state: IrState) -> IrValue:
        if operand.kind != "local":
            return self.runner.constant(operand, state.memory)
        return state.values[operand.name]

    def _instruction(self, name: str, instruction: IrInstruction, state: IrState) -> bool:
        """Run one; whether the next one of the block is run after it."""
        if instruction.op in ("br", "switch", "ret", "unreachable"):
            self._leave(name, instruction, state)
            return False
        if instruction.op == "call":
            return self._call(instruction, state)
        values = [self._value(each, state) for each in instruction.operands]
        if "volatile" in instruction.flags or "atomic" in instruction.flags:
            raise HardwareError("volatile and atomic variables are not read")
        report = partial(self.runner.report, state.path)
        if instruction.op == "store":
            address_of_it = values[1]
            assert isinstance(address_of_it, Pointer)
            state.memory.store(address_of_it, values[0], instruction.operands[0].type, report)
            return True
        loads = instruction.op == "load"
        found = (
            _loaded(instruction, values[0], state, report)
            if loads
            else self._made(instruction, values, state)
        )
        state.values[instruction.result] = found
        return True

    def _used(self, value: IrValue, state: IrState, masked: bool = False) -> IrWord:
        """A value as a word that is computed with; if it is masked, as fields of bits are, it is any where not set."""
        found = only_word(value)
        if masked and not z3.is_false(found.unset):
            anything = of_bits(self.runner.fresh("bits that nothing sets", found.bits), found.bits)
            return IrWord(choice(found.unset, anything.term, found.term))
        self.runner.report(state.path, found.unset, "what nothing has set is used")
        return IrWord(found.term)

    def _defined(self, made: Made, state: IrState) -> IrValue:
        """Returns what an operation gives; where it gives nothing, behaviour is undefined."""
        for when, what in made.nothing:
            self.runner.report(state.path, when, what)
        return made.value

    def _made(self, instruction: IrInstruction, values: Sequence[IrValue], state: IrState) -> IrValue:
        op = instruction.op
        if op == "alloca":
            return _allocated(instruction, values, state)
        if op == "getelementptr":
            return address(values[0], [self._used(each, state) for each in values[1:]], instruction.type)
        if op == "select":
            return picked(claim(self._used(values[0], state).term), values[1], values[2])
        if op in ("extractvalue", "insertvalue"):
            return _fields(values, instruction.places)
        if op == "bitcast" and isinstance(values[0], Pointer):
            return values[0]
        if op.startswith("other "):
            what = op.removeprefix("other ")
            raise HardwareError(f"{'floating-point' if _FLOATING.fullmatch(what) else what} is not read")
        if op == "icmp" and instruction.name in ("eq", "ne"):
            x, y = values
            if isinstance(x, Pointer) and isinstance(y, Pointer):
                self.runner.report(state.path, unset_of(values), "an address that nothing has set is used")
                same = same_place(x, y)
                return IrWord(same if instruction.name == "eq" else untrue(same))
        for each in instruction.operands:
            bits_of(each.type)
        words = [self._used(each, state, masked=op == "and") for each in values]
        if op == "icmp":
            found = icmp(instruction.name, words[0], words[1], instruction.flags)
        elif len(words) == 1:
            found = resized(op, words[0], bits_of(instruction.type), instruction.flags)
        else:
            found = binary(op, words[0], words[1], instruction.flags)
        return self._defined(found, state)

    # ---- calls and the ends of blocks ---------------------------------------------------------------------

    def _call(self, instruction: IrInstruction, state: IrState) -> bool:
        name = instruction.name
        if name[0] == "%":
            name = _method(self.runner, state.values[name])
        if name.startswith("@llvm."):
            return self._intrinsic(instruction, state)
        function = self.runner.text.functions.get(name)
        if function is None or not function.blocks:  # not one of the file's own
            if name in _ENDS:
                self.runner.report(state.path, TRUE, f"{name[1:]} is called")
                return False
            if name in ("@memcpy", "@memmove", "@memset"):
                return self._copied(name[1:], instruction, state)
        if function is None:
            raise HardwareError(f"{name[1:]} is called, whose text is not here")
        values = [self._value(each, state) for each in instruction.operands]
        line = self.runner._line
        found = self.runner.call(function, values, state.memory, state.path)
        self.runner._line = line
        if found is None:
            return False
        state.path, state.memory = found.path, found.memory
        if instruction.result:
            state.values[instruction.result] = found.values["return"]
        return True

    def _intrinsic(self, instruction: IrInstruction, state: IrState) -> bool:
        name = re.sub(r"(\.(i\d+|p\d+|v\d+i\d+))+$", "", instruction.name.removeprefix("@llvm."))
        if instruction.name in _ENDS:
            self.runner.report(state.path, TRUE, f"{name} is reached, where the program ends")
            return False
        if name.startswith(("lifetime.", "dbg.", "experimental.noalias", "prefetch", "donothing")):
            return True
        if name == "threadlocal.address":
            state.values[instruction.result] = self._value(instruction.operands[0], state)
            return True
        if name in ("memcpy", "memmove", "memset", "memcpy.inline", "memset.inline"):
            return self._copied(name.removesuffix(".inline"), instruction, state)
        values = [self._value(each, state) for each in instruction.operands]
        if name == "assume":
            flag = claim(self._used(values[0], state).term)
            self.runner.report(state.path, untrue(flag), "what is assumed is not so")
            return True
        found = intrinsic(name, [self._used(each, state) for each in values])
        if found is None:
            raise HardwareError(f"llvm.{name} is not read")
        state.values[instruction.result] = self._defined(found, state)
        return True

    def _copied(self, name: str, instruction: IrInstruction, state: IrState) -> bool:
        """memcpy, memmove and memset of a known size."""
        to, of, size = (self._value(each, state) for each in instruction.operands[:3])
        count = only_word(size).number
        if count is None:
            raise HardwareError(f"{name} of a size that is no number is not read")
        report = partial(self.runner.report, state.path)
        assert isinstance(to, Pointer)
        if name == "memset":
            word = only_word(of)
            byte = word if word.bits == 8 else of_bits(word.vector, 8, word.unset)
            for i in range(count):
                state.memory.store(moved(to, i), byte, Type("int", 8), report)
        else:
            assert isinstance(of, Pointer)
            state.memory.copy_bytes(to, of, count, report, apart=name == "memcpy")
        if instruction.result:
            state.values[instruction.result] = to
        return True

    def _leave(self, name: str, instruction: IrInstruction, state: IrState) -> None:
        runner = self.runner
        if instruction.op == "unreachable":
            runner.report(state.path, TRUE, "the end of a function that gives a value is reached without one")
            return
        if instruction.op == "ret":
            values = [self._value(each, state) for each in instruction.operands]
            self.returned.append(IrState(state.path, {"return": values[0]} if values else {}, state.memory))
            return
        if not instruction.operands:
            self._go(instruction.labels[0], name, state, state.path)
            return
        condition = self._used(self._value(instruction.operands[0], state), state)
        if instruction.op == "br":
            yes = claim(condition.term)
            for label, each in zip(instruction.labels, (yes, untrue(yes)), strict=True):
                self._go(label, name, state, _further(state.path, each))
            return
        path = state.path
        for label, operand in zip(instruction.labels[1:], instruction.operands[1:], strict=True):
            value = only_word(runner.constant(operand, state.memory))
            same = icmp("eq", condition, value).value
            assert isinstance(same, IrWord)
            self._go(label, name, state, _further(path, claim(same.term)))
            path = _further(path, untrue(claim(same.term)))
        self._go(instruction.labels[0], name, state, path)


def _at(error: HardwareError, instruction: IrInstruction) -> HardwareError:
    """The error with the line and the instruction; inner ones have them already."""
    text = str(error)
    if getattr(error, "placed", False):
        return error
    where = f"{instruction.line}: " if instruction.line and not text.startswith(instruction.line) else ""
    short = re.sub(r"(, ![\w.]+ !\d+)+$", "", instruction.text)
    found = HardwareError(f"{where}{text}: {short[:120]}")
    found.placed = True  # type: ignore[attr-defined]
    return found


def _labels(last: IrInstruction) -> list[str]:
    return list(dict.fromkeys(last.labels)) if last.op in ("br", "switch") else []


def _further(path: PathClaims, step: z3.BoolRef) -> PathClaims:
    if z3.is_true(step) or any(step.eq(each) for each in path):
        return path
    if any(untrue(step).eq(each) for each in path):
        return (*path, FALSE)
    return (*path, step)


def merged_states(states: Sequence[IrState]) -> IrState | None:
    """Paths that meet as one; those that parted last are put together first."""
    rest = sorted(states, key=lambda each: [x.get_id() for x in each.path])
    while len(rest) > 1:
        depths = [alike(x.path, y.path) for x, y in itertools.pairwise(rest)]
        at = max(range(len(depths)), key=depths.__getitem__)
        x, y = rest[at : at + 2]
        if len(y.path) < len(x.path):
            x, y = y, x
        when, path = met(x.path, y.path)
        values = {name: picked(when, x.values[name], y.values[name]) for name in x.values if name in y.values}
        memory = x.memory.copy()
        memory.merge(when, y.memory)
        rest[at : at + 2] = [IrState(path, values, memory)]
    return rest[0] if rest else None


def _fields(values: Sequence[IrValue], places: Sequence[int]) -> IrValue:
    """A field of a struct, or the struct with another one there."""
    group = values[0]
    assert isinstance(group, IrGroup)
    at, rest = places[0], places[1:]
    if len(values) == 1:
        return _fields([group.parts[at]], rest) if rest else group.parts[at]
    new = _fields([group.parts[at], values[1]], rest) if rest else values[1]
    return IrGroup((*group.parts[:at], new, *group.parts[at + 1 :]))
