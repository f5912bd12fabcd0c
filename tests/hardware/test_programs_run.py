"""Programs that cannot be read: run on rows aimed at the model's corners; found wrong, or `Unknown`, never proved."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from mmaformal import cli, datapath
from mmaformal.cases.inputs import Rows
from mmaformal.cases.run import compiled_results
from mmaformal.cases.witness import CaseWitness
from mmaformal.hardware.module import HardwareError
from mmaformal.queries.signoff import signoff
from mmaformal.queries.signoff_all import signoff_all
from mmaformal.queries.signoff_run import SigningRuns
from mmaformal.solver.answers import Fails, Unknown

PYTHON, C = (Path(__file__).with_name(name) for name in ("programs_py", "programs_c"))
EXACT = datapath["exact(k=2,a=bf16,rho=IEEE-FP32)"]
FUSED = datapath["fma(k=1,a=fp32,rho=IEEE-FP32)"]
needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="clang is not installed")


def _changed(tmp_path: Path, *pairs: tuple[str, str]) -> str:
    """The program of exact sums with some of its text changed."""
    text = (PYTHON / "exact.py").read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "exact.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:dot"


def test_a_right_program_that_cannot_be_read_is_not_proved() -> None:
    told: list[str] = []
    answer = signoff(f"{PYTHON / 'exact.py'}:dot", EXACT, alike=["nan"], timeout=12, progress=told.append)
    assert isinstance(answer, Unknown)
    for words in (
        r"exact.py:31: ",
        "proves nothing of other inputs",
        "drawn at random",
        "at ties and next to",
    ):
        assert words in answer.why
    assert any("it cannot be read, so it is only run: exact.py:31" in line for line in told)


#: Slips in the style of those that emulators have, and what is seen of each.
_TOTAL = "    exact = sum(Fraction(float(term)) for term in terms)\n"
SLIPS = {
    "rounded by way of float64": ("int(near.view(np.int64)) & 1", "True"),
    "overflow is asked of a rounded sum": (
        _TOTAL,
        "    if np.isinf(np.float32(total)):\n        return np.float32(total)\n" + _TOTAL,
    ),
    "no half below the least normal number": (
        "if error and",
        "if error and abs(near) != 2.0**-126 - 2.0**-150 and",
    ),
    "a NaN of c is lost": (
        "not np.isfinite(terms).all()",
        "not np.isfinite(terms[:-1]).all() or np.isinf(c)",
    ),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_found_by_running(slip: str, tmp_path: Path) -> None:
    program = _changed(tmp_path, SLIPS[slip])
    if slip == "a NaN of c is lost":
        program = _changed(
            tmp_path, SLIPS[slip], ("    exact =", "    terms[-1] = np.nan_to_num(terms[-1])\n    exact =")
        )
    answer = signoff(program, EXACT, alike=["nan"], timeout=60)
    assert isinstance(answer, Fails)
    witness = answer.witness
    assert isinstance(witness, CaseWitness)
    mine, model = witness.results
    assert mine != model == int(compiled_results(EXACT.spec, Rows.of([witness.codes]))[0])
    assert "smallest found" in str(answer)
    assert "proved minimal" not in str(answer)
    assert "the model, stage by stage:" in str(answer)
    c = witness.codes.c & 0x7FFFFFFF
    seen = {
        "rounded by way of float64": mine ^ model == 1 or abs(mine - model) == 1,
        "overflow is asked of a rounded sum": (mine & 0x7FFFFFFF, model & 0x7FFFFFFF)
        == (0x7F800000, 0x7F7FFFFF),
        "no half below the least normal number": (mine & 0x7FFFFFFF, model & 0x7FFFFFFF)
        == (0x800000, 0x7FFFFF),
        "a NaN of c is lost": c > 0x7F800000 and (mine & 0x7FFFFFFF) < 0x7F800000,
    }
    assert seen[slip]


def test_what_was_found_is_told_where_the_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong row is the answer as soon as there is one, also where no time is left to look on."""

    def blocks(self: SigningRuns) -> Iterator[tuple[str, Rows, NDArray[np.bool_]]]:
        rows = self.drawn(400, 1)
        yield "drawn", rows, self.wrong(rows)
        time.sleep(60)

    monkeypatch.setattr(SigningRuns, "blocks", blocks)
    program = _changed(tmp_path, ("return np.float32(to_odd(exact))", "return np.float32(0)"))
    answer = signoff(program, EXACT, alike=["nan"], timeout=10)
    assert isinstance(answer, Fails)


@pytest.mark.slow
def test_kinds_of_slips_are_told_apart(tmp_path: Path) -> None:
    slips = [SLIPS[name] for name in SLIPS if name.startswith(("overflow", "no half"))]
    found = signoff_all(_changed(tmp_path, *slips), EXACT, alike=["nan"], timeout=60)
    names = {each.kind for each in found.kinds}
    assert names == {"unexplained: a special value", "unexplained: a subnormal result"}
    assert all(each.answer is not None for each in found.kinds)
    assert not found.complete
    assert "only run, which proves nothing" in str(found)


def test_conditions_are_kept(tmp_path: Path) -> None:
    program = _changed(tmp_path, SLIPS["rounded by way of float64"])
    answer = signoff(program, EXACT, alike=["nan"], where="c=0x3f800000", timeout=60)
    assert isinstance(answer, Fails)
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.codes.c == 0x3F800000
    with pytest.raises(ValueError, match="no input satisfies"):
        signoff(program, EXACT, where=["c=0x7f800000", "finite"], timeout=20)


def test_signs_of_zeros_count_unless_they_are_alike(tmp_path: Path) -> None:
    program = _changed(
        tmp_path,
        (
            "    if not exact:\n        return np.float32(total)",
            "    if not exact:\n        return np.float32(0)",
        ),
    )
    answer = signoff(program, EXACT, alike=["nan"], timeout=30)
    assert isinstance(answer, Fails)
    assert isinstance(answer.witness, CaseWitness)
    assert answer.witness.results == (0, 0x80000000)
    assert isinstance(signoff(program, EXACT, alike=["nan", "zero"], timeout=12), Unknown)


WRONG_USE = {
    "np.float64(c)": "returns a number of 64 bits, where the model's d has 32",
    "np.array([c, c])": "returns 2 values, not one d",
    "'c'": "returns str, which is no d",
    "int(c) + (1 << 40)": "which is no code: end it with & 0xffffffff",
}


@pytest.mark.parametrize("expression", WRONG_USE)
def test_what_is_no_d_is_refused(expression: str, tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    text = "import numpy as np\ndef one(a: np.ndarray, b: np.ndarray, c: 'np.ndarray of uint32'):\n"
    path.write_text(f"{text}    np.linalg.norm(a)\n    return {expression}\n", encoding="utf-8")
    with pytest.raises(HardwareError, match=WRONG_USE[expression]):
        signoff(f"{path}:one", EXACT, timeout=10)


def test_what_is_not_read_and_does_not_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text("def one(a, b, c):\n    return sum(a) + c.flux\n", encoding="utf-8")
    with pytest.raises(HardwareError, match=r"^one.py:2: .flux is not followed$"):
        signoff(f"{path}:one", EXACT, timeout=10)


def test_an_input_for_which_a_program_raises_is_told(tmp_path: Path) -> None:
    program = _changed(tmp_path, ("    exact =", "    assert total < 2.0**100\n    exact ="))
    with pytest.raises(HardwareError, match=r"dot raises AssertionError for a\[0\]"):
        signoff(program, EXACT, alike=["nan"], timeout=10)


def test_what_the_standard_allows_is_not_asked() -> None:
    with pytest.raises(ValueError, match="only run, and what the standard allows is not asked"):
        signoff(f"{PYTHON / 'exact.py'}:dot", EXACT, alike=["standard"], timeout=10)


def test_many_rows_at_once_count_where_they_are_the_same(tmp_path: Path) -> None:
    """A program that takes columns is called with them; one that gives something else for them is not."""
    path = tmp_path / "columns.py"
    text = """import numpy as np
def dot(a: 'ndarray of float32', b: 'ndarray of float32', c: 'ndarray of float32'):
    np.linalg.norm(a)
    x, y = a[..., 0].astype(np.float64), b[..., 0].astype(np.float64)
    return (x * y * np.float64(FACTOR) + c).astype(np.float32)
"""
    for factor, at_once in (("1", True), ("1 if np.ndim(c) == 0 else 2", False)):
        path.write_text(text.replace("FACTOR", factor), encoding="utf-8")
        answer = signoff(f"{path}:dot", FUSED, where="c=0x0", alike=["nan", "zero"], timeout=12)
        assert isinstance(answer, Unknown)
        assert ("that it was called with at once" in answer.why) is at_once


@needs_clang
def test_a_function_in_floating_point_is_run() -> None:
    answer = signoff(f"{C / 'floating.c'}:fused", FUSED, alike=["nan"], timeout=12)
    assert isinstance(answer, Unknown)
    assert "floating.c:5: floating-point numbers are not read" in answer.why
    for function, ulp in (("rounded", False), ("in_double", True)):
        answer = signoff(f"{C / 'floating.c'}:{function}", FUSED, alike=["nan", "zero"], timeout=40)
        assert isinstance(answer, Fails)
        assert isinstance(answer.witness, CaseWitness)
        if ulp:
            assert abs(int(np.subtract(*answer.witness.results))) == 1


@needs_clang
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    model = ["--against", "datapath", "fma(k=1,a=fp32,rho=IEEE-FP32)", "--alike", "nan", "--json"]
    assert cli.main(["signoff", f"{C / 'floating.c'}:rounded", *model, "--timeout", "40"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["answer"] == "fails"
    assert found["witness"]["stages"][0] == "the model, stage by stage:"
    assert cli.main(["signoff", f"{C / 'floating.c'}:fused", *model, "--timeout", "10"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["answer"], found["obligations"]) == ("unknown", [])
