"""Claims proved one after another, each under claims proved before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import z3

from mmaformal.proof.failure import Failure, examine, place
from mmaformal.solver.answers import Obligation
from mmaformal.solver.asking import Asker, constants_of, opposite
from mmaformal.solver.portfolio import Outcome
from mmaformal.solver.script import smtlib


class NotProvedError(Exception):
    """An obligation was refuted, or not settled in the time given."""

    def __init__(self, statement: str, verdict: str, why: str) -> None:
        self.refuted = verdict == "sat"
        super().__init__(f"that {statement} {'does not hold' if self.refuted else f'is not settled ({why})'}")


@dataclass
class Proving:
    """Proves claims one after another and keeps what was proved, each formula once."""

    asker: Asker
    limit: float | None = None

    def __post_init__(self) -> None:
        self.start = len(self.asker.proved)

    def claim(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        using: Sequence[z3.BoolRef] = (),
        cut: Sequence[z3.ExprRef] = (),
    ) -> z3.BoolRef:
        """The claim, proved (see `Asker.prove`).  Raises NotProvedError."""
        outcome = self.asker.prove(name, statement, claim, using=using, cut=cut, limit=self.limit)
        if outcome.verdict != "unsat":
            self.asker.failed = partial(self._failure, place(), name, statement, claim, using, cut, outcome)
            raise NotProvedError(statement, outcome.verdict, outcome.why)
        return claim

    def _failure(
        self,
        where: str,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        using: Sequence[z3.BoolRef],
        cut: Sequence[z3.ExprRef],
        outcome: Outcome,
    ) -> Failure:
        refuted = opposite(claim, using, cut)
        terms = [(constant, constant) for constant in constants_of(refuted)]
        named_ = {f"cut{i}": term for i, term in enumerate(cut)}
        pairs = [(named_.get(str(constant), constant), constant) for constant, _ in terms]
        values = examine(self.asker, refuted, pairs, ()) if outcome.verdict == "sat" else ()
        script = smtlib([refuted])
        return Failure(name, statement, outcome.verdict == "sat", outcome.why, where, values, script)

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        return tuple({o.digest: o for o in self.asker.proved[self.start :]}.values())
