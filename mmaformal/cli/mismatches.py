"""`mmaformal mismatches`: in which stage a model differs from a recording, by the smallest examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.architectures import ARCHITECTURES, Architecture
from mmaformal.cli import options
from mmaformal.cli.recall import Recalled, RecallKey, contents
from mmaformal.cli.running import REFUTED, SETTLED, UsageError, wrong_use
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status, said

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from mmaformal.queries.mismatches import Mismatches


@click.command()
@click.argument("file", metavar="FILE", type=options.FILE)
@click.option(
    "--arch",
    type=options.ARCHITECTURE,
    metavar="A",
    help="The architecture, in place of the one in the file.",
)
@click.option(
    "--instruction", type=options.INSTRUCTION, metavar="NAME", help="The instruction, in place of the file's."
)
@options.replace
@options.here
@options.cluster
@options.model
@solving(120.0, verbose=False, smtlib=False)
@click.option(
    "--cuda",
    type=options.OUTPUT_FILE,
    metavar="FILE",
    help="Write the first smallest input as a CUDA program.",
)
@click.option(
    "--c", "c_file", type=options.OUTPUT_FILE, metavar="FILE", help="Write it as a C program (Intel, Arm)."
)
def mismatches(
    file: Path,
    arch: Architecture | None,
    instruction: str | None,
    changes: tuple[options.ParameterChange, ...],
    jobs: int | None,
    cluster: str | None,
    request: Solving,
    cuda: Path | None,
    c_file: Path | None,
) -> int:
    """Say in which stage a model differs from the recording FILE, and by which smallest input.

    The rows that the model gets wrong are grouped by the change of one parameter that explains them; for each change
    the smallest input is found on which it shows, and proved to be the smallest. If the changes together explain every
    row, that model is named.

    Exit status: 0 if no row is wrong, 1 if some are, 2 if the file could not be read or has no model.
    """

    def ask() -> Mismatches:
        with options.asked_workers(cluster, jobs) as executor:
            return _asked(file, arch, instruction, changes, request, executor)

    # the tables' instructions are tried too, those of `--model` among them
    every = tuple(i for each in ARCHITECTURES.values() for i in each)
    words = [f"--arch {arch.name if arch else None}", f"--instruction {instruction}"]
    words += [f"--replace {name}={value!r}" for name, value in changes]
    key = RecallKey("mismatches", every, *words, str(file), *contents([file]), *request.solvers)
    afresh = cuda is not None or c_file is not None
    found = request.recall(key, ask, afresh=afresh, whole=lambda found: found.complete, improvable=True)
    code = request.show(found, REFUTED if found.to_json()["groups"] else SETTLED)
    if not isinstance(found, Recalled):
        _write(found, cuda, c_file)
    return code


def _asked(
    file: Path,
    arch: Architecture | None,
    instruction: str | None,
    changes: tuple[options.ParameterChange, ...],
    request: Solving,
    executor: Executor | None,
) -> Mismatches:
    from mmaformal.queries.mismatches import mismatches
    from mmaformal.recordings.check import NotModelledError
    from mmaformal.recordings.read import read

    with Status() as status:
        recording = read(file, architecture=arch.name if arch else None, instruction=instruction)
        model = recording.instruction
        if model is not None and changes:
            with wrong_use(TypeError, ValueError):
                model = model.replace(**dict(changes))
        try:
            return mismatches(recording, model, **request.limits, executor=executor, progress=status.show)
        except NotModelledError as error:
            raise UsageError(f"{error}: `mmaformal diagnose` needs no model") from None


def _write(found: Mismatches, cuda: Path | None, c_file: Path | None) -> None:
    """Write the first smallest input as programs."""
    from mmaformal.solver.answers import Different

    witness = next((g.answer.witness for g in found.groups if isinstance(g.answer, Different)), None)
    for out, kind in ((cuda, "CUDA"), (c_file, "C")):
        if out is not None and witness is not None:
            with wrong_use(ValueError):
                out.write_text(witness.to_cuda() if kind == "CUDA" else witness.to_c(), encoding="utf-8")
        elif out is not None:
            said(f"mmaformal: no smallest input, so no {kind} program was written")
