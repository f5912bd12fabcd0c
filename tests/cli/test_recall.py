"""Questions that are asked again: what is answered from before, and what is asked afresh."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmaformal import Answer, Different, Instruction, ampere, cli, find_difference, hopper, prove
from mmaformal.cli import recall
from mmaformal.cli.recall import Question
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
    return re.sub(r"(\(\d+\.\d s) on \d{4}-\d\d-\d\d\)", r"\1)", text, count=1)


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
        ["--cuda", str(tmp_path / "case.cu")],
        ["--evidence", str(tmp_path / "own.db")],
    ):
        count = len(asked)
        assert run(capsys, *DIFF, *more)[0] == 0
        assert len(asked) == count + 1
    assert not (tmp_path / "answers").exists()
    assert len(list((own_cache / "answers").iterdir())) == 1


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
    key = Question("diff", (x, y)).key
    assert Question("diff", (x, y)).key == key
    others = [
        Question("prove", (x, y)).key,
        Question("diff", (y, x)).key,
        Question("diff", (x, y.replace(F=24))).key,
        Question("diff", (x, y), "finite").key,
        Question("diff", (x, replace(y, spec=y.spec.replace(F=24)))).key,  # under the same name
    ]
    monkeypatch.setattr(recall, "source", lambda: "another")
    others.append(Question("diff", (x, y)).key)
    assert len({key, *others}) == 7


def test_the_source_is_all_of_the_package() -> None:
    recall.source.cache_clear()
    start = time.monotonic()
    digest = recall.source()
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


# ---- the first witness, and progress in Python


def test_the_first_witness_is_told_before_the_smallest() -> None:
    told: list[str] = []
    answer = find_difference("ampere", "hopper", "HMMA.1688.F32", where=FIXED, progress=told.append)
    assert isinstance(answer, Different)
    (first,) = [number for number, line in enumerate(told) if line.startswith("found: ")]
    assert "; a smaller one is looked for" in told[first]
    assert " gives 0x" in told[first]


def test_prove_says_what_it_asks() -> None:
    told: list[str] = []
    prove("never-minus-zero", "apple_amx fma16", progress=told.append)
    assert any("proved; " in line for line in told)
    assert sum(line.startswith("found: ") for line in told) <= 1
