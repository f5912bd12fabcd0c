"""Signatures of functions: scalars and arrays, as ports whose bits the operands of an instruction are in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from mmaformal.display import ShortRepr
from mmaformal.hardware.module import HardwareError, ports_of
from mmaformal.hardware.ports import PortMap, guessed_operands, read_place
from mmaformal.hardware.programs.llvm_text import Function, Type
from mmaformal.spec import DotAdd

#: The port that a function's value is.
VALUE = "return"
_FLOATS = ("float", "double", "half", "bfloat")


@dataclass(frozen=True, repr=False)
class Parameter(ShortRepr):
    """A scalar of so many bits, or an array of elements of so many."""

    name: str
    type: Type
    count: int = 0  #: elements of an array; of a scalar 0
    bits: int = 0  #: of each
    reads: bool = True  #: whether what is in it is an operand
    writes: bool = False  #: whether the result may be in it
    attributes: str = ""

    @property
    def width(self) -> int:
        """All its bits."""
        return max(1, self.count) * self.bits


@dataclass(frozen=True, repr=False)
class Signature(ShortRepr):
    """The parameters of a function, and bits of its value; what is said of the ports, completed."""

    parameters: tuple[Parameter, ...]
    value: Type
    said: PortMap

    @property
    def inputs(self) -> dict[str, int]:
        """Bits of each input port."""
        return {each.name: each.width for each in self.parameters if each.reads}

    @property
    def outputs(self) -> dict[str, int]:
        """Bits of each output port."""
        found = {each.name: each.width for each in self.parameters if each.writes}
        return found if self.value.kind == "void" else {VALUE: 8 * self.value.size, **found}


def signature(function: Function, metadata: Mapping[int, str], spec: DotAdd, said: PortMap) -> Signature:
    """The parameters of a function as ports of the operands of an instruction.

    An array has as many codes as the instruction's operand that it is named after, or said to be.  Raises HardwareError
    for a parameter that is no number and no array of them, and for an array that is not said to be an operand.
    """
    known = _declared(function, metadata)
    found = [
        _parameter(
            name[1:].strip('"').removesuffix(".coerce"),
            kind,
            attributes,
            known[i] if known else None,
            spec,
            said,
        )
        for i, (name, kind, attributes) in enumerate(function.parameters)
    ]
    results = [each for each in found if each.writes]
    if function.type.kind == "void" and not results:
        raise HardwareError(
            f"{function.name[1:]} gives no value, and none of its parameters is named as a result: say --port d=NAME"
        )
    ports = dict(said.ports)
    for each in found:
        ports |= _codes_in_elements(each, spec, said)
    return Signature(tuple(found), function.type, replace(said, ports=ports))


@dataclass(frozen=True)
class _Declared:
    """A file's word on a parameter: whether it is an array, bits of an element, and whether it is constant."""

    array: bool
    bits: int
    constant: bool


def _parameter(
    name: str, kind: Type, attributes: str, known: _Declared | None, spec: DotAdd, said: PortMap
) -> Parameter:
    if kind.kind == "int":
        return Parameter(name, kind, 0, kind.bits, attributes=attributes)
    if kind.kind in _FLOATS:  # what is run takes it, though nothing is read of it
        return Parameter(name, kind, 0, 8 * kind.size, attributes=attributes)
    if kind.kind != "ptr":
        raise HardwareError(
            f"the parameter {name} is of type {kind}; integers, numbers and arrays of them are taken"
        )
    if "byval" in attributes:
        raise HardwareError(
            f"the parameter {name} is a struct, which is not read: only integers and arrays of them are"
        )
    needed = {**ports_of(spec), "d": spec.d_format.storage_bits}
    operands = _operands(name, said)
    if "sret" in attributes:
        raise HardwareError(
            "a struct of more than 16 bytes is returned, which is not read: give the result through a pointer"
        )
    constant = known is not None and known.constant
    operands = [each for each in operands if not (each == "d" and constant) and each in needed]
    if not operands:
        raise HardwareError(
            f"which operand is the array {name}? Say --port a={name}, b, c or d, whichever it is"
        )
    reads = [each for each in operands if each != "d"]
    if not constant and "d" in operands and not _is_said(name, said):
        reads = []
    first = reads[0] if reads else "d"
    code = _code_bits(spec, first)
    bits = known.bits if known and known.bits else -(-code // 8) * 8
    per = 1 if bits == 8 or bits % code else bits // code
    count = -(-(needed[first] // code) // per)
    return Parameter(name, kind, count, bits, bool(reads), "d" in operands, attributes)


def _operands(name: str, said: PortMap) -> list[str]:
    """The operands that an array is: those that are said, or the one that it is named after."""
    found = [
        target.partition("[")[0].strip()
        for target, text in said.ports.items()
        if read_place(text).port == name
    ]
    if found:
        return list(dict.fromkeys(found))
    taken = {target.partition("[")[0].strip() for target in said.ports}
    return [each for each in guessed_operands(name) if each not in taken]


def _is_said(name: str, said: PortMap) -> bool:
    return any(read_place(text).port == name for text in said.ports.values())


def _code_bits(spec: DotAdd, operand: str) -> int:
    if operand in ("scale_a", "scale_b"):
        assert spec.scale_format is not None
        return spec.scale_format.storage_bits
    formats = {"a": spec.a_format, "b": spec.b_format, "c": spec.c_format, "d": spec.d_format}
    return formats[operand].storage_bits


def _codes_in_elements(each: Parameter, spec: DotAdd, said: PortMap) -> dict[str, str]:
    """Where codes are that are narrower than the elements of an array, one in each."""
    operands = [x for x in _operands(each.name, said) if x != "d" or each.writes] if each.count else []
    if len(operands) != 1 or _is_said(each.name, said):
        return {}
    (operand,) = operands
    code = _code_bits(spec, operand)
    if code >= each.bits or (each.bits != 8 and each.bits % code == 0):
        return {}
    if operand in ("c", "d"):
        return {operand: f"{each.name}[{code - 1}:0]"}
    return {
        f"{operand}[{k}]": f"{each.name}[{k * each.bits + code - 1}:{k * each.bits}]"
        for k in range(each.count)
    }


def _declared(function: Function, metadata: Mapping[int, str]) -> list[_Declared]:
    """Return what the file says of each parameter; nothing where it says that of others."""
    types = re.search(r"\btype: !(\d+)", metadata.get(function.debug, ""))
    routine = re.search(r"\btypes: !(\d+)", metadata.get(int(types[1]), "")) if types else None
    if routine is None:
        return []
    named = re.findall(r"null|!\d+", metadata.get(int(routine[1]), "").lstrip("!"))[1:]
    if len(named) != len(function.parameters):
        return []
    return [_of_type(each, metadata) for each in named]


def _of_type(number: str, metadata: Mapping[int, str]) -> _Declared:
    array, constant, bits = False, False, 0
    for _ in range(32):
        text = metadata.get(int(number[1:]), "") if number.startswith("!") else ""
        size = re.search(r"\bsize: (\d+)", text)
        if "DW_TAG_pointer_type" in text:
            array, constant = True, False
        elif "DW_TAG_const_type" in text:
            constant = True
        elif size and "DW_TAG_typedef" not in text:
            bits = int(size[1])
        below = re.search(r"\bbaseType: !(\d+)", text)
        if below is None or "DW_TAG_array" in text:
            break
        number = f"!{below[1]}"
    return _Declared(array, bits, constant)
