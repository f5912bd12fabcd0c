"""Certificates of comparisons: that two instructions are equal, or that an input is the smallest difference."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mmaformal import Certificates, certify, check_certificate
from mmaformal.architectures.meant import instruction_meant
from mmaformal.cases.inputs import Codes, plain_codes, zeros
from mmaformal.certificates.check import RefusedError
from mmaformal.cli import main
from mmaformal.queries.check_certificate import established
from mmaformal.solver.answers import Different
from mmaformal.solver.asking import simplified_alone
from mmaformal.witness import Witness

Json = dict[str, Any]

X, Y = "sapphire_rapids VFMADD231PH", "apple_amx fma16"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    pytest.importorskip("pysat", reason="no SAT solver that writes proofs")
    return certify(X, tmp_path_factory.mktemp("certificates"), against=Y, jobs=1)


@pytest.fixture
def folder(written: Certificates, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(written.folder, tmp_path / "copy"))


def test_the_smallest_difference_is_certified(written: Certificates) -> None:
    assert written.verdict == "certified", str(written)
    both, others, smallest = (text for text, _ in written.statements)
    assert (X in both, Y in others) == (True, True)
    assert smallest.startswith(f"{X} ≠ {Y} at c = 0x7c01, and at no smaller input: 0 nonzero products; ")
    checked = check_certificate(written.folder)
    assert (len(checked.statements), checked.by_search, checked.by_kernel) == (3, 1, 0)
    assert "1 by the search" in checked.summary


def _larger(entry: Json) -> None:
    """They differ on 0x7c03 too, and it is not the smallest."""
    entry["statement"] = entry["statement"].replace("0x7c01", "0x7c03")


def _asked(**changes: object) -> Callable[[Json], None]:
    return lambda entry: entry["asked"].update(changes)


#: Changes to a statement, with what is said of each.
ATTACKS: dict[str, tuple[Callable[[Json], None], str]] = {
    "a larger input": (_larger, "another statement"),
    "an input on which they agree": (
        _asked(known={"a": ["0x0"], "b": ["0x0"], "c": "0x0"}),
        "cannot be asked: .* do not differ",
    ),
    "an input of another shape": (_asked(known={"a": "0x0"}), "cannot be asked"),
    "another instruction": (_asked(against="power10 XVF32GER"), "not take the same"),
    "an instruction that there is not": (_asked(against="power10 none"), "none"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_question_that_was_changed_is_refused(
    folder: Path, attack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, said = ATTACKS[attack]
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    change(manifest["statements"][-1])
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(RefusedError, match=said):
        check_certificate(folder)
    assert main(["check-certificate", str(folder)]) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_equal_instructions_are_certified(written: Certificates, folder: Path) -> None:
    """An instruction is equal to another of the same model."""
    found = certify(Y, folder, against=Y, jobs=1)
    assert found.verdict == "certified", str(found)
    assert [text for text, _ in found.statements][-1].startswith(f"{Y}")
    assert check_certificate(folder).by_search == 1


def test_an_input_that_may_not_be_the_smallest_is_not_certified() -> None:
    x, y = instruction_meant(X), instruction_meant(Y)
    witness = Witness.of(x, y, [0], [0], 0x7C01)
    claims = ("0 nonzero products: proved minimal", "minus signs: 0: best found (the time given was used up)")
    said = established(Different(f"{x.label} = {y.label}", witness, claims, (), 1.0))
    assert isinstance(said, str)
    assert "not proved to be the smallest: minus signs" in said


def test_codes_are_read_as_they_are_written() -> None:
    codes = Codes((1, 2), (3, 4), 5, (6,), (7,))
    assert Codes.from_json(codes.to_json()) == codes == plain_codes(codes)
    none = zeros(instruction_meant(X).spec)
    assert Codes.from_json(none.to_json()) == none
    for wrong in ({"a": "0x1", "b": [], "c": "0x0"}, {"a": [], "b": []}, {"a": ["x"], "b": [], "c": "0x0"}):
        with pytest.raises(ValueError, match=r"expected codes|invalid literal"):
            Codes.from_json(wrong)


def test_a_question_is_simplified_alike_whatever_was_made_before() -> None:
    """z3's simplifier sorts operands by the numbers that terms have in a process."""
    import z3

    from mmaformal.solver.script import smtlib

    def question(name: str, turned: bool) -> str:
        w, x, y, z = (z3.BitVec(name + i, 8) for i in "wxyz")
        made = [x * y, w * z] if not turned else [w * z, x * y]  # numbered in this order
        assert len(made) == 2
        return smtlib([simplified_alone(z3.Or(x * y == z, w * z == x))]).replace(name, "")

    assert question("p_", False) == question("q_", True)


def test_what_cannot_be_compared_is_said_before_anything_is_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pysat", reason="no SAT solver that writes proofs")
    asked = ["certify", *X.split(), "--against", "hopper HMMA.16816.F32", "--out", str(tmp_path / "none")]
    assert main(asked) == 2
    assert "do not take the same inputs" in capsys.readouterr().err.splitlines()[0]
    assert not (tmp_path / "none" / "manifest.json").exists()
