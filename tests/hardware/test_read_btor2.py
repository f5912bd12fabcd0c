"""BTOR2 is read as its definition says, by an evaluator of its own here; what is no BTOR2 is refused in one line."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from mmaformal.cases.evaluate import evaluate
from mmaformal.hardware.module import HardwareError
from mmaformal.hardware.read_btor2 import read_btor2

# ---- every operation, against integers -------------------------------------------------------------------------------


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


def quotient(x: int, y: int) -> int:
    """Toward zero."""
    size = abs(x) // abs(y)
    return size if (x < 0) == (y < 0) else -size


def overflows(exact: int, bits: int, *, of_signed: bool) -> int:
    low, high = (-(1 << (bits - 1)), 1 << (bits - 1)) if of_signed else (0, 1 << bits)
    return int(not low <= exact < high)


def sdiv(x: int, y: int, bits: int) -> int:
    u, v = signed(x, bits), signed(y, bits)
    return (1 if u < 0 else -1) if v == 0 else quotient(u, v)


def srem(x: int, y: int, bits: int) -> int:
    u, v = signed(x, bits), signed(y, bits)
    return u if v == 0 else u - v * quotient(u, v)


def smod(x: int, y: int, bits: int) -> int:
    u, v = signed(x, bits), signed(y, bits)
    return u if v == 0 else u - v * (u // v)


def rotated(x: int, by: int, bits: int) -> int:
    by %= bits
    return x << by | x >> (bits - by)


#: Operations of two operands of n bits with results of n bits.
WORDS: dict[str, Callable[[int, int, int], int]] = {
    "and": lambda x, y, n: x & y,
    "nand": lambda x, y, n: ~(x & y),
    "or": lambda x, y, n: x | y,
    "nor": lambda x, y, n: ~(x | y),
    "xor": lambda x, y, n: x ^ y,
    "xnor": lambda x, y, n: ~(x ^ y),
    "add": lambda x, y, n: x + y,
    "sub": lambda x, y, n: x - y,
    "mul": lambda x, y, n: x * y,
    "udiv": lambda x, y, n: x // y if y else -1,
    "urem": lambda x, y, n: x % y if y else x,
    "sdiv": sdiv,
    "srem": srem,
    "smod": smod,
    "sll": lambda x, y, n: x << y,
    "srl": lambda x, y, n: x >> y,
    "sra": lambda x, y, n: signed(x, n) >> y,
    "rol": rotated,
    "ror": lambda x, y, n: rotated(x, -y, n),
}
#: Operations of two operands of n bits with results of one bit.
FLAGS: dict[str, Callable[[int, int, int], int]] = {
    "eq": lambda x, y, n: x == y,
    "neq": lambda x, y, n: x != y,
    "ugt": lambda x, y, n: x > y,
    "ugte": lambda x, y, n: x >= y,
    "ult": lambda x, y, n: x < y,
    "ulte": lambda x, y, n: x <= y,
    "sgt": lambda x, y, n: signed(x, n) > signed(y, n),
    "sgte": lambda x, y, n: signed(x, n) >= signed(y, n),
    "slt": lambda x, y, n: signed(x, n) < signed(y, n),
    "slte": lambda x, y, n: signed(x, n) <= signed(y, n),
    "uaddo": lambda x, y, n: overflows(x + y, n, of_signed=False),
    "usubo": lambda x, y, n: overflows(x - y, n, of_signed=False),
    "umulo": lambda x, y, n: overflows(x * y, n, of_signed=False),
    "saddo": lambda x, y, n: overflows(signed(x, n) + signed(y, n), n, of_signed=True),
    "ssubo": lambda x, y, n: overflows(signed(x, n) - signed(y, n), n, of_signed=True),
    "smulo": lambda x, y, n: overflows(signed(x, n) * signed(y, n), n, of_signed=True),
    "sdivo": lambda x, y, n: signed(y, n) == -1 and overflows(-signed(x, n), n, of_signed=True),
}
UNARY: dict[str, Callable[[int, int], int]] = {
    "not": lambda x, n: ~x,
    "neg": lambda x, n: -x,
    "inc": lambda x, n: x + 1,
    "dec": lambda x, n: x - 1,
}
REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "redand": lambda x, n: x == (1 << n) - 1,
    "redor": lambda x, n: x != 0,
    "redxor": lambda x, n: bin(x).count("1") & 1,
}


class Design:
    """Random BTOR2, and what each line is for given inputs."""

    def __init__(self, choose: random.Random, bits: int, lines: int) -> None:
        self.choose, self.text = choose, [f"{width} sort bitvec {width}" for width in range(1, 15)]
        self.number = 14
        #: width and value by line; the value is a function of x and y
        self.values: dict[int, tuple[int, Callable[[int, int], int]]] = {}
        self.line(f"input {bits} x", bits, lambda x, y: x)
        self.line(f"input {bits} y ; a comment", bits, lambda x, y: y)
        for _ in range(lines):
            self.grow()
        self.text.append(f"{self.number + 1} output {self.number} d")

    def line(self, said: str, bits: int, value: Callable[[int, int], int]) -> None:
        self.number += 1
        self.text.append(f"{self.number} {said}")
        self.values[self.number] = bits, lambda x, y: value(x, y) & ((1 << bits) - 1)

    def operand(self, bits: int | None = None) -> tuple[int, int, Callable[[int, int], int]]:
        """A line's number, perhaps with a minus sign (its complement), its width and its value."""
        fitting = [n for n, (width, _) in self.values.items() if bits is None or width == bits]
        number = self.choose.choice(fitting[-4:] if self.choose.random() < 0.7 else fitting)
        width, value = self.values[number]
        if self.choose.random() < 0.2:
            return -number, width, lambda x, y: value(x, y) ^ ((1 << width) - 1)
        return number, width, value

    def grow(self) -> None:
        kind = self.choose.choice(
            [
                *WORDS,
                *FLAGS,
                *UNARY,
                *REDUCTIONS,
                "slice",
                "uext",
                "sext",
                "concat",
                "ite",
                "implies",
                "iff",
                "constant",
            ]
        )
        n, bits, u = self.operand()
        if kind in WORDS or kind in FLAGS:
            m, _, v = self.operand(bits)
            operation = (WORDS | FLAGS)[kind]
            width = bits if kind in WORDS else 1
            self.line(f"{kind} {width} {n} {m}", width, lambda x, y: int(operation(u(x, y), v(x, y), bits)))
        elif kind in UNARY or kind in REDUCTIONS:
            single = (UNARY | REDUCTIONS)[kind]
            width = bits if kind in UNARY else 1
            self.line(f"{kind} {width} {n}", width, lambda x, y: int(single(u(x, y), bits)))
        elif kind == "slice":
            high = self.choose.randrange(bits)
            low = self.choose.randint(0, high)
            self.line(f"slice {high - low + 1} {n} {high} {low}", high - low + 1, lambda x, y: u(x, y) >> low)
        elif kind in ("uext", "sext"):
            more = self.choose.randint(0, 14 - bits)
            signs = kind == "sext"
            self.line(
                f"{kind} {bits + more} {n} {more} name{self.number}",
                bits + more,
                lambda x, y: signed(u(x, y), bits) if signs else u(x, y),
            )
        elif kind == "concat":
            m, more, v = self.operand()
            if bits + more <= 14:
                self.line(
                    f"concat {bits + more} {n} {m}", bits + more, lambda x, y: u(x, y) << more | v(x, y)
                )
        elif kind == "ite":
            m, _, v = self.operand(bits)
            flags = [number for number, (width, _) in self.values.items() if width == 1]
            if flags:
                f, _, flag = self.operand(1)
                self.line(f"ite {bits} {f} {n} {m}", bits, lambda x, y: u(x, y) if flag(x, y) else v(x, y))
        elif kind in ("implies", "iff") and bits == 1:
            m, _, v = self.operand(1)
            if kind == "implies":
                self.line(f"implies 1 {n} {m}", 1, lambda x, y: v(x, y) if u(x, y) else 1)
            else:
                self.line(f"iff 1 {n} {m}", 1, lambda x, y: u(x, y) == v(x, y))
        elif kind == "constant":
            value = self.choose.randrange(1 << bits)
            said = self.choose.choice(
                [f"const {bits} {value:0{bits}b}", f"constd {bits} {value}", f"consth {bits} {value:x}"]
            )
            self.line(said, bits, lambda x, y: value)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_every_operation_is_what_btor2_defines(seed: int, bits: int) -> None:
    choose = random.Random(seed)
    design = Design(choose, bits, 14)
    module = read_btor2("\n".join(design.text), "random")
    width, value = design.values[design.number]
    d = module.outputs["d"]
    assert d.size() == width
    cases = [(choose.randrange(1 << bits), choose.randrange(1 << bits)) for _ in range(6)] + [
        (1 << (bits - 1), 0)
    ]
    columns = {
        name: np.array(column, object) for name, column in zip("xy", zip(*cases, strict=True), strict=True)
    }
    seen = np.broadcast_to(evaluate(d, columns), len(cases))
    for (x, y), found in zip(cases, seen, strict=True):
        pairs = [(module.inputs[name], z3.BitVecVal(v, bits)) for name, v in zip("xy", (x, y), strict=True)]
        by_z3 = z3.simplify(z3.substitute(d, *pairs)).as_long()
        assert by_z3 == int(found) == value(x, y), "\n".join(design.text)


@pytest.mark.parametrize("kind", [*WORDS, *FLAGS])
def test_each_operation_for_all_operands_of_three_bits(kind: str) -> None:
    width = 3 if kind in WORDS else 1
    text = f"1 sort bitvec 1\n3 sort bitvec 3\n4 input 3 x\n5 input 3 y\n6 {kind} {width} 4 5\n7 output 6 d\n"
    d = read_btor2(text, "one").outputs["d"]
    x, y = (
        np.array(column, object) for column in zip(*((i, j) for i in range(8) for j in range(8)), strict=True)
    )
    found = np.broadcast_to(evaluate(d, {"x": x, "y": y}), 64)
    expected = [int((WORDS | FLAGS)[kind](i, j, 3)) & ((1 << width) - 1) for i in range(8) for j in range(8)]
    assert [int(each) for each in found] == expected


# ---- what is free ----------------------------------------------------------------------------------------------------

HEAD = "1 sort bitvec 4\n2 input 1 a\n"


def may_differ(text: str, *, of_verilog: bool = False) -> bool:
    """Whether d may be other than a."""
    module = read_btor2(text, "file", of_verilog=of_verilog)
    solver = z3.Solver()
    solver.add(module.outputs["d"] != module.inputs["a"])
    return bool(solver.check() == z3.sat)


def test_each_undefined_signal_is_its_own() -> None:
    """Two that have one name in z3 would be equal: x ^ y = 0."""
    two = HEAD + "3 input 1\n4 {state} 1{name}\n5 xor 1 3 4\n6 xor 1 2 5\n7 output 6 d\n"
    assert may_differ(two.format(state="input", name=""))
    assert may_differ(two.format(state="state", name=""))
    assert may_differ(two.format(state="state", name=" undefined"))
    module = read_btor2(two.format(state="state", name=" t0_8"), "file")
    assert all(" " in str(x) for x in module.undefined.values())
    assert list(module.inputs) == ["a"]


def test_one_undefined_signal_has_one_value_in_btor2_and_another_at_each_use_in_verilog() -> None:
    text = HEAD + "3 state 1\n4 slice 1 3 3 0\n5 xor 1 3 4\n6 xor 1 2 5\n7 output 6 d\n"
    assert not may_differ(text)
    assert may_differ(text, of_verilog=True)
    assert not may_differ(
        HEAD + "3 state 1\n4 zero 1\n5 and 1 3 4\n6 xor 1 2 5\n7 output 6 d\n", of_verilog=True
    )


def test_division_by_zero_is_undefined_in_verilog() -> None:
    text = HEAD + "3 zero 1\n4 udiv 1 2 3\n5 not 1 4\n6 xor 1 2 5\n7 output 6 d\n"
    assert not may_differ(text)
    assert may_differ(text, of_verilog=True)


def test_a_state_that_stays_as_it_is_is_any_value() -> None:
    assert may_differ(HEAD + "3 state 1 k\n4 next 1 3 3\n5 xor 1 2 3\n6 output 5 d\n")


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("3 input 1 a", "line 3: this input is called a, as another"),
        ("3 state 1 a", "line 3: this state is called a, as another"),
        ("3 state 1 q\n4 state 1 q", "line 4: this state is called q, as another"),
        ("3 output 2 d\n4 output -2 d", "line 4: this output is called d, as another"),
        ("3 output 2 a", "this output is called a"),
        ("3 constraint 2", "assumes something"),
        ("3 state 1 r\n4 next 1 3 2", "has registers or latches"),
        ("2 not 1 2", "2 is the number of a line before it"),
        ("-3 not 1 2", "a line's number is positive"),
        ("3 sort bitvec 0", "a width is 1 to"),
        ("3 sort bitvec 1_0", "1_0 is no integer"),
        ("3 sort bitvec 8\n4 not 3 2", "its sort has 8 bits, not of these operands 4"),
        ("3 sort bitvec 8\n4 input 3 b\n5 add 1 2 4", "operands of 4 and 8 bits"),
        ("3 slice 1 2 4 1", "there are no bits 4 to 1 of 4"),
        ("3 slice 1 2 -1 -4", "there are no bits -1 to -4 of 4"),
        ("3 uext 1 2 -1", "-1 more bits"),
        ("3 constd 1 16", "16 is no number of 4 bits"),
        ("3 constd 1 -9", "-9 is no number of 4 bits"),
        ("3 consth 1 10", "10 is no hexadecimal number of 4 bits"),
        ("3 const 1 101", "4 digits 0 and 1"),
        ("3 const 1 10zz", r"high impedance \(z\)"),
        ("3 ite 1 2 2 2", "a condition of 4 bits"),
        ("3 iff 1 2 2", "a condition of 4 bits"),
        ("3 not 1 2 name more", "may have one symbol"),
        ("3 input 1 b more", "may have one symbol"),
        ("3 output 2", "an output is the number of a line and a name"),
        ("3 not 1 4\n4 not 1 2", "there is no value 4 before it"),
        ("3 not 9 2", "there is no sort 9 before it"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(lines: str, said: str) -> None:
    with pytest.raises(HardwareError, match=said) as error:
        read_btor2(f"{HEAD}{lines}\n99 output 2 d\n", "file")
    assert "\n" not in str(error.value)
