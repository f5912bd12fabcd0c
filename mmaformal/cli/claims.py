"""Settling claims about instructions, one after the other: what `amx` and `e9s12` do once they know which."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mmaformal.cli.recall import Recalled, RecallKey, brief, seconds
from mmaformal.cli.running import REFUTED, SETTLED, UNKNOWN, UsageError, answered, tabulated
from mmaformal.cli.solving import Solving
from mmaformal.cli.terminal import Status, told

if TYPE_CHECKING:
    from mmaformal.solver.answers import Answer


class ClaimProver(Protocol):
    """A study that settles a claim about an instruction within a time, in seconds."""

    def prove(self, claim: str, name: str, timeout: float, /) -> Answer: ...


def settle_claims(
    prover: ClaimProver,
    wanted: Iterable[tuple[str, str]],
    request: Solving,
    command: str,
    widths: tuple[int, int],
) -> int:
    """Settle and print (claim, instruction) pairs as they are done; the exit status of all.

    widths: of an instruction's name and a claim's, in a line.
    """
    from mmaformal.solver.asking import watching

    def ask(claim: str, name: str) -> Answer:
        with Status() as status, watching(status.show):
            return prover.prove(claim, name, request.timeout)

    found: list[tuple[dict[str, str], Answer | Recalled]] = []
    for claim, name in wanted:
        key = RecallKey("claim", (), command, *request.solvers, claim, name)
        answer = request.recall(key, partial(ask, claim, name))
        found.append(({"instruction": name, "claim": claim}, answer))
        if request.printed_at_once:
            text = _text(f"{name:{widths[0]}} {claim:{widths[1]}}", answer, request.verbose)
            answered(text, SETTLED)
        request.write_smtlib(answer, f"{name}-{claim}")
    if request.table is not None:
        tabulated(request.table, [{**what, **row(answer)} for what, answer in found], SETTLED)
    elif request.as_json:
        answered(json.dumps([what | answer.to_json() for what, answer in found], indent=2), SETTLED)
    kinds = {answer.verdict for _, answer in found}
    return REFUTED if "fails" in kinds else UNKNOWN if "unknown" in kinds else SETTLED


def listed(statements: Mapping[str, str], width: int, request: Solving) -> int:
    """Print what claims there are, their names in `width` columns; return the exit status."""
    if request.table is not None:
        return tabulated(
            request.table, [{"claim": k, "statement": v} for k, v in statements.items()], SETTLED
        )
    lines = "\n".join(f"{k:{width}}{v}" for k, v in statements.items())
    return answered(json.dumps(statements, indent=2) if request.as_json else lines, SETTLED)


def require_known(what: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise UsageError for a name that is not among those known."""
    known = list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"no {what} {name!r}; there are {', '.join(known)}")


def row(answer: Answer | Recalled) -> dict[str, object]:
    """Returns what a table says of an answer: what it is, what it found, and how long that took."""
    return {"answer": answer.verdict, "found": brief(answer), "seconds": round(seconds(answer), 1)}


def _text(what: str, answer: Answer | Recalled, verbose: bool) -> str:
    """A line where it holds, unless all is to be told."""
    word = {"holds": "proved", "fails": "REFUTED"}.get(answer.verdict, "UNKNOWN")
    how = f"({answer.when})" if isinstance(answer, Recalled) else answer.evidence.summary
    line = f"{word:8} {what} {seconds(answer):7.1f} s  {how}"
    return line if word == "proved" and not verbose else f"{line}\n{told(answer, verbose)}"
