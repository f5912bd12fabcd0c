"""Modules written as SystemVerilog (IEEE 1800-2017): one `assign` for each term, shared terms once.

Only operators whose meaning does not depend on what stands around them are used, each on a wire of its own width, so
that no context extends an operand: an addition of n bits is assigned to n bits.  Comparisons and shifts of signed
numbers are between `$signed` wires.  A shift by at least the width gives zeros (ones or zeros, if arithmetic), in
SystemVerilog as in SMT-LIB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import z3

from mmaformal.hardware.module import HardwareError, Module

_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        "always and assign begin bit buf case cell config design do edge else end event final for force "
        "global if include initial inout input int join library local logic module nand negedge new nor not "
        "null or output parameter posedge priority pull0 pull1 rand reg release repeat return signed small "
        "strong0 super supply0 table task this time tran tri type unique use var void wait wand weak0 while "
        "wire with wor xnor xor ",
    )
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def systemverilog(module: Module, comment: str = "") -> str:
    """A combinational module of the terms, the wires under their names.

    Raises HardwareError for a name that SystemVerilog does not allow.
    """
    for name in (module.name, *module.ports):
        if not _NAME.fullmatch(name) or name in _KEYWORDS:
            raise HardwareError(f"{name!r} is no name in SystemVerilog; give another with --name")
    writer = _Writer(module)
    ports = [f"    input  logic {_range(term.size())}{name}" for name, term in module.inputs.items()]
    ports += [f"    output logic {_range(term.size())}{name}" for name, term in module.outputs.items()]
    head = [f"// {line}".rstrip() for line in comment.splitlines()]
    body = writer.body()
    lines = [*head, "`default_nettype none", f"module {module.name} (", ",\n".join(ports), ");"]
    return "\n".join([*lines, *body, "endmodule", "`default_nettype wire"]) + "\n"


def _range(bits: int | None) -> str:
    return "" if bits in (None, 1) else f"[{bits - 1}:0] "


def _bits(term: z3.ExprRef) -> int:
    return term.size() if isinstance(term, z3.BitVecRef) else 1


class _Writer:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.texts: dict[int, str] = {}  #: of each term: a wire, a port or a number
        self.lines: list[str] = []
        self.taken = {"unused", *module.ports, *_KEYWORDS}
        self.names: dict[int, str] = {}
        self.kept: list[z3.ExprRef] = []  #: so that no id is given twice
        self.read: dict[str, int] = {}  #: of each wire and input, the bits that are read, as a mask
        self.bits = {name: term.size() for name, term in module.inputs.items()}
        for name, term in module.inputs.items():
            self.texts[term.get_id()] = name
        for name, term in module.wires.items():
            if term.get_id() not in self.texts and not _is_value(term):
                self.names.setdefault(term.get_id(), self._fresh(name))

    def _fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def body(self) -> list[str]:
        for term in (*self.module.wires.values(), *self.module.outputs.values()):
            self._write(term)
        ends = [
            f"    assign {name} = {self.texts[term.get_id()]};" for name, term in self.module.outputs.items()
        ]
        used = self._unused()
        return [*self.lines, *used, *ends]

    def _unused(self) -> list[str]:
        """Bits that nothing reads are read once, so that linters know that it is meant."""
        ends = {self.texts[term.get_id()] for term in self.module.outputs.values()}
        parts = []
        for name, bits in self.bits.items():
            left = ~self.read.get(name, 0) & ((1 << bits) - 1)
            if left and name not in ends:
                parts += (
                    [name]
                    if left == (1 << bits) - 1
                    else [f"{name}[{i}]" for i in range(bits) if left >> i & 1]
                )
        return [f"    wire unused = &{{1'b0, {', '.join(parts)}}};"] if parts else []

    def _write(self, root: z3.ExprRef) -> None:
        stack = [root]
        while stack:
            term = stack[-1]
            if term.get_id() in self.texts:
                stack.pop()
                continue
            todo = [x for x in term.children() if x.get_id() not in self.texts]
            if todo:
                stack += todo
                continue
            stack.pop()
            self._define(term)

    def _define(self, term: z3.ExprRef) -> None:
        if _is_value(term):
            self.texts[term.get_id()] = _number(term)
            return
        if term.num_args() == 0:
            raise HardwareError(f"{term} is no input of {self.module.name}")
        name = self.names.get(term.get_id()) or self._fresh(f"t{len(self.lines)}")
        self.kept.append(term)
        self.texts[term.get_id()] = name
        for x in term.children():
            mask = (1 << _bits(x)) - 1
            if term.decl().kind() == z3.Z3_OP_EXTRACT:
                high, low = term.params()
                mask = (2 << high) - (1 << low)
            text = self.texts[x.get_id()]
            self.read[text] = self.read.get(text, 0) | mask
        said = self._said(term)
        self.bits[name] = _bits(term)
        self.lines.append(f"    wire {_range(_bits(term))}{name} = {said};")

    def _said(self, term: z3.ExprRef) -> str:
        kind, operands = term.decl().kind(), [self.texts[x.get_id()] for x in term.children()]
        if kind not in _WRITTEN:
            raise HardwareError(
                f"{term.decl().name()} is no operation of combinational hardware that is written"
            )
        return _WRITTEN[kind](term, operands, self)


def _is_value(term: z3.ExprRef) -> bool:
    return bool(z3.is_bv_value(term) or z3.is_true(term) or z3.is_false(term))


def _number(term: z3.ExprRef) -> str:
    if isinstance(term, z3.BitVecNumRef):
        return _hex(term.size(), term.as_long())
    return "1'b1" if z3.is_true(term) else "1'b0"


def _hex(bits: int, value: int) -> str:
    return f"{bits}'h{value & ((1 << bits) - 1):x}"


Said = Callable[[z3.ExprRef, list[str], _Writer], str]


def _infix(operator: str) -> Said:
    return lambda term, operands, writer: f" {operator} ".join(operands)


def _unsigned(operator: str, zero: int, said: str) -> Said:
    """A comparison; what it always is where operand number `zero` is 0, as linters want it said."""

    def write(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
        x = term.arg(zero)
        none = isinstance(x, z3.BitVecNumRef) and x.as_long() == 0
        return said if none else f" {operator} ".join(operands)

    return write


def _signed(operator: str) -> Said:
    return lambda term, operands, writer: f" {operator} ".join(f"$signed({x})" for x in operands)


def _extract(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
    (operand,) = operands
    high, low = term.params()
    if term.arg(0).size() == 1:
        return operand
    if isinstance(term.arg(0), z3.BitVecNumRef):
        return _hex(high - low + 1, term.arg(0).as_long() >> low)
    return f"{operand}[{high}]" if high == low else f"{operand}[{high}:{low}]"


def _zero_extend(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
    more = term.size() - term.arg(0).size()
    return f"{{{more}'h0, {operands[0]}}}" if more else operands[0]


def _sign_extend(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
    bits = term.arg(0).size()
    more = term.size() - bits
    if isinstance(term.arg(0), z3.BitVecNumRef):
        return _hex(bits + more, term.arg(0).as_signed_long())
    (operand,) = operands
    top = operand if bits == 1 else f"{operand}[{bits - 1}]"
    return f"{{{{{more}{{{top}}}}}, {operand}}}" if more else operand


def _concat(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
    return f"{{{', '.join(operands)}}}"


def _arithmetic_shift(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
    return f"$signed({operands[0]}) >>> {operands[1]}"


def _prefix(operator: str) -> Said:
    return lambda term, operands, writer: f"{operator}{operands[0]}"


def _boolean(operator: str, none: str) -> Said:
    return lambda term, operands, writer: f" {operator} ".join(operands) if operands else none


def _implies(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
    return f"~{operands[0]} | {operands[1]}"


def _distinct(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
    pairs = [f"({x} != {y})" for i, x in enumerate(operands) for y in operands[i + 1 :]]
    return " & ".join(pairs)


def _choice(term: z3.ExprRef, operands: list[str], writer: _Writer) -> str:
    return f"{operands[0]} ? {operands[1]} : {operands[2]}"


_WRITTEN: dict[int, Said] = {
    z3.Z3_OP_AND: _boolean("&", "1'b1"),
    z3.Z3_OP_OR: _boolean("|", "1'b0"),
    z3.Z3_OP_XOR: _infix("^"),
    z3.Z3_OP_NOT: _prefix("~"),
    z3.Z3_OP_IMPLIES: _implies,
    z3.Z3_OP_EQ: _infix("=="),
    z3.Z3_OP_DISTINCT: _distinct,
    z3.Z3_OP_ITE: _choice,
    z3.Z3_OP_BADD: _infix("+"),
    z3.Z3_OP_BSUB: _infix("-"),
    z3.Z3_OP_BMUL: _infix("*"),
    z3.Z3_OP_BNEG: _prefix("-"),
    z3.Z3_OP_BNOT: _prefix("~"),
    z3.Z3_OP_BAND: _infix("&"),
    z3.Z3_OP_BOR: _infix("|"),
    z3.Z3_OP_BXOR: _infix("^"),
    z3.Z3_OP_BSHL: _infix("<<"),
    z3.Z3_OP_BLSHR: _infix(">>"),
    z3.Z3_OP_BASHR: _arithmetic_shift,
    z3.Z3_OP_CONCAT: _concat,
    z3.Z3_OP_EXTRACT: _extract,
    z3.Z3_OP_ZERO_EXT: _zero_extend,
    z3.Z3_OP_SIGN_EXT: _sign_extend,
    z3.Z3_OP_ULEQ: _unsigned("<=", 0, "1'b1"),
    z3.Z3_OP_ULT: _unsigned("<", 1, "1'b0"),
    z3.Z3_OP_UGEQ: _unsigned(">=", 1, "1'b1"),
    z3.Z3_OP_UGT: _unsigned(">", 0, "1'b0"),
    z3.Z3_OP_SLEQ: _signed("<="),
    z3.Z3_OP_SLT: _signed("<"),
    z3.Z3_OP_SGEQ: _signed(">="),
    z3.Z3_OP_SGT: _signed(">"),
}


def operations(module: Module) -> Iterator[z3.ExprRef]:
    """Every term of the outputs once, operands first."""
    seen: set[int] = set()
    stack: list[tuple[z3.ExprRef, bool]] = [(term, False) for term in module.outputs.values()]
    while stack:
        term, ready = stack.pop()
        if ready:
            yield term
        elif term.get_id() not in seen:
            seen.add(term.get_id())
            stack.append((term, True))
            stack += [(x, False) for x in term.children()]
