"""The way of an instruction from `find_difference` to a solver: the files that hold it while a question is asked.

    python tools/walk.py                        print it
    python tools/walk.py --write after          write it into docs/walk.md, in the place of that name

A call holds it if one of its variables, or a field of the object that it is a method of, is an `Instruction` or a
`DotAdd`.  The way of a question is what holds it on the stack of calls when a script is put to a solver.  It climbs
where a file calls one of a room that stands above its own.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import FrameType

import mmaformal
from mmaformal import ampere, find_difference, hopper
from mmaformal.instruction import Instruction
from mmaformal.spec import DotAdd

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "walk.md"
#: Why nothing runs the drawing (tools/docs/blocks.py).
SHOWN = "<!-- not run: a drawing by tools/walk.py -->"
#: Rooms, each above those that follow.
ROOMS = ("queries", "facts", "theory", "proof", "cases", "solver")
#: Questions asked: it differs; it is equal, stage by stage.
ASKED = {
    "ampere and hopper HMMA.16816.F32, which differ": (ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"]),
    "hopper HMMA.16816.F32 and the same with e_zero = −134, which are equal": (
        hopper["HMMA.16816.F32"],
        hopper["HMMA.16816.F32"].replace(e_zero=-134),
    ),
}

Call = tuple[str, str]  #: a file, and a function of it
Way = tuple[Call, ...]


def held(frame: FrameType) -> Iterator[str]:
    """Yields the names under which a call holds an instruction."""
    for name, value in frame.f_locals.items():
        if isinstance(value, Instruction | DotAdd):
            yield name
    for name, value in getattr(frame.f_locals.get("self"), "__dict__", {}).items():
        if isinstance(value, Instruction | DotAdd):
            yield f"self.{name}"


def ways_of(x: Instruction, y: Instruction) -> tuple[dict[Way, int], set[str]]:
    """Returns the ways of all questions, with how many went each; and the names that an instruction had on them."""
    package = Path(mmaformal.__file__ or "").parent
    ways: dict[Way, int] = {}
    names: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name != "ask" or not code.co_filename.endswith("solver/portfolio.py"):
            return
        way: list[Call] = [("solver/portfolio.py", "ask")]
        above = frame.f_back
        while above is not None:
            file = Path(above.f_code.co_filename)
            if file.is_relative_to(package) and above.f_code.co_name[0] != "<":
                room = file.relative_to(package).as_posix()
                if room.partition("/")[0] in ROOMS and (found := set(held(above))):
                    names.update(found)
                    way.append((room, above.f_code.co_name))
            above = above.f_back
        key = tuple(reversed(way))
        ways[key] = ways.get(key, 0) + 1

    sys.setprofile(watch)
    try:
        find_difference(x, y)
    finally:
        sys.setprofile(None)
    return ways, names


def stays(way: Way) -> list[tuple[str, list[str]]]:
    """Returns the files that a way passes through, one after the other, each with its functions."""
    found: list[tuple[str, list[str]]] = []
    for file, function in way:
        if not found or found[-1][0] != file:
            found.append((file, []))
        if function not in found[-1][1]:
            found[-1][1].append(function)
    return found


def climbs(way: Way) -> int:
    """Returns how often it climbs."""
    rooms = [ROOMS.index(file.partition("/")[0]) for file, _ in way]
    return sum(later < earlier for earlier, later in pairwise(rooms))


def drawn(ways: dict[Way, int]) -> list[str]:
    """Returns the ways as a tree of files, with the number of questions that end at each; `↑` where a way climbs."""
    lines: list[str] = []
    last: list[tuple[str, list[str]]] = []
    for way in sorted(ways):
        path = stays(way)
        same = 0
        while same < min(len(path), len(last)) and path[same] == last[same]:
            same += 1
        for depth, (file, functions) in enumerate(path[same:], same):
            up = depth and ROOMS.index(path[depth - 1][0].partition("/")[0]) > ROOMS.index(
                file.partition("/")[0]
            )
            count = f"  ({ways[way]})" if depth == len(path) - 1 else ""
            lines.append(f"{'  ' * depth}{'↑ ' if up else ''}{file}  {', '.join(functions)}{count}")
        if same == len(path):
            lines[-1] += f" ({ways[way]})"
        last = path
    return lines


def told() -> str:
    """Returns the ways of both questions, as Markdown."""
    parts = []
    for title, models in ASKED.items():
        ways, names = ways_of(*models)
        paths = [stays(way) for way in ways]
        files = {file for path in paths for file, _ in path}
        longest = max(len({file for file, _ in path}) for path in paths)
        back = max(len(path) - len({file for file, _ in path}) for path in paths)
        counts = (
            f"{sum(ways.values())} questions, {len(ways)} ways: at most {longest} files on one, {len(files)} on all; "
            f"climbs {max(map(climbs, ways))} times at most, returns to a file {back} times; {len(names)} names."
        )
        parts.append("\n".join([f"Of {title}. {counts}", "", SHOWN, "```text", *drawn(ways), "```"]))
    return "\n\n".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--write", metavar="NAME", help="write it into docs/walk.md, in the place of that name"
    )
    name = parser.parse_args(argv).write
    text = told()
    if name is None:
        print(text)
        return 0
    begin, end = f"<!-- begin of {name} -->", f"<!-- end of {name} -->"
    before, found, rest = DOCUMENT.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        print(f"{DOCUMENT} has no place for {name}: {begin}", file=sys.stderr)
        return 1
    DOCUMENT.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
