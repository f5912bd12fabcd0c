"""Answers other than `unsat` that took a solver long: models that it found, and questions that it left open.

`tests/store/answers.json` holds, for each question that the quick suite put to solvers and that was not refuted in
`LEAST` seconds, what they said.  A model convicts itself where it is wrong, since witnesses are run through the
executable encoding; a question that was left open proves nothing.  One is taken for the same script, the same values
wanted, the same solvers in the same versions, and, where it was left open, at most twice the time that it had.  Which
questions are asked anew is decided as for proofs (`known.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from proved import PATH, answers_beside, read_answers

from mmaformal.solver.portfolio import Outcome, Portfolio, SolverVerdict, solver_version

#: Seconds; what was answered sooner is asked each time.
LEAST = 0.02

#: Hexadecimal digits of a digest that are kept.
_KEPT = 32

#: A question that was left open stays so up to twice the time that it had: what came before it took time then.
_UP_TO = 2.0


class OtherAnswerError(AssertionError):
    """A solver says the opposite of what the record says."""


@dataclass(frozen=True)
class Answer:
    """Solvers' answer: `sat` with the values wanted, or `unknown` in so many seconds."""

    verdict: SolverVerdict
    solver: str
    timeout: float
    why: str = ""
    model: Mapping[str, int] = field(default_factory=dict)

    def answers_in(self, timeout: float) -> bool:
        """Whether it answers a question that has this much time."""
        return self.verdict == "sat" or timeout <= self.timeout * _UP_TO

    def outcome(self, script: str) -> Outcome:
        """Returns it as the outcome of asking a script."""
        version = solver_version(self.solver) if self.solver else ""
        return Outcome(self.verdict, self.solver, version, 0.0, self.model, self.why, asked=_digest(script))


def read(path: Path = PATH) -> dict[str, Answer]:
    """Returns the answers that stand beside a file of proofs, by the keys of their questions."""
    return {
        key: Answer(**cast("dict[str, Any]", each))
        for key, each in read_answers(answers_beside(path)).items()
    }


def key_of(script: str, constants: Mapping[str, int], portfolio: Portfolio) -> str:
    """Returns a digest of all that an answer depends on but the time."""
    solvers = [f"{name} {solver_version(name)}" for name in portfolio.backends]
    asked = [script, dict(sorted(constants.items())), solvers, portfolio.memory]
    return _digest(json.dumps(asked))[:_KEPT]


class KnownAnswers:
    """The answers of a run: those of before, but for those drawn, and those that it got itself."""

    def __init__(self, before: Mapping[str, Answer], is_drawn: Callable[[str], bool]) -> None:
        self._before, self._is_drawn = before, is_drawn
        self.found: dict[str, Answer] = {}  #: in this run, or known and met in it
        self.last: Outcome | None = None  #: the last that was known, so that nobody counts it as asked
        self.known = 0

    def ask(
        self,
        solvers: Callable[[Portfolio, str, Mapping[str, int], float], Outcome],
        portfolio: Portfolio,
        script: str,
        constants: Mapping[str, int],
        timeout: float,
    ) -> Outcome:
        """Returns what is known of a question, or what `solvers`, which is `Portfolio.ask`, say of it.

        Raises OtherAnswerError if they refute what has a model.
        """
        key = key_of(script, constants, portfolio)
        before = self._before.get(key)
        if before is not None and before.answers_in(timeout) and not self._is_drawn(key):
            self.found[key], self.known = before, self.known + 1
            self.last = before.outcome(script)
            return self.last
        outcome = solvers(portfolio, script, constants, timeout)
        if before is not None and (before.verdict, outcome.verdict) == ("sat", "unsat"):
            raise OtherAnswerError(f"{outcome.solver} refutes what {before.solver} has a model of: {script}")
        if outcome.verdict != "unsat" and outcome.seconds >= LEAST:
            wanted = {name: outcome.model[name] for name in constants if name in outcome.model}
            self.found[key] = Answer(outcome.verdict, outcome.solver, timeout, outcome.why, wanted)
        return outcome


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
