"""`mmaformal roundoff`."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import click

from mmaformal.cli.claims import row
from mmaformal.cli.recall import Recalled, RecallKey
from mmaformal.cli.running import SETTLED, UNKNOWN, UsageError, answered, tabulated
from mmaformal.cli.solving import Solving, solving
from mmaformal.cli.terminal import Status

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer


@click.command()
@click.argument("formats", metavar="[FORMAT]…", nargs=-1)
@click.option("--no-subnormals", is_flag=True, help="Of formats without subnormal numbers.")
@click.option("--toward-zero", is_flag=True, help="Rounded toward zero, not to nearest.")
@solving(60.0, "for each format", table=True)
def roundoff(
    formats: tuple[str, ...],
    no_subnormals: bool,
    toward_zero: bool,
    request: Solving,
) -> int:
    """Prove what error analysis assumes of rounding to a FORMAT: fl(x) = x(1 + δ) + η, |δ| ≤ u, |η| ≤ g_min, δη = 0.

    Of all real numbers within its range; without a FORMAT, of all formats.

    Exit status: 0 all Hold, 3 one Unknown, 2 wrong use.
    """
    from mmaformal.formats import FORMATS
    from mmaformal.queries.roundoff import NAMES, of_format
    from mmaformal.solver.asking import watching
    from mmaformal.solver.portfolio import LazyPortfolio

    if unknown := [name for name in formats if name not in NAMES]:
        raise UsageError(f"nothing is rounded to a format {unknown[0]!r}; there are {', '.join(NAMES)}")
    subnormals, nearest = not no_subnormals, not toward_zero
    answers: dict[str, Answer | Recalled] = {}
    with LazyPortfolio(request.solvers or None, request.memory) as portfolio:

        def ask(name: str) -> Answer:
            with Status() as status, watching(status.show):
                return of_format(
                    FORMATS[name], portfolio, subnormals=subnormals, nearest=nearest, timeout=request.timeout
                )

        for name in formats or NAMES:
            words = name, f"subnormals={subnormals}", f"nearest={nearest}", *request.solvers
            answer = request.recall(RecallKey("roundoff", (), *words), partial(ask, name))
            answers[name] = answer
            if request.printed_at_once:
                request.show(answer, SETTLED)
            request.write_smtlib(answer, name)
    if request.table is not None:
        tabulated(
            request.table, [{"format": name, **row(answer)} for name, answer in answers.items()], SETTLED
        )
    elif request.as_json:
        found = [{"format": name} | answer.to_json() for name, answer in answers.items()]
        answered(json.dumps(found, indent=2), SETTLED)
    return SETTLED if all(answer.verdict == "holds" for answer in answers.values()) else UNKNOWN
