"""`mmaformal atlas`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.architectures import Architecture
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered, wrong_use
from mmaformal.cli.terminal import said

if TYPE_CHECKING:
    from mmaformal.site.build import SiteParts


@click.group()
def atlas() -> None:
    """Write a site of all instructions, with a playground that runs them in a browser (docs/site.md)."""


def _parts(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that name the parts of a site, given as one `SiteParts`."""

    @functools.wraps(command)
    def with_parts(
        *args: object,
        pyodide: Path | None,
        z3: Path | None,
        properties: Path | None,
        bounds: Path | None,
        pairs: Path | None,
        proofs: Path | None,
        **more: object,
    ) -> int:
        from mmaformal.site.build import SiteParts

        return command(*args, given=SiteParts(pyodide, z3, properties, bounds, pairs, proofs), **more)

    for name, metavar, text in reversed(_PARTS):
        with_parts = click.option(name, type=options.FILE, metavar=metavar, help=text)(with_parts)
    return with_parts


_PARTS = (
    ("--pyodide", "DIR", "The npm package pyodide, Python for browsers (default: node_modules/pyodide)."),
    ("--z3", "DIR", "The npm package z3-solver, z3 for browsers (default: node_modules/z3-solver)."),
    ("--properties", "FILE", "A table as tables/properties.md (default: that of the checkout)."),
    ("--bounds", "FILE", "A table as tables/unit-bounds.md (default: that of the checkout)."),
    ("--pairs", "FILE", "A store that `atlas compare` filled (default: tables/pairs.jsonl)."),
    ("--proofs", "DIR", "A folder that `atlas prove` filled."),
)


@atlas.command()
@click.option("--out", required=True, type=options.OUTPUT_FOLDER, metavar="DIR", help="Write the site there.")
@_parts
def build(out: Path, given: SiteParts) -> int:
    """Write the pages, their data, and the playground.

    `mmaformal serve DIR` shows them.

    Exit status: 0, or 2 for wrong use.
    """
    from mmaformal.site.build import build_site
    from mmaformal.site.bundle import NoPackageError

    with wrong_use(NoPackageError, ValueError):
        return answered(build_site(out, given, told=said).summary, SETTLED)


@atlas.command()
@click.argument("site", type=options.FILE, metavar="DIR")
@_parts
def check(site: Path, given: SiteParts) -> int:
    """Make every file of a site again, and compare: nothing is edited by hand.

    Exit status: 0, 1 where a file of DIR is not what the data give, or 2 for
    wrong use.
    """
    from mmaformal.site.build import check_site
    from mmaformal.site.bundle import NoPackageError

    with wrong_use(NoPackageError, NotADirectoryError, ValueError):
        checked = check_site(site, given, told=said)
    return answered(checked.summary, REFUTED if checked.verdict == "differs" else SETTLED)


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
@click.option(
    "--against",
    type=(options.ARCHITECTURE, options.INSTRUCTION),
    metavar="ARCH INSTRUCTION",
    help="In place of properties: that both are equal, or an input the smallest on which they differ.",
)
@options.timeout(60.0, "for each proof")
@options.memory(2048)
@options.arch()
@options.name(required=False)
def prove(
    out: Path,
    properties: tuple[str, ...],
    against: tuple[Architecture, str] | None,
    timeout: float,
    memory: int,
    arch: Architecture,
    name: str | None,
) -> int:
    """Prove properties of ARCH's instructions, for readers to check again.

    `atlas build --proofs DIR` puts what is there on pages, and a reader's
    browser asks z3 about each obligation. What DIR has is not proved again.

    Exit status: 0, 2 for wrong use, or 3 where a property was not proved.
    """
    from mmaformal.queries.properties import PROPERTIES
    from mmaformal.site.known_pairs import pair_of
    from mmaformal.site.proofs import ProofFolder, fill, fill_pair

    if against is not None:
        if name is None or properties:
            raise UsageError("--against compares one INSTRUCTION, and has no --property")
        with wrong_use(ValueError):
            pair, slug = pair_of(options.instruction_of(arch, name), options.instruction_of(*against))
            filled = fill_pair(ProofFolder(out), pair.x, pair.y, slug, timeout=timeout, memory=memory)
        return answered(filled.summary, UNKNOWN if filled.left_out else SETTLED)
    wanted = list(arch.instructions) if name is None else [options.instruction_of(arch, name)]
    with wrong_use(ValueError):
        folder = ProofFolder(out)
        filled = fill(folder, wanted, properties or [*PROPERTIES], said, timeout=timeout, memory=memory)
    return answered(filled.summary, UNKNOWN if filled.left_out else SETTLED)
