"""`mmaformal check`: recorded hardware outputs against the models."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, answered, tabulated
from mmaformal.display import width_to_fit
from mmaformal.recordings.check import CheckReport, FileOutcome, check_file, exit_code
from mmaformal.recordings.report import Checks, recordings_in
from mmaformal.recordings.states import StatesReport


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=options.FILE)
@options.json
@click.option(
    "--arch",
    type=options.ARCHITECTURE,
    metavar="A",
    help="The architecture, in place of the one in the files.",
)
@click.option(
    "--instruction",
    type=options.INSTRUCTION,
    metavar="NAME",
    help="The instruction (SASS or PTX name), in place of the one in the files.",
)
@options.replace
@click.option(
    "--timeout", type=options.SECONDS, metavar="S", help="Seconds for everything (default: no limit)."
)
@options.here
@options.cluster
@options.model
@options.table_options
def check(
    files: tuple[Path, ...],
    as_json: bool,
    table: str | None,
    arch: Architecture | None,
    instruction: str | None,
    changes: tuple[options.ParameterChange, ...],
    timeout: float | None,
    jobs: int | None,
    cluster: str | None,
) -> int:
    """Check recorded hardware outputs against the models.

    The model of the recorded instruction is evaluated on every row of each FILE, and the rows are reported where
    hardware and model differ, the smallest of them explained stage by stage.  FILE is .npz, .parquet or .csv, or a
    folder of text files of one operand each; docs/recordings.md has the layouts.

    \b
    mmaformal check recordings/*.npz
    mmaformal check rows.csv --arch ampere --instruction HMMA.16816.F32
    mmaformal check model_validation/A100/fp16 --instruction HMMA.16816.F32
    mmaformal check rows.parquet --replace F=23     would another F explain it?

    Exit status: 0 if every file that has a model matches it (instructions not modelled yet are named), 1 if some rows
    do not match, 2 if a file could not be checked.
    """
    files = tuple(file for each in files for file in recordings_in(each))
    names = _short_names(files)
    width = max(map(len, names))
    outcomes: list[FileOutcome] = []
    until = math.inf if timeout is None else time.monotonic() + timeout
    with options.asked_workers(cluster, jobs) as executor:
        for path, name in zip(files, names, strict=True):
            with _Progress(name) as progress:
                outcome = check_file(
                    path,
                    architecture=arch.name if arch else None,
                    instruction=instruction,
                    replace=dict(changes),
                    timeout=None if timeout is None else max(until - time.monotonic(), 0.0),
                    executor=executor,
                    reading=progress.reading,
                    progress=progress,
                )
            outcomes.append(outcome)
            if not as_json and table is None:
                answered(_text(outcome, name.ljust(width)), SETTLED)
    code = exit_code(outcomes)
    if as_json:
        return answered(json.dumps([outcome.to_json() for outcome in outcomes], indent=2), code)
    if table is not None:
        return tabulated(table, Checks(outcomes).rows(), code)
    return answered(Checks(outcomes).summary, code) if len(outcomes) > 1 else code


def _short_names(paths: Sequence[Path]) -> list[str]:
    """The files' names, or the paths as given where names alone would be ambiguous."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _text(outcome: FileOutcome, name: str) -> str:
    first, *others = outcome.columns()
    if isinstance(outcome, (CheckReport, StatesReport)) and outcome.note:
        others.append(outcome.note)
    room = (width_to_fit() or 1 << 30) - len("   ".join((name, "", *others)))
    line = "   ".join((name, first.ljust(min(room, 40)) if others else first, *others))
    if isinstance(outcome, StatesReport) and outcome.mismatches:
        return f"{line}\n  {outcome.first}"
    if not isinstance(outcome, CheckReport) or outcome.smallest is None:
        return line
    from mmaformal.shown_stages import explain_case

    row, instruction = outcome.smallest, outcome.instruction
    trace = explain_case(instruction, row.a, row.b, row.c, row.scale_a, row.scale_b, whole=False)
    lines = [*row.text(instruction).splitlines(), "the model, stage by stage:", *trace.splitlines()]
    return "\n".join([line, *(f"  {x}".rstrip() for x in lines)])


_BAR = 20  #: characters


class _Progress:
    """Rows done, on one line of a terminal that is wiped in the end; silent for what takes under a second."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start = time.monotonic()
        self._width = 0

    def __call__(self, done: int, rows: int) -> None:
        """Rows checked."""
        self._show(done, rows, "rows")

    def reading(self, done: int, rows: int) -> None:
        """Rows that are known to be sound."""
        self._show(done, rows, "rows read")

    def _show(self, done: int, rows: int, what: str) -> None:
        if not sys.stderr.isatty() or time.monotonic() - self._start < 1:
            return
        filled = _BAR * done // max(rows, 1)
        line = f"{self._name}: [{'=' * filled}{' ' * (_BAR - filled)}] {done:,} of {rows:,} {what}"
        self._width = max(self._width, len(line))
        print(f"\r{line.ljust(self._width)}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._width:
            print(f"\r{' ' * self._width}\r", end="", file=sys.stderr, flush=True)
