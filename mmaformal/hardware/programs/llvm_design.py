"""A function in C or LLVM's IR as a design: what it gives as terms over the codes of an instruction's operands.

What of it is undefined behaviour is told apart, each way to it with the claim for which inputs it is reached; where
none is, the terms are what the function gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from time import monotonic

import z3

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.checked import Progress
from mmaformal.display import LastingLine, counted
from mmaformal.hardware.designs import Bound, Driven, Wired
from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.ports import PortMap, wiring
from mmaformal.hardware.programs.llvm_clang import ENTRY, llvm_text
from mmaformal.hardware.programs.llvm_memory import Object, address_of
from mmaformal.hardware.programs.llvm_native import Native
from mmaformal.hardware.programs.llvm_run import IrState, Runner
from mmaformal.hardware.programs.llvm_signature import VALUE, Parameter, Signature, signature
from mmaformal.hardware.programs.llvm_text import Function, Text, Type, read_text
from mmaformal.hardware.programs.llvm_values import IrValue, IrWord, Pointer, claim, made, only_word, unset_of
from mmaformal.hardware.read_btor2 import sliced
from mmaformal.hardware.sequential import Sequential
from mmaformal.hardware.sources import Sources
from mmaformal.hardware.undefined import Finding, ProgramBehaviour
from mmaformal.hardware.unread import UnreadProgram, UnreadProgramError, WrongUseError
from mmaformal.spec import DotAdd


def read_program(
    source: Sources, spec: DotAdd, said: PortMap, timeout: float | None, progress: Progress | None
) -> Wired:
    """A function as a design over the codes of `symbolic_inputs`; `progress` is told its ports.

    Raises HardwareError for what cannot be compiled or wired, UnreadProgramError for what cannot be read.
    """
    name = f"{source.top} of {source.files[0].name}"
    text = read_text(llvm_text(source))
    function = text.functions[text.constants[f"@{ENTRY}"].name]
    if not function.blocks:
        raise HardwareError(f"{name} is declared, and its text is not there")
    given = signature(function, text.metadata, spec, said)
    found = wiring(spec, given.inputs, given.outputs, "", given.said)
    inputs = {port: z3.BitVec(port, bits) for port, bits in given.inputs.items()}
    bound = Bound(Sequential(Module(name, inputs, {})), symbolic_inputs(spec), found)
    native = Native(source, given, bound)
    told = (*found.told(), *_arrays(given))
    try:
        d, runner = _followed(text, function, given, bound, timeout)
    except WrongUseError:
        raise
    except HardwareError as error:
        unread = (*told, "whether its behaviour is undefined is not looked for")
        program = UnreadProgram(name, unread, f"{name} as it is compiled", native.results, started=True)
        raise UnreadProgramError(str(error), program) from None
    outputs = {found.result.port: d}
    plain = bound.as_module(Module(name, bound.operands, outputs, {}, dict(runner.undefined)))
    lines = [*told, *([f"taken: {', '.join(runner.variables)}: as initialised"] if runner.variables else [])]
    others = [port for port in given.outputs if port != found.result.port]
    lines += [f"results left out: {', '.join(others)}"] if others else []
    lines += bound.warned(Module(name, bound.operands, outputs), spec)
    for line in lines:
        (progress or (lambda _: None))(LastingLine(line))
    behaviour = ProgramBehaviour(plain, native.results, f"{name} as it is compiled", tuple(runner.findings))
    driven = Driven(found, given.inputs, given.outputs, "", True, 0, 0)
    return Wired(behaviour.trapped, tuple(lines), driven, behaviour)


def _followed(
    text: Text, function: Function, given: Signature, bound: Bound, timeout: float | None
) -> tuple[z3.BitVecRef, Runner]:
    """The function's result, and what was met on the way.  Raises HardwareError for what is not read."""
    for each in (*(x.type for x in given.parameters), given.value):
        if each.kind not in ("int", "ptr", "void", "struct", "array"):
            raise HardwareError(f"a parameter or the value is a {each.kind}: floating-point is not read")
    runner = Runner(text, until=inf if timeout is None else monotonic() + timeout)
    results = _run(runner, function, given, bound.values(0))
    return _result(runner, results[bound.wiring.result.port]), runner


def _arrays(given: Signature) -> list[str]:
    """Says what is assumed of arrays, which the text does not say."""
    found = [
        f"{each.name} has {counted(each.count, 'element')} of {each.bits} bits"
        for each in given.parameters
        if each.count
    ]
    return [f"taken: {'; '.join(found)}; arrays do not overlap"] if found else []


def _run(
    runner: Runner, function: Function, given: Signature, ports: dict[str, z3.BitVecRef]
) -> dict[str, IrValue]:
    """The values of the output ports."""
    objects: dict[str, Object] = {}
    arguments: list[IrValue] = []
    for each in given.parameters:
        if not each.count:
            term = ports[each.name]
            arguments.append(IrWord(claim(term == 1)) if each.bits == 1 else IrWord(term))
            continue
        thing = runner.memory.new(each.name, each.count * each.bits // 8)
        objects[each.name] = thing
        arguments.append(address_of(thing))
        if each.reads:
            _fill(runner, thing, each, ports[each.name])
    runner.set_variables()
    start = len(runner.findings)
    state = runner.call(function, arguments, runner.memory, ())
    if state is None:
        raise HardwareError(f"{function.name[1:]} never returns: {_reasons(runner.findings[start:])}")
    found: dict[str, IrValue] = {}
    if given.value.kind != "void":
        found[VALUE] = state.values["return"]
    for each in given.parameters:
        if each.writes:
            found[each.name] = _stored(runner, state, each, objects[each.name])
    return found


def _reasons(findings: Sequence[Finding]) -> str:
    return "; ".join(dict.fromkeys(map(str, findings))) or "it has no way to its end"


def _fill(runner: Runner, thing: Object, each: Parameter, port: z3.BitVecRef) -> None:
    """Put a port's bits into the elements of an array."""
    for i in range(each.count):
        element = made(sliced(port, (i + 1) * each.bits - 1, i * each.bits))
        runner.memory.put(thing.number, i * each.bits // 8, IrWord(element), each.bits // 8)


def _stored(runner: Runner, state: IrState, each: Parameter, thing: Object) -> IrValue:
    """Returns what is in an array at the end."""
    if each.count > 1:
        raise WrongUseError(f"the result is one code; {each.name} has {each.count} elements")
    unset: list[tuple[z3.BoolRef, str]] = []
    value = state.memory.load(
        address_of(thing), Type("int", each.bits), lambda when, what: unset.append((when, what))
    )
    runner.report(state.path, unset_of([value]), f"{each.name} is not set")
    return IrWord(only_word(value).term)


def _result(runner: Runner, value: IrValue) -> z3.BitVecRef:
    """The bits of a result; where it is none is noted."""
    runner.report((), unset_of([value]), "the result is not set")
    return _bits(value)


def _bits(value: IrValue) -> z3.BitVecRef:
    if isinstance(value, Pointer):
        raise WrongUseError("the function gives an address, which is no result")
    if isinstance(value, IrWord):
        vector = value.vector
        more = -vector.size() % 8
        term = made(z3.ZeroExt(more, vector)) if more else vector
        assert isinstance(term, z3.BitVecRef)
        return term
    return _joined([_bits(each) for each in value.parts])


def _joined(parts: Sequence[z3.BitVecRef]) -> z3.BitVecRef:
    """The fields of a struct as it is in memory."""
    found: list[z3.BitVecRef] = []
    at = 0
    for part in parts:
        gap = -at % part.size()
        if gap:
            found.append(z3.BitVecVal(0, gap))
        found.append(part)
        at += gap + part.size()
    size = max((part.size() for part in parts), default=8)
    if -at % size:
        found.append(z3.BitVecVal(0, -at % size))
    return z3.Concat(*reversed(found)) if len(found) > 1 else found[0]
