"""`mmaformal fingerprint`: the inputs that tell all instructions of some types apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.claims import require_known
from mmaformal.cli.recall import Recalled, RecallKey
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered, tabulated, wrong_use
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status

if TYPE_CHECKING:
    from mmaformal.instruction import Instruction
    from mmaformal.queries.fingerprint import Fingerprint

    #: of each recording, the classes of instructions that explain every row of it
    Named: TypeAlias = Mapping[str, Sequence[Sequence[str]]]


@click.command()
@click.argument("a", metavar="FACTORS")
@click.argument("d", metavar="RESULT")
@click.option(
    "--arch",
    "archs",
    multiple=True,
    type=options.ARCHITECTURE,
    metavar="A",
    help="Only of these; repeatable.",
)
@click.option(
    "--name",
    "recordings",
    multiple=True,
    type=options.FILE,
    metavar="FILE",
    help="Say which of them explain every row of a recording; repeatable.",
)
@click.option(
    "--program",
    "out",
    type=options.OUTPUT_FILE,
    metavar="FILE",
    help="Write a program that says which it runs on: CUDA, HIP or C.",
)
@click.option(
    "--on",
    "on",
    nargs=2,
    metavar="ARCH INSTRUCTION",
    help="The instruction that the program puts the inputs to.",
)
@options.model
@solving(120.0, verbose=False, table=True, smtlib=False)
def fingerprint(
    a: str,
    d: str,
    archs: tuple[Architecture, ...],
    recordings: tuple[Path, ...],
    out: Path | None,
    on: tuple[str, str] | None,
    request: Solving,
) -> int:
    """Find the fewest inputs that tell all instructions apart whose factors are FACTORS and whose result is RESULT.

    Formats by name: `mmaformal fingerprint fp16 fp32`. Which of the instructions are one function is proved. With
    --name, a recording's device is named by its rows; with --program and --on, a program says what it runs on.

    Exit status: 0; 1 if the rows of a recording are none of the instructions'; 2 for wrong use; 3 if the time was up
    before the fewest inputs were found.
    """
    from mmaformal.architectures import ARCHITECTURES
    from mmaformal.formats import FORMATS
    from mmaformal.queries.find_difference import IncomparableError
    from mmaformal.queries.fingerprint import of_types
    from mmaformal.recorder.program import RecorderError
    from mmaformal.recordings.read import read

    require_known("format", (a, d), FORMATS)
    if (out is None) != (on is None):
        raise UsageError("--program and --on go together: where to write, and for which instruction")
    with wrong_use(IncomparableError, RecorderError, ValueError):
        chosen = [i for i in of_types(a, d) if not archs or i.architecture in {x.name for x in archs}]
        given = [read(path, modelled=False) for path in recordings]  # what cannot be read is told at once
        # only what is printed is kept of an answer: what goes on from it asks afresh
        afresh = out is not None or request.table is not None or bool(given)
        found = _found(tuple(chosen), request, afresh)
        if isinstance(found, Recalled):
            told = json.dumps({**found.to_json(), "named": {}}, indent=2)
            return answered(told if request.as_json else str(found), SETTLED)
        if not found.distinguished:  # no program, and nothing is named
            return request.show(found, UNKNOWN)
        if out is not None and on is not None:
            arch, name = on
            out.write_text(
                found.program(options.instruction_of(ARCHITECTURES[arch], name)).source, encoding="utf-8"
            )
        named = {str(path): found.named(rows) for path, rows in zip(recordings, given, strict=True)}
    code = REFUTED if not all(named.values()) else SETTLED if found.complete else UNKNOWN
    if request.table is not None:
        return tabulated(request.table, _rows(found, named), code)
    if request.as_json:
        return answered(json.dumps({**found.to_json(), "named": named}, indent=2), code)
    return answered(_text(found, named), code)


def _found(chosen: tuple[Instruction, ...], request: Solving, afresh: bool) -> Fingerprint | Recalled:
    """Return the inputs that tell the instructions apart, or the answer of before, unless it is asked afresh."""
    from mmaformal.queries.fingerprint import fingerprint as find

    def ask() -> Fingerprint:
        with Status() as status:
            return find(chosen, **request.limits, progress=status.show)

    key = RecallKey("fingerprint", chosen, *request.solvers)
    return request.recall(key, ask, afresh=afresh, whole=lambda answer: answer.complete)


def _rows(found: Fingerprint, named: Named) -> list[dict[str, object]]:
    """Return the rows of the table: of each instruction, whether it explains a recording."""
    explains = {file: {label for labels in classes for label in labels} for file, classes in named.items()}
    return [
        {**row, **{file: row["instruction"] in labels for file, labels in explains.items()}}
        for row in found.rows()
    ]


def _text(found: Fingerprint, named: Named) -> str:
    """Return what is said to a person: the inputs, and what the recordings' devices are."""
    lines = [str(found)]
    for file, classes in named.items():
        lines += [f"{Path(file).name}: {', '.join(x)}" for x in classes] or [
            f"{Path(file).name}: none of them"
        ]
    return "\n".join(lines)
