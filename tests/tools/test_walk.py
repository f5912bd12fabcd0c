"""The drawing of a question's way is that of the code, and its numbers are the drawing's (tools/walk.py)."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import walk

from mmaformal import hopper
from mmaformal.instruction import Instruction

PACKAGE = walk.ROOT / "mmaformal"
#: A line of a drawing: how deep it stands, whether it climbs, a file, its functions, how many questions end there.
_LINE = re.compile(
    r"(?P<deep> *)(?P<up>↑ )?(?P<file>[\w/]+\.py)  (?P<functions>[\w, ]+?)(  \((?P<count>\d+)\))?$"
)

#: Such a unit with few products: it differs from one of fewer bits, and is equal to one with another e_zero.
UNIT = hopper["HMMA.16816.F32"].replace(k=2, L=2)


def section(name: str) -> str:
    """Return what stands between two marks of the page."""
    text = walk.DOCUMENT.read_text(encoding="utf-8")
    return text.partition(f"<!-- begin of {name} -->")[2].partition(f"<!-- end of {name} -->")[0]


def numbers(name: str) -> dict[str, dict[str, int]]:
    """Return the numbers of a section's table, by question and what is counted."""
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in section(name).splitlines()
        if line[:1] == "|"
    ]
    return {title: dict(zip(rows[0][1:], map(int, row), strict=True)) for title, *row in rows[2:]}


def drawings() -> dict[str, list[str]]:
    """Return the lines of each drawing, by its question."""
    blocks = re.findall(r"^```text\n(.*?)\n\n(.*?)\n```$", section("after"), flags=re.S | re.M)
    return {title: lines.splitlines() for title, lines in blocks}


def ways_drawn(lines: list[str]) -> dict[walk.Way, int]:
    """Return the ways that a drawing has, with how many questions took each."""
    ways: dict[walk.Way, int] = {}
    path: list[list[walk.Call]] = []
    for line in lines:
        found = _LINE.match(line)
        assert found, line
        del path[len(found["deep"]) // 2 :]
        above = path[-1][-1][0] if path else found["file"]
        assert bool(found["up"]) == (walk.place_of(above) > walk.place_of(found["file"])), line
        path.append([(found["file"], function) for function in found["functions"].split(", ")])
        if found["count"]:
            ways[tuple(call for stay in path for call in stay)] = int(found["count"])
    return ways


@cache
def functions_of(path: Path) -> set[str]:
    """Return the names of the functions of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_both_questions_are_drawn() -> None:
    assert list(drawings()) == list(numbers("after")) == list(numbers("before")) == list(walk.ASKED)


@pytest.mark.parametrize("title", walk.ASKED)
def test_every_call_of_a_drawing_is_there(title: str) -> None:
    for way in ways_drawn(drawings()[title]):
        assert way[0] == ("queries/find_difference.py", "find_difference")
        assert way[-1] == ("solver/portfolio.py", "ask")
        for file, function in way:
            assert function in functions_of(PACKAGE / file), f"{file} has no {function}"


@pytest.mark.parametrize("title", walk.ASKED)
def test_the_numbers_are_those_of_the_drawing(title: str) -> None:
    told = numbers("after")[title]
    assert list(told) == list(walk.COUNTED)
    assert walk.counted(ways_drawn(drawings()[title])) == tuple(told[what] for what in walk.COUNTED[:-1])


@pytest.mark.parametrize("title", walk.ASKED)
def test_a_question_goes_down_through_few_files(title: str) -> None:
    told = numbers("after")[title]
    assert told["files on one, at most"] <= 10
    assert told["climbs"] == 0


@pytest.mark.asks
@pytest.mark.parametrize(
    ("other", "title"), [*zip([UNIT.replace(F=24), UNIT.replace(e_zero=-134)], walk.ASKED, strict=True)]
)
def test_questions_go_the_ways_that_are_drawn(other: Instruction, title: str) -> None:
    """The files of a question with few products are those of the drawing, and none climbs."""
    ways, _ = walk.ways_of(UNIT, other)
    files, drawn = (
        {file for way in each for file, _ in way} for each in (ways, ways_drawn(drawings()[title]))
    )
    assert files == drawn, "run `python tools/walk.py --write after`"
    assert not any(map(walk.climbs, ways))


def test_a_climb_is_seen() -> None:
    up = (
        ("facts/laws.py", "order"),
        ("queries/find_difference.py", "answer"),
        ("solver/portfolio.py", "ask"),
    )
    assert walk.climbs(up) == 1
    (_, line, _) = walk.drawn({up: 3})
    assert line == "  ↑ queries/find_difference.py  answer"
    own = (("encodings/fda/proofs/e_zero.py", "prove_equal"), ("facts/same_steps.py", "prove_same_steps"))
    assert walk.climbs(own) == 0  # an algorithm's proofs are facts


def test_every_file_of_the_table_is_there() -> None:
    rows = [line for line in walk.DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    named = {path for row in rows for path in re.findall(r"`([\w/]+(?:\.py|/))`", row)}
    assert len(named) > 15
    for path in named:
        assert (PACKAGE / path.removeprefix("mmaformal/")).exists(), path
