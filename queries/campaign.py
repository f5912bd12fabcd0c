"""Proving that both encodings agree for many instructions at once, on any `concurrent.futures` executor.

    with processes(2) as executor, EvidenceStore("evidence.db") as store:
        campaign = Campaign(hopper, store)
        campaign.run(executor, width=2)
    for instruction, answer in campaign.answers(): ...

Arguments are built in the workers too; only text comes back: lemmas as SMT-LIB 2 scripts, each known by its hash.  A
script that occurs in several arguments, in any worker, is put to a solver once; one that the store of evidence has
proved is not put to a solver at all.  What comes of a question is in the store before the next is looked at, so that
a campaign that was killed goes on where it was.  An instruction is proved when every lemma of its argument is.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mmaformal.algorithms import DotAdd
from mmaformal.instruction import Instruction
from mmaformal.queries.lanes import LaneError
from mmaformal.queries.lemmas import ArgumentError, Scripts, name_of
from mmaformal.queries.prove_encodings import NoArgumentError, argue, find_witness, question_of
from mmaformal.queries.wings import WingWitness
from mmaformal.solver.answers import Answer, Fails, Holds, Obligation, Proof, Unknown
from mmaformal.solver.asking import Asker
from mmaformal.solver.evidence import EvidenceStore, digest
from mmaformal.solver.pool import decide
from mmaformal.solver.portfolio import NoSolverError, Outcome, Relay, installed_backends

#: Lemmas that go to a worker together; most take a few milliseconds.
_TOGETHER = 16

#: Tasks handed to the executor, for each of its workers, before one comes back.
_AHEAD = 3

#: Seconds between two calls of `told` while nothing happens.
_BEAT = 0.5


# ---- in a worker -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A lemma as text."""

    name: str
    statement: str
    script: str
    hard: bool

    @property
    def digest(self) -> str:
        return digest(self.script)


_scripts = Scripts()
_terms = threading.Lock()


class _OneAtATime:
    """z3's terms are not for several threads at once, and a garbage collection may release some in any thread."""

    def __enter__(self) -> None:
        _terms.acquire()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.collect()
        gc.enable()
        _terms.release()


@dataclass(frozen=True)
class _Failure:
    """Why there is no argument; `final`: not for something that an input may show."""

    why: str
    final: bool


def _build(spec: DotAdd) -> list[Claim] | _Failure:
    with _OneAtATime():
        try:
            lemmas = argue(spec).lemmas.values()
        except (LaneError, ArgumentError, NoArgumentError) as error:
            return _Failure(str(error), isinstance(error, NoArgumentError))
        pairs = [(lemma, _scripts[lemma]) for lemma in lemmas]
        return [Claim(name_of(lemma, text), lemma.statement, text, lemma.hard) for lemma, text in pairs]


def _search(instruction: Instruction, timeout: float, memory: int) -> WingWitness | None:
    with _OneAtATime(), Relay(memory=memory) as portfolio:
        return find_witness(Asker(portfolio, timeout), instruction)


# ---- the campaign ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Goal:
    """One dot product-add, and the instructions that compute it."""

    instructions: list[Instruction]
    claims: list[str] | None = None  #: digests, once the argument is built
    open: set[str] = field(default_factory=set)  #: those not settled yet
    why: str | None = None  #: why there is no proof
    searched: bool = False  #: whether an input was looked for that shows it
    witness: WingWitness | None = None

    @property
    def spec(self) -> DotAdd:
        return self.instructions[0].spec

    @property
    def label(self) -> str:
        return self.instructions[0].label

    @property
    def done(self) -> bool:
        if self.why is not None:
            return self.searched
        return self.claims is not None and not self.open


class Campaign:
    """The instructions to prove, and what is known so far; `run` goes on from there, also after it was broken off.

    `timeout` is in seconds, for each lemma and for each search for a witness; `memory` in megabytes for each solver's
    process.  `told` is called after everything that happens, and twice a second.
    """

    def __init__(
        self,
        instructions: Iterable[Instruction],
        store: EvidenceStore | None = None,
        *,
        timeout: float = 600.0,
        memory: int = 2048,
        told: Callable[[Campaign], None] = lambda _: None,
    ) -> None:
        self.store, self.timeout, self.memory, self.told = store, timeout, memory, told
        self.goals: dict[DotAdd, Goal] = {}
        for instruction in instructions:
            goal = self.goals.setdefault(instruction.spec, Goal([]))
            goal.instructions.append(instruction)
        self.claims: dict[str, Claim] = {}  #: by digest
        self.outcomes: dict[str, Outcome] = {}  #: of those that are settled
        self.confirmed: dict[str, Outcome] = {}  #: what a second solver says
        self.asked = 0  #: questions that were put to a solver
        self.known = 0  #: obligations that the store of evidence had proved
        self.running: list[str] = []  #: what the executor is at, the oldest first
        self._goals_of: dict[str, list[Goal]] = {}
        self._builds: deque[Goal] = deque()
        self._open: deque[str] = deque()  #: digests to ask
        self._searches: deque[Goal] = deque()

    # ---- what came of it

    def answers(self) -> Iterator[tuple[Instruction, Answer]]:
        """What is settled; `seconds` are those that the solvers took for its lemmas."""
        for goal in self.goals.values():
            if goal.done:
                for instruction in goal.instructions:
                    yield instruction, self.answer(goal, instruction)

    def answer(self, goal: Goal, instruction: Instruction) -> Answer:
        proved = tuple(
            self.obligation(sha256)
            for sha256 in goal.claims or ()
            if sha256 in self.outcomes and self.outcomes[sha256].verdict == "unsat"
        )
        question, seconds = question_of(instruction), sum(o.seconds for o in proved)
        if goal.why is None and goal.claims and len(proved) == len(goal.claims):
            return Holds(question, Proof(proved), seconds)
        if goal.witness is not None:
            witness = replace(goal.witness, instruction=instruction)
            return Fails(question, witness, f"The proof failed: {goal.why}", seconds)
        return Unknown(question, goal.why or "not all of its lemmas were asked", proved, seconds)

    def obligation(self, sha256: str) -> Obligation:
        """A claim that was proved."""
        claim, by = self.claims[sha256], self.outcomes[sha256]
        cost = by.solver, by.version, by.seconds, by.memory
        return Obligation(claim.name, claim.statement, claim.script, *cost)

    # ---- running

    def run(self, executor: Executor, width: int) -> None:
        """Settle what is open; `width` is the number of the executor's workers.

        Raises what the executor raises when it breaks, and WitnessError if a solver's model does not hold.
        """
        self._builds = deque(g for g in self.goals.values() if g.claims is None and g.why is None)
        self._open = deque(sha256 for sha256 in self.claims if sha256 not in self.outcomes)
        self._searches = deque(g for g in self.goals.values() if g.why is not None and not g.searched)
        self._work(executor, width, self._next)

    def confirm(self, executor: Executor, width: int, solver: str | None = None) -> None:
        """Put every obligation that was proved to a second solver: `solver`, or the other one where that proved it."""
        waiting = deque(
            (sha256, _second(outcome.solver, solver))
            for sha256, outcome in self.outcomes.items()
            if outcome.verdict == "unsat" and sha256 not in self.confirmed
        )

        def following() -> _Task | None:
            while waiting:
                sha256, second = waiting.popleft()
                known = self.store.proof(sha256, second) if self.store is not None else None
                if known is None:
                    return self._question([sha256], second)
                self.confirmed[sha256] = known.outcome
            return None

        self._work(executor, width, following)

    def _work(self, executor: Executor, width: int, following: Callable[[], _Task | None]) -> None:
        at: dict[Future[Any], _Task] = {}
        while True:
            while len(at) < _AHEAD * width and (task := following()) is not None:
                at[executor.submit(task.function, *task.arguments)] = task
            self.running = [task.label for task in at.values()][:width]
            if not at:
                return
            finished, _ = wait(at, _BEAT, FIRST_COMPLETED)
            for future in finished:
                at.pop(future).done(future.result())
            self.told(self)

    def _next(self) -> _Task | None:
        if self._open:
            first = self._open.popleft()
            together = [first]
            while self._open and not self.claims[first].hard and len(together) < _TOGETHER:
                if self.claims[self._open[0]].hard:
                    break
                together.append(self._open.popleft())
            return self._question(together)
        if self._builds:
            goal = self._builds.popleft()
            return _Task(f"{goal.label}: building", partial(self._built, goal), _build, (goal.spec,))
        if self._searches:
            goal = self._searches.popleft()
            arguments = goal.instructions[0], self.timeout, self.memory
            return _Task(
                f"{goal.label}: looking for a witness", partial(self._sought, goal), _search, arguments
            )
        return None

    def _question(self, sha256s: Sequence[str], solver: str | None = None) -> _Task:
        claims = [self.claims[sha256] for sha256 in sha256s]
        arguments = [claim.script for claim in claims], self.timeout, solver, self.memory
        label = f"{self._goals_of[sha256s[0]][0].label}: {claims[0].name.rpartition(' ')[0]}"
        return _Task(label, partial(self._answered, sha256s, solver is not None), decide, arguments)

    # ---- what tasks come to

    def _built(self, goal: Goal, result: list[Claim] | _Failure) -> None:
        if isinstance(result, _Failure):
            self._fail(goal, result.why, result.final)
            return
        claims = {claim.digest: claim for claim in result}
        new = [sha256 for sha256 in claims if sha256 not in self.claims]
        # All that may fail comes first: a goal whose lemmas are not all known has no claims, and is not done.
        known = {sha256: self.store.proof(sha256) for sha256 in new} if self.store is not None else {}
        for sha256 in new:
            self.claims[sha256], self._goals_of[sha256] = claims[sha256], []
            record = known.get(sha256)
            if record is None:
                self._open.append(sha256)
            else:
                self.known += 1
                self.outcomes[sha256] = record.outcome
        for sha256 in claims:
            if goal not in self._goals_of[sha256]:
                self._goals_of[sha256].append(goal)
        goal.open = {sha256 for sha256 in claims if sha256 not in self.outcomes}
        goal.claims = list(claims)
        for sha256 in claims:
            if sha256 in self.outcomes:
                self._settled(goal, sha256)

    def _answered(self, sha256s: Sequence[str], again: bool, outcomes: Sequence[Outcome]) -> None:
        for sha256, outcome in zip(sha256s, outcomes, strict=True):
            claim = self.claims[sha256]
            self.asked += 1
            if self.store is not None:
                self.store.add(sha256, claim.name, claim.statement, outcome)
            if again:
                self.confirmed[sha256] = outcome
                continue
            self.outcomes[sha256] = outcome
            for goal in self._goals_of[sha256]:
                self._settled(goal, sha256)

    def _settled(self, goal: Goal, sha256: str) -> None:
        outcome, claim = self.outcomes[sha256], self.claims[sha256]
        if outcome.verdict == "sat":
            self._fail(goal, f"{claim.name}: that {claim.statement} does not hold")
        elif outcome.verdict != "unsat":
            self._fail(goal, f"{claim.name}: that {claim.statement} is not settled ({outcome.why})")
        goal.open.discard(sha256)

    def _fail(self, goal: Goal, why: str, final: bool = False) -> None:
        """There is no proof; `final`: nor is there anything to look for."""
        if goal.why is None:
            goal.why, goal.searched = why, final
            if not final:
                self._searches.append(goal)

    def _sought(self, goal: Goal, witness: WingWitness | None) -> None:
        goal.searched, goal.witness = True, witness
        if witness is None:
            goal.why = f"{goal.why}; no input was found that shows it"


@dataclass(frozen=True)
class _Task:
    label: str  #: what it is about, for a person
    done: Callable[[Any], None]  #: takes its result
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def _second(first: str, wanted: str | None) -> str:
    """A solver that is not the first: the wanted one, if it is another."""
    others = [backend for backend in installed_backends() if backend != first]
    if wanted in others:
        return str(wanted)
    if not others:
        raise NoSolverError(f"no second solver is installed beside {first}")
    return others[0]
