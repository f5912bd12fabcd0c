"""`mmaformal batch-invariant`: whether a kernel gives a row the same result whatever batch it is in."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered, as_options
from mmaformal.cli.terminal import Status

#: The exit status of each verdict.
_STATUS = {"holds": SETTLED, "fails": REFUTED, "unknown": UNKNOWN}


@click.command("batch-invariant")
@click.argument("files", nargs=-1, metavar="[FILE…]", type=options.FILE)
@click.option(
    "--product",
    "separate",
    type=(options.FILE, options.FILE, options.FILE),
    multiple=True,
    metavar="D A B",
    help="A product in three files; repeatable.",
)
@options.ran_on
@options.format_options("a", "b", "c", "d")
@options.model
@options.timeout(120.0)
@options.memory(4096)
@options.solver
@options.evidence
@options.json
def batch_invariant(
    files: tuple[Path, ...],
    separate: tuple[tuple[Path, Path, Path], ...],
    device: Architecture | None,
    against: tuple[Architecture, str] | None,
    a_format: str | None,
    b_format: str | None,
    c_format: str | None,
    d_format: str | None,
    timeout: float,
    memory: int,
    solvers: tuple[str, ...],
    evidence: Path | None,
    no_cache: bool,
    as_json: bool,
) -> int:
    """Find whether products of one call, of other M, make every row by the same additions.

    Each FILE, or folder, is a product with all of D, A, B and, if there is one, C, as `mmaformal explain` reads it.

    \b
    mmaformal batch-invariant batch1.npz batch64.npz --device h100
    mmaformal batch-invariant --product D.npy A.npy B.npy --product …

    Exit status: 0 if one structure made all, 1 if a row has two results, 2 for wrong use, 3 if that is not settled.
    """
    from mmaformal.queries.batch_invariant import batch_invariant as find
    from mmaformal.recordings.matrices import SCALES, read_files

    formats = {"A": a_format, "B": b_format, "C": c_format, "D": d_format}
    read = [read_files(each, formats) for each in [*((file,) for file in files), *separate]]
    if any(name in each for each in read for name in SCALES):
        raise UsageError("batch-invariant takes no block scales: explain each product with them")
    with options.remembering_option(evidence, no_cache), Status() as status:
        found = find(
            [(each["D"], each["A"], each["B"], each.get("C")) for each in read],
            **options.where_it_ran(device, against),
            a_format=formats["A"],
            b_format=formats["B"],
            c_format=formats["C"],
            d_format=formats["D"],
            timeout=timeout,
            memory=memory,
            solver=solvers or None,
            progress=status.show,
        )
    return answered(found.json() if as_json else as_options(str(found)), _STATUS[found.verdict])
