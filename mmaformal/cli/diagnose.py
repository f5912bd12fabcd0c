"""`mmaformal diagnose`: which arithmetic gave the rows of a recording."""

from __future__ import annotations

import json
from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, answered
from mmaformal.cli.terminal import Status


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path))
@click.option(
    "--only", multiple=True, metavar="ALGORITHM", help="Try the models of this algorithm; repeatable."
)
@click.option(
    "--arch",
    type=options.ARCHITECTURE,
    metavar="A",
    help="The architecture, where the file names none; it is not used but to read the file.",
)
@click.option("--instruction", metavar="NAME", help="The instruction, likewise.")
@click.option(
    "--jobs", type=options.PROCESSES, metavar="N", help="Worker processes (default: one for each core)."
)
@options.model
@options.timeout(120.0, "for everything")
@click.option(
    "--orders",
    type=options.SECONDS,
    hidden=True,
)
@options.json
def diagnose(
    files: tuple[Path, ...],
    only: tuple[str, ...],
    arch: Architecture | None,
    instruction: str | None,
    jobs: int | None,
    timeout: float,
    orders: float | None,
    as_json: bool,
) -> int:
    """Find which arithmetic gave the rows of each FILE (.npz), told nothing but their types.

    Every model there is for the types is run on the rows: every algorithm with every value of its parameters. Those
    that explain every row are told, those of one function together, with inputs that tell the others apart. Where none
    does, all orders in which a chain might take the products are searched, for the likeliest parameters.

    Exit status: 0 if every file is explained, 1 if nothing explains one, 2 if a file could not be read, 3 if the time
    was up before one was explained.
    """
    from mmaformal.kernels.rows import processors
    from mmaformal.queries.diagnose import diagnose as diagnosis
    from mmaformal.recordings.read import read

    found = []
    for path in files:
        with Status() as status:
            recording = read(
                path, architecture=arch.name if arch else None, instruction=instruction, modelled=False
            )
            answer = diagnosis(
                recording,
                only=only or None,
                timeout=timeout,
                order_timeout=orders or timeout / 2,
                jobs=jobs or processors(),
                progress=status.show,
            )
        found.append((path, answer))
        if not as_json:
            answered("\n".join([path.name, *(f"  {line}" for line in str(answer).splitlines())]), SETTLED)
    missed = [answer for _, answer in found if not answer]
    code = SETTLED if not missed else REFUTED if all(answer.complete for answer in missed) else UNKNOWN
    if as_json:
        return answered(json.dumps([{"file": str(p), **a.to_json()} for p, a in found], indent=2), code)
    return code
