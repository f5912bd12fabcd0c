"""tables/open-questions.md: what is no table of witnesses says what the models do."""

from __future__ import annotations

from pathlib import Path

from open_questions import infinities, nvfp4_width, overflow_bound

PAGE = Path(__file__).parents[2] / "tables" / "open-questions.md"


def test_the_page_ends_with_what_the_models_say() -> None:
    assert PAGE.read_text(encoding="utf-8").endswith(
        "\n\n".join((overflow_bound(), infinities(), nvfp4_width())) + "\n"
    )


def test_the_inputs_tell_the_readings_apart() -> None:
    assert "is 0x7fc00000  nan by the default, 0x7f800000  inf by the other" in infinities()
    assert "c = 2^−35 gives 0x2e000000" in nvfp4_width()
    assert "c = 2^−36 gives 0x00000000" in nvfp4_width()
