"""BTOR2 read as a combinational module: every line is checked, and what is not understood is refused.

What has no value is a constant of its own in `Module.undefined`: an input without a name, and a state that nothing
sets.  Each is called by its line, in words with spaces between them, which no symbol of BTOR2 has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import z3

from mmaformal.hardware.module import HardwareError, Module
from mmaformal.hardware.undefined import ConstantBit, places

#: A number of these bits is what a design of this size may have; more are taken for an error in the file.
_MOST_BITS = 1 << 20

REGISTERS = (
    "the design has registers or latches; only combinational designs are read: take the stages between registers as "
    "modules of their own, or unroll it"
)


def read_btor2(
    text: str,
    name: str,
    ports: Mapping[str, z3.BitVecRef] | None = None,
    *,
    of_verilog: bool = False,
) -> Module:
    """A combinational module from BTOR2.  `ports` are terms to be read in the place of inputs of these names.

    A quotient and a remainder by zero are BTOR2's (all ones, the dividend), and an undefined signal has one value; with
    `of_verilog` such a quotient is undefined, and an undefined signal is another one wherever it is used, as x ^ x
    is x in Verilog, and as synthesis may choose for each use.

    What is `bad`, `fair` or `justice` says nothing of the outputs, and is left out.  Raises HardwareError for
    registers, memories, a `constraint`, two inputs or outputs of one name, and, with its number, for a line that is not
    BTOR2: an operation or sort that is not there, operands of other widths, a slice out of range.
    """
    reader = _Reader(dict(ports or {}), of_verilog)
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split(";")[0].split()
        if not words:
            continue
        try:
            reader.line(words)
        except _LineError as error:
            raise HardwareError(f"{name}: line {number} is not BTOR2: {line.strip()!r}: {error}") from None
        except HardwareError as error:
            raise HardwareError(f"{name}: line {number}: {error}") from None
    if not reader.outputs:
        raise HardwareError(
            f"{name} has no outputs: if it is a testbench, name the design's module with --top, or leave its file out"
        )
    return Module(name, reader.inputs, reader.outputs, reader.wires, reader.undefined)


class _LineError(Exception):
    """A line is wrong; the message says how."""


@dataclass
class _Reader:
    ports: dict[str, z3.BitVecRef]
    of_verilog: bool = False
    sorts: dict[int, int] = field(default_factory=dict)
    terms: dict[int, z3.BitVecRef] = field(default_factory=dict)
    inputs: dict[str, z3.BitVecRef] = field(default_factory=dict)
    outputs: dict[str, z3.BitVecRef] = field(default_factory=dict)
    wires: dict[str, z3.ExprRef] = field(default_factory=dict)
    undefined: dict[str, z3.BitVecRef] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)  #: numbers of lines so far
    states: set[int] = field(default_factory=set)  #: those of states
    loose: dict[int, dict[int, ConstantBit]] = field(
        default_factory=dict
    )  #: the undefined bits that a line puts in places
    uses: dict[ConstantBit, int] = field(default_factory=dict)  #: of each undefined bit
    _names: dict[str, z3.BitVecRef] = field(default_factory=dict)  #: of what is undefined

    def line(self, words: Sequence[str]) -> None:
        """Take one line.  Raises _LineError, HardwareError."""
        if len(words) < 2:
            raise _LineError("a number and an operation are needed")
        number, kind = _integer(words[0]), words[1]
        if number < 1:
            raise _LineError("a line's number is positive")
        if number in self.used:
            raise _LineError(f"{number} is the number of a line before it")
        self.used.add(number)
        if kind == "sort":
            self._sort(number, words[2:])
        elif kind in ("bad", "fair", "justice"):
            return
        elif kind == "constraint":
            raise HardwareError(
                "the design assumes something (`constraint`, `assume`), and a sign-off is about every input: take the "
                "assumption out"
            )
        elif kind in ("init", "next"):
            self._next(kind, words[2:])
        elif kind == "output":
            self._output(words[2:])
        else:
            self._value(number, kind, words[2:])

    def _sort(self, number: int, words: Sequence[str]) -> None:
        if words[:1] == ["array"]:
            raise HardwareError("the design has memories; only combinational designs are read")
        if words[:1] != ["bitvec"] or len(words) != 2:
            raise _LineError("a sort is `bitvec` and its width")
        width = _integer(words[1])
        if not 1 <= width <= _MOST_BITS:
            raise _LineError(f"a width is 1 to {_MOST_BITS}, not {width}")
        self.sorts[number] = width

    def _next(self, kind: str, words: Sequence[str]) -> None:
        """A state that is the next state of itself is any value, the same for ever; every other one is a register."""
        if kind == "init" or len(words) < 3 or words[1] != words[2] or _integer(words[1]) not in self.states:
            raise HardwareError(REGISTERS)

    def _output(self, words: Sequence[str]) -> None:
        if len(words) != 2:
            raise _LineError("an output is the number of a line and a name")
        self._claim(words[1], "output")
        self.outputs[words[1]] = self._of(words[0])

    def _claim(self, name: str, what: str) -> None:
        """Raises HardwareError if there is a port of that name."""
        if name in self.inputs or name in self.outputs or f"{name} " in self.undefined:
            raise HardwareError(f"this {what} is called {name}, as another input, state or output is")

    def _value(self, number: int, kind: str, words: Sequence[str]) -> None:
        """A line that has a value."""
        if not words:
            raise _LineError("the sort is missing")
        bits = self.sorts.get(_integer(words[0]))
        if bits is None:
            raise _LineError(f"there is no sort {words[0]} before it")
        count = 1 if kind in ("input", "state") else _words_of(kind)
        if not count <= len(words) <= count + 1:
            said = "a sort" + (f" and {count - 1} more" if count > 1 else "")
            raise _LineError(f"{kind} takes {said}, and may have one symbol")
        symbol = words[count] if len(words) > count else ""
        if kind in ("input", "state"):
            self.terms[number] = self._free(number, kind, bits, symbol)
            self.loose[number] = self._undefined_in(self.terms[number])
            return
        term = self._term(number, kind, bits, words[1:count])
        if term.size() != bits:
            raise _LineError(f"its sort has {bits} bits, {kind} of these operands {term.size()}")
        self.terms[number] = term
        if kind in _REARRANGING and (moved := self._moved(kind, words[1:count], term)):
            self.loose[number] = moved
        if symbol:
            self.wires.setdefault(symbol, term)

    def _of(self, word: str, *, used: bool = True) -> z3.BitVecRef:
        """The value of a line before, or its complement; `used` unless its bits are only put in other places.

        Raises _LineError.
        """
        number = _integer(word)
        if abs(number) not in self.terms:
            raise _LineError(f"there is no value {abs(number)} before it")
        term = self._for_one_use(abs(number)) if used else self.terms[abs(number)]
        return ~term if number < 0 else term

    def _undefined_in(self, term: z3.BitVecRef) -> dict[int, ConstantBit]:
        """The places of a term that are undefined bits as they were."""
        if not (self.of_verilog and self.undefined):
            return {}
        own = self._by_name()
        return {place: bit for place, bit in places(term) if bit[0] in own}

    def _moved(self, kind: str, words: Sequence[str], term: z3.BitVecRef) -> dict[int, ConstantBit]:
        """Undefined bits that a line only puts in other places, by these places."""
        first, *others = (
            self.loose.get(_integer(word), {}) for word in words[: 2 if kind == "concat" else 1]
        )
        if kind == "slice":
            high, low = _integer(words[1]), _integer(words[2])
            return {place - low: bit for place, bit in first.items() if low <= place <= high}
        if kind != "concat":
            return first
        (second,) = others
        if {*first.values()} & {*second.values()}:
            return self._undefined_in(term)
        low = self.terms[abs(_integer(words[1]))].size()
        return {**second, **{place + low: bit for place, bit in first.items()}}

    def _by_name(self) -> dict[str, z3.BitVecRef]:
        """Return what is undefined, by the names of its constants."""
        for x in islice(self.undefined.values(), len(self._names), None):
            self._names[x.decl().name()] = x
        return self._names

    def _for_one_use(self, number: int) -> z3.BitVecRef:
        """The value of a line, its undefined bits being others than those used before."""
        loose, term = [*self.loose.get(number, {}).values()], self.terms[number]
        if not loose:
            return term
        use = max(self.uses.get(bit, 0) for bit in loose) + 1
        self.uses.update(dict.fromkeys(loose, use))
        return self._copy(term, loose, use) if use > 1 else term

    def _copy(self, term: z3.BitVecRef, loose: Sequence[ConstantBit], use: int) -> z3.BitVecRef:
        by_name = self._by_name()
        pairs = []
        for name in dict.fromkeys(name for name, _ in loose):
            key = f"{name}, use {use}"
            copy = self.undefined.setdefault(key, z3.BitVec(key, by_name[name].size()))
            pairs.append((by_name[name], copy))
        return z3.substitute(term, *pairs)

    def _joined(self, words: Sequence[str]) -> z3.BitVecRef:
        """Two values side by side; what is undefined in both is another signal in the second."""
        first, second = ({*self.loose.get(abs(_integer(word)), {}).values()} for word in words)
        for bit in first & second:
            self.uses.setdefault(bit, 1)
        return z3.Concat(self._of(words[0], used=False), self._of(words[1], used=bool(first & second)))

    def _free(self, number: int, kind: str, bits: int, symbol: str) -> z3.BitVecRef:
        """An input, or what has no value."""
        if symbol:
            self._claim(symbol, kind)
        if kind == "state":
            self.states.add(number)
        if kind == "state" or not symbol:
            return self._any(number, bits, symbol)
        given = self.ports.get(symbol)
        if given is not None and given.size() != bits:
            raise HardwareError(f"the port {symbol} has {bits} bits; {given.size()} are needed")
        self.inputs[symbol] = given if given is not None else z3.BitVec(symbol, bits)
        return self.inputs[symbol]

    def _any(self, number: int, bits: int, symbol: str = "") -> z3.BitVecRef:
        """A constant of its own; it has a space in its name, and symbols are words between spaces."""
        key = f"{symbol} " if symbol else f"line {number}"
        if " " not in key or key in self.undefined:
            raise HardwareError(f"line {number}: this signal has no name of its own")
        self.undefined[key] = z3.BitVec(f"undefined, of line {number}", bits)
        return self.undefined[key]

    def _term(self, number: int, kind: str, bits: int, words: Sequence[str]) -> z3.BitVecRef:
        if kind in _NUMBERS:
            return z3.BitVecVal(_NUMBERS[kind](words, bits), bits)
        if kind == "slice":
            term, high, low = self._of(words[0], used=False), _integer(words[1]), _integer(words[2])
            if not 0 <= low <= high < term.size():
                raise _LineError(f"there are no bits {high} to {low} of {term.size()}")
            return sliced(term, high, low)
        if kind in ("uext", "sext"):
            extend, more = z3.ZeroExt if kind == "uext" else z3.SignExt, _integer(words[1])
            if not 0 <= more <= _MOST_BITS:
                raise _LineError(f"{more} more bits")
            term = self._of(words[0], used=False)
            return extend(more, term) if more else term
        if kind == "concat":
            return self._joined(words)
        operands = [self._of(word) for word in words]
        _check_operands(kind, operands)
        term = _READ[kind](*operands)
        if kind in _DIVISIONS and self.of_verilog:
            return z3.If(operands[1] == 0, self._any(number, bits), term)
        return term


def _integer(word: str) -> int:
    """A decimal integer.  Raises _LineError: Python's own take 1_000 and other digits."""
    if not re.fullmatch(r"-?[0-9]+", word):
        raise _LineError(f"{word} is no integer")
    return int(word)


def _words_of(kind: str) -> int:
    """How many words belong to an operation, its sort included; what follows is its name."""
    for kinds, count in _COUNTS.items():
        if kind in kinds:
            return count
    raise _LineError(f"{kind} is no operation of BTOR2")


def _check_operands(kind: str, operands: Sequence[z3.BitVecRef]) -> None:
    """Raises _LineError for operands of widths that an operation does not take."""
    widths = [x.size() for x in operands]
    same = widths[1:] if kind == "ite" else [] if kind == "concat" else widths
    if len(set(same)) > 1:
        raise _LineError(f"operands of {' and '.join(map(str, same))} bits")
    if (kind == "ite" and widths[0] != 1) or (kind in ("iff", "implies") and set(widths) != {1}):
        raise _LineError(f"a condition of {widths[0]} bits; it has 1")


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


def _rotated(x: z3.BitVecRef, y: z3.BitVecRef, *, left: bool) -> z3.BitVecRef:
    """x rotated by y, by shifts alone: not all solvers have a rotation by a term."""
    bits = x.size()
    if bits == 1:
        return x
    by = z3.URem(y, z3.BitVecVal(bits, bits)) if bits < 1 << bits else y
    back = z3.BitVecVal(bits, bits) - by
    return (x << by) | z3.LShR(x, back) if left else z3.LShR(x, by) | (x << back)


def _overflow(
    operation: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BitVecRef], signed: bool
) -> Callable[..., z3.BitVecRef]:
    """Whether the result of an operation is no number of the operands' width."""
    extend = z3.SignExt if signed else z3.ZeroExt

    def overflows(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
        bits = x.size()
        exact = operation(extend(bits + 1, x), extend(bits + 1, y))
        return _bit(exact != extend(bits + 1, z3.Extract(bits - 1, 0, exact)))

    return overflows


def _binary(words: Sequence[str], bits: int) -> int:
    if len(words[0]) != bits or set(words[0]) - {"0", "1"}:
        if set(words[0]) <= set("01xz") and "z" in words[0]:
            raise HardwareError("the design has high impedance (z); only what is driven to 0 or 1 is read")
        raise _LineError(f"{bits} digits 0 and 1 are needed")
    return int(words[0], 2)


def _decimal(words: Sequence[str], bits: int) -> int:
    value = _integer(words[0])
    if not -(1 << (bits - 1)) <= value < 1 << bits:
        raise _LineError(f"{value} is no number of {bits} bits")
    return value


def _hexadecimal(words: Sequence[str], bits: int) -> int:
    if not re.fullmatch(r"[0-9a-fA-F]+", words[0]) or int(words[0], 16) >= 1 << bits:
        raise _LineError(f"{words[0]} is no hexadecimal number of {bits} bits")
    return int(words[0], 16)


_NUMBERS: dict[str, Callable[[Sequence[str], int], int]] = {
    "const": _binary,
    "constd": _decimal,
    "consth": _hexadecimal,
    "zero": lambda words, bits: 0,
    "one": lambda words, bits: 1,
    "ones": lambda words, bits: (1 << bits) - 1,
}
_UNARY: dict[str, Callable[..., z3.BitVecRef]] = {
    "not": lambda x: ~x,
    "neg": lambda x: -x,
    "inc": lambda x: x + 1,
    "dec": lambda x: x - 1,
    "redand": lambda x: _bit(x == z3.BitVecVal(-1, x.size())),
    "redor": lambda x: _bit(x != 0) if x.size() > 1 else x,
    "redxor": _parity,
}
_BINARY: dict[str, Callable[..., z3.BitVecRef]] = {
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
    "rol": lambda x, y: _rotated(x, y, left=True),
    "ror": lambda x, y: _rotated(x, y, left=False),
    "concat": z3.Concat,
    "uaddo": _overflow(lambda x, y: x + y, False),
    "saddo": _overflow(lambda x, y: x + y, True),
    "usubo": _overflow(lambda x, y: x - y, False),
    "ssubo": _overflow(lambda x, y: x - y, True),
    "umulo": _overflow(lambda x, y: x * y, False),
    "smulo": _overflow(lambda x, y: x * y, True),
    "sdivo": lambda x, y: _bit(z3.And(x == 1 << (x.size() - 1), y == z3.BitVecVal(-1, y.size()))),
}
_READ = {**_UNARY, **_BINARY, "ite": lambda flag, x, y: z3.If(flag == 1, x, y)}
#: Operations that only say where bits are.
_REARRANGING = frozenset(("slice", "concat", "uext", "sext"))
_DIVISIONS = frozenset(("udiv", "urem", "sdiv", "srem", "smod"))
#: How many words belong to an operation, its sort included; what follows is its name.
_COUNTS = {
    frozenset(("zero", "one", "ones")): 1,
    frozenset((*_UNARY, "const", "constd", "consth")): 2,
    frozenset((*_BINARY, "uext", "sext")): 3,
    frozenset(("ite", "slice")): 4,
}
