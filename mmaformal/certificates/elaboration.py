"""From a solver's refutation to an LRAT certificate: each learnt clause with the clauses that it follows from.

A solver writes DRAT: clauses that it learnt, in order, and those that it forgot.  A clause follows if its opposite
leads, by unit propagation alone, to a clause whose literals are all false (reverse unit propagation, RUP); that
propagation is done here, forwards, and what it passed through is noted.  What the empty clause does not rest on is left
out.  A mistake in this file gives a certificate that is refused.

Goldberg and Novikov, "Verification of proofs of unsatisfiability for CNF formulas" (2003); Cruz-Filipe et al.,
"Efficient certified RAT verification" (2017), whose format LRAT is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mmaformal.certificates.propagation import ClauseSteps, clauses_held, derive_all
from mmaformal.display import ShortRepr

Clause = tuple[int, ...]


class ElaborationError(Exception):
    """A solver's refutation has a step that does not follow by unit propagation."""


@dataclass(frozen=True, repr=False)
class ElaboratedClause(ShortRepr):
    """A clause, and the numbers of the clauses that it follows from, in the order in which they become unit."""

    number: int
    clause: Clause
    hints: tuple[int, ...]


def drat_steps(drat: str) -> Iterator[tuple[bool, Clause]]:
    """Yield what a DRAT text says: whether a clause is forgotten, and its literals.  Raises ElaborationError."""
    for place, line in enumerate(drat.splitlines(), 1):
        words = line.split()
        forgotten = words[:1] == ["d"]
        try:
            *literals, end = map(int, words[forgotten:])
        except ValueError:
            raise ElaborationError(f"line {place} is no step") from None
        if end == 0:
            yield forgotten, tuple(literals)


def elaborated(variables: int, clauses: Sequence[Clause], drat: str) -> list[ElaboratedClause]:
    """Return the steps to the empty clause.  Raises ElaborationError if one does not follow."""
    known: dict[Clause, list[int]] = {}
    every: list[Clause] = []
    script: list[int] = []  # +n: clause n is added, -n: it is forgotten
    for clause in clauses:
        every.append(clause)
        known.setdefault(tuple(sorted(clause)), []).append(len(every))
    for forgotten, clause in drat_steps(drat):
        key = tuple(sorted(clause))
        if not forgotten:
            every.append(clause)
            known.setdefault(key, []).append(len(every))
            script.append(len(every))
        elif len(clause) > 1 and known.get(key):
            script.append(-known[key].pop())
    starts = np.zeros(len(every) + 2, np.int64)
    starts[2:] = np.cumsum([len(clause) for clause in every])
    literals = np.array([x for clause in every for x in clause], np.int32)
    state = clauses_held(variables, starts, literals)
    refuted, steps = derive_all(state, len(clauses), np.array(script, np.int64))
    if not refuted:
        count = int(state.counts[1])
        raise ElaborationError(
            f"a learnt clause after step {count} does not follow by unit propagation, or none is empty"
        )
    return _needed(len(clauses), int(state.counts[1]), steps, every)


def _needed(given: int, count: int, steps: ClauseSteps, every: Sequence[Clause]) -> list[ElaboratedClause]:
    """Return the steps that the last of `count` rests on, numbered after the clauses that are given."""
    ends, hints = steps.ends.tolist(), steps.hints.tolist()
    wanted = {count - 1}
    for step in range(count - 1, -1, -1):
        if step in wanted:
            wanted.update(-1 - hint for hint in hints[ends[step] : ends[step + 1]] if hint < 0)
    number = {step: given + 1 + place for place, step in enumerate(sorted(wanted))}
    found = []
    for step, here in number.items():
        which, unit = int(steps.clauses[step]), int(steps.units[step])
        clause = every[which - 1] if which else (unit,) if unit else ()
        named = hints[ends[step] : ends[step + 1]]
        found.append(
            ElaboratedClause(here, clause, tuple(hint if hint > 0 else number[-1 - hint] for hint in named))
        )
    return found
