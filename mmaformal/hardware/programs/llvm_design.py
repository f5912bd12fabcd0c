"""A function in C or LLVM's IR as a design: what it gives as terms over the codes of an instruction's operands.

What of it is undefined behaviour is told apart, each way to it with the claim for which inputs it is reached; where
none is, the terms are what the function gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import z3

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.checked import Progress
from mmaformal.display import ShortRepr, counted
from mmaformal.hardware.designs import Bound, Driven, Wired
from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.ports import PortMap, wiring
from mmaformal.hardware.programs.llvm_clang import Source, text_of
from mmaformal.hardware.programs.llvm_memory import Object, address_of
from mmaformal.hardware.programs.llvm_run import Finding, Runner, State
from mmaformal.hardware.programs.llvm_signature import VALUE, Parameter, Signature, signature
from mmaformal.hardware.programs.llvm_text import Type, read_text
from mmaformal.hardware.programs.llvm_values import Group, Pointer, Value, Word, claim, made, poison_of, word
from mmaformal.hardware.read_btor2 import sliced
from mmaformal.hardware.sequential import Sequential
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class Program(ShortRepr):
    """A function as a design."""

    source: Source
    design: Wired
    findings: tuple[Finding, ...]  #: ways to undefined behaviour
    origins: tuple[Finding, ...]  #: where values that are none come from, in LLVM's IR
    signature: Signature
    bound: Bound


def read_program(source: Source, spec: DotAdd, said: PortMap | None = None, told: Progress | None = None) -> Program:
    """A function as a design over the codes of `symbolic_inputs`; `told` is called with its ports.

    Raises HardwareError for what cannot be compiled, read or wired.
    """
    text = read_text(text_of(source))
    function = text.functions.get(f"@{source.function}")
    if function is None or not function.blocks:
        names = ", ".join(each.name[1:] for each in text.functions.values() if each.blocks)
        raise HardwareError(f"there is no function {source.function} in {source.path.name}; there are {names or 'none'}")
    given = signature(function, text.metadata, spec, said or PortMap())
    found = wiring(spec, given.inputs, given.outputs, "", given.said)
    inputs = {name: z3.BitVec(name, bits) for name, bits in given.inputs.items()}
    bound = Bound(Sequential(Module(source.function, inputs, {})), symbolic_inputs(spec), found)
    runner = Runner(text, strict=source.is_c)
    results = _run(runner, function_name=source.function, given=given, ports=bound.values(0))
    place = found.result
    d = _result(runner, results[place.port])
    undefined = dict(runner.undefined)
    module = bound.as_module(Module(source.function, bound.operands, {place.port: d}, {}, undefined))
    lines = [*found.told(), *_arrays(given)]
    others = [name for name in given.outputs if name != place.port]
    lines += [f"results left out: {', '.join(others)}"] if others else []
    four = bound.two_by_two(Module(source.function, bound.operands, {place.port: d}), spec)
    if four not in ("", "4"):
        lines.append(f"warning: d of 2·2 + 0 is {four}: look at the ports and at what is tied")
    for line in lines:
        (told or (lambda _: None))(line)
    driven = Driven(found, given.inputs, given.outputs, "", True, 0, 0)
    wired = Wired(replace(module, name=source.name), tuple(lines), driven)
    return Program(source, wired, tuple(runner.findings), tuple(runner.origins), given, bound)


def _arrays(given: Signature) -> list[str]:
    """What is taken of arrays, which the text does not say."""
    found = [
        f"{each.name} has {counted(each.count, 'element')} of {each.bits} bits" for each in given.parameters if each.count
    ]
    return [f"taken: {'; '.join(found)}; arrays do not overlap"] if found else []


def _run(
    runner: Runner, function_name: str, given: Signature, ports: dict[str, z3.BitVecRef]
) -> dict[str, Value]:
    """The values of the output ports."""
    objects: dict[str, Object] = {}
    arguments: list[Value] = []
    for each in given.parameters:
        if not each.count:
            term = ports[each.name]
            arguments.append(Word(claim(term == 1)) if each.bits == 1 else Word(term))
            continue
        thing = runner.memory.new(each.name, each.count * each.bits // 8)
        objects[each.name] = thing
        arguments.append(address_of(thing))
        if each.reads:
            _fill(runner, thing, each, ports[each.name])
    start = len(runner.findings)
    state = runner.call(runner.text.functions[f"@{function_name}"], arguments, runner.memory, ())
    if state is None:
        raise HardwareError(f"{function_name} never returns: {_reasons(runner.findings[start:])}")
    found: dict[str, Value] = {}
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
        runner.memory.put(thing.number, i * each.bits // 8, Word(element), each.bits // 8)


def _stored(runner: Runner, state: State, each: Parameter, thing: Object) -> Value:
    """What is in an array at the end."""
    if each.count > 1:
        raise HardwareError(f"the result is one code; {each.name} has {each.count} elements")
    unset: list[tuple[z3.BoolRef, str]] = []
    value = state.memory.load(
        address_of(thing), Type("int", each.bits), lambda when, what: unset.append((when, what))
    )
    runner.report(state.path, poison_of([value]), f"{each.name} is not set")
    return Word(word(value).term)


def _result(runner: Runner, value: Value) -> z3.BitVecRef:
    """The bits of a result; where it is none is noted."""
    runner.report((), poison_of([value]), "the result is no value")
    return _bits(value)


def _bits(value: Value) -> z3.BitVecRef:
    if isinstance(value, Pointer):
        raise HardwareError("the function gives an address, which is no result")
    if isinstance(value, Word):
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


__all__ = ["Group", "Program", "read_program"]
