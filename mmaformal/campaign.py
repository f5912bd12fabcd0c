"""Composing that both encodings agree for many instructions at once, on any `concurrent.futures` executor.

    with processes(2) as executor, EvidenceStore("evidence.db") as store:
        campaign = Campaign(hopper, store)
        campaign.run(executor, width=2)
    for instruction, answer in campaign.answers(): ...

Arguments are built in the workers too; only text comes back: lemmas as SMT-LIB 2 scripts, each known by its hash.  A
script that occurs in several arguments, in any worker, is put to a solver once; one that the store of evidence has
proved is not put to a solver at all.  What comes of a question is in the store before the next is looked at, so that
a campaign that was killed goes on where it was.  An instruction is proved when every lemma of its argument is, and
no solver contradicts another on any of them.
"""

from __future__ import annotations

import gc
import heapq
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, replace
from functools import partial

from mmaformal.cases.witness import CaseWitness
from mmaformal.display import ShortRepr, counted
from mmaformal.facts.equality import argue_equality, find_witness, question_of
from mmaformal.facts.protocol import UnsupportedError
from mmaformal.instruction import Instruction
from mmaformal.lanes import LaneError
from mmaformal.proof.kernel import ArgumentError, Digests, Scripts, digests_of, gathered, lemmas_of, name_of
from mmaformal.solver.answers import Answer, Fails, Holds, Obligation, Unknown
from mmaformal.solver.asking import Asker, obligation, restated
from mmaformal.solver.confirming import Confirmation, Confirming, Question, confirming, others
from mmaformal.solver.evidence import ContradictionError, EvidenceStore, digest
from mmaformal.solver.pool import decide
from mmaformal.solver.portfolio import LazyPortfolio, Outcome
from mmaformal.spec import DotAdd

#: Lemmas that go to a worker together; most take a few milliseconds.
_TOGETHER = 16

#: Tasks handed to the executor, for each of its workers, before one comes back.
_AHEAD = 3

#: Seconds between two calls of `told` while nothing happens.
_BEAT = 0.5


# ---- in a worker -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class LemmaText(ShortRepr):
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


@dataclass(frozen=True, repr=False)
class _Failure(ShortRepr):
    """Why there is no argument; `final`: not for something that an input may show."""

    why: str
    final: bool


def _build(spec: DotAdd) -> tuple[list[LemmaText], Digests] | _Failure:
    with _OneAtATime():
        try:
            argument = argue_equality(spec)
            lemmas, digests = lemmas_of(argument), digests_of(argument, _scripts)
        except (LaneError, ArgumentError) as error:
            return _Failure(str(error), isinstance(error, UnsupportedError))
        pairs = [(lemma, _scripts[lemma]) for lemma in lemmas]
        claims = [LemmaText(name_of(lemma, text), lemma.statement, text, lemma.hard) for lemma, text in pairs]
        return claims, digests


def _search(
    instruction: Instruction, timeout: float, solver: tuple[str, ...] | None, memory: int
) -> CaseWitness | None:
    with _OneAtATime(), LazyPortfolio(solver, memory) as portfolio:
        return find_witness(Asker(portfolio, timeout), instruction)


# ---- the campaign ----------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class Goal(ShortRepr):
    """One dot product-add, and the instructions that compute it."""

    instructions: list[Instruction]
    #: of its lemmas, once the argument is built: by digest, the name and the statement that they have in it
    claims: dict[str, tuple[str, str]] | None = None
    digests: Digests | None = None  #: of the theorem that they are the lemmas of
    open: set[str] = field(default_factory=set)  #: those not settled yet
    why: str | None = None  #: why there is no proof
    searched: bool = False  #: whether an input was looked for that shows it
    witness: CaseWitness | None = None

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
    process of `solver` (default: z3 and Bitwuzla).  `told` is called after everything that happens, and twice a second.
    """

    def __init__(
        self,
        instructions: Iterable[Instruction],
        store: EvidenceStore | None = None,
        *,
        timeout: float = 600.0,
        memory: int = 2048,
        solver: tuple[str, ...] | None = None,
        told: Callable[[Campaign], None] = lambda _: None,
    ) -> None:
        self.store, self.timeout, self.memory, self.solver, self.told = store, timeout, memory, solver, told
        self.goals: dict[DotAdd, Goal] = {}
        for instruction in instructions:
            goal = self.goals.setdefault(instruction.spec, Goal([]))
            goal.instructions.append(instruction)
        self.claims: dict[str, LemmaText] = {}  #: by digest
        self.outcomes: dict[str, Outcome] = {}  #: of those that are settled
        self.confirmed: dict[str, Confirmation] = {}  #: what other solvers say
        self.contradicted: dict[str, str] = {}  #: who says what of those that solvers do not agree on
        self.asked = 0  #: questions that were put to a solver
        self.known = 0  #: obligations that the store of evidence had proved
        self.running: list[str] = []  #: what the executor is at, the oldest first
        self._goals_of: dict[str, list[Goal]] = {}
        self._builds: deque[Goal] = deque()
        self._open: deque[str] = deque()  #: digests to ask
        self._searches: deque[Goal] = deque()

    def __repr__(self) -> str:
        done = sum(goal.done for goal in self.goals.values())
        return f"<Campaign: {done} of {counted(len(self.goals), 'dot product-add')} done>"

    # ---- what came of it

    def answers(self) -> Iterator[tuple[Instruction, Answer]]:
        """Yield each settled instruction with its answer; `seconds` are those that the solvers took for its lemmas."""
        for goal in self.goals.values():
            if goal.done:
                for instruction in goal.instructions:
                    yield instruction, self.answer(goal, instruction)

    def answer(self, goal: Goal, instruction: Instruction) -> Answer:
        proved = tuple(
            restated(self.obligation(sha256), *words)
            for sha256, words in (goal.claims or {}).items()
            if sha256 in self.outcomes and self.outcomes[sha256].verdict == "unsat"
        )
        question, seconds = question_of(instruction), sum(o.seconds for o in proved)
        proof = gathered(goal.digests, proved) if goal.why is None and goal.digests is not None else None
        if proof is not None:
            return Holds(question, proof, seconds)
        if goal.witness is not None:
            witness = replace(goal.witness, instruction=instruction)
            return Fails(question, witness, f"The proof failed: {goal.why}", seconds)
        return Unknown(question, goal.why or "not all of its lemmas were asked", proved, seconds)

    def obligation(self, sha256: str) -> Obligation:
        """A claim that was proved."""
        claim = self.claims[sha256]
        return obligation(claim.name, claim.statement, claim.script, self.outcomes[sha256], whole=False)

    # ---- running

    def run(self, executor: Executor, width: int) -> None:
        """Settle what is open; `width` is the number of the executor's workers.

        Raises what the executor raises when it breaks, and WitnessError if a solver's model does not hold.
        """
        self._builds = deque(g for g in self.goals.values() if g.claims is None and g.why is None)
        self._open = deque(sha256 for sha256 in self.claims if sha256 not in self.outcomes)
        self._searches = deque(g for g in self.goals.values() if g.why is not None and not g.searched)
        self._work(executor, width, self._next)

    def confirm(
        self, executor: Executor, width: int, solver: str | None = None, timeout: float = 300.0
    ) -> None:
        """Put every obligation that was proved to other solvers (see `confirming`): `solver`, if another one proved it.

        `timeout` is in seconds of theirs, for each obligation.  What is quick comes first.  Raises NoSolverError if
        there is no other solver, and what the executor raises when it breaks.
        """
        confirmations = _Confirmations(self, solver, timeout)
        self._work(executor, width, confirmations.following)

    def known_outcome(self, sha256: str, solver: str | None = None) -> Outcome | None:
        """Return what the store has: a proof, by `solver`; or "unknown", where solvers contradict each other."""
        if self.store is None:
            return None
        try:
            record = self.store.proof(sha256, solver)
        except ContradictionError as error:
            if sha256 in self.claims:
                self.contradict(sha256, str(error))
            return Outcome("unknown", "", "", 0.0, why=str(error))
        return None if record is None else record.outcome

    def contradict(self, sha256: str, why: str) -> None:
        """Nothing rests on this lemma any more."""
        self.contradicted[sha256] = why
        self.outcomes[sha256] = Outcome("unknown", "", "", 0.0, why=why)
        for goal in self._goals_of.get(sha256, ()):
            if goal.claims is not None:
                self._fail(goal, why, final=True)

    def _work(self, executor: Executor, width: int, following: Callable[[], _Task | None]) -> None:
        at: dict[Future[object], _Task] = {}
        try:
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
        finally:
            for future in at:
                future.cancel()

    def _next(self) -> _Task | None:
        if self._open:
            first = self._open.popleft()
            together = [first]
            while self._open and not self.claims[first].hard and len(together) < _TOGETHER:
                if self.claims[self._open[0]].hard:
                    break
                together.append(self._open.popleft())
            claims = [self.claims[sha256] for sha256 in together]
            scripts = [claim.script for claim in claims]
            label = f"{self._goals_of[first][0].label}: {claims[0].name.rpartition(' ')[0]}"
            return _Task(
                label,
                partial(self._answered, together),
                decide,
                (scripts, self.timeout, self.solver, self.memory),
            )
        if self._builds:
            goal = self._builds.popleft()
            return _Task(f"{goal.label}: building", partial(self._built, goal), _build, (goal.spec,))
        if self._searches:
            goal = self._searches.popleft()
            arguments = goal.instructions[0], self.timeout, self.solver, self.memory
            return _Task(
                f"{goal.label}: looking for a witness", partial(self._sought, goal), _search, arguments
            )
        return None

    # ---- what tasks come to

    def _built(self, goal: Goal, result: object) -> None:
        if isinstance(result, _Failure):
            self._fail(goal, result.why, result.final)
            return
        assert isinstance(result, tuple)
        built, digests = result
        claims: dict[str, LemmaText] = {}
        for claim in built:  # each where it comes last, as the conclusion does
            claims.pop(claim.digest, None)
            claims[claim.digest] = claim
        new = [sha256 for sha256 in claims if sha256 not in self.claims]
        # All that may fail comes first: a goal whose lemmas are not all known has no claims, and is not done.
        known = {sha256: self.known_outcome(sha256) for sha256 in new}
        for sha256, outcome in known.items():
            self.claims[sha256], self._goals_of[sha256] = claims[sha256], []
            if outcome is None:
                self._open.append(sha256)
                continue
            self.outcomes[sha256] = outcome
            if outcome.verdict == "unsat":
                self.known += 1
            else:
                self.contradicted[sha256] = outcome.why
        for sha256 in claims:
            if goal not in self._goals_of[sha256]:
                self._goals_of[sha256].append(goal)
        goal.open = {sha256 for sha256 in claims if sha256 not in self.outcomes}
        goal.digests = digests
        goal.claims = {sha256: (claim.name, claim.statement) for sha256, claim in claims.items()}
        for sha256 in claims:
            if sha256 in self.outcomes:
                self._settled(goal, sha256)

    def _answered(self, sha256s: Sequence[str], outcomes: object) -> None:
        for sha256, outcome in zip(sha256s, checked_outcomes(outcomes, len(sha256s)), strict=True):
            claim = self.claims[sha256]
            self.asked += 1
            self.outcomes[sha256] = outcome
            if self.store is not None:
                try:
                    self.store.add(sha256, claim.name, claim.statement, outcome)
                except ContradictionError as error:
                    self.contradict(sha256, str(error))
            for goal in self._goals_of[sha256]:
                self._settled(goal, sha256)

    def _settled(self, goal: Goal, sha256: str) -> None:
        outcome, claim = self.outcomes[sha256], self.claims[sha256]
        if sha256 in self.contradicted:
            self._fail(goal, self.contradicted[sha256], final=True)
        elif outcome.verdict == "sat":
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

    def _sought(self, goal: Goal, witness: object) -> None:
        assert witness is None or isinstance(witness, CaseWitness)
        goal.searched, goal.witness = True, witness
        if witness is None:
            goal.why = f"{goal.why}; no input was found that shows it"


@dataclass(frozen=True, repr=False)
class _Task(ShortRepr):
    label: str  #: what it is about, for a person
    done: Callable[[object], None]  #: takes its result
    function: Callable[..., object]
    arguments: tuple[object, ...]


@dataclass(order=True)
class _Asking:
    """A confirmation under way; the one whose question takes least is asked first."""

    limit: float = field(init=False, default=0.0)
    number: int
    sha256: str = field(compare=False)
    asking: Confirming = field(compare=False)
    _question: Question | None = field(init=False, default=None, compare=False)

    @property
    def question(self) -> Question:
        assert self._question is not None
        return self._question

    @question.setter
    def question(self, question: Question) -> None:
        self._question, self.limit = question, question.limit


class _Confirmations:
    """The questions that other solvers still have to be asked about a campaign's obligations, the quickest first."""

    def __init__(self, campaign: Campaign, solver: str | None, timeout: float) -> None:
        self._campaign = campaign
        asking: list[_Asking] = []
        for sha256, outcome in campaign.outcomes.items():
            if outcome.verdict == "unsat" and campaign.confirmed.get(sha256, _NONE).verdict == "unknown":
                campaign.confirmed.pop(sha256, None)
                solvers = others(outcome.solver, solver)
                script = campaign.claims[sha256].script
                asking.append(_Asking(len(asking), sha256, confirming(script, solvers, timeout)))
        self._ready = [one for one in asking if self._ask_next(one, None)]
        heapq.heapify(self._ready)

    def following(self) -> _Task | None:
        """The next question, as a task."""
        if not self._ready:
            return None
        one = heapq.heappop(self._ready)
        question, name = one.question, self._campaign.claims[one.sha256].name
        arguments = [question.script], question.limit, question.solver, self._campaign.memory
        label = f"{name}: {question.solver}{question.about and f', {question.about}'}"
        return _Task(label, partial(self._answered, one), decide, arguments)

    def _answered(self, one: _Asking, outcomes: object) -> None:
        outcome = self._heard(one, outcomes)
        if one.sha256 not in self._campaign.contradicted and self._ask_next(one, outcome):
            heapq.heappush(self._ready, one)

    def _ask_next(self, one: _Asking, outcome: Outcome | None) -> bool:
        """Go on with what was answered, as far as the store knows the answers; whether a question is left to ask."""
        try:
            while True:
                one.question = next(one.asking) if outcome is None else one.asking.send(outcome)
                outcome = self._campaign.known_outcome(digest(one.question.script), one.question.solver)
                if outcome is None:
                    return True
                outcome = replace(outcome, seconds=0.0)  # what is known takes none of the time given
        except StopIteration as stop:
            self._settle(one.sha256, stop.value)
            return False

    def _settle(self, sha256: str, confirmation: Confirmation) -> None:
        """Record what all questions about an obligation come to; two solvers that disagree contradict each other."""
        self._campaign.confirmed[sha256] = confirmation
        if confirmation.verdict == "sat":
            claim = self._campaign.claims[sha256]
            first, by = self._campaign.outcomes[sha256].solver, ", ".join(confirmation.solvers)
            where = confirmation.why and f" {confirmation.why}"
            self._campaign.contradict(
                sha256,
                f"solvers contradict each other on {sha256} ({claim.name}: {claim.statement}): {first} says "
                f"unsat, {by} sat{where}; one of them is wrong, so nothing is proved",
            )

    def _heard(self, one: _Asking, outcomes: object) -> Outcome:
        """The answer to a question of a confirmation, once it is recorded."""
        (outcome,) = checked_outcomes(outcomes, 1, one.question.solver)
        campaign, question = self._campaign, one.question
        claim = campaign.claims[one.sha256]
        campaign.asked += 1
        if campaign.store is not None:
            statement = f"{claim.statement}{question.about and f', {question.about}'}"
            try:
                campaign.store.add(digest(question.script), claim.name, statement, outcome)
            except ContradictionError as error:
                campaign.contradict(one.sha256, str(error))
                return replace(outcome, verdict="unknown", why=str(error))
        return outcome


#: The confirmation of what was not put to other solvers yet.
_NONE = Confirmation("unknown")


def checked_outcomes(outcomes: object, count: int, solver: str | None = None) -> list[Outcome]:
    """Return a worker's outcomes if they are so many, by `solver`; anything else counts as "unknown", so many times."""
    try:
        if not isinstance(outcomes, list) or len(outcomes) != count:
            raise ValueError(f"not {count} answers but {str(outcomes)[:40]!r}")
        for outcome in outcomes:
            if not isinstance(outcome, Outcome):
                raise ValueError(f"no answer but {str(outcome)[:40]!r}")
            outcome.check()
            if solver is not None and outcome.solver not in ("", solver):
                raise ValueError(f"an answer of {outcome.solver}, when {solver} was asked")
    except ValueError as error:
        return [Outcome("unknown", "", "", 0.0, why=f"a worker gave {error}")] * count
    return outcomes
