"""`mmaformal check-certificate`."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, answered
from mmaformal.cli.terminal import Status, said


@click.command("check-certificate")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--also",
    metavar="PROGRAM",
    help="Another checker of LRAT that is given each lemma, too: cake_lpr (itself proved correct), lrat-trim …",
)
@options.model
@options.timeout(600.0, "for the argument of each statement")
@options.memory(4096)
@options.jobs
@options.json
def check_certificate(
    folder: Path, also: str | None, timeout: float, memory: int, jobs: int | None, as_json: bool
) -> int:
    """Check a folder that `mmaformal certify` wrote, without trusting a solver.

    Each lemma's derivation is checked step by step, its clauses are made anew from its text, and each theorem's
    argument is followed; what they state has to be the statement, of the encodings as they are.

    Exit status: 0 everything is checked, 1 something is refused, 2 wrong use.
    """
    from mmaformal.certificates.check import RefusedError
    from mmaformal.queries.check_certificate import check_certificate as check

    try:
        with Status() as status:
            found = check(folder, also=also, timeout=timeout, memory=memory, jobs=jobs, progress=status.show)
    except RefusedError as error:
        said(f"mmaformal: refused: {error}")
        return REFUTED
    return answered(found.json() if as_json else str(found), SETTLED)
