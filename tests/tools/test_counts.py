"""Numbers that documents give of the registry are those that there are (tools/counts.py)."""

from __future__ import annotations

from pathlib import Path

import counts
import pytest

ROOT = Path(__file__).resolve().parents[2]


def page(body: str, *phrases: str) -> str:
    return "\n".join([body, "", "<!-- counted by tools/counts.py:", *phrases, "-->", ""])


@pytest.mark.parametrize("path", counts.pages(), ids=lambda path: path.name)
def test_no_number_of_a_document_is_stale(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert counts.rewritten(text) == text, "python tools/counts.py"


def test_parts_add_up_to_the_whole() -> None:
    n = counts.counts()
    assert n["mma_sync"] + n["not_mma_sync"] == n["gpu_instructions"] < n["instructions"]
    assert n["amd"] + n["wgmma"] + n["tcgen05"] < n["not_mma_sync"]
    assert 0 < n["recorded_gpu"] < n["recorded"] <= n["recordings"]
    assert all(n.values())


def test_a_stale_number_is_rewritten_and_nothing_else() -> None:
    now = counts.counts()["instructions"]
    phrase = "all {instructions} instructions of {architectures:word} kinds"
    old = page("1 of all 9,999\ninstructions of three kinds, all 7 instructions", phrase)
    kinds = counts.written(counts.counts()["architectures"], "word")
    assert counts.rewritten(old) == page(
        f"1 of all {now:,}\ninstructions of {kinds} kinds, all 7 instructions", phrase
    )
    assert counts.rewritten("9,999 instructions") == "9,999 instructions"  # lists no phrases


@pytest.mark.parametrize(
    ("phrase", "told"),
    [
        ("{instructions} things", "no text"),
        ("{instruction} instructions", "no count 'instruction'; there are"),
        ("instructions", "has no {name}"),
        ("{instructions:word} instructions", "is written as digits"),
    ],
)
def test_a_phrase_that_cannot_be_counted_is_refused(phrase: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        counts.rewritten(page("1 instructions", phrase))
