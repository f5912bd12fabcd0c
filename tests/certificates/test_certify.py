"""Certificates of a whole statement: what is written is checked, and nothing that was changed is."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

import pytest
import z3

from mmaformal import Certificates, certify, check_certificate
from mmaformal.architectures.meant import instruction_meant
from mmaformal.certificates.check import RefusedError, check_folder, check_premises
from mmaformal.certificates.lemmas import write_whole
from mmaformal.cli import main
from mmaformal.proof.kernel import LemmaCache, Premises, Theorem
from mmaformal.queries.witnesses import NoWitnessError, witnesses

UNIT = "volta HMMA.884.F32.F32"


class Manifest(TypedDict):
    """The contents of manifest.json."""

    format: str
    statements: list[dict[str, object]]
    lemmas: dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    pytest.importorskip("pysat", reason="no SAT solver that writes proofs")
    return certify(UNIT, tmp_path_factory.mktemp("certificates"), jobs=1)


@pytest.fixture(scope="module")
def given(written: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates with one more statement, which has premises."""
    folder = Path(shutil.copytree(written.folder, tmp_path_factory.mktemp("given") / "copy"))
    done = certify(UNIT, folder, properties=["zero-padding"], jobs=1)
    assert done.verdict == "certified", str(done)
    return folder


@pytest.fixture
def folder(written: Certificates, tmp_path: Path) -> Path:
    """A copy, to be changed."""
    return Path(shutil.copytree(written.folder, tmp_path / "copy"))


def manifest_in(folder: Path) -> Manifest:
    read: Manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return read


def put(folder: Path, manifest: Manifest) -> None:
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def smallest(folder: Path) -> str:
    """The lemma with the least derivation of more than one step."""
    found = [path for path in (folder / "lemmas").glob("*.lrat") if path.read_text().count("\n") > 3]
    return min(found, key=lambda path: (path.stat().st_size, path.name)).stem


def rewrite(folder: Path, name: str, kind: str, change: Callable[[str], str]) -> None:
    """Change a lemma's file, and the digest that the manifest has of it."""
    path = folder / "lemmas" / f"{name}.{kind}"
    text = change(path.read_text())
    path.write_text(text)
    manifest = manifest_in(folder)
    manifest["lemmas"][name][kind] = hashlib.sha256(text.encode()).hexdigest()
    put(folder, manifest)


def test_every_lemma_has_a_certificate_and_all_are_checked(written: Certificates) -> None:
    assert written.verdict == "certified"
    assert not written.without
    checked = check_certificate(written.folder)
    assert checked.lemmas == len(written.lemmas) == len(list(check_folder(written.folder)))
    assert checked.statements == (
        f"both encodings of {UNIT} give the same code for every input, and nothing wraps",
    )
    assert str(written).count("\n") < 10
    assert json.loads(written.json())["certificates"] == checked.lemmas


@pytest.mark.slow
def test_processes_check_lemmas(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaformal.queries.check_certificate._EACH", 1)
    told: list[str] = []
    checked = check_certificate(folder, jobs=2, progress=told.append)
    assert f"{checked.lemmas} of {checked.lemmas} lemmas" in told


def test_a_lemma_that_a_process_refuses_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmaformal.queries.check_certificate._EACH", 1)
    rewrite(folder, smallest(folder), "lrat", lambda text: text.replace("1", "2"))
    with pytest.raises(RefusedError, match=r"\.lrat"):
        check_certificate(folder, jobs=2)


def test_every_theorem_is_argued_and_the_kernel_is_not_believed(given: Path, tmp_path: Path) -> None:
    checked = check_certificate(given)
    assert (checked.by_kernel, checked.argued >= 3) == (0, True)
    folder = Path(shutil.copytree(given, tmp_path / "copy"))
    manifest = manifest_in(folder)
    for each in manifest["statements"]:
        each["arguments"] = []
    put(folder, manifest)
    again = check_certificate(folder)
    assert (again.argued, again.by_kernel) == (0, checked.argued)
    assert f"{checked.argued} by the kernel" in again.summary


def test_a_kernel_that_forgets_lemmas_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It proves the conclusion from inferences that nothing shows; the checker does not follow."""
    monkeypatch.setattr(Theorem, "_infer", lambda *_, **__: [])
    found = certify(UNIT, tmp_path, jobs=1)
    assert (found.argued, found.by_kernel) == (0, 1)
    assert "1 by the kernel" in str(found)
    assert check_certificate(tmp_path).by_kernel == 1


@pytest.mark.parametrize("left_out", ["(infer", "(conclude ", "(rule"])
def test_an_argument_that_was_changed_is_refused(folder: Path, left_out: str) -> None:
    manifest = manifest_in(folder)
    names = manifest["statements"][0]["arguments"]
    assert isinstance(names, list)
    text = (folder / "arguments" / f"{names[0]}.txt").read_text()
    (line, *_) = (line for line in reversed(text.splitlines()) if line.startswith(left_out))
    other = text.replace(f"{line}\n", "", 1)
    (folder / "arguments" / f"{names[0]}.txt").write_text(other)
    with pytest.raises(RefusedError, match="another SHA-256"):
        check_certificate(folder)
    name = hashlib.sha256(other.encode()).hexdigest()
    (folder / "arguments" / f"{name}.txt").write_text(other)
    manifest["statements"][0]["arguments"] = [name]
    put(folder, manifest)
    if left_out == "(rule":  # then it states something else, and nothing argues what the theorem states
        assert check_certificate(folder).by_kernel == 1
    else:
        with pytest.raises(RefusedError, match=f"{name}.txt"):
            check_certificate(folder)


def test_the_file_that_is_written_beside_them_stands_alone(written: Certificates, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-I", written.folder / "check.py", written.folder],
        cwd=tmp_path,
        env={},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.startswith(f"{len(written.lemmas)} lemmas checked")


@pytest.mark.skipif(sys.platform == "win32", reason="scripts are no programs there")
@pytest.mark.parametrize("said", ["s VERIFIED UNSAT", "s VERIFIED", "c VERIFIED"])
def test_another_checker_is_asked_of_each_lemma(folder: Path, tmp_path: Path, said: str) -> None:
    program, log = tmp_path / "other", tmp_path / "log"
    program.write_text(f"#!/bin/sh\necho $1 $2 >> {log}\necho {said}\n")
    program.chmod(0o755)
    checked = check_certificate(folder, also=str(program))
    assert "(by other too)" in checked.summary
    lines = log.read_text().splitlines()
    assert len(lines) == checked.lemmas
    assert all(line.endswith(".lrat") and ".cnf " in line for line in lines)


@pytest.mark.skipif(sys.platform == "win32", reason="scripts are no programs there")
@pytest.mark.parametrize("said", ["s NOT VERIFIED", "c s VERIFIED UNSAT", "", "s VERIFIED SAT"])
def test_what_another_checker_does_not_accept_is_refused(folder: Path, tmp_path: Path, said: str) -> None:
    program = tmp_path / "other"
    program.write_text(f"#!/bin/sh\necho {said}\n")
    program.chmod(0o755)
    with pytest.raises(RefusedError, match=r"\.lrat: other: "):
        check_certificate(folder, also=str(program))
    with pytest.raises(FileNotFoundError, match="no program"):
        check_certificate(folder, also=str(tmp_path / "none"))


@pytest.mark.skipif(shutil.which("cake_lpr") is None, reason="no cake_lpr")
def test_a_checker_that_is_proved_correct_accepts_every_lemma(written: Certificates) -> None:
    assert check_certificate(written.folder, also="cake_lpr").also == "cake_lpr"


def test_what_the_folder_has_is_not_made_again(written: Certificates, folder: Path) -> None:
    (folder / "lemmas" / f"{smallest(folder)}.lrat").unlink()
    before = {path.name: path.stat().st_mtime_ns for path in (folder / "lemmas").iterdir()}
    again = certify(UNIT, folder, jobs=1)
    after = {path.name: path.stat().st_mtime_ns for path in (folder / "lemmas").iterdir()}
    assert again.verdict == "certified"
    assert sum(before.get(name) != time for name, time in after.items()) == 3
    check_certificate(folder)


def test_an_interrupted_run_goes_on_where_it_was(
    written: Certificates, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "lemmas" / f"{smallest(folder)}.lrat").unlink()
    before = {path.name: path.stat().st_mtime_ns for path in (folder / "lemmas").iterdir()}
    with monkeypatch.context() as patched:
        patched.setattr("mmaformal.queries.certify.as_completed", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            certify(UNIT, folder, jobs=1)
    with pytest.raises(RefusedError, match="without a statement"):
        check_certificate(folder)
    assert certify(UNIT, folder, jobs=1).verdict == "certified"
    after = {path.name: path.stat().st_mtime_ns for path in (folder / "lemmas").iterdir()}
    assert len(after) == 3 * len(written.lemmas)
    assert sum(before.get(name) != time for name, time in after.items()) <= 3


def _interrupted(_futures: object) -> object:
    raise KeyboardInterrupt


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()  # nothing can be put in its place
    with pytest.raises(OSError, match="x"):
        write_whole(tmp_path / "x", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_changed_literal_is_refused_with_file_and_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = smallest(folder)
    rewrite(
        folder,
        name,
        "lrat",
        lambda text: text.replace(" 0 ", " 1 0 ", 1) if " 1 0 " not in text else "x\n" + text,
    )
    run = subprocess.run(
        [sys.executable, "check.py", "."], cwd=folder, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    with pytest.raises(RefusedError, match=rf"^{name}\.lrat, line \d+: "):
        check_certificate(folder)
    assert main(["check-certificate", str(folder)]) == 1
    assert f"refused: {name}.lrat, line" in capsys.readouterr().err


def test_a_changed_literal_is_told_by_line_where_the_manifest_is_as_it_was(folder: Path) -> None:
    path = folder / "lemmas" / f"{smallest(folder)}.lrat"
    first, *rest = path.read_text().splitlines()
    number, literal, *others = first.split()
    path.write_text("\n".join([f"{number} {-int(literal)} {' '.join(others)}", *rest, ""]))
    with pytest.raises(RefusedError, match=rf"^{path.name}, line \d+: "):
        list(check_folder(folder))
    with pytest.raises(RefusedError, match=rf"^{path.name}, line \d+: "):
        check_certificate(folder)


def test_clauses_that_are_not_the_lemmas_are_refused(folder: Path) -> None:
    """The derivation is right, of clauses that say more than the lemma's opposite: only the blaster sees it."""
    name = smallest(folder)

    def add(text: str) -> str:
        head, _, body = text.partition("\n")
        _, _, variables, count = head.split()
        return f"p cnf {variables} {int(count) + 1}\n{body}1 0\n"

    lines = (folder / "lemmas" / f"{name}.cnf").read_text().splitlines()
    given = len(lines) - 1
    rewrite(folder, name, "cnf", add)
    rewrite(folder, name, "lrat", lambda text: _renumbered(text, given))
    assert len(list(check_folder(folder))) > 1
    with pytest.raises(RefusedError, match=rf"{name}\.cnf: not the clauses"):
        check_certificate(folder)


def _renumbered(derivation: str, given: int) -> str:
    """Return a derivation from one clause more."""
    lines = []
    for line in derivation.splitlines():
        number, *rest = line.split()
        end = rest.index("0")
        hints = [str(int(x) + (int(x) > given)) for x in rest[end + 1 : -1]]
        lines.append(" ".join([str(int(number) + 1), *rest[: end + 1], *hints, "0"]))
    return "".join(f"{line}\n" for line in lines)


def test_a_lemma_swapped_for_another_is_refused(folder: Path) -> None:
    """Each file is a right certificate, of another lemma than its name says."""
    one, other = sorted(path.stem for path in (folder / "lemmas").glob("*.smt2"))[:2]
    for kind in ("smt2", "cnf", "lrat"):
        shutil.copy(folder / "lemmas" / f"{other}.{kind}", folder / "lemmas" / f"{one}.{kind}")
    manifest = manifest_in(folder)
    manifest["lemmas"][one] = dict(manifest["lemmas"][other])
    put(folder, manifest)
    with pytest.raises(RefusedError, match="another SHA-256"):
        check_certificate(folder)


def _without_a_lemma(manifest: Manifest) -> None:
    name = next(iter(manifest["lemmas"]))
    del manifest["lemmas"][name]
    names = manifest["statements"][0]["lemmas"]
    assert isinstance(names, list)
    names.remove(name)


def _of_another_instruction(manifest: Manifest) -> None:
    asked = manifest["statements"][0]["asked"]
    assert isinstance(asked, dict)
    asked["instruction"] = "HMMA.884.F16.F16"


def _of_none(manifest: Manifest) -> None:
    manifest["statements"][0]["asked"] = {
        "property": "equality",
        "architecture": "volta",
        "instruction": "none",
    }


def _other_words(manifest: Manifest) -> None:
    manifest["statements"][0]["statement"] = "d is exact"


#: Changes to a manifest, each of which takes from a statement what it rests on; with what is said.
ATTACKS: dict[str, tuple[Callable[[Manifest], object], str]] = {
    "a lemma left out": (
        _without_a_lemma,
        "no certificate of its lemma|a lemma that the statement does not name",
    ),
    "a statement about another instruction": (_of_another_instruction, "another statement|no certificate"),
    "an instruction that there is not": (_of_none, "cannot be asked"),
    "other words": (_other_words, "another statement"),
    "no statement": (lambda m: m["statements"].clear(), "without a statement"),
    "no lemmas of a statement": (lambda m: m["statements"][0].update(lemmas=[]), "rests on no lemma"),
    "a lemma that is not there": (lambda m: m["lemmas"].pop(next(iter(m["lemmas"]))), "is not there"),
    "another format": (lambda m: m.update(format="2"), "not of the format"),
    "no digests": (lambda m: m["lemmas"][next(iter(m["lemmas"]))].clear(), "without the SHA-256"),
    "a name that is a path": (lambda m: m["lemmas"].update({"../x": {}}), "a lemma's name"),
    "nothing asked": (lambda m: m["statements"][0].pop("asked"), "cannot be asked"),
    "a question that there is not": (
        lambda m: m["statements"][0].update(
            asked={"property": "truth", "architecture": "volta", "instruction": "x"}
        ),
        "cannot be asked",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_manifest_that_was_changed_is_refused(
    attack: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # what is asked here takes lemmas as checked: those of the folder are, by the tests above
    change, why = ATTACKS[attack]
    if "a name" not in attack and "digests" not in attack:
        monkeypatch.setattr("mmaformal.queries.check_certificate._check", lambda *_: None)
    manifest = manifest_in(folder)
    change(manifest)
    put(folder, manifest)
    with pytest.raises(RefusedError, match=why):
        check_certificate(folder)


def test_a_model_that_changed_since_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The certificates are right, and are no longer those of the encodings."""
    monkeypatch.setattr("mmaformal.queries.check_certificate._check", lambda *_: None)
    name = next(iter(manifest_in(folder)["lemmas"]))
    manifest = manifest_in(folder)
    # stands for a lemma that the present encodings ask and the folder has not
    other = manifest["lemmas"].pop(name)
    manifest["lemmas"]["0" * 64] = other
    names = manifest["statements"][0]["lemmas"]
    assert isinstance(names, list)
    names[names.index(name)] = "0" * 64
    put(folder, manifest)
    with pytest.raises(
        RefusedError, match=f"(no certificate of its lemma|a lemma that the statement does not name:) {name}"
    ):
        check_certificate(folder)


# ---- premises --------------------------------------------------------------------------------------------------------


def _witness(manifest: Manifest) -> dict[str, object]:
    premises = manifest["statements"][1]["premises"]
    assert isinstance(premises, list)
    found: dict[str, object] = premises[0]
    return found


def test_premises_have_a_witness_that_runs_through_both_encodings(given: Path) -> None:
    witness = _witness(manifest_in(given))
    assert witness["assumed"] == ["the products dropped are zero"]
    assert len(check_certificate(given).statements) == 2
    run = subprocess.run(
        [sys.executable, "-I", "check.py", "."], cwd=given, env={}, capture_output=True, text=True, check=True
    )
    assert "assumed, and met by a witness: the products dropped are zero" in run.stdout


def test_a_witness_has_the_constants_of_its_premises_alone(tmp_path: Path) -> None:
    """z3's models have what scripts defined, too, once this process has read one."""
    y = "(declare-fun y () (_ BitVec 3))"
    z3.Solver().from_string(f"{y}(define-fun $0 () (_ BitVec 3) (bvadd y y))(assert (not (= $0 y)))")
    a, b = z3.BitVecs("a0 b0", 16)
    claim = z3.And(z3.Or(a & 0x7FFF == 0, b & 0x7FFF == 0), z3.Extract(14, 10, a) != 31)
    found = witnesses(instruction_meant(UNIT), [Premises(("a zero",), claim)], _folder(tmp_path), 5.0)
    values = found[0]["values"]
    assert isinstance(values, dict)
    assert values.keys() <= {"a0", "b0"}


def _folder(path: Path) -> Path:
    (path / "premises").mkdir()
    return path / "premises"


#: Changes to the witness of premises, with what is said.
EMPTIED: dict[str, tuple[Callable[[Manifest], object], str]] = {
    "no premises": (lambda m: m["statements"][1].pop("premises"), "without a witness"),
    "premises that are not told": (
        lambda m: m["statements"][1].update(premises=[{**_witness(m), "assumed": []}]),
        "without a witness of its premises: the products",
    ),
    "other premises": (
        lambda m: m["statements"][1].update(premises=m["statements"][0]["premises"]),
        "without a witness of its premises: the products",
    ),
    "values that do not meet them": (
        lambda m: _witness(m).update(values={"a3": 1, "b3": 1}),
        "both encodings",
    ),
    "another result": (lambda m: _witness(m).update(d="0x1"), "both encodings"),
    "other inputs": (lambda m: _witness(m).update(inputs={}), "both encodings"),
    "no result": (lambda m: _witness(m).pop("d"), "without what is assumed, or its result"),
    "no assignment": (lambda m: _witness(m).pop("model"), "without the SHA-256"),
    "a path for a name": (lambda m: _witness(m).update(smt2="../x"), "name is a SHA-256"),
    "a constant that there is not": (lambda m: _witness(m)["values"].update(x=1), "no constant x"),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("attack", EMPTIED)
def test_a_witness_that_was_changed_is_refused(
    attack: str, given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmaformal.queries.check_certificate._check", lambda *_: None)
    folder = Path(shutil.copytree(given, tmp_path / "copy"))
    change, why = EMPTIED[attack]
    manifest = manifest_in(folder)
    change(manifest)
    put(folder, manifest)
    with pytest.raises(RefusedError, match=why):
        check_certificate(folder)


def test_an_assignment_with_one_literal_changed_is_refused_with_the_clause(
    given: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(given, tmp_path / "copy"))
    manifest = manifest_in(folder)
    witness = _witness(manifest)
    path = folder / "premises" / f"{witness['smt2']}.model"
    first, rest = path.read_text().split(" ", 1)
    path.write_text(f"-{first} {rest}")
    witness["model"] = hashlib.sha256(path.read_bytes()).hexdigest()
    put(folder, manifest)
    with pytest.raises(RefusedError, match=rf"^{path.stem}\.cnf, line 2: the values of {path.stem}\.model"):
        check_premises(folder, dict(manifest["statements"][1]))


def test_premises_that_contradict_each_other_have_no_witness(tmp_path: Path) -> None:
    x = z3.BitVec("x", 8)
    for claim in (z3.BoolVal(False), z3.And(z3.ULT(x, 3), z3.UGT(x, 3))):
        with pytest.raises(NoWitnessError, match="x is odd: nothing meets them"):
            witnesses(instruction_meant(UNIT), [Premises(("x is odd",), claim)], tmp_path, 5.0)


def test_a_statement_whose_premises_nothing_meets_is_not_certified(
    given: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel refuses it first: here it is made to take such premises, and certify refuses it by itself."""
    folder = Path(shutil.copytree(given, tmp_path / "copy"))
    of = Theorem.premises.fget
    assert of is not None
    monkeypatch.setattr(
        Theorem, "premises", property(lambda self: ([*of(self)[0], "1 = 2"], z3.BoolVal(False)))
    )
    monkeypatch.setattr(LemmaCache, "demand_premises", _note)
    found = certify(UNIT, folder, jobs=1)
    assert found.verdict == "incomplete"
    assert "1 = 2: nothing meets them" in str(found)
    with pytest.raises(RefusedError, match="without a statement"):
        check_certificate(folder)


def _note(_cache: LemmaCache, _asker: object, _theorem: Theorem) -> None:
    """Any premises are taken."""


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["certify", "volta"], "--out"),
        (["certify", "--out", "x"], "certify what"),
        (["certify", "volta", "HMMA.884.F32.F32", "--property", "truth", "--out", "x"], "truth"),
        (["check-certificate", "nowhere"], "nowhere"),
    ],
)
def test_wrong_use_is_told(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert why in capsys.readouterr().err
