"""Settling claims about instructions, one after the other: what `amx` and `e9s12` do once they know which."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mmaformal.cli.recall import brief, kind
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, answered, tabulated
from mmaformal.cli.terminal import Status, told

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer


class Prover(Protocol):
    """What settles a claim about an instruction within a time."""

    def prove(self, claim: str, name: str, timeout: float, /) -> Answer: ...


def settle(
    prover: Prover,
    wanted: Iterable[tuple[str, str]],
    timeout: float,
    *,
    widths: tuple[int, int],
    verbose: bool,
    as_json: bool,
    table: str | None,
    smtlib: Path | None,
) -> int:
    """Settle and print (claim, instruction) pairs as they are done; the exit status of all.

    widths: of an instruction's name and a claim's, in a line.
    """
    from mmaformal.solver.answers import Fails, Holds
    from mmaformal.solver.asking import watching

    found: list[tuple[dict[str, str], Answer]] = []
    for claim, name in wanted:
        with Status() as status, watching(status.show):
            answer = prover.prove(claim, name, timeout)
        found.append(({"instruction": name, "claim": claim}, answer))
        if not as_json and table is None:
            answered(_text(f"{name:{widths[0]}} {claim:{widths[1]}}", answer, verbose), SETTLED)
        if smtlib is not None:
            answer.write_smtlib(smtlib / f"{name}-{claim}")
    if table is not None:
        tabulated(table, [{**what, **row(answer)} for what, answer in found], SETTLED)
    elif as_json:
        answered(json.dumps([what | answer.to_json() for what, answer in found], indent=2), SETTLED)
    answers = [answer for _, answer in found]
    if any(isinstance(answer, Fails) for answer in answers):
        return REFUTED
    return SETTLED if all(isinstance(answer, Holds) for answer in answers) else UNKNOWN


def row(answer: Answer) -> dict[str, object]:
    """Returns what a table says of an answer: what it is, what it found, and how long that took."""
    return {"answer": kind(answer), "found": brief(answer), "seconds": round(answer.seconds, 1)}


def _text(what: str, answer: Answer, verbose: bool) -> str:
    """A line where it holds, unless all is to be told."""
    word = {"Holds": "proved", "Fails": "REFUTED"}.get(type(answer).__name__, "UNKNOWN")
    line = f"{word:8} {what} {answer.seconds:7.1f} s  {answer.evidence.summary}"
    return line if word == "proved" and not verbose else f"{line}\n{told(answer, verbose)}"
