"""`mmaformal amx`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from mmaformal.apple.operand import OPS
from mmaformal.cli import options
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered
from mmaformal.cli.terminal import Status, told

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer

#: Known here, so that completion need not import a solver.
CLAIM_NAMES = (
    "both-wings",
    "disabled-lanes",
    "vector-mode",
    "matrix-mode",
    "interleaved",
    "ignored-bits",
    "operations",
    "additions",
)

#: Claims about one instruction alone, and those that take minutes.
_ONLY = {"interleaved": ("fma16",)}
_LONG = ("additions",)


class _Claim(options.Kind):
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
    type=click.Choice(tuple(OPS)),
    multiple=True,
    help="Of this instruction only; repeatable (default: of all).",
)
@click.option("--list", "listing", is_flag=True, help="What claims there are.")
@options.timeout(600.0, "for each claim about an instruction")
@options.memory(4096)
@options.solver
@options.evidence
@options.verbose
@options.json
@options.smtlib
def amx(
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
    """Prove what holds of Apple AMX for all operands and all states.

    Without a CLAIM all are proved but `additions`, which takes minutes. What was proved is recorded, and is not asked
    again.

    Exit status: 0 all Hold, 1 one Fails, 3 one Unknown, 2 wrong use.
    """
    from mmaformal.queries.amx import STATEMENTS, AmxProver
    from mmaformal.solver.answers import Fails, Holds
    from mmaformal.solver.asking import watching

    if listing:
        lines = (
            json.dumps(STATEMENTS, indent=2)
            if as_json
            else "\n".join(f"{k:16}{v}" for k, v in STATEMENTS.items())
        )
        return answered(lines, SETTLED)
    for claim in claims:
        if claim not in STATEMENTS:
            raise UsageError(f"no claim {claim!r}; there are {', '.join(STATEMENTS)}")
    wanted = [
        (claim, name)
        for name in names or tuple(OPS)
        for claim in claims or tuple(each for each in CLAIM_NAMES if each not in _LONG)
        if name in _ONLY.get(claim, (name,))
    ]
    if not wanted:
        raise UsageError(
            f"{', '.join(claims)} says nothing of {', '.join(names)}; of {', '.join(_ONLY[claims[0]])} it does"
        )
    found: list[tuple[dict[str, str], Answer]] = []
    with options.remembering(evidence, no_cache), AmxProver(solvers or None, memory) as prover:
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
    line = f"{word:8} {name}  {claim:15} {answer.seconds:7.1f} s  {answer.evidence.summary}"
    return line if word == "proved" and not verbose else f"{line}\n{told(answer, verbose)}"
