"""An answer says what its obligations do not; docs/properties.md has another sign there."""

from __future__ import annotations

from pathlib import Path

from proofs import some_proof

from mmaformal.queries import property_table
from mmaformal.queries.properties import PROPERTIES
from mmaformal.solver.answers import Holds

PAGE = Path(__file__).parents[1] / "docs" / "properties.md"
SPECS = property_table.distinct()


def test_words_are_told() -> None:
    answer = Holds("?", some_proof(), 0.0, words=("that it is so",))
    assert answer.to_json()["rests_on_words"] == ["that it is so"]
    assert "in words, not as an obligation: that it is so" in str(answer)


def test_the_sign_is_the_answers() -> None:
    kept = [
        property_table.row(
            PROPERTIES["exactness"], next(iter(SPECS.values()))[0], Holds("?", some_proof(), 0.0, words=words)
        )
        for words in ((), ("that it is so",))
    ]
    assert [property_table.sign(each) for each in kept] == ["✓", "◐"]
    assert property_table.sign({"verdict": "fails"}) == "✗"


def test_the_page_has_the_sign_where_proofs_rest_on_words() -> None:
    """Column 13, exactness, algorithm by algorithm; column 11 is of before monotonicity in c was concluded."""
    algorithm, rows = "", 0
    for line in PAGE.read_text(encoding="utf-8").split("## Witnesses")[0].splitlines():
        if line.startswith("### "):
            algorithm = line[4:]
        cells = [cell.strip() for cell in line.split("|")[2:-2]]
        if algorithm and len(cells) == len(PROPERTIES) and set(cells) <= {"✓", "◐", "✗", "?"}:
            rows += 1
            assert cells[12] == "◐"
            assert "◐" not in cells[:10] + cells[11:12] + cells[13:]
    assert rows == len(SPECS)
