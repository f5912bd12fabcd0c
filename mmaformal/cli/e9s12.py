"""`mmaformal e9s12`."""

from __future__ import annotations

from pathlib import Path

import click

from mmaformal.cli import options
from mmaformal.cli.claims import listed, require_known, settle
from mmaformal.cli.running import UsageError


@click.command()
@click.argument("claims", metavar="[CLAIM]…", nargs=-1)
@click.option(
    "--instruction", "names", multiple=True, help="Of this instruction only; repeatable (default: of all)."
)
@click.option("--list", "listing", is_flag=True, help="What claims there are.")
@options.timeout(600.0, "for each claim about an instruction")
@options.memory(4096)
@options.solver
@options.evidence
@options.verbose
@options.json
@options.table
@options.smtlib
def e9s12(
    claims: tuple[str, ...],
    names: tuple[str, ...],
    listing: bool,
    timeout: float,
    memory: int,
    solvers: tuple[str, ...],
    evidence: Path | None,
    no_cache: bool,
    verbose: bool,
    as_json: bool,
    table: str | None,
    smtlib: Path | None,
) -> int:
    """Prove or refute what is said of the dot product-add of E9S12 halves, and of their multi-addition.

    Without a CLAIM all are settled; some are meant to fail (docs/e9s12.md). What was proved is recorded, and is not
    asked again.

    Exit status: 0 all Hold, 1 one Fails, 3 one Unknown, 2 wrong use.
    """
    from mmaformal.studies.e9s12.operators import OPERATORS
    from mmaformal.studies.e9s12.prover import CLAIMS, UNITS, E9s12Prover
    from mmaformal.studies.e9s12.sums_of_terms import SUMS

    claimed = {each.name: each.of for each in CLAIMS} | {each.name: each.of for each in SUMS}
    statements = {each.name: each.statement for each in CLAIMS} | {each.name: each.statement for each in SUMS}
    if listing:
        return listed(statements, 21, as_json, table)
    require_known("claim", claims, statements)
    require_known("instruction", names, [*UNITS.keys(), *OPERATORS])
    wanted = [
        (claim, name)
        for claim, of in claimed.items()
        for name in of
        if (not claims or claim in claims) and (not names or name in names)
    ]
    if not wanted:
        raise UsageError(f"{', '.join(claims)} says nothing of {', '.join(names)}")
    with options.remembering(evidence, no_cache) as store, E9s12Prover(solvers or None, memory) as prover:
        return settle(
            prover,
            wanted,
            timeout,
            asked=("e9s12", *solvers),
            store=store if evidence is None else None,
            widths=(11, 20),
            verbose=verbose,
            as_json=as_json,
            table=table,
            smtlib=smtlib,
        )
