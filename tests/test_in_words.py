"""An answer says what its obligations do not; docs/properties.md has another sign there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from proofs import some_proof

from mmaformal.proof.proving import Proving
from mmaformal.queries import matrix, monotonicity
from mmaformal.queries.properties import PROPERTIES
from mmaformal.solver.answers import Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.portfolio import Relay

PAGE = Path(__file__).parents[1] / "docs" / "properties.md"
SPECS = matrix.distinct()


@pytest.fixture
def asker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Asker]:
    """Every claim is taken for proved: what is looked at is which arguments there are."""

    def taken(self: Any, name: str, statement: str, claim: Any, *args: Any, **kwargs: Any) -> Any:
        return claim

    monkeypatch.setattr(Proving, "claim", taken)
    monkeypatch.setattr(monotonicity, "find_addend", lambda instruction: None)
    portfolio = Relay()
    yield Asker(portfolio, 60)
    portfolio.close()


def first_of_each_algorithm() -> list[Any]:
    found: dict[str, Any] = {}
    for spec, instructions in SPECS.items():
        found.setdefault(spec.parameters.algorithm, instructions[0])
    return list(found.values())


def test_words_are_told() -> None:
    answer = Holds("?", some_proof(), 0.0, words=("that it is so",))
    assert answer.to_json()["rests_on_words"] == ["that it is so"]
    assert "in words, not as an obligation: that it is so" in str(answer)


@pytest.mark.parametrize("instruction", first_of_each_algorithm(), ids=lambda i: i.algorithm)
def test_monotonicity_in_c_rests_on_words_but_for_one_rounding(asker: Asker, instruction: Any) -> None:
    answer = PROPERTIES["monotonicity-in-c"].settle(instruction, asker)
    if isinstance(answer, Holds):
        assert bool(answer.words) == (instruction.algorithm not in ("sfma", "efda"))


def test_the_sign_is_the_answers() -> None:
    kept = [
        matrix.row(
            PROPERTIES["exactness"], next(iter(SPECS.values()))[0], Holds("?", some_proof(), 0.0, words=words)
        )
        for words in ((), ("that it is so",))
    ]
    assert [matrix.sign(each) for each in kept] == ["✓", "◐"]
    assert matrix.sign({"verdict": "fails"}) == "✗"


def test_the_page_has_the_sign_where_proofs_rest_on_words() -> None:
    """Columns 11 and 13, monotonicity in c and exactness, algorithm by algorithm."""
    algorithm, rows = "", 0
    for line in PAGE.read_text(encoding="utf-8").split("## Witnesses")[0].splitlines():
        if line.startswith("### "):
            algorithm = line[4:]
        cells = [cell.strip() for cell in line.split("|")[2:-2]]
        if algorithm and len(cells) == len(PROPERTIES) and set(cells) <= {"✓", "◐", "✗", "?"}:
            rows += 1
            assert cells[12] == "◐"
            assert cells[10] in (("✓", "✗", "?") if algorithm in ("sfma", "efda") else ("◐", "✗", "?"))
            assert "◐" not in cells[:10] + cells[11:12] + cells[13:]
    assert rows == len(SPECS)
