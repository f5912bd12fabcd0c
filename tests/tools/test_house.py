"""Docstrings begin with a verb, a subject or the name of a thing (tools/house.py)."""

from __future__ import annotations

import house
import pytest

BEGINNINGS = ("That x holds.", "Of each x, y.", "The same of x.", "What x gives.", "As the base class.")


@pytest.mark.parametrize("text", BEGINNINGS)
@pytest.mark.parametrize(
    ("source", "line"),
    [
        ('"""{}"""', 1),
        ('def f():\n    """{}"""', 2),
        ('async def f():\n    """\n    {}\n    """', 2),
        ('class A:\n    def f(self):\n        r"""{}\n\n        More."""', 3),
        ('class A:\n    x: int\n    """{}"""', 3),
        ("def f():\n    '{}'", 2),
    ],
)
def test_a_docstring_that_begins_with_no_verb_or_noun_is_found(text: str, source: str, line: int) -> None:
    assert house.fragments(source.format(text)) == [line]


@pytest.mark.parametrize(
    "source",
    [
        '"""Return what x gives."""',
        '"""Prove that x holds."""',
        '"""The sameness of x."""',
        '"""Offer x."""',
        '"""Whatever."""',
        'x = """What x gives."""',
        'print("That x holds.")',
        'def f():\n    """Return x.\n\n    What y is."""\n    return "Of z"',
    ],
)
def test_no_other_text_is(source: str) -> None:
    assert house.fragments(source) == []


def test_the_house_has_none() -> None:
    assert house.fragments_of_all() == []
