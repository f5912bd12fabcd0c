"""BTOR2 (Niemetz, Preiner, Wolf, Biere, CAV 2018): combinational modules written as it, and read from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import z3

from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.verilog import operations

# ---- writing -----------------------------------------------------------------------------------------------------

#: Operations that are one of BTOR2's, whose operands are bit-vectors; a Boolean is one bit.
_WRITTEN = {
    z3.Z3_OP_AND: "and",
    z3.Z3_OP_OR: "or",
    z3.Z3_OP_XOR: "xor",
    z3.Z3_OP_NOT: "not",
    z3.Z3_OP_IMPLIES: "implies",
    z3.Z3_OP_EQ: "eq",
    z3.Z3_OP_DISTINCT: "neq",
    z3.Z3_OP_ITE: "ite",
    z3.Z3_OP_BADD: "add",
    z3.Z3_OP_BSUB: "sub",
    z3.Z3_OP_BMUL: "mul",
    z3.Z3_OP_BNEG: "neg",
    z3.Z3_OP_BNOT: "not",
    z3.Z3_OP_BAND: "and",
    z3.Z3_OP_BOR: "or",
    z3.Z3_OP_BXOR: "xor",
    z3.Z3_OP_BSHL: "sll",
    z3.Z3_OP_BLSHR: "srl",
    z3.Z3_OP_BASHR: "sra",
    z3.Z3_OP_CONCAT: "concat",
    z3.Z3_OP_ULEQ: "ulte",
    z3.Z3_OP_ULT: "ult",
    z3.Z3_OP_UGEQ: "ugte",
    z3.Z3_OP_UGT: "ugt",
    z3.Z3_OP_SLEQ: "slte",
    z3.Z3_OP_SLT: "slt",
    z3.Z3_OP_SGEQ: "sgte",
    z3.Z3_OP_SGT: "sgt",
}
_FOLDED = frozenset(("and", "or", "xor", "add", "mul", "concat"))


def btor2(module: Module) -> str:
    """The module as BTOR2: an `input` for each input, an `output` for each output, the wires' names as symbols.

    Raises HardwareError for an operation that BTOR2 has not.
    """
    return _Writer(module).text()


class _Writer:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.lines: list[str] = []
        self.sorts: dict[int, int] = {}
        self.numbers: dict[int, int] = {}  #: of each term, its line
        self.names = {term.get_id(): name for name, term in reversed(list(module.wires.items()))}

    def text(self) -> str:
        for name, term in self.module.inputs.items():
            sort = self._sort(term.size())
            self.numbers[term.get_id()] = self._line(f"input {sort} {name}")
        for term in operations(self.module):
            if term.get_id() not in self.numbers:
                self.numbers[term.get_id()] = self._term(term)
        for name, term in self.module.outputs.items():
            self._line(f"output {self.numbers[term.get_id()]} {name}")
        return "\n".join([f"; {self.module.name}", *self.lines]) + "\n"

    def _line(self, said: str) -> int:
        self.lines.append(f"{len(self.lines) + 1} {said}")
        return len(self.lines)

    def _sort(self, bits: int) -> int:
        if bits not in self.sorts:
            self.sorts[bits] = self._line(f"sort bitvec {bits}")
        return self.sorts[bits]

    def _term(self, term: z3.ExprRef) -> int:
        bits = term.size() if isinstance(term, z3.BitVecRef) else 1
        sort = self._sort(bits)
        if z3.is_true(term) or z3.is_false(term):
            return self._line(f"const {sort} {int(z3.is_true(term))}")
        if isinstance(term, z3.BitVecNumRef):
            return self._line(f"constd {sort} {term.as_long()}")
        kind, operands = term.decl().kind(), [self.numbers[x.get_id()] for x in term.children()]
        if not operands:
            raise HardwareError(f"{term} is no input of {self.module.name}")
        symbol = f" {self.names[term.get_id()]}" if term.get_id() in self.names else ""
        if kind == z3.Z3_OP_EXTRACT:
            high, low = term.params()
            return self._line(f"slice {sort} {operands[0]} {high} {low}{symbol}")
        if kind in (z3.Z3_OP_ZERO_EXT, z3.Z3_OP_SIGN_EXT):
            name = "uext" if kind == z3.Z3_OP_ZERO_EXT else "sext"
            return self._line(f"{name} {sort} {operands[0]} {bits - term.arg(0).size()}{symbol}")
        if kind not in _WRITTEN or (len(operands) > 2 and kind == z3.Z3_OP_DISTINCT):
            raise HardwareError(f"{term.decl().name()} is no operation of BTOR2")
        return self._operation(_WRITTEN[kind], bits, operands, symbol, term)

    def _operation(self, name: str, bits: int, operands: list[int], symbol: str, term: z3.ExprRef) -> int:
        if name not in _FOLDED or len(operands) == 2:
            text = " ".join(map(str, operands))
            return self._line(f"{name} {self._sort(bits)} {text}{symbol}")
        number, width = operands[0], term.arg(0).size() if isinstance(term.arg(0), z3.BitVecRef) else 1
        for i, operand in enumerate(operands[1:], 1):
            width = width + term.arg(i).size() if name == "concat" else bits
            end = symbol if i == len(operands) - 1 else ""
            number = self._line(f"{name} {self._sort(width)} {number} {operand}{end}")
        return number


# ---- reading -----------------------------------------------------------------------------------------------------


def read_btor2(text: str, name: str, ports: Mapping[str, z3.BitVecRef] | None = None) -> Module:
    """A combinational module from BTOR2.  `ports` are terms to be read in the place of inputs of these names.

    What is `bad`, a `constraint` or `fair` is left out: nothing is assumed.  Raises HardwareError for registers and
    memories, and with its number for a line that is not understood.
    """
    reader = _Reader(dict(ports or {}))
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(";")[0].split()
        if not words:
            continue
        try:
            reader.line(int(words[0]), words[1], words[2:])
        except (ValueError, KeyError, IndexError, z3.Z3Exception) as error:
            raise HardwareError(
                f"{name}: line {number} is not BTOR2 that is understood: {line!r} ({error})"
            ) from None
    if not reader.outputs:
        raise HardwareError(f"{name} has no outputs")
    return Module(name, reader.inputs, reader.outputs, reader.wires)


@dataclass
class _Reader:
    ports: dict[str, z3.BitVecRef]
    sorts: dict[int, int] = field(default_factory=dict)
    terms: dict[int, z3.BitVecRef] = field(default_factory=dict)
    inputs: dict[str, z3.BitVecRef] = field(default_factory=dict)
    outputs: dict[str, z3.BitVecRef] = field(default_factory=dict)
    wires: dict[str, z3.ExprRef] = field(default_factory=dict)

    def line(self, number: int, kind: str, words: list[str]) -> None:
        if kind == "sort":
            if words[0] != "bitvec":
                raise HardwareError("the design has memories; only combinational designs are read")
            self.sorts[number] = int(words[1])
        elif kind == "state":  # what has no next state may be anything: yosys says so of what is undefined
            self.terms[number] = self._term("input", self.sorts[int(words[0])], words[1:])
        elif kind in ("init", "next"):
            raise HardwareError(
                "the design has registers or latches; only combinational designs are read: take the stages between "
                "registers as modules of their own, or unroll it"
            )
        elif kind == "output":
            self.outputs[words[1]] = self._of(words[0])
        elif kind not in ("bad", "constraint", "fair", "justice"):
            self.terms[number] = self._term(kind, self.sorts[int(words[0])], words[1:])
            self._name(number, kind, words)

    def _name(self, number: int, kind: str, words: list[str]) -> None:
        """What stands after the operands is a name; what has one is a wire."""
        count = 1 + _COUNTS.get(kind, 0)
        if kind != "input" and len(words) > count:
            self.wires.setdefault(words[count], self.terms[number])

    def _of(self, word: str) -> z3.BitVecRef:
        number = int(word)
        return ~self.terms[-number] if number < 0 else self.terms[number]

    def _term(self, kind: str, bits: int, words: list[str]) -> z3.BitVecRef:
        if kind == "input":
            name = words[0] if words else f"undefined_{len(self.inputs)}"
            given = self.ports.get(name)
            if given is not None and given.size() != bits:
                raise HardwareError(f"the port {name} has {bits} bits; {given.size()} are needed")
            self.inputs[name] = given if given is not None else z3.BitVec(name, bits)
            return self.inputs[name]
        if kind in _NUMBERS:
            return z3.BitVecVal(_NUMBERS[kind](words, bits), bits)
        if kind == "slice":
            return sliced(self._of(words[0]), int(words[1]), int(words[2]))
        if kind in ("uext", "sext"):
            extend, more = z3.ZeroExt if kind == "uext" else z3.SignExt, int(words[1])
            return extend(more, self._of(words[0])) if more else self._of(words[0])
        operands = [self._of(word) for word in words[: _COUNTS[kind]]]
        return _READ[kind](*operands)


def sliced(term: z3.BitVecRef, high: int, low: int) -> z3.BitVecRef:
    """Bits of a term: of the part that has them, where it is put together."""
    if high - low + 1 == term.size():
        return term
    kind = term.decl().kind()
    if kind == z3.Z3_OP_EXTRACT:
        below = term.params()[1]
        return sliced(_bits(term.arg(0)), high + below, low + below)
    if kind == z3.Z3_OP_CONCAT:
        parts, at = [], 0
        for part in reversed(term.children()):
            end = at + part.size()
            if at <= high and low < end:
                parts.append(sliced(part, min(high, end - 1) - at, max(low, at) - at))
            at = end
        return z3.Concat(*reversed(parts)) if len(parts) > 1 else parts[0]
    return z3.Extract(high, low, term)


def _bits(term: z3.ExprRef) -> z3.BitVecRef:
    assert isinstance(term, z3.BitVecRef)
    return term


def _bit(claim: z3.BoolRef) -> z3.BitVecRef:
    return z3.If(claim, z3.BitVecVal(1, 1), z3.BitVecVal(0, 1))


def _parity(x: z3.BitVecRef) -> z3.BitVecRef:
    out = sliced(x, 0, 0)
    for i in range(1, x.size()):
        out ^= sliced(x, i, i)
    return out


_NUMBERS: dict[str, Callable[[list[str], int], int]] = {
    "const": lambda words, bits: int(words[0], 2),
    "constd": lambda words, bits: int(words[0]),
    "consth": lambda words, bits: int(words[0], 16),
    "zero": lambda words, bits: 0,
    "one": lambda words, bits: 1,
    "ones": lambda words, bits: (1 << bits) - 1,
}
_READ: dict[str, Callable[..., z3.BitVecRef]] = {
    "not": lambda x: ~x,
    "neg": lambda x: -x,
    "inc": lambda x: x + 1,
    "dec": lambda x: x - 1,
    "redand": lambda x: _bit(x == z3.BitVecVal(-1, x.size())),
    "redor": lambda x: _bit(x != 0) if x.size() > 1 else x,
    "redxor": _parity,
    "and": lambda x, y: x & y,
    "nand": lambda x, y: ~(x & y),
    "or": lambda x, y: x | y,
    "nor": lambda x, y: ~(x | y),
    "xor": lambda x, y: x ^ y,
    "xnor": lambda x, y: ~(x ^ y),
    "iff": lambda x, y: ~(x ^ y),
    "implies": lambda x, y: ~x | y,
    "eq": lambda x, y: _bit(x == y),
    "neq": lambda x, y: _bit(x != y),
    "ugt": lambda x, y: _bit(z3.UGT(x, y)),
    "ugte": lambda x, y: _bit(z3.UGE(x, y)),
    "ult": lambda x, y: _bit(z3.ULT(x, y)),
    "ulte": lambda x, y: _bit(z3.ULE(x, y)),
    "sgt": lambda x, y: _bit(x > y),
    "sgte": lambda x, y: _bit(x >= y),
    "slt": lambda x, y: _bit(x < y),
    "slte": lambda x, y: _bit(x <= y),
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "udiv": z3.UDiv,
    "urem": z3.URem,
    "sdiv": lambda x, y: x / y,
    "srem": z3.SRem,
    "smod": lambda x, y: x % y,
    "sll": lambda x, y: x << y,
    "srl": z3.LShR,
    "sra": lambda x, y: x >> y,
    "rol": z3.RotateLeft,
    "ror": z3.RotateRight,
    "concat": z3.Concat,
    "ite": lambda flag, x, y: z3.If(flag == 1, x, y),
}
#: How many words after the sort belong to an operation; what follows is its name.
_COUNTS = {
    **{
        kind: function.__code__.co_argcount
        for kind, function in _READ.items()
        if hasattr(function, "__code__")
    },
    **dict.fromkeys(("udiv", "urem", "srem", "srl", "rol", "ror", "concat"), 2),
    **dict.fromkeys(("const", "constd", "consth"), 1),
    **dict.fromkeys(("zero", "one", "ones"), 0),
    **dict.fromkeys(("uext", "sext"), 2),
    "slice": 3,
}

__all__ = ["btor2", "read_btor2", "sliced"]
