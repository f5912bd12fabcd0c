"""`mmaformal signoff`: whether a hardware design computes a model."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.terminal import Status


def _parameters(words: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = int(value, 0)
        except ValueError:
            raise UsageError(f"-G {word}: NAME=VALUE with an integer is needed") from None
    return found


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="DESIGN…", type=click.Path(path_type=Path))
@click.option("--against", nargs=2, required=True, metavar="ARCH INSTRUCTION", help="The model.")
@options.replace
@options.model
@click.option("--top", metavar="MODULE", help="The design's module (default: the one that no other uses).")
@click.option(
    "-D", "defines", multiple=True, metavar="NAME[=VALUE]", help="Define for the preprocessor; repeatable."
)
@click.option(
    "-G", "parameters", multiple=True, metavar="NAME=VALUE", help="A parameter of MODULE; repeatable."
)
@click.option(
    "--simulate",
    "recordings",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Only run the design on the rows of a recording (Verilator, else Icarus), and compare; repeatable.",
)
@options.timeout(600.0, "in all")
@options.json
def signoff(
    files: tuple[Path, ...],
    against: tuple[str, str],
    changes: tuple[options.Change, ...],
    top: str | None,
    defines: tuple[str, ...],
    parameters: tuple[str, ...],
    recordings: tuple[Path, ...],
    timeout: float,
    as_json: bool,
) -> int:
    """Prove that a combinational DESIGN computes a model, for all inputs; or show the smallest input where it does not.

    DESIGN is SystemVerilog or Verilog, which yosys reads, or BTOR2. Its ports are those of `mmaformal verilog`.

    Exit status: 0 proved (with --simulate: every row right), 1 refuted, 3 not settled, 2 wrong use.
    """
    from mmaformal.architectures import ARCHITECTURES
    from mmaformal.hardware.module import HardwareError
    from mmaformal.queries.signoff import on_recording
    from mmaformal.queries.signoff import signoff as sign
    from mmaformal.recordings.archive import RecordingError
    from mmaformal.solver.answers import Fails, Holds

    instruction = options.instruction_of(ARCHITECTURES[against[0]], against[1], changes, None)
    given = _parameters(parameters)
    try:
        if recordings:
            runs = [
                on_recording(
                    files, instruction, path, top=top, defines=defines, parameters=given, timeout=timeout
                )
                for path in recordings
            ]
            code = SETTLED if all(run.wrong == 0 for run in runs) else REFUTED
            said = (
                json.dumps([run.to_json() for run in runs], indent=2)
                if as_json
                else "\n".join(map(str, runs))
            )
            return answered(said, code)
        with Status() as status:
            answer = sign(
                files,
                instruction,
                top=top,
                defines=defines,
                parameters=given,
                timeout=timeout,
                progress=status.show,
            )
    except (HardwareError, RecordingError) as error:
        raise UsageError(str(error)) from None
    code = SETTLED if isinstance(answer, Holds) else REFUTED if isinstance(answer, Fails) else UNKNOWN
    return answered(json.dumps(answer.to_json(), indent=2) if as_json else str(answer), code)
