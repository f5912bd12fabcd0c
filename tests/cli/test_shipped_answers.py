"""Answers that come with the package: given for the README's questions, never where a model or a witness is another."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import shipped_answers

from mmaformal import cli
from mmaformal.cli import recall
from mmaformal.cli.recall import Recalled, RecallKey
from mmaformal.solver.portfolio import Portfolio

DEMO = ["diff", "ampere", "hopper", "HMMA.16816.F32"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recall, "enabled", True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.fixture
def no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a solver is asked: run python tools/shipped_answers.py")

    monkeypatch.setattr(Portfolio, "ask", refuse)


@pytest.mark.parametrize("words", shipped_answers.commands(), ids=shlex.join)
def test_the_questions_of_the_readme_are_answered_at_once(
    words: list[str], no_solver: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words) == 0
    assert re.search(r", shipped [0-9a-f]{8}\)", capsys.readouterr().out)


@pytest.mark.parametrize("more", ["--json", "--verbose", "--no-cache"])
def test_what_shows_obligations_is_asked_anew(more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _asked(monkeypatch, [*DEMO, more]) == "worked out"


def _asked(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> str:
    """Return whether a command's answer is `shipped`, or would be `worked out`, which is not waited for."""
    told: list[str] = []
    ask = RecallKey.ask

    def spy(self: RecallKey, store, timeout, work, **options):  # type: ignore[no-untyped-def]
        def give_up() -> Recalled:
            told.append("worked out")
            raise KeyboardInterrupt

        answer = ask(self, store, timeout, give_up, **options)
        told.append(answer.origin)
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(RecallKey, "ask", spy)
        cli.main(words)
    (found,) = told
    return found


def test_another_model_has_no_shipped_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _asked(monkeypatch, DEMO) == "shipped"
    for more in (["--replace", "F=22"], ["--where", "gemm"]):
        assert _asked(monkeypatch, [*DEMO, *more]) == "worked out"


def test_other_source_of_the_encodings_has_no_shipped_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "source_of_models", lambda: "another")
    assert _asked(monkeypatch, DEMO) == "worked out"


@pytest.mark.parametrize("change", ["witness", "text", "digest", "file", "question"])
def test_what_is_not_what_was_shipped_is_not_shown(
    change: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "answers.json"
    known = json.loads(recall.SHIPPED.read_text(encoding="utf-8"))
    if change == "question":  # each stands in the next one's place
        known = dict(zip(known, [*list(known.values())[1:], next(iter(known.values()))], strict=True))
    for key, record in known.items() if change != "question" else ():
        if change == "text":
            record["text"] = record["text"].replace("Different", "Equal")
        elif change == "digest":
            del record["digest"]
        elif "witness" in record["json"]:
            record["json"]["witness"]["c"] = "0x0"
            record["digest"] = recall.record_digest(key, record)
    file.write_text("{" if change == "file" else json.dumps(known), encoding="utf-8")
    monkeypatch.setattr(recall, "SHIPPED", file)
    assert _asked(monkeypatch, DEMO) == "worked out"


def test_the_source_of_models_is_what_gives_them_meaning() -> None:
    names = {f"{path.parent.name}/{path.name}" for path in recall.files_of_models()}
    assert {"fda/smt.py", "fda/executable.py", "mmaformal/formats.py", "mmaformal/rounding.py"} <= names
    assert not {"cli/recall.py", "fda/kernel.py", "kernel/halves.py"} & names


@pytest.mark.slow
@pytest.mark.parametrize("words", shipped_answers.commands(), ids=shlex.join)
def test_each_is_what_is_answered_now(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*words, "--json", "--timeout", "600"]) == 0
    anew = shipped_answers.timeless({"json": json.loads(capsys.readouterr().out)})
    assert anew in {
        shipped_answers.timeless(each) for each in json.loads(recall.SHIPPED.read_text()).values()
    }
