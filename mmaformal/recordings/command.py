"""`mmaformal check FILE…`: recorded hardware outputs against the models."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmaformal.algorithms import CONVERSIONS
from mmaformal.recordings.check import CheckReport, Failure, NotModelled, Outcome, check_file, exit_code

_DESCRIPTION = """\
Evaluate the model of the recorded instruction on every row of each file, and report the rows where hardware
and model differ, the smallest of them explained stage by stage.  Exit status: 0 if every file that has a
model matches it (instructions not modelled yet are named), 1 if some rows do not match, 2 if a file could
not be checked.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Add the command; `args.run` of what it parses is the function of `args` that returns the exit code."""
    parser = subparsers.add_parser(
        "check", help="recorded hardware outputs against the models", description=_DESCRIPTION
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording (.npz)")
    parser.add_argument("--json", action="store_true", help="print one JSON array, an object per file")
    parser.add_argument("--arch", metavar="A", help="the architecture, in place of the one in the files")
    parser.add_argument(
        "--instruction",
        metavar="NAME",
        help="the instruction (SASS or PTX name), in place of the one in the files",
    )
    parser.add_argument(
        "--replace",
        metavar="NAME=VALUE",
        type=_replacement,
        action="append",
        default=[],
        help="test a hypothesis: change a parameter of the model, such as F=23 or e_zero=-133; repeatable",
    )
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Check `args.files`, printing as it goes; returns the exit code."""
    paths = [Path(name) for name in args.files]
    names = _short_names(paths)
    width = max(map(len, names))
    outcomes: list[Outcome] = []
    for path, name in zip(paths, names, strict=True):
        with _Progress(name) as progress:
            outcome = check_file(
                path,
                architecture=args.arch,
                instruction=args.instruction,
                replace=dict(args.replace),
                progress=progress,
            )
        outcomes.append(outcome)
        if not args.json:
            print(_text(outcome, name.ljust(width)), flush=True)
    if args.json:
        print(json.dumps([outcome.to_json() for outcome in outcomes], indent=2))
    elif len(outcomes) > 1:
        print(_summary(outcomes))
    return exit_code(outcomes)


def _replacement(text: str) -> tuple[str, Any]:
    """`F=23` → ("F", 23); a ρ by its name; e_zero `fields` leaves zeros the exponent of their fields."""
    name, equals, value = text.partition("=")
    if equals and value in CONVERSIONS:
        return name, CONVERSIONS[value]
    if equals and value == "fields":
        return name, None
    try:
        number = int(value)
    except ValueError:
        number = None
    if not name or number is None or abs(number) > 1 << 30:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not NAME=VALUE, the value an integer, one of {', '.join(CONVERSIONS)}, or 'fields'"
        )
    return name, number


def _short_names(paths: Sequence[Path]) -> list[str]:
    """The files' names, or the paths as given where names alone would be ambiguous."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _text(outcome: Outcome, name: str) -> str:
    first, *others = outcome.columns()
    line = "   ".join((name, first.ljust(40) if others else first, *others))
    if not isinstance(outcome, CheckReport) or outcome.smallest is None:
        return line
    from mmaformal.explain import explain_case

    row, instruction = outcome.smallest, outcome.instruction
    trace = explain_case(instruction, row.a, row.b, row.c)
    lines = [*row.text(instruction).splitlines(), "the model, stage by stage:", *trace.splitlines()]
    return "\n".join([line, *(f"  {x}".rstrip() for x in lines)])


def _summary(outcomes: Sequence[Outcome]) -> str:
    checked = [x for x in outcomes if isinstance(x, CheckReport)]
    counts = {
        "match": sum(x.mismatches == 0 for x in checked),
        "do not match": sum(x.mismatches > 0 for x in checked),
        "not modelled yet": sum(isinstance(x, NotModelled) for x in outcomes),
        "could not be checked": sum(isinstance(x, Failure) for x in outcomes),
    }
    return f"{len(outcomes)} files: " + ", ".join(f"{n} {what}" for what, n in counts.items() if n)


class _Progress:
    """Rows done, on one line of a terminal that is wiped in the end; silent for what takes under a second."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start = time.monotonic()
        self._width = 0

    def __call__(self, done: int, rows: int) -> None:
        if not sys.stderr.isatty() or time.monotonic() - self._start < 1:
            return
        line = f"{self._name}: {done:,} of {rows:,} rows"
        self._width = max(self._width, len(line))
        print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
