"""Models as modules: what is written is read as the same function, by ourselves and by yosys; linters are content."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import z3
from support.recorded import SHARED

from mmaformal import ARCHITECTURES, cli, hopper, volta
from mmaformal.hardware.btor2 import btor2
from mmaformal.hardware.module import HardwareError, Module, model_of, ports_of
from mmaformal.hardware.read_btor2 import read_btor2
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.hardware.yosys import design, synthesised, write_aiger
from mmaformal.queries import signoff
from mmaformal.queries.signoff import on_recording

needs_yosys = pytest.mark.skipif(shutil.which("yosys") is None, reason="no yosys on the PATH (Debian: yosys)")
needs_verilator = pytest.mark.skipif(shutil.which("verilator") is None, reason="no verilator on the PATH")
needs_icarus = pytest.mark.skipif(shutil.which("iverilog") is None, reason="no iverilog on the PATH")

BINARY: list[Callable[[z3.BitVecRef, z3.BitVecRef], z3.ExprRef]] = [
    lambda x, y: x + y,
    lambda x, y: x - y,
    lambda x, y: x * y,
    lambda x, y: x & y,
    lambda x, y: x | y,
    lambda x, y: x ^ y,
    lambda x, y: x << y,
    lambda x, y: z3.LShR(x, y),
    lambda x, y: x >> y,
    lambda x, y: z3.If(z3.ULT(x, y), x, y),
    lambda x, y: z3.If(z3.ULE(x, y), y, x),
    lambda x, y: z3.If(x < y, x, y),
    lambda x, y: z3.If(x >= y, -x, ~y),
    lambda x, y: z3.If(z3.And(x != 0, z3.Or(x == y, z3.Not(y == 1)), z3.Xor(x > 2, z3.UGE(y, 3))), x, y),
    lambda x, y: z3.If(z3.Implies(z3.UGT(x, y), x <= y), x, z3.BitVecVal(5, x.size())),
    lambda x, y: z3.Extract(x.size() - 1, 0, z3.Concat(x, y, x)),
    lambda x, y: z3.Extract(x.size(), 1, z3.SignExt(3, x) + z3.ZeroExt(3, y)),
]


def made_at_random(seed: int) -> Module:
    """Every operation there is, on words of 1 to 7 bits."""
    choose = random.Random(seed)
    bits = choose.randint(1, 7)
    x, y = z3.BitVecs("x y", bits)
    terms = [x, y]
    for operation in choose.sample(BINARY, len(BINARY)):
        term = operation(choose.choice(terms[-4:]), choose.choice(terms))
        assert isinstance(term, z3.BitVecRef)
        terms.append(term)
    out = terms[-1]
    for term in terms[2:-1]:
        out = out ^ term
    return Module("made", {"x": x, "y": y}, {"d": out}, {"wire_of_it": terms[5], "reg": terms[7]})


def same(module: Module, other: Module) -> bool:
    solver = z3.Solver()
    pairs = [(other.inputs[name], term) for name, term in module.inputs.items()]
    solver.add(z3.substitute(other.outputs["d"], *pairs) != module.outputs["d"])
    return bool(solver.check() == z3.unsat)


@pytest.mark.parametrize("seed", range(12))
def test_btor2_is_read_as_what_was_written(seed: int) -> None:
    module = made_at_random(seed)
    other = read_btor2(btor2(module), "made")
    assert other.ports == module.ports
    assert same(module, other)


def test_and_not_if_one_operation_is_another() -> None:
    module = made_at_random(1)
    text = btor2(module)
    assert " sub " in text
    assert not same(module, read_btor2(text.replace(" sub ", " add ", 1), "made"))


@needs_yosys
@pytest.mark.parametrize("seed", range(6))
def test_yosys_reads_systemverilog_as_what_was_written(seed: int, tmp_path: Path) -> None:
    module = made_at_random(seed)
    (tmp_path / "made.sv").write_text(systemverilog(module), encoding="utf-8")
    other = design([tmp_path / "made.sv"])
    assert other.ports == module.ports
    assert "wire_of_it" in other.wires
    assert same(module, other)


@needs_verilator
@pytest.mark.parametrize(
    "label",
    [
        "hopper HMMA.16816.F32",
        "volta HMMA.884.F16.F16",
        "cdna3 v_mfma_f32_16x16x8_xf32",
        "blackwell mma.m16n8k32.f32.e4m3.e4m3.f32",
        "e9s12 DP1ACC2.FP32",
    ],
)
def test_verilator_has_no_complaint(label: str, tmp_path: Path) -> None:
    arch, name = label.split()
    path = tmp_path / "unit.sv"
    path.write_text(systemverilog(model_of(ARCHITECTURES[arch][name].spec, "unit")), encoding="utf-8")
    found = subprocess.run(
        ["verilator", "--lint-only", "-Wall", "--top-module", "unit", path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (found.returncode, found.stderr) == (0, "")


@needs_yosys
def test_yosys_has_no_complaint(tmp_path: Path) -> None:
    path = tmp_path / "unit.sv"
    path.write_text(systemverilog(model_of(hopper["HMMA.16816.F32"].spec, "unit")), encoding="utf-8")
    said = subprocess.run(
        ["yosys", "-q", "-p", f"read_verilog -sv {path}; hierarchy -check -top unit; proc; check -assert"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (said.returncode, said.stdout + said.stderr) == (0, "")


def test_the_interfaces_of_the_model_are_wires() -> None:
    module = model_of(hopper["HMMA.16816.F32"].spec, "unit")
    assert {"e_max", "total", "products_3_exponent", "aligned_c", "special_nan"} <= set(module.wires)
    assert module.ports == {**ports_of(hopper["HMMA.16816.F32"].spec), "d": 32}
    assert ports_of(hopper["HMMA.16816.F32"].spec) == {"a": 256, "b": 256, "c": 32}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 sort bitvec 4\n2 state 1 r\n3 init 1 2 2\n4 output 2 d\n", "has registers or latches"),
        ("1 sort array 2 3\n", "has memories"),
        ("1 sort bitvec 4\n2 input 1 a\n3 frobnicate 1 2\n4 output 3 d\n", "line 3 is not BTOR2"),
        ("1 sort bitvec 4\n2 input 1 a\n3 add 1 2 9\n", "line 3 is not BTOR2"),
        ("1 sort bitvec 4\n2 input 1 a\n", "has no outputs"),
        ("nonsense\n", "line 1 is not BTOR2"),
    ],
)
def test_what_is_no_combinational_btor2_is_said(text: str, said: str) -> None:
    with pytest.raises(HardwareError, match=said):
        read_btor2(text, "a file")


def test_names_that_verilog_has_not() -> None:
    for name in ("always", "2nd", "a-b"):
        with pytest.raises(HardwareError, match="no name in SystemVerilog"):
            systemverilog(model_of(volta["HMMA.884.F32.F32"].spec, name))


@needs_yosys
def test_aiger_and_size(tmp_path: Path) -> None:
    module = made_at_random(3)
    text = systemverilog(module)
    write_aiger(text, "made", tmp_path / "made.aig")
    assert (tmp_path / "made.aig").read_bytes().startswith(b"aig ")
    (tmp_path / "made.sv").write_text(text, encoding="utf-8")
    size = synthesised([tmp_path / "made.sv"])
    assert size.cells == sum(size.by_kind.values())
    assert 1 < size.depth < size.cells


def test_the_command_writes_a_module(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "unit.sv"
    assert cli.main(["verilog", "volta", "HMMA.884.F32.F32", "--out", str(out), "--name", "unit"]) == 0
    assert "module unit (" in out.read_text(encoding="utf-8")
    assert cli.main(["verilog", "volta", "HMMA.884.F32.F32", "--format", "btor2"]) == 0
    assert " output " in capsys.readouterr().out
    assert cli.main(["verilog", "volta", "HMMA.884.F32.F32", "--format", "aiger"]) == 2
    assert "--out says where" in capsys.readouterr().err


# ---- recordings ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="no ../shared/recordings beside this checkout")
@pytest.mark.parametrize(
    ("simulator", "label", "recording"),
    [
        pytest.param("verilator", "hopper HMMA.16816.F32", "h100_fp16_fp32", marks=needs_verilator),
        pytest.param("iverilog", "volta HMMA.884.F32.F32", "v100_fp16_fp32", marks=needs_icarus),
        pytest.param("verilator", "ada QMMA.16832.F32.E4M3.E4M3", "ada_e4m3_fp32", marks=needs_verilator),
        pytest.param(
            "verilator",
            "blackwell mma.m16n8k32.f32.e4m3.e4m3.f32",
            "lowered/b200_e4m3_fp32",
            marks=needs_verilator,
        ),
    ],
)
def test_a_model_written_as_a_module_gives_what_was_recorded(
    simulator: str, label: str, recording: str, tmp_path: Path
) -> None:
    arch, name = label.split()
    instruction = ARCHITECTURES[arch][name]
    path = tmp_path / "unit.sv"
    path.write_text(systemverilog(model_of(instruction.spec, "of_another_name")), encoding="utf-8")
    found = on_recording([path], instruction, SHARED / f"{recording}.npz", simulator=simulator)
    assert found.rows == (1500 if "lowered" in recording else 3000)
    assert found.wrong == 0
    wrong = path.read_text(encoding="utf-8").replace("assign d = ", "assign d = 1 ^ ")
    path.write_text(wrong, encoding="utf-8")
    found = on_recording([path], instruction, SHARED / f"{recording}.npz", simulator=simulator)
    assert found.wrong == found.rows


def test_which_module_is_run(tmp_path: Path) -> None:
    path = tmp_path / "two.sv"
    path.write_text("module one; endmodule\nmodule other; endmodule\n", encoding="utf-8")
    with pytest.raises(HardwareError, match="--top"):
        signoff._only_module([path])
    path.write_text("module two; endmodule\nmodule other; endmodule\n", encoding="utf-8")
    assert signoff._only_module([path]) == "two"


@pytest.mark.parametrize(
    ("file", "begins"), [("m.sv", "//"), ("m.v", "//"), ("m.btor2", "; volta"), ("m.BTOR", "; volta")]
)
def test_a_file_is_of_the_format_that_its_suffix_says(
    file: str, begins: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["verilog", "volta", "HMMA.884.F32.F32", "--out", str(tmp_path / file)]
    assert cli.main(words) == 0
    assert (tmp_path / file).read_text(encoding="utf-8").startswith(begins)
    assert cli.main([*words, "--format", "sv"]) == 0
    assert (tmp_path / file).read_text(encoding="utf-8").startswith("//")
    capsys.readouterr()
