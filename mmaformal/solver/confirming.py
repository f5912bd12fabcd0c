"""Whether solvers that did not answer first say `unsat` to a script as well.

Each of the others is asked in turn, first for a moment, then for longer.  What none of them settles is split into cases
(`splitting`), each a script of its own that is put to them in the same way, and so is the claim that the cases are all
there are.  Who asks is told one question at a time:

    asking = confirming(script, ["z3", "cvc5"], timeout=300)
    question = next(asking)
    while True:
        question = asking.send(what question.solver says of question.script within question.limit)

until the generator returns a `Confirmation`; `put` does that.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from mmaformal.display import ShortRepr
from mmaformal.solver.portfolio import NoSolverError, Outcome, SolverVerdict, installed_backends
from mmaformal.solver.splitting import Split, splits

#: Seconds for each solver, the first time and the next.
LIMITS = (2.0, 20.0)

#: Limits for each case of a split.
_CASE_LIMITS = (2.0, 10.0)

#: How often a case is split again.
_DEPTH = 2

#: Splits with fewer cases than this leave each about as hard as the whole.
_MANY = 8


@dataclass(frozen=True, repr=False)
class Question(ShortRepr):
    """A question to be asked next: a script, and which solver has how long for it."""

    script: str
    solver: str
    limit: float  #: seconds
    about: str = ""  #: which part of the whole it is, in words; empty for the whole


@dataclass(frozen=True, repr=False)
class Confirmation(ShortRepr):
    """The word of other solvers on a script: `unsat`, of itself or of each of its cases; `sat`; or `unknown`."""

    verdict: SolverVerdict
    solvers: tuple[str, ...] = ()  #: who said so
    cases: int = 1
    seconds: float = 0.0  #: that they took, also those that did not answer
    why: str = ""

    def __str__(self) -> str:
        if self.verdict == "unknown":
            return f"unknown: {self.why}"
        return self.verdict if self.cases == 1 else f"{self.verdict} in each of {self.cases} cases"


Confirming = Generator[Question, Outcome, Confirmation]


def others(first: str, wanted: str | None = None) -> tuple[str, ...]:
    """The solvers to ask after `first`: the wanted one, if it is another, or all that are installed.

    Raises NoSolverError if there is none.
    """
    found = tuple(backend for backend in installed_backends() if backend != first)
    if wanted is not None and wanted != first:
        found = tuple(backend for backend in found if backend == wanted)
    if not found:
        missing = wanted if wanted not in (None, first) else "another"
        raise NoSolverError(f"no second solver beside {first}: {missing} is not installed; pip install cvc5")
    return found


def confirming(script: str, solvers: Sequence[str], timeout: float) -> Confirming:
    """Ask `solvers` whether a script is unsatisfiable, for `timeout` seconds of theirs in all."""
    budget = _Budget(timeout)
    return (yield from _settle(script, "", tuple(solvers), budget, LIMITS, _DEPTH))


def put(asking: Confirming, ask: Callable[[Question], Outcome]) -> Confirmation:
    """Ask until there is an answer."""
    try:
        question = next(asking)
        while True:
            question = asking.send(ask(question))
    except StopIteration as stop:
        confirmation: Confirmation = stop.value
        return confirmation


@dataclass
class _Budget:
    left: float
    spent: float = 0.0
    solvers: dict[str, None] = field(default_factory=dict)  #: who said `unsat`, in order
    cases: int = 0

    def spend(self, seconds: float) -> None:
        self.left, self.spent = self.left - seconds, self.spent + seconds

    def confirmation(self, verdict: SolverVerdict, why: str = "") -> Confirmation:
        return Confirmation(verdict, tuple(self.solvers), max(1, self.cases), self.spent, why)


def _settle(
    script: str, about: str, solvers: tuple[str, ...], budget: _Budget, limits: Sequence[float], depth: int
) -> Confirming:
    for limit in limits:
        for solver in solvers:
            if budget.left <= 0:
                break
            outcome = yield Question(script, solver, min(limit, budget.left), about)
            budget.spend(outcome.seconds)
            if outcome.verdict == "sat":
                return Confirmation("sat", (outcome.solver,), 1, budget.spent, about)
            if outcome.verdict == "unsat":
                budget.solvers[outcome.solver] = None
                budget.cases += 1
                return budget.confirmation("unsat")
    if budget.left <= 0:
        return budget.confirmation("unknown", f"the time given was used up{about and f' at {about}'}")
    split = (yield from _choose(script, about, solvers, budget)) if depth else None
    if split is None:
        return budget.confirmation(
            "unknown", f"no answer from {' or '.join(solvers)}{about and f' to {about}'}"
        )
    cases = budget.cases
    parts = [(split.exhaustive, f"that a term of {split.bits} bits is in one of {len(split)} cases")]
    parts += [(split[value], _case(about, split, value)) for value in range(len(split))]
    for part, which in parts:
        found = yield from _settle(part, which, solvers, budget, _CASE_LIMITS, depth - 1)
        if found.verdict != "unsat":
            return found
    budget.cases -= 1  # that there are no others is no case
    if budget.cases - cases < len(split):
        raise RuntimeError(f"{len(split)} cases were to be settled, and {budget.cases - cases} were")
    return budget.confirmation("unsat")


def _case(about: str, split: Split, value: int) -> str:
    more = " or more" if value == len(split) - 1 else ""
    return f"{about and f'{about}, '}where a term of {split.bits} bits is {value}{more}"


def _choose(
    script: str, about: str, solvers: tuple[str, ...], budget: _Budget
) -> Generator[Question, Outcome, Split | None]:
    """The split whose cases look easiest: one not at either end, and the first, which is often the hardest."""
    best, least = None, (2, 0.0)
    for split in splits(script):
        if len(split) < _MANY:
            continue
        open_, seconds = 0, 0.0
        for value in (len(split) // 3, 0):
            if open_ or budget.left <= 0:
                open_ += 1
                continue
            limit = min(_CASE_LIMITS[-1], budget.left)
            outcome = yield Question(split[value], solvers[0], limit, _case(about, split, value))
            budget.spend(outcome.seconds)
            open_, seconds = open_ + (outcome.verdict != "unsat"), seconds + outcome.seconds
        if (open_, seconds) < least:
            best, least = split, (open_, seconds)
    return best
