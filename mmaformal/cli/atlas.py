"""`mmaformal atlas`."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import SETTLED, UNKNOWN, answered, wrong_use
from mmaformal.cli.terminal import said


@click.group()
def atlas() -> None:
    """Write a site of all instructions, with a playground that runs them in a browser (docs/site.md)."""


@atlas.command()
@click.option("--out", required=True, type=options.OUTPUT_FOLDER, metavar="DIR", help="Write the site there.")
@click.option(
    "--pyodide",
    type=options.FILE,
    metavar="DIR",
    help="The npm package pyodide, Python for browsers (default: node_modules/pyodide).",
)
@click.option(
    "--z3",
    type=options.FILE,
    metavar="DIR",
    help="The npm package z3-solver, z3 for browsers (default: node_modules/z3-solver).",
)
@click.option(
    "--properties",
    type=options.FILE,
    metavar="FILE",
    help="A table as tables/properties.md (default: that of the checkout).",
)
@click.option(
    "--bounds",
    type=options.FILE,
    metavar="FILE",
    help="A table as tables/unit-bounds.md (default: that of the checkout).",
)
@click.option(
    "--pairs",
    type=options.FILE,
    metavar="FILE",
    help="A store that `atlas compare` filled (default: tables/pairs.jsonl).",
)
@click.option("--proofs", type=options.FILE, metavar="DIR", help="A folder that `atlas prove` filled.")
def build(
    out: Path,
    pyodide: Path | None,
    z3: Path | None,
    properties: Path | None,
    bounds: Path | None,
    pairs: Path | None,
    proofs: Path | None,
) -> int:
    """Write the pages, their data, and the playground.

    `mmaformal serve DIR` shows them.

    Exit status: 0, or 2 for wrong use.
    """
    from mmaformal.site.build import SiteParts, build
    from mmaformal.site.bundle import NoPackageError

    given = SiteParts(pyodide, z3, properties, bounds, pairs, proofs)
    with wrong_use(NoPackageError, ValueError):
        return answered(build(out, given, told=said).summary, SETTLED)


@atlas.command()
@click.option(
    "--store",
    required=True,
    type=options.OUTPUT_FILE,
    metavar="FILE",
    help="Answers, a line each: what it has is kept, and it goes on from there.",
)
@click.option("--timeout", type=options.SECONDS, metavar="S", help="Seconds of solvers for each pair.")
@click.option("--limit", type=options.SECONDS, metavar="S", help="Seconds of solvers for all pairs.")
@options.jobs
@options.cluster
@options.memory(2048)
@options.evidence
def compare(
    store: Path,
    timeout: float | None,
    limit: float | None,
    jobs: int | None,
    cluster: str | None,
    memory: int,
    evidence: Path | None,
    no_cache: bool,
) -> int:
    """Compare every two instructions that take the same types.

    An input that tells two functions apart is found by running both on many
    rows, and made smaller. With --timeout, solvers are then asked, pair by
    pair, for the smallest, or whether both are equal.

    Exit status: 0, 2 for wrong use, or 3 where it is not known of a pair
    whether both are equal.
    """
    from mmaformal.site.comparing import SolverLimits, compared_all
    from mmaformal.site.pairs import PairStoreError

    cache = evidence or not no_cache
    asked = None if timeout is None else SolverLimits(timeout, limit, jobs, cluster, memory, cache)
    with wrong_use(PairStoreError, ImportError):
        found = compared_all(store, said, asked)
    return answered(found.summary, UNKNOWN if found.words["unknown"] else SETTLED)


@atlas.command()
@click.option(
    "--out", required=True, type=options.OUTPUT_FOLDER, metavar="DIR", help="Proofs and their scripts."
)
@click.option("--property", "properties", multiple=True, metavar="NAME", help="Repeatable (default: all).")
@options.timeout(60.0, "for each proof")
@options.memory(2048)
@options.arch()
@options.name(required=False)
def prove(
    out: Path, properties: tuple[str, ...], timeout: float, memory: int, arch: Architecture, name: str | None
) -> int:
    """Prove properties of ARCH's instructions, for readers to check again.

    `atlas build --proofs DIR` puts what is there on pages, and a reader's
    browser asks z3 about each obligation. What DIR has is not proved again.

    Exit status: 0, 2 for wrong use, or 3 where a property was not proved.
    """
    from mmaformal.queries.properties import PROPERTIES
    from mmaformal.site.proofs import ProofFolder, fill

    wanted = list(arch.instructions) if name is None else [options.instruction_of(arch, name)]
    with wrong_use(ValueError):
        folder = ProofFolder(out)
        filled = fill(folder, wanted, properties or [*PROPERTIES], said, timeout=timeout, memory=memory)
    return answered(filled.summary, UNKNOWN if filled.left_out else SETTLED)
