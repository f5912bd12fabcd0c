"""`mmaformal e9s12`."""

from __future__ import annotations

import click

from mmaformal.cli.claims import listed, require_known, settle_claims
from mmaformal.cli.running import UsageError
from mmaformal.cli.solving import Solving, solving


@click.command()
@click.argument("claims", metavar="[CLAIM]…", nargs=-1)
@click.option(
    "--instruction", "names", multiple=True, help="Of this instruction only; repeatable (default: of all)."
)
@click.option("--list", "listing", is_flag=True, help="What claims there are.")
@solving(600.0, "for each claim about an instruction", table=True)
def e9s12(
    claims: tuple[str, ...],
    names: tuple[str, ...],
    listing: bool,
    request: Solving,
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
        return listed(statements, 21, request)
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
    with E9s12Prover(request.solvers or None, request.memory) as prover:
        return settle_claims(prover, wanted, request, "e9s12", (11, 20))
