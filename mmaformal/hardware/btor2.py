"""BTOR2 (Niemetz, Preiner, Wolf, Biere, CAV 2018): combinational modules written as it.  `read_btor2` reads it."""

from __future__ import annotations

import z3

from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.systemverilog import operations

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
