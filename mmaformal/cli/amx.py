"""`mmaformal amx`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from mmaformal.apple.operand import NUMBERS, OPS
from mmaformal.cli import options
from mmaformal.cli.claims import listed, require_known, settle_claims
from mmaformal.cli.running import UsageError
from mmaformal.cli.solving import Solving, solving

#: Known here, so that completion need not import a solver.
CLAIM_NAMES = (
    "both-encodings",
    "disabled-lanes",
    "vector-mode",
    "matrix-mode",
    "interleaved",
    "ignored-bits",
    "operations",
    "additions",
    "lanes",
)

#: Claims about one instruction alone, and those that take minutes.
_OTHERS = tuple(name for name in NUMBERS if name not in OPS)
_ONLY = {"interleaved": ("fma16",), "lanes": _OTHERS}
_LONG = ("additions",)


class _Claim(options.ParamKind):
    name = "claim"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(each) for each in CLAIM_NAMES if each.startswith(incomplete.lower())]


@click.command()
@click.argument("claims", metavar="[CLAIM]…", type=_Claim(), nargs=-1)
@click.option(
    "--instruction",
    "names",
    type=click.Choice(tuple(NUMBERS)),
    metavar="NAME",
    multiple=True,
    help="Of this instruction only; repeatable (default: of fma16, fma32 and fma64; `lanes` of all others).",
)
@click.option("--list", "listing", is_flag=True, help="What claims there are.")
@solving(600.0, "for each claim about an instruction", table=True)
def amx(
    claims: tuple[str, ...],
    names: tuple[str, ...],
    listing: bool,
    request: Solving,
) -> int:
    """Prove what holds of Apple AMX for all operands and all states.

    Without a CLAIM all are proved of fma16, fma32 and fma64 but `additions`, which takes minutes; `lanes` is about the
    other instructions. What was proved is recorded, and is not asked
    again.

    Exit status: 0 all Hold, 1 one Fails, 3 one Unknown, 2 wrong use.
    """
    from mmaformal.studies.amx.prover import STATEMENTS, AmxProver

    if listing:
        return listed(STATEMENTS, 16, request)
    require_known("claim", claims, STATEMENTS)
    wanted = [
        (claim, name)
        for name in names or (_OTHERS if claims == ("lanes",) else tuple(OPS))
        for claim in claims or tuple(each for each in CLAIM_NAMES if each not in _LONG)
        if name in _ONLY.get(claim, tuple(OPS))
    ]
    if not wanted:
        raise UsageError(
            f"{', '.join(claims)} says nothing of {', '.join(names)}; "
            f"of {', '.join(_ONLY.get(claims[0], OPS))} it does"
        )
    with AmxProver(request.solvers or None, request.memory) as prover:
        return settle_claims(prover, wanted, request, "amx", (6, 15))
