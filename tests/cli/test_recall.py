"""Questions that are asked again: what is answered from before, and what is asked afresh."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from mmaformal import Answer, Different, Instruction, ampere, cli, find_difference, hopper, prove
from mmaformal.cli import recall, running
from mmaformal.cli.recall import Recalled, RecallKey
from mmaformal.queries import find_difference as find_difference_module
from mmaformal.solver.evidence import EvidenceStore
from mmaformal.solver.portfolio import Outcome

FIXED = [f"{side}{k}=0x0" for side in "ab" for k in range(1, 8)] + ["a0=0x1000", "c=0x3f800000"]
DIFF = ["diff", "ampere", "hopper", "HMMA.1688.F32", *(w for each in FIXED for w in ("--where", each))]
EQUAL = ["diff", "hopper", "blackwell", "HMMA.1688.F32"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(recall, "enabled", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "mmaformal"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The questions that are worked out."""
    calls: list[tuple[str, ...]] = []
    original = find_difference_module.find_difference

    def spy(*args: Any, **options: Any) -> Answer:
        calls.append(tuple(each.label for each in args if isinstance(each, Instruction)))
        return original(*args, **options)

    monkeypatch.setattr(find_difference_module, "find_difference", spy)
    return calls


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    status = cli.main(argv)
    out, err = capsys.readouterr()
    assert err == ""
    return status, out


def undated(text: str) -> str:
    return re.sub(r"(\(\d+\.\d s) on \d{4}-\d\d-\d\d, remembered\)", r"\1)", text, count=1)


@pytest.mark.parametrize("words", [DIFF, EQUAL])
@pytest.mark.parametrize("more", [[], ["-v"]])
def test_a_question_asked_again_is_answered_from_before(
    words: list[str], more: list[str], capsys: pytest.CaptureFixture[str], asked: list[tuple[str, ...]]
) -> None:
    first = run(capsys, *words, *more)
    again = run(capsys, *words, *more)
    assert len(asked) == 1
    assert again != first
    assert (again[0], undated(again[1])) == first
    told = json.loads(run(capsys, *words, "--json")[1])
    assert told.pop("asked").startswith("20")
    assert run(capsys, *words, "--exit-code")[0] == (1 if told["answer"] == "different" else 0)
    assert len(asked) == 1


def test_files_and_no_cache_ask_afresh(
    capsys: pytest.CaptureFixture[str], asked: list[tuple[str, ...]], tmp_path: Path, own_cache: Path
) -> None:
    run(capsys, *DIFF)
    for more in (
        ["--no-cache"],
        ["--smtlib", str(tmp_path / "smt")],
        ["--evidence", str(tmp_path / "own.db")],
    ):
        count = len(asked)
        assert run(capsys, *DIFF, *more)[0] == 0
        assert len(asked) == count + 1
    assert not (tmp_path / "answers").exists()
    assert len(list((own_cache / "answers").iterdir())) == 1


def test_programs_of_an_answer_that_is_known_are_written_without_asking(
    capsys: pytest.CaptureFixture[str], asked: list[tuple[str, ...]], tmp_path: Path
) -> None:
    written = []
    for number, more in enumerate(([], ["--no-cache"], [])):
        for option in ("--cuda", "--npz"):
            file = tmp_path / f"{number}.{option.strip('-')}"
            assert run(capsys, *DIFF, *more, option, str(file))[0] == 0
            written.append(file)
    assert len(asked) == 3  # the first, and those of --no-cache
    assert len({file.read_text() for file in written[::2]}) == 1
    assert all(file.stat().st_size for file in written)


def test_another_question_is_another(
    capsys: pytest.CaptureFixture[str], asked: list[tuple[str, ...]]
) -> None:
    run(capsys, *EQUAL)
    run(capsys, "diff", "blackwell", "hopper", "HMMA.1688.F32")
    run(capsys, *EQUAL, "--where", "finite")
    run(capsys, *EQUAL, "--solver", "z3")
    assert len(asked) == 4


def test_another_model_or_source_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = ampere["HMMA.1688.F32"], hopper["HMMA.1688.F32"]
    key = RecallKey("diff", (x, y)).key
    assert RecallKey("diff", (x, y)).key == key
    others = [
        RecallKey("prove", (x, y)).key,
        RecallKey("diff", (y, x)).key,
        RecallKey("diff", (x, y.replace(F=24))).key,
        RecallKey("diff", (x, y), "finite").key,
        RecallKey("diff", (x, replace(y, spec=y.spec.replace(F=24)))).key,  # under the same name
    ]
    monkeypatch.setattr(recall, "source_digest", lambda: "another")
    others.append(RecallKey("diff", (x, y)).key)
    assert len({key, *others}) == 7


def test_the_source_is_all_of_the_package() -> None:
    recall.source_digest.cache_clear()
    start = time.monotonic()
    digest = recall.source_digest()
    assert len(digest) == 64
    assert time.monotonic() - start < 5
    for module in (find_difference_module, recall):
        assert module.__file__ is not None
        assert any(Path(module.__file__).resolve() == path for path in recall.source_files())


@pytest.mark.parametrize(
    "spoil",
    [
        lambda store, sha: store._db.execute("DELETE FROM records WHERE sha256 = ?", [sha]),
        lambda store, sha: store.add(sha, "n", "s", Outcome("sat", "other", "1", 0.0)),
    ],
)
def test_an_answer_whose_evidence_is_gone_or_contradicted_is_not_given_again(
    spoil: Callable[[EvidenceStore, str], object],
    capsys: pytest.CaptureFixture[str],
    asked: list[tuple[str, ...]],
    own_cache: Path,
) -> None:
    told = json.loads(run(capsys, *EQUAL, "--json")[1])
    sha = told["proof"]["obligations"][0]["sha256"]
    # a contradiction is said at once
    with EvidenceStore(own_cache / "evidence.db") as store, contextlib.suppress(OSError):
        spoil(store, sha)
    cli.main(EQUAL)
    assert len(asked) == 2


@pytest.mark.parametrize(
    "spoil",
    [
        lambda told: told["json"]["witness"].update(c="0x33000000"),  # on which both give the same
        lambda told: told["json"]["witness"]["models"][1].update(result="0x3f7ffffe"),
        lambda told: told["json"]["witness"].update(a=["0x3c00"]),
        lambda told: told["json"]["witness"].update(a=None),
        lambda told: told["json"].update(witness={"models": [0, 1]}),
        lambda told: told.update(json=[]),
        lambda told: told.update(text=1),
        lambda told: told.update(key="0" * 64),  # of another question
        lambda told: told.pop("key"),
    ],
)
def test_an_answer_that_was_tampered_with_is_asked_again(
    spoil: Callable[[dict[str, Any]], object],
    capsys: pytest.CaptureFixture[str],
    asked: list[tuple[str, ...]],
    own_cache: Path,
) -> None:
    first = run(capsys, *DIFF)
    (path,) = (own_cache / "answers").iterdir()
    told = json.loads(path.read_text(encoding="utf-8"))
    spoil(told)
    path.write_text(json.dumps(told), encoding="utf-8")
    again = run(capsys, *DIFF)
    assert len(asked) == 2
    assert again[1].splitlines()[1:] == first[1].splitlines()[1:]
    run(capsys, *DIFF)
    assert len(asked) == 2


def test_what_was_left_open_is_asked_again_with_more_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[float] = []
    one = [0x3C00] + [0] * 7
    from mmaformal.witness import Witness

    witness = Witness.of(ampere["HMMA.1688.F32"], hopper["HMMA.1688.F32"], one, one, 0xB3000000)

    def found(*_: Any, timeout: float, **__: Any) -> Different:
        calls.append(timeout)
        return Different("x = y", witness, ("minus signs: 1: best found (time)",), (), 0.0)

    monkeypatch.setattr(find_difference_module, "find_difference", found)
    words = ["diff", "ampere", "hopper", "HMMA.1688.F32", "--timeout"]
    for timeout in ("10", "10", "5", "20", "15"):
        run(capsys, *words, timeout)
    assert calls == [10, 20]


def test_what_is_kept_is_not_more_than_so_much(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    monkeypatch.setattr(recall, "MOST", 2)
    for name in ("HMMA.1688.F32", "HMMA.1688.F16", "HMMA.16816.F32"):
        run(capsys, "diff", "hopper", "blackwell", name)
    assert len(list((own_cache / "answers").iterdir())) == 2
    for path in (own_cache / "answers").iterdir():
        path.write_text("{")  # what is no answer is asked again
    assert run(capsys, "diff", "hopper", "blackwell", "HMMA.16816.F32")[0] == 0


def test_a_property_asked_again_is_answered_from_before(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["prove", "every-number", "volta", "HMMA.884.F32.F16"]
    status, out = run(capsys, *words)
    assert status == 1
    from mmaformal.queries.properties import PROPERTIES

    monkeypatch.setattr(type(PROPERTIES["every-number"]), "prove", None)
    again = run(capsys, *words)
    assert (again[0], undated(again[1])) == (status, out)


# ---- the other commands that take more than a second


@pytest.fixture
def recalled(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """A list that grows by one entry for each question: whether it was answered from before."""
    found: list[bool] = []
    original = RecallKey.recall

    def spy(self: RecallKey, *args: Any) -> Recalled | None:
        known = original(self, *args)
        found.append(known is not None)
        return known

    monkeypatch.setattr(RecallKey, "recall", spy)
    return found


ROWS = str(Path(__file__).parents[2] / "examples" / "bfdot_qemu.npz")
VOLTA = "volta HMMA.884.F32.F32"

#: Commands, and what works their answers out, where that takes longer than a test may.
REPEATED: dict[str, tuple[list[str], str]] = {
    "bound": (["bound", *VOLTA.split(), "--k", "64"], "mmaformal.cli.bound._asked"),
    "less-accurate": (
        ["less-accurate", f"ootomo({VOLTA})", "--never"],
        "mmaformal.cli.less_accurate._asked",
    ),
    "signoff": (["signoff", "unit.sv", "--against", *VOLTA.split()], "mmaformal.queries.signoff.signoff"),
    "amx": (
        ["amx", "ignored-bits", "--instruction", "fma64"],
        "mmaformal.studies.amx.prover.AmxProver.prove",
    ),
    "e9s12": (
        ["e9s12", "fma", "--instruction", "DP4A.BF16"],
        "mmaformal.studies.e9s12.prover.E9s12Prover.prove",
    ),
    "roundoff": (["roundoff", "e2m1"], ""),
    "max-difference": (
        ["max-difference", "ampere", "hopper", "HMMA.1688.F32", "--timeout", "1"],
        "mmaformal.cli.max_difference._asked",
    ),
    "fingerprint": (["fingerprint", "bf16", "fp32", "--arch", "armv8_6"], ""),
    "diagnose": (["diagnose", ROWS, "--only", "oddsum", "--jobs", "1"], ""),
    "mismatches": (["mismatches", ROWS], ""),
}


@pytest.fixture
def quick(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_cache: Path
) -> list[str]:
    """The words of a command; a proof that is quick stands in for what works a slow one out."""
    from mmaformal.formats import e2m1
    from mmaformal.queries.max_difference import Apart
    from mmaformal.queries.roundoff import of_format
    from mmaformal.solver.evidence import recording
    from mmaformal.solver.portfolio import LazyPortfolio

    words, slow = REPEATED[request.param]
    if request.param == "max-difference":
        monkeypatch.setattr(slow, lambda *_: Apart(Fraction(1, 2), Fraction(0), 0.0, None, random=0.0))
        return words
    monkeypatch.chdir(tmp_path)
    Path("unit.sv").write_text("module unit; endmodule\n", encoding="utf-8")
    if slow:
        with (
            EvidenceStore(own_cache / "evidence.db") as store,
            recording(store),
            LazyPortfolio(None, 2048) as portfolio,
        ):
            answer = of_format(e2m1, portfolio)
        monkeypatch.setattr(slow, lambda *_, **__: answer)
    return words


@pytest.mark.parametrize("quick", REPEATED, indirect=True)
def test_every_command_answers_from_before(
    quick: list[str], capsys: pytest.CaptureFixture[str], recalled: list[bool]
) -> None:
    first, again = run(capsys, *quick), run(capsys, *quick)
    assert recalled == [False, True]
    assert again[0] == first[0]
    lines, before = again[1].splitlines(), first[1].splitlines()
    assert [x == y for x, y in zip(lines, before, strict=True)].count(False) == 1  # the one that is dated
    assert re.search(
        r" on 20\d\d-\d\d-\d\d, remembered\)|  \(on 20\d\d-\d\d-\d\d, remembered\)$", again[1], re.MULTILINE
    )
    told = json.loads(run(capsys, *quick, "--json")[1])
    assert "asked" in str(told)
    assert recalled == [False, True, True]
    run(capsys, *quick, "--no-cache")
    assert not any(recalled[3:])


def test_what_was_verified_is_told_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    from mmaformal.cli import verification

    row: dict[str, object] = {"architecture": "a", "instruction": "i", "answer": "holds"}
    row |= {"obligations": [], "seconds": 1}
    told: dict[str, object] = {"answers": [row]}
    asked: list[object] = []

    def worked_out(request: verification.Request, keep: Callable[..., None]) -> int:
        asked.append(request)
        with EvidenceStore(own_cache / "evidence.db") as store:
            keep(verification.Verified("proved   it\n1 instructions: 1 proved", told), store)
        return 0

    monkeypatch.setattr(verification, "run_campaign", worked_out)
    words = ["verify", *VOLTA.split()]
    run(capsys, *words)
    assert re.fullmatch(
        r"proved   it  \(on \S+, remembered\)\n1 instructions: 1 proved\n", run(capsys, *words)[1]
    )
    assert json.loads(run(capsys, *words, "--json")[1])["answers"] == told["answers"]
    assert run(capsys, *words, "--csv")[1].splitlines()[1] == "a,i,holds,0,1"
    assert len(asked) == 1
    for more in (["--no-cache"], ["--confirm"], ["--smtlib", str(own_cache / "smt")]):
        run(capsys, *words, *more)
    assert len(asked) == 4
    # it rests on its obligations, which are named by their digests alone
    row["obligations"] = ["0" * 64]
    run(capsys, "verify", "volta", "HMMA.884.F16.F16")
    run(capsys, "verify", "volta", "HMMA.884.F16.F16")
    assert len(asked) == 6


@pytest.mark.parametrize("quick", ["signoff"], indirect=True)
def test_a_design_is_known_by_all_that_it_is_made_of(
    quick: list[str], capsys: pytest.CaptureFixture[str], recalled: list[bool]
) -> None:
    def known(*more: str) -> bool:
        recalled.clear()
        run(capsys, *quick, *more)
        return recalled == [True]

    assert not known()
    assert known()
    assert not known("-D", "X=1")
    assert not known("--top", "unit")
    assert not known("--top", "unit", "-G", "K=4")
    assert not known("--replace", "F=22")
    Path("unit.sv").write_text("module unit; wire x; endmodule\n", encoding="utf-8")
    assert not known()
    Path("unit.sv").write_text(
        '`include "other.svh"\n', encoding="utf-8"
    )  # which may be another the next time
    assert not known()
    assert not known()


def test_a_recording_is_known_by_its_content(
    capsys: pytest.CaptureFixture[str], recalled: list[bool], tmp_path: Path
) -> None:
    import numpy as np

    copy, words = tmp_path / "bfdot_qemu.npz", ["--only", "oddsum", "--jobs", "1"]
    copy.write_bytes(Path(ROWS).read_bytes())
    assert run(capsys, "diagnose", ROWS, *words)[0] == run(capsys, "diagnose", str(copy), *words)[0] == 0
    with np.load(copy, allow_pickle=False) as read:
        columns = {name: read[name] for name in read.files}
    np.savez(copy, **columns | {"d": columns["d"] ^ 1})
    assert run(capsys, "diagnose", str(copy), *words)[0] == 1
    assert recalled == [False, True, False]


def test_what_more_time_may_improve_is_asked_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, recalled: list[bool]
) -> None:
    from mmaformal.queries.max_difference import Apart

    bound, none = Fraction(1, 2), Fraction(0)
    found = {"1": Apart(bound, none, 0.0, None), "2": Apart(bound, none, 0.0, None, searched=False)}
    command, slow = REPEATED["max-difference"]
    monkeypatch.setattr(slow, lambda *words: found[f"{words[5]:g}"])
    for seconds in ("1", "0.9", "2", "1", "2"):
        run(capsys, *command[:-1], seconds)
    assert recalled == [False, True, False, True, False]  # of 2 s nothing is kept, for nothing was searched


def test_what_has_no_answer_is_asked_again(capsys: pytest.CaptureFixture[str], recalled: list[bool]) -> None:
    for _ in range(2):
        assert run(capsys, "bound", *VOLTA.split(), "--timeout", "0.001")[0] == 3
    assert recalled == [False, False]


# ---- the first witness, and progress in Python


def test_the_first_witness_is_told_before_the_smallest() -> None:
    told: list[str] = []
    answer = find_difference("ampere", "hopper", "HMMA.1688.F32", where=FIXED, progress=told.append)
    assert isinstance(answer, Different)
    (first,) = [number for number, line in enumerate(told) if line.startswith("found: ")]
    assert "; a smaller one is looked for" in told[first]
    assert " gives 0x" in told[first]


@pytest.mark.asks
def test_prove_says_what_it_asks() -> None:
    told: list[str] = []
    prove("never-minus-zero", "apple_amx fma16", progress=told.append)
    assert any("proved; " in line for line in told)
    assert sum(line.startswith("found: ") for line in told) <= 1


def test_an_answer_is_kept_as_wide_as_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "width", lambda *_: 60)
    assert max(map(len, run(capsys, *DIFF)[1].splitlines())) <= 60
    assert max(map(len, run(capsys, *DIFF)[1].splitlines())) <= 60
    monkeypatch.setattr(running, "width", lambda *_: 80)
    table = run(capsys, *DIFF)[1].splitlines()
    assert max(map(len, table)) <= 80
    assert any(re.fullmatch(r" {30,}\S+( {2,}\S+)?", line) for line in table), "a row of its table was broken"
    monkeypatch.setattr(running, "width", lambda *_: None)
    _, *wide = run(capsys, *DIFF)[1].splitlines()
    assert wide == run(capsys, *DIFF, "--no-cache")[1].splitlines()[1:]
