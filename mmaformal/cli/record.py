"""`mmaformal record`: a recording from this machine's own unit, or from one that a program was carried to."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.architectures import ARCHITECTURES, Architecture, UnknownInstructionError
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UsageError, answered
from mmaformal.cli.terminal import Status
from mmaformal.instruction import Instruction

if TYPE_CHECKING:
    from mmaformal.recordings.read import Recording


@click.command()
@options.name(required=False)
@click.option(
    "--arch", type=options.ARCHITECTURE, metavar="A", help="The architecture, where several have it."
)
@click.option("--out", type=options.OUTPUT_FILE, metavar="FILE", help="The recording to write (.npz).")
@click.option(
    "--rows",
    type=options.ROWS,
    default=100_000,
    metavar="N",
    help="How many dot product-adds (default 100000).",
)
@click.option(
    "--seed",
    type=click.IntRange(0, (1 << 63) - 1),
    default=0,
    metavar="S",
    help="Of the random cases (default 0).",
)
@click.option(
    "--compiler", metavar="CC", help="The compiler, with options if need be, in place of one that is found."
)
@click.option(
    "--source",
    type=options.OUTPUT_FOLDER,
    metavar="DIR",
    help="Write the program and its rows, to be carried to a machine that has the unit.",
)
@click.option(
    "--from",
    "outputs",
    type=click.Path(path_type=Path),
    metavar="OUTPUT",
    help="Make the recording of what such a program wrote.",
)
@options.json
def record(
    name: str | None,
    arch: Architecture | None,
    out: Path | None,
    rows: int,
    seed: int,
    compiler: str | None,
    source: Path | None,
    outputs: Path | None,
    as_json: bool,
) -> int:
    """Record what this machine's unit of INSTRUCTION gives, row by row, for random cases.

    A small program with the instruction in it is compiled and run: C with intrinsics for processors, Arm's under QEMU
    where this is none; CUDA for NVIDIA's GPUs, HIP for AMD's. --source DIR writes it instead, for another machine; of
    what it writes there, --from makes a recording.

    Exit status: 0, or 2 if something is missing: a compiler, the unit.
    """
    from mmaformal.recorder import from_outputs, write_program
    from mmaformal.recorder import record as record_unit

    if outputs is not None:
        if name is not None or source is not None:
            raise UsageError(
                "--from OUTPUT says itself what it is of: no INSTRUCTION and no --source with it"
            )
        return _told(from_outputs(outputs, _required(out)), as_json)
    if name is None:
        raise UsageError("which INSTRUCTION? `mmaformal list` shows those there are")
    instruction = _instruction(name, arch)
    if source is not None:
        carried = write_program(instruction, source, rows=rows, seed=seed, compiler=compiler)
        back = f"mmaformal record --from {shlex.quote(carried.outputs)} --out {shlex.quote(f'{instruction.name}.npz')}"
        lines = [
            f"wrote {carried.source} and {carried.rows}: {rows:,} rows of {instruction.label}",
            f"there:  {carried.command}",
            f"here:   {back}",
        ]
        return answered("\n".join(lines), SETTLED)
    with Status(f"{instruction.label}: compiling") as status:
        found = record_unit(
            instruction,
            _required(out),
            rows=rows,
            seed=seed,
            compiler=compiler,
            progress=lambda done: status.show(f"{instruction.label}: {done:,} of {rows:,} rows"),
        )
    return _told(found, as_json)


def _required(out: Path | None) -> Path:
    if out is None:
        raise UsageError("--out FILE.npz says where the recording is to be written")
    return out


def _instruction(name: str, arch: Architecture | None) -> Instruction:
    """The instruction meant, where no architecture is named that of the one that has it."""
    if arch is not None:
        return arch[name]
    owners = [each for each in ARCHITECTURES.values() if name in each]
    if not owners:
        raise UnknownInstructionError(
            f"no architecture has an instruction {name!r}; `mmaformal list` shows the names"
        )
    if len(owners) > 1:
        raise UsageError(
            f"{name} is on {', '.join(each.name for each in owners)}: --arch A says which it is here"
        )
    return owners[0][name]


def _told(recording: Recording, as_json: bool) -> int:
    if as_json:
        told = {
            "file": str(recording.path),
            "instruction": recording.label,
            "rows": recording.rows,
            "device": recording.gpu,
        }
        return answered(json.dumps(told), SETTLED)
    text = f"{recording.path}: {recording.rows:,} rows of {recording.label}, from {recording.gpu}"
    return answered(text, SETTLED)
