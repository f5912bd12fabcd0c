"""Answers of docs/questions.md are what the commands print (tools/docs/questions.py)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "docs"))
from questions import QUESTIONS, Question, answer, block, products  # noqa: E402

PAGE = (ROOT / "docs" / "questions.md").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("questions")
    products.write(found / "questions")
    return found


@pytest.mark.parametrize(
    "question",
    [pytest.param(x, marks=[pytest.mark.slow] if x.slow else []) for x in QUESTIONS],
    ids=lambda x: re.sub(r"\W+", "-", x.title)[:40],
)
def test_a_command_prints_what_the_page_shows(
    question: Question, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "100")
    lines, status = answer(question)
    assert status == question.status
    assert block(question, lines) in PAGE


def test_every_question_is_there_with_who_asked_it() -> None:
    assert len(re.findall("^## ", PAGE, re.MULTILINE)) == len(QUESTIONS)
    assert all(x.links in PAGE and x.answer in PAGE for x in QUESTIONS)
