"""`mmaformal e9s12`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.terminal import Status, told

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer


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
    smtlib: Path | None,
) -> int:
    """Prove or refute what is said of the dot product-add of E9S12 halves.

    Without a CLAIM all are settled; some are meant to fail (docs/e9s12.md). What was proved is recorded, and is not
    asked again.

    Exit status: 0 all Hold, 1 one Fails, 3 one Unknown, 2 wrong use.
    """
    from mmaformal.queries.e9s12 import CLAIMS, UNITS, E9s12Prover
    from mmaformal.solver.answers import Fails, Holds
    from mmaformal.solver.asking import watching

    statements = {each.name: each.statement for each in CLAIMS}
    if listing:
        lines = (
            json.dumps(statements, indent=2)
            if as_json
            else "\n".join(f"{k:19}{v}" for k, v in statements.items())
        )
        return answered(lines, SETTLED)
    for claim in claims:
        if claim not in statements:
            raise UsageError(f"no claim {claim!r}; there are {', '.join(statements)}")
    for name in names:
        if name not in UNITS.keys():  # noqa: SIM118
            raise UsageError(f"no instruction {name!r}; there are {', '.join(UNITS.keys())}")
    wanted = [
        (each.name, name)
        for each in CLAIMS
        for name in each.of
        if (not claims or each.name in claims) and (not names or name in names)
    ]
    if not wanted:
        raise UsageError(f"{', '.join(claims)} says nothing of {', '.join(names)}")
    found: list[tuple[dict[str, str], Answer]] = []
    with options.remembering(evidence, no_cache), E9s12Prover(solvers or None, memory) as prover:
        for claim, name in wanted:
            with Status() as status, watching(status.show):
                answer = prover.prove(claim, name, timeout)
            found.append(({"instruction": name, "claim": claim}, answer))
            if not as_json:
                answered(_text(claim, name, answer, verbose), SETTLED)
            if smtlib is not None:
                answer.write_smtlib(smtlib / f"{name}-{claim}")
    if as_json:
        answered(json.dumps([what | answer.to_json() for what, answer in found], indent=2), SETTLED)
    answers = [answer for _, answer in found]
    if any(isinstance(answer, Fails) for answer in answers):
        return REFUTED
    return SETTLED if all(isinstance(answer, Holds) for answer in answers) else UNKNOWN


def _text(claim: str, name: str, answer: Answer, verbose: bool) -> str:
    """A line where it holds, unless all is to be told."""
    word = {"Holds": "proved", "Fails": "REFUTED"}.get(type(answer).__name__, "UNKNOWN")
    line = f"{word:8} {name:11} {claim:18} {answer.seconds:7.1f} s  {answer.evidence.summary}"
    return line if word == "proved" and not verbose else f"{line}\n{told(answer, verbose)}"
