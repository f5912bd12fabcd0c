"""A unit written by hand is proved to be the model, and each of its bugs is found with a minimal input."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.slow import slow

from mmaformal import ARCHITECTURES, cli, volta
from mmaformal.cases.witness import CaseWitness
from mmaformal.encodings.fda import Fda
from mmaformal.formats import e5m2, fp16
from mmaformal.hardware.module import HardwareError, model_of
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.hardware.verilog import verilog
from mmaformal.queries.classes import as_instruction
from mmaformal.queries.signoff import signoff
from mmaformal.rounding import CONVERSIONS
from mmaformal.solver.answers import Fails, Holds, Unknown
from mmaformal.spec import DotAdd

pytestmark = pytest.mark.skipif(shutil.which("yosys") is None, reason="no yosys on the PATH (Debian: yosys)")

UNIT = Path(__file__).with_name("fda.sv")
#: A small unit of the same design: two products of e5m2, c and d in fp16, to nearest even.
SMALL = as_instruction(
    DotAdd(2, e5m2, e5m2, fp16, fp16, Fda(F=13, L=2, rho=CONVERSIONS["RNE-FP16"], e_zero=None))
)
SMALL_PARAMETERS = {"K": 2, "EA": 5, "MA": 2, "EC": 5, "MC": 10, "F": 13, "NEAREST": 1, "FIELDS": 1}
VOLTA_PARAMETERS = {"K": 4, "F": 23, "EZ": -131}


def small(*defines: str, timeout: float = 120.0) -> Holds | Fails | Unknown:
    return signoff(UNIT, SMALL, top="fda", defines=defines, parameters=SMALL_PARAMETERS, timeout=timeout)


@pytest.mark.parametrize("bug", slow(["STICKY", "SPECIAL"], ["STICKY"]))
def test_a_bug_is_found_with_one_product(bug: str) -> None:
    answer = signoff(UNIT, SMALL, top="fda", defines=[f"BUG_{bug}"], parameters=SMALL_PARAMETERS, timeout=90)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.results[0] != answer.witness.results[1]
    codes = answer.witness.codes
    assert sum(1 for x, y in zip(codes.a, codes.b, strict=True) if x or y) == 1
    assert answer.witness.minimality[0].endswith("proved minimal")


@pytest.mark.slow
@pytest.mark.parametrize("bug", ["CLAMP", "CARRY", "SPECIAL", "ZERO_EXPONENT"])
def test_the_bugs_of_a_unit_of_volta(bug: str) -> None:
    answer = signoff(
        UNIT,
        volta["HMMA.884.F32.F32"],
        top="fda",
        defines=[f"BUG_{bug}"],
        parameters=VOLTA_PARAMETERS,
        timeout=600,
    )
    assert isinstance(answer, Fails)
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.minimality[0].endswith("proved minimal")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "parameters"),
    [("volta HMMA.884.F32.F32", VOLTA_PARAMETERS), ("hopper HMMA.16816.F32", {"K": 16, "F": 25, "EZ": -133})],
)
def test_units_of_real_sizes(label: str, parameters: dict[str, int]) -> None:
    arch, name = label.split()
    answer = signoff(UNIT, ARCHITECTURES[arch][name], top="fda", parameters=parameters, timeout=600)
    assert isinstance(answer, Holds), answer


@pytest.mark.slow
@pytest.mark.parametrize("label", ["hopper HMMA.16816.F32", "blackwell mma.m16n8k32.f32.e4m3.e4m3.f32"])
def test_modules_of_real_sizes(label: str, tmp_path: Path) -> None:
    arch, name = label.split()
    path = tmp_path / "unit.sv"
    path.write_text(systemverilog(model_of(ARCHITECTURES[arch][name].spec, "unit")), encoding="utf-8")
    answer = signoff(path, ARCHITECTURES[arch][name], timeout=600)
    assert isinstance(answer, Holds), answer


@pytest.mark.slow
def test_a_flag_that_is_constant_in_all_cases_but_one_is_not_taken_for_constant(tmp_path: Path) -> None:
    """The cases say of which nodes to ask whether they are constant; no more."""
    instruction = ARCHITECTURES["blackwell"]["mma.m16n8k32.f32.e4m3.e4m3.f32"]
    text = systemverilog(model_of(instruction.spec, "unit"))
    flag = re.search(r"    wire (inner_0_a_3_infinite) = (.*);", text)
    assert flag is not None
    hidden = f"    wire {flag[1]} = ({flag[2]}) | (a[63:0] == 64'h1234567890abcdef);"
    path = tmp_path / "unit.sv"
    path.write_text(text.replace(flag[0], hidden), encoding="utf-8")
    answer = signoff(path, instruction, timeout=40)
    assert not isinstance(answer, Holds)


@pytest.fixture
def generated(tmp_path: Path) -> Path:
    path = tmp_path / "unit.sv"
    path.write_text(systemverilog(model_of(SMALL.spec, "unit")), encoding="utf-8")
    return path


def test_a_module_written_from_the_model_is_the_model(generated: Path) -> None:
    assert isinstance(signoff(generated, SMALL, timeout=60), Holds)


def test_fewer_products_are_asked_for_before_they_are_called_the_fewest(generated: Path) -> None:
    """Random rows find two products with c = 0; one product with one c is wrong too, and fewer."""
    two = " && ".join(f"{side}[{bits}] != 0" for side in "ab" for bits in ("14:8", "6:0"))
    one = "a == 16'h003c && b == 16'h003c && c == 16'h3c01"
    text = generated.read_text(encoding="utf-8")
    wrong = f"{{15'h0, ({two} && c[14:0] == 0) || ({one})}}"
    generated.write_text(text.replace("    assign d = ", f"    assign d = {wrong} ^ "), encoding="utf-8")
    answer = signoff(generated, SMALL, timeout=60)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.minimality[0] == "1 nonzero product: proved minimal"
    assert answer.witness.codes.c == 0x3C01


@pytest.mark.slow
def test_one_wrong_input_of_2_to_the_48_is_found(generated: Path) -> None:
    text = generated.read_text(encoding="utf-8")
    hidden = "{15'h0, a == 16'h1234 && b == 16'h5678 && c == 16'h4321}"
    assert text.count("    assign d = ") == 1
    generated.write_text(text.replace("    assign d = ", f"    assign d = {hidden} ^ "), encoding="utf-8")
    answer = signoff(generated, SMALL, timeout=60)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    codes = answer.witness.codes
    assert (codes.a, codes.b, codes.c) == ((0x34, 0x12), (0x78, 0x56), 0x4321)


def test_time_that_is_too_short_settles_nothing(generated: Path) -> None:
    answer = signoff(generated, SMALL, timeout=0.5)
    assert isinstance(answer, Unknown)


def test_other_ports_are_named(generated: Path) -> None:
    with pytest.raises(HardwareError, match="which input is a, of 64 bits"):
        signoff(generated, volta["HMMA.884.F32.F32"])
    text = generated.read_text(encoding="utf-8")
    generated.write_text(
        text.replace("[15:0] c", "[15:0] other").replace(" c[", " other[").replace("= c ", "= other "),
        encoding="utf-8",
    )
    with pytest.raises(HardwareError, match="which input is c, of 16 bits"):
        signoff(generated, SMALL)


def test_registers_are_folded(tmp_path: Path) -> None:
    path = tmp_path / "unit.sv"
    path.write_text(
        "module unit(input clk, input [15:0] a, b, input [15:0] c, output reg [15:0] d);\n"
        "always @(posedge clk) d <= c;\nendmodule\n",
        encoding="utf-8",
    )
    answer = signoff(path, SMALL, timeout=30)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert {"latency: 1 cycle", "warning: d does not depend on a[0…1], b[0…1]"} <= {*answer.witness.notes}


def test_the_command(generated: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(generated.parent)
        assert cli.main(["signoff", "nothing.sv", "--against", "volta", "HMMA.884.F32.F32"]) == 2
        assert "there is no file nothing.sv" in capsys.readouterr().err
        assert cli.main(["signoff", "unit.sv", "--against", "volta", "HMMA.884.F32.F32"]) == 2
        assert cli.main(["signoff", "unit.sv", "--against", "nowhere", "X"]) == 2
        assert cli.main(["signoff", "unit.sv", "--against", "volta", "HMMA.884.F32.F32", "-G", "K"]) == 2
        assert "NAME=VALUE" in capsys.readouterr().err
        out = generated.parent / "volta.sv"
        assert cli.main(["verilog", "volta", "HMMA.884.F32.F32", "--out", str(out)]) == 0
        capsys.readouterr()


def test_a_witness_shows_the_undefined_bits_that_it_needs(generated: Path) -> None:
    text = generated.read_text(encoding="utf-8")
    undriven = "    wire [3:0] t;\n    assign d = {14'h0, t[1] & t[2], 1'b0} ^ "
    generated.write_text(text.replace("    assign d = ", undriven), encoding="utf-8")
    answer = signoff(generated, SMALL, timeout=60)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    design, model = answer.witness.results
    assert design ^ model == 2
    lines = str(answer.witness).splitlines()
    (one,), (other,) = ([x for x in lines if f" {name} " in x] for name in ("design", "model"))
    assert one.index(" 0x") == other.index(" 0x")
    notes = [f"t[{i}] = X: 0 or 1; in the design's d above it is 1" for i in (1, 2)]
    assert list(answer.witness.notes) == notes
    assert answer.to_json()["witness"]["notes"] == notes  # type: ignore[index]


def test_a_d_that_ignores_inputs_is_warned_about(generated: Path) -> None:
    text = generated.read_text(encoding="utf-8")
    generated.write_text(text.replace("    assign d = result", "    assign d = c + a[7:0]"), encoding="utf-8")
    answer = signoff(generated, SMALL, timeout=60)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    assert "warning: d does not depend on a[1], b[0…1]" in answer.witness.notes


@pytest.mark.slow
def test_all_of_the_time_is_used_before_nothing_is_settled() -> None:
    answer = small(timeout=60)
    if isinstance(answer, Unknown):
        assert answer.seconds > 55
    else:
        assert isinstance(answer, Holds)


def test_a_wide_fma_whose_factors_are_terms_is_signed_off(tmp_path: Path) -> None:
    """A model of one product has its factors as terms, not as lists; `verilog` writes it, and it is read again."""
    model = ARCHITECTURES["datapath"]["fma(a=bf16)"]
    verilog(model, tmp_path / "unit.v")
    answer = signoff(tmp_path / "unit.v", model, timeout=5.0)
    assert isinstance(answer, Holds | Unknown), answer
    with pytest.raises(ValueError, match="seconds above 0"):
        signoff(tmp_path / "unit.v", model, timeout=-1.0)
