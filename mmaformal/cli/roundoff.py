"""`mmaformal roundoff`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaformal.cli import options
from mmaformal.cli.claims import row
from mmaformal.cli.recall import Recalled, RecallKey
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered, tabulated
from mmaformal.cli.terminal import Status, told

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer


@click.command()
@click.argument("formats", metavar="[FORMAT]…", nargs=-1)
@click.option("--no-subnormals", is_flag=True, help="Of formats without subnormal numbers.")
@click.option("--toward-zero", is_flag=True, help="Rounded toward zero, not to nearest.")
@options.timeout(60.0, "for each format")
@options.memory(4096)
@options.solver
@options.evidence
@options.verbose
@options.json
@options.table
@options.smtlib
def roundoff(
    formats: tuple[str, ...],
    no_subnormals: bool,
    toward_zero: bool,
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
    """Prove what error analysis assumes of rounding to a FORMAT: fl(x) = x(1 + δ) + η, |δ| ≤ u, |η| ≤ g_min, δη = 0.

    Of all real numbers within its range; without a FORMAT, of all formats.

    Exit status: 0 all Hold, 3 one Unknown, 2 wrong use.
    """
    from mmaformal.formats import FORMATS
    from mmaformal.solver.asking import watching
    from mmaformal.solver.portfolio import LazyPortfolio
    from mmaformal.studies.roundoff import NAMES, of_format

    if unknown := [name for name in formats if name not in NAMES]:
        raise UsageError(f"nothing is rounded to a format {unknown[0]!r}; there are {', '.join(NAMES)}")
    subnormals, nearest = not no_subnormals, not toward_zero
    answers: dict[str, Answer | Recalled] = {}
    with (
        options.remembering(evidence, no_cache) as store,
        LazyPortfolio(solvers or None, memory) as portfolio,
    ):

        def ask(name: str) -> Answer:
            with Status() as status, watching(status.show):
                return of_format(
                    FORMATS[name], portfolio, subnormals=subnormals, nearest=nearest, timeout=timeout
                )

        kept = store if evidence is None and smtlib is None else None
        for name in formats or NAMES:
            words = name, f"subnormals={subnormals}", f"nearest={nearest}", *solvers
            answer = RecallKey("roundoff", (), *words).ask(kept, timeout, partial(ask, name))
            answers[name] = answer
            if not as_json and table is None:
                answered(told(answer, verbose), SETTLED)
            if smtlib is not None and not isinstance(answer, Recalled):
                answer.write_smtlib(smtlib / name)
    if table is not None:
        tabulated(table, [{"format": name, **row(answer)} for name, answer in answers.items()], SETTLED)
    elif as_json:
        found = [{"format": name} | answer.to_json() for name, answer in answers.items()]
        answered(json.dumps(found, indent=2), SETTLED)
    return SETTLED if all(answer.verdict == "holds" for answer in answers.values()) else UNKNOWN
