"""The way of an instruction from `find_difference` to a solver: the files that a question goes through.

    python tools/walk.py                        print it
    python tools/walk.py --write after          write it into docs/walk.md, in the place of that name

The way of a question is every call of the package, whatever it holds, from that of `find_difference` to that of
`Portfolio.ask`, which puts a script to a solver.  It climbs where a file calls one of a room that stands above its own.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType

from contracts import room_of

import mmaformal
from mmaformal import ampere, find_difference, hopper
from mmaformal.instruction import Instruction
from mmaformal.spec import DotAdd

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "walk.md"
#: Why nothing runs the drawing (tools/docs/blocks.py).
SHOWN = "<!-- not run: a drawing by tools/walk.py -->"
#: What puts a script to a solver.
ASKS = "Portfolio.ask"
#: Rooms, each above those that follow.
ROOMS = ("queries", "facts", "theory", "proof", "cases", "encodings", "solver")
#: Questions asked: it differs; it is equal, stage by stage.
ASKED = {
    "ampere and hopper HMMA.16816.F32, which differ": (ampere["HMMA.16816.F32"], hopper["HMMA.16816.F32"]),
    "hopper HMMA.16816.F32 and the same with e_zero = −134, which are equal": (
        hopper["HMMA.16816.F32"],
        hopper["HMMA.16816.F32"].replace(e_zero=-134),
    ),
}

Call = tuple[str, str]  #: a file, and a function of it
Way = tuple[Call, ...]  #: each function of a stay in a file once


def place_of(file: str) -> int:
    """Return how far down the room of a file stands; an algorithm's proofs are facts.  Raises ValueError."""
    module = room_of(f"mmaformal.{file.removesuffix('.py').replace('/', '.')}")
    return ROOMS.index(module.split(".")[1])


def names_of(frame: FrameType) -> Iterator[str]:
    """Yield the names that an instruction has in a call: of variables, and of fields of the object it is called on."""
    for name, value in frame.f_locals.items():
        if isinstance(value, Instruction | DotAdd):
            yield name
    for name, value in getattr(frame.f_locals.get("self"), "__dict__", {}).items():
        if isinstance(value, Instruction | DotAdd):
            yield f"self.{name}"


def function_of(code: CodeType) -> str:
    """Return the name of a function; of a lambda and the like, that of the function in which it is."""
    named = (part for part in reversed(code.co_qualname.split(".<locals>.")) if part[0] != "<")
    return next(named).rpartition(".")[2]


def ways_of(x: Instruction, y: Instruction) -> tuple[dict[Way, int], set[str]]:
    """Return the ways of all questions, with how many went each; and the names that an instruction had on them."""
    package = Path(mmaformal.__file__ or "").parent
    first = inspect.unwrap(find_difference).__code__
    ways: dict[Way, int] = {}
    names: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or frame.f_code.co_qualname != ASKS:
            return
        way: list[Call] = []
        here: FrameType | None = frame
        while here is not None:
            file = Path(here.f_code.co_filename)
            if file.is_relative_to(package):
                names.update(names_of(here))
                way.append((file.relative_to(package).as_posix(), function_of(here.f_code)))
            here = here.f_back if here.f_code is not first else None
        key = tuple((file, each) for file, functions in stays(way[::-1]) for each in functions)
        ways[key] = ways.get(key, 0) + 1

    sys.setprofile(watch)
    try:
        find_difference(x, y)
    finally:
        sys.setprofile(None)
    return ways, names


def stays(way: Sequence[Call]) -> list[tuple[str, list[str]]]:
    """Return the files that a way passes through, one after the other, each with its functions."""
    found: list[tuple[str, list[str]]] = []
    for file, function in way:
        if not found or found[-1][0] != file:
            found.append((file, []))
        if function not in found[-1][1]:
            found[-1][1].append(function)
    return found


def climbs(way: Way) -> int:
    """Return how often it climbs."""
    return sum(later < earlier for earlier, later in pairwise(place_of(file) for file, _ in way))


def drawn(ways: dict[Way, int]) -> list[str]:
    """Return the ways as a tree of files, with the number of questions that end at each; `↑` where a way climbs."""
    lines: list[str] = []
    last: list[tuple[str, list[str]]] = []
    for way in sorted(ways):
        path = stays(way)
        same = 0
        while same < min(len(path), len(last)) and path[same] == last[same]:
            same += 1
        for depth, (file, functions) in enumerate(path[same:], same):
            up = depth and place_of(path[depth - 1][0]) > place_of(file)
            count = f"  ({ways[way]})" if depth == len(path) - 1 else ""
            lines.append(f"{'  ' * depth}{'↑ ' if up else ''}{file}  {', '.join(functions)}{count}")
        last = path
    return lines


#: What is counted of the ways of a question.
COUNTED = (
    "questions",
    "ways",
    "files on one, at most",
    "files on all",
    "climbs",
    "returns to a file",
    "names",
)


def counted(ways: dict[Way, int]) -> tuple[int, ...]:
    """Return what is `COUNTED` of ways, but for names; of climbs and returns the most that one has."""
    paths = [stays(way) for way in ways]
    files = [{file for file, _ in path} for path in paths]
    back = max(len(path) - len(own) for path, own in zip(paths, files, strict=True))
    return (
        sum(ways.values()),
        len(ways),
        max(map(len, files)),
        len(set().union(*files)),
        max(map(climbs, ways)),
        back,
    )


def told(drawing: bool = True) -> str:
    """Return the numbers of both questions, and with a `drawing` their ways, as Markdown."""
    rows, parts = [f"| | {' | '.join(COUNTED)} |", f"|---{'|--:' * len(COUNTED)}|"], []
    for title, models in ASKED.items():
        ways, names = ways_of(*models)
        rows.append(f"| {title} | {' | '.join(map(str, (*counted(ways), len(names))))} |")
        parts.append("\n".join([SHOWN, "```text", title, "", *drawn(ways), "```"]))
    return "\n\n".join(["\n".join(rows), *(parts if drawing else [])])


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
