"""Terms compiled to machine code (LLVM, which numba brings), to run a design on rows by the million.

Words of any width are LLVM's own integers.  Nothing that is proved rests on it; a witness is run once more by
`evaluate`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence

import llvmlite.binding as llvm
import numpy as np
import z3
from numpy.typing import NDArray

from mmaformal.hardware.rebuild import is_variable

_WORD = 64
_HEAD = """define void @run(i64 %n, ptr %in, ptr %out) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
"""
_TAIL = """  %place = getelementptr i64, ptr %out, i64 %i
  store i64 %result, ptr %place
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
_BINARY = {
    z3.Z3_OP_BADD: "add",
    z3.Z3_OP_BSUB: "sub",
    z3.Z3_OP_BMUL: "mul",
    z3.Z3_OP_BAND: "and",
    z3.Z3_OP_BOR: "or",
    z3.Z3_OP_BXOR: "xor",
    z3.Z3_OP_AND: "and",
    z3.Z3_OP_OR: "or",
    z3.Z3_OP_XOR: "xor",
}
_ORDER = {
    z3.Z3_OP_EQ: "eq",
    z3.Z3_OP_DISTINCT: "ne",
    z3.Z3_OP_ULEQ: "ule",
    z3.Z3_OP_ULT: "ult",
    z3.Z3_OP_UGEQ: "uge",
    z3.Z3_OP_UGT: "ugt",
    z3.Z3_OP_SLEQ: "sle",
    z3.Z3_OP_SLT: "slt",
    z3.Z3_OP_SGEQ: "sge",
    z3.Z3_OP_SGT: "sgt",
}
_SHIFTS = {z3.Z3_OP_BSHL: "shl", z3.Z3_OP_BLSHR: "lshr", z3.Z3_OP_BASHR: "ashr"}
_DIVISIONS = {
    z3.Z3_OP_BUDIV: ("udiv", "zext"),
    z3.Z3_OP_BUDIV_I: ("udiv", "zext"),
    z3.Z3_OP_BUREM: ("urem", "zext"),
    z3.Z3_OP_BUREM_I: ("urem", "zext"),
    z3.Z3_OP_BSDIV: ("sdiv", "sext"),
    z3.Z3_OP_BSREM: ("srem", "sext"),
}


class Compiled:
    """A term of at most 64 bits as a function of columns of its constants."""

    def __init__(self, term: z3.BitVecRef, constants: Sequence[z3.BitVecRef]) -> None:
        """Raises ValueError for an operation that is not known, and a constant that is not among those named."""
        self.constants = {str(x): x.size() for x in constants}
        self._engine, self._run = _machine(_Writer(self.constants).text(term))

    def __call__(self, values: Mapping[str, NDArray[np.generic]], count: int) -> NDArray[np.uint64]:
        """The term for each row of the values of its constants, by name: unsigned integers."""
        rows = [row for name, bits in self.constants.items() for row in _words(values[name], bits, count)]
        given = np.ascontiguousarray(np.stack(rows)) if rows else np.zeros((0, count), np.uint64)
        found = np.zeros(count, np.uint64)
        self._run(count, given.ctypes.data, found.ctypes.data)
        return found


def _words(column: NDArray[np.generic], bits: int, count: int) -> list[NDArray[np.uint64]]:
    """A column in words of 64 bits, the lowest first."""
    if bits <= _WORD:
        return [np.broadcast_to(np.asarray(column), count).astype(np.uint64)]
    wide = np.broadcast_to(np.asarray(column, object), count)
    mask = (1 << _WORD) - 1
    return [((wide >> low) & mask).astype(np.uint64) for low in range(0, bits, _WORD)]


def _machine(text: str) -> tuple[object, Callable[[int, int, int], None]]:
    """A module compiled: what keeps it alive, and its function."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    module = llvm.parse_assembly(text)
    module.verify()
    passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=1))
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    address = engine.get_function_address("run")
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(address)
    return engine, function


class _Writer:
    """LLVM's text of a term."""

    def __init__(self, constants: Mapping[str, int]) -> None:
        self.constants = constants
        self.lines: list[str] = []
        self.named: dict[int, str] = {}

    def text(self, term: z3.BitVecRef) -> str:
        places: dict[str, int] = {}
        words = 0
        for name, bits in self.constants.items():
            places[name] = words
            words += -(-bits // _WORD)
        stack = [(term, False)]
        while stack:
            node, ready = stack.pop()
            if node.get_id() in self.named:
                continue
            if not ready:
                stack.append((node, True))
                stack += [(x, False) for x in node.children()]
                continue
            self.named[node.get_id()] = self._value(node, places)
        result = self.cast("zext", self.named[term.get_id()], term.size(), _WORD)
        end = f"  %result = add i64 {result}, 0\n"
        return _HEAD + "".join(f"  {line}\n" for line in self.lines) + end + _TAIL

    def line(self, text: str) -> str:
        """An instruction; the name of what it gives."""
        name = f"%t{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def cast(self, how: str, x: str, bits: int, to: int) -> str:
        return x if bits == to else self.line(f"{how} i{bits} {x} to i{to}")

    def _value(self, node: z3.ExprRef, places: Mapping[str, int]) -> str:
        if isinstance(node, z3.BitVecNumRef):
            return str(node.as_long())
        if z3.is_true(node) or z3.is_false(node):
            return str(int(z3.is_true(node)))
        if is_variable(node):
            return self._load(str(node), places)
        operands = [self.named[x.get_id()] for x in node.children()]
        return self._operation(node, node.decl().kind(), operands)

    def _load(self, name: str, places: Mapping[str, int]) -> str:
        if name not in places:
            raise ValueError(f"{name} has no values")
        bits, found = self.constants[name], ""
        for word in range(-(-bits // _WORD)):
            first = self.line(f"mul i64 %n, {places[name] + word}")
            at = self.line(f"add i64 {first}, %i")
            place = self.line(f"getelementptr i64, ptr %in, i64 {at}")
            read = self.line(f"load i64, ptr {place}")
            if bits <= _WORD:
                return self.cast("trunc", read, _WORD, bits)
            total = -(-bits // _WORD) * _WORD
            part = self.line(f"shl i{total} {self.cast('zext', read, _WORD, total)}, {word * _WORD}")
            found = self.line(f"or i{total} {found}, {part}") if found else part
        return self.cast("trunc", found, -(-bits // _WORD) * _WORD, bits)

    def _operation(self, node: z3.ExprRef, kind: int, x: list[str]) -> str:
        bits = _bits(node)
        below = _bits(node.arg(0))
        if kind in _BINARY:
            out = x[0]
            for other in x[1:]:
                out = self.line(f"{_BINARY[kind]} i{bits} {out}, {other}")
            return out
        if kind in _ORDER and len(x) == 2:
            return self.line(f"icmp {_ORDER[kind]} i{below} {x[0]}, {x[1]}")
        if kind in _SHIFTS:
            return self._shift(_SHIFTS[kind], bits, x)
        if kind == z3.Z3_OP_ITE:
            return self.line(f"select i1 {x[0]}, i{bits} {x[1]}, i{bits} {x[2]}")
        if kind == z3.Z3_OP_EXTRACT:
            low = node.params()[1]
            moved = self.line(f"lshr i{below} {x[0]}, {low}") if low else x[0]
            return self.cast("trunc", moved, below, bits)
        if kind in (z3.Z3_OP_ZERO_EXT, z3.Z3_OP_SIGN_EXT):
            return self.cast("zext" if kind == z3.Z3_OP_ZERO_EXT else "sext", x[0], below, bits)
        if kind == z3.Z3_OP_CONCAT:
            return self._concat(node, bits, x)
        if kind in (z3.Z3_OP_BNOT, z3.Z3_OP_NOT):
            return self.line(f"xor i{bits} {x[0]}, -1")
        if kind == z3.Z3_OP_BNEG:
            return self.line(f"sub i{bits} 0, {x[0]}")
        if kind == z3.Z3_OP_IMPLIES:
            return self.line(f"or i1 {self.line(f'xor i1 {x[0]}, -1')}, {x[1]}")
        if kind in _DIVISIONS:
            return self._division(kind, bits, x)
        raise ValueError(f"{node.decl().name()} is not compiled")

    def _shift(self, how: str, bits: int, x: list[str]) -> str:
        """By as many as there are bits, or more, a shift gives 0, or the sign: LLVM does not define it."""
        least = min(bits, (1 << bits) - 1)
        beyond = self.line(f"icmp uge i{bits} {x[1]}, {least}") if least == bits else "0"
        if how == "ashr":
            by = self.line(f"select i1 {beyond}, i{bits} {bits - 1}, i{bits} {x[1]}") if bits > 1 else "0"
            return self.line(f"ashr i{bits} {x[0]}, {by}")
        moved = self.line(f"{how} i{bits} {x[0]}, {x[1]}")
        return self.line(f"select i1 {beyond}, i{bits} 0, i{bits} {moved}")

    def _concat(self, node: z3.ExprRef, bits: int, x: list[str]) -> str:
        out, low = "", bits
        for part, term in zip(x, node.children(), strict=True):
            low -= _bits(term)
            wide = self.cast("zext", part, _bits(term), bits)
            moved = self.line(f"shl i{bits} {wide}, {low}") if low else wide
            out = self.line(f"or i{bits} {out}, {moved}") if out else moved
        return out

    def _division(self, kind: int, bits: int, x: list[str]) -> str:
        """Divide as SMT-LIB does: by zero a quotient is all ones (1 of a negative number), a remainder the dividend."""
        name, extend = _DIVISIONS[kind]
        wide = bits + 1
        u, v = (self.cast(extend, each, bits, wide) for each in x)
        zero = self.line(f"icmp eq i{bits} {x[1]}, 0")
        safe = self.line(f"select i1 {zero}, i{wide} 1, i{wide} {v}")
        out = self.cast("trunc", self.line(f"{name} i{wide} {u}, {safe}"), wide, bits)
        if name.endswith("rem"):
            return self.line(f"select i1 {zero}, i{bits} {x[0]}, i{bits} {out}")
        default = "-1"
        if name == "sdiv":
            negative = self.line(f"icmp slt i{bits} {x[0]}, 0")
            default = self.line(f"select i1 {negative}, i{bits} 1, i{bits} -1")
        return self.line(f"select i1 {zero}, i{bits} {default}, i{bits} {out}")


def _bits(term: z3.ExprRef) -> int:
    return term.size() if isinstance(term, z3.BitVecRef) else 1
