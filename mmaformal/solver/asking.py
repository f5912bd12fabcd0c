"""From z3 terms to questions: scripts, proofs of lemmas with cut points, a time budget for a whole query."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import InitVar, dataclass, fields

import z3

from mmaformal.solver.answers import Answer, Failed, Obligation, Unknown, made_by
from mmaformal.solver.deadline import Deadline, check_time
from mmaformal.solver.evidence import ContradictionError, current_store, digest
from mmaformal.solver.portfolio import Outcome, Portfolio, SolverVerdict
from mmaformal.solver.script import smtlib as smtlib
from mmaformal.solver.terms import Substitution, apart, constant_like
from mmaformal.solver.terms import constants_of as constants_of

TermCut = tuple[tuple[z3.ExprRef, z3.ExprRef], ...]  #: terms, and the constants in their place

#: Below this many seconds a question is not worth asking.
_LEAST = 0.05

#: Seconds after the limit until what does not end by itself is broken off; and those in which its answer is made then.
_GRACE, _LAST = 0.5, 1.0

#: Milliseconds that z3's simplifier may take, which no signal interrupts; a term that takes longer is left as it is.
_SIMPLIFYING = 1000

_USED_UP = "the time given was used up"


#: The end of an obligation's name that tells it apart, for no person to read.
_DIGEST = re.compile(r" [0-9a-f]{12}$")

_watcher: ContextVar[Callable[[str], None] | None] = ContextVar("watcher", default=None)
_finder: ContextVar[Callable[[Answer], None] | None] = ContextVar("finder", default=None)


@contextmanager
def watching(
    tell: Callable[[str], None] | None, found: Callable[[Answer], None] | None = None
) -> Iterator[None]:
    """Within this block `tell` is given a line of text for each question that is put to a solver, before it is.

    `found` is given the first answer of a search, whose witness is then made smaller.  None leaves things as they are.
    """
    tokens = _watcher.set(tell or _watcher.get()), _finder.set(found or _finder.get())
    try:
        yield
    finally:
        _watcher.reset(tokens[0])
        _finder.reset(tokens[1])


def first_found(tell: Callable[[str], None] | None) -> Callable[[Answer], None] | None:
    """Return a function that gives `tell` a line of the first witness of a search; None if nobody is told."""
    if tell is None:
        return None
    return lambda answer: tell(f"found: {answer.witness.summary}; a smaller one is looked for")  # type: ignore[attr-defined]


_KEY = made_by(__name__)


def obligation(name: str, statement: str, script: str, outcome: Outcome, *, whole: bool) -> Obligation:
    """Return the obligation that a solver's answer to a script proves; whole: whether the statement tells all of it.

    Raises ValueError where the answer is not `unsat`, or nobody's, or to another script.
    """
    outcome.check()
    if outcome.verdict != "unsat":
        raise ValueError(f"{outcome.verdict} proves nothing: {statement}")
    if outcome.asked not in ("", digest(script)):
        raise ValueError(f"the answer is to another script: {statement}")
    return Obligation(
        name,
        statement,
        script=script,
        solver=outcome.solver,
        version=outcome.version,
        seconds=outcome.seconds,
        memory=outcome.memory,
        whole=whole,
        key=_KEY,
    )


def restated(
    known: Obligation, name: str, statement: str, seconds: float | None = None, lemma: bool = False
) -> Obligation:
    """The evidence of an obligation for a `lemma`, or a question, that asks the same of a solver, in its own words."""
    return _restated(known, name, statement, seconds, known.whole and not lemma)


def _restated(known: Obligation, name: str, statement: str, seconds: float | None, whole: bool) -> Obligation:
    if (known.name, known.statement, known.whole) == (name, statement, whole) and seconds is None:
        return known
    seconds = known.seconds if seconds is None else seconds
    return Obligation(
        name,
        statement,
        script=known.script,
        solver=known.solver,
        version=known.version,
        seconds=seconds,
        memory=known.memory,
        whole=whole,
        key=_KEY,
    )


@dataclass(frozen=True, repr=False)
class Settled(Outcome):
    """How a question that an asker put ended; one that was refuted has its obligation."""

    obligation: Obligation | None = None
    key: InitVar[object] = None

    def __init_subclass__(cls) -> None:
        raise TypeError("settled questions have no subclasses, which anybody could make")

    def __post_init__(self, key: object) -> None:
        super().__post_init__()
        if self.verdict == "unsat" and key is not _KEY:
            raise TypeError("only the asker settles a question, of what a solver answered")
        if (self.verdict == "unsat") != (self.obligation is not None):
            raise ValueError(f"{self.verdict}, with the obligation {self.obligation}")


def _settled(outcome: Outcome, proved: Obligation | None = None) -> Settled:
    told = {each.name: getattr(outcome, each.name) for each in fields(Outcome)}
    return Settled(**told, obligation=proved, key=_KEY)


def _unsettled(why: str, seconds: float = 0.0) -> Settled:
    return Settled("unknown", "", "", seconds, why=why)


class Asker:
    """Puts questions to a portfolio within one time budget and keeps a record of what was proved.

    Where a store of evidence is in use (`evidence.recording`), it is written there too.
    """

    def __init__(self, portfolio: Portfolio, timeout: float) -> None:
        self.portfolio = portfolio
        self.timeout = timeout
        self.start = time.monotonic()
        self.deadline = self.start + timeout
        self.proved: list[Obligation] = []
        self._best: Callable[[], Answer] | None = None
        #: A function that tells where the last proof that failed ended.
        self.failed: Callable[[], Failed | None] | None = None
        self.store = current_store()
        self._known: dict[int, tuple[z3.BoolRef, Obligation]] = {}  # by the id of the renamed question

    @property
    def best(self) -> Callable[[], Answer] | None:
        """The answer if the time is up from now on: a witness was found, and is being made smaller."""
        return self._best

    @best.setter
    def best(self, answer: Callable[[], Answer]) -> None:
        first, self._best = self._best is None, answer
        if first and (tell := _finder.get()) is not None:
            tell(answer())

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start

    @property
    def limit(self) -> Deadline:
        """A block of work that uses this asker, and is broken off when its time is up: `late` is the answer then."""
        return Deadline(self.left + _GRACE)

    def late(self, question: str) -> Answer:
        """The answer where the time was up before there was one: `best`, or else `Unknown`."""
        if self.best is not None:
            with Deadline(_LAST):
                return self.best()
        return Unknown(question, _USED_UP, tuple(self.proved), self.elapsed)

    def within(self, question: str, work: Callable[[], Answer]) -> Answer:
        """The answer of `work`, which uses this asker; if its time is up before, that of who is `late`."""
        with self.limit:
            return work()
        return self.late(question)

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()

    def satisfy(
        self,
        name: str,
        statement: str,
        assertions: Sequence[z3.BoolRef],
        constants: Mapping[str, int] | None = None,
        limit: float | None = None,
        *,
        whole: bool,
    ) -> Settled:
        """Look for a model of the assertions; `unsat` is recorded as the obligation `statement`.

        A question that differs from a refuted one in the names of its constants alone is not asked again.
        `limit`, in seconds, shortens what is left of the budget for this question alone.  whole: whether the statement
        tells all that is asserted; what holds under premises that it does not tell is no proof by itself (`direct`).
        """
        check_time()
        if self.left <= 0:
            return _unsettled(_USED_UP)
        question = z3.And(*assertions)
        form = renamed(question)
        if form.get_id() in self._known:
            known = self._known[form.get_id()][1]
            self.proved.append(_restated(known, name, statement, 0.0, whole))
            return _settled(Outcome("unsat", known.solver, known.version, 0.0), self.proved[-1])
        simplified = simplified_alone(question)
        if z3.is_false(simplified):
            by_simplifier = Outcome("unsat", "z3", f"{z3.get_version_string()} simplifier", 0.0)
            script = smtlib([question])  # evidence must be the question itself, not its simplified answer
            outcome = self._record(name, statement, script, by_simplifier, whole)
        else:
            outcome = self.decide(name, statement, smtlib([simplified]), constants, limit, whole=whole)
        if outcome.obligation is not None:
            self._known[form.get_id()] = (form, outcome.obligation)
        return outcome

    def meet(self, premises: z3.BoolRef) -> Outcome:
        """Whether any values meet some premises: `sat` if so, with values that were put into them.

        Nothing is recorded.  Raises RuntimeError if the values that a solver gives do not meet them.
        """
        check_time()
        simplified = z3.simplify(premises, timeout=_SIMPLIFYING)
        if z3.is_true(simplified) or z3.is_false(simplified):
            verdict: SolverVerdict = "sat" if z3.is_true(simplified) else "unsat"
            return Outcome(verdict, "z3", f"{z3.get_version_string()} simplifier", 0.0)
        if self.left < _LEAST:
            return Outcome("unknown", "", "", 0.0, why=_USED_UP)
        named = [(each, str(each.decl().name())) for each in constants_of(simplified) if z3.is_bv(each)]
        asked = {name: each.size() for each, name in named if name.isidentifier()}
        outcome = self.portfolio.ask(smtlib([simplified]), asked, self.left)
        if outcome.verdict == "sat":
            pairs = [(x, z3.BitVecVal(outcome.model[name], x.size())) for x, name in named if name in asked]
            if z3.is_false(z3.simplify(z3.substitute(simplified, *pairs) if pairs else simplified)):
                raise RuntimeError(f"{outcome.solver} is wrong: {outcome.model} do not meet the premises")
        return outcome

    def decide(
        self,
        name: str,
        statement: str,
        script: str,
        constants: Mapping[str, int] | None = None,
        limit: float | None = None,
        *,
        whole: bool,
    ) -> Settled:
        """Ask whether a script is satisfiable; one that the store of evidence has proved is not asked again.

        What the store has both answers of is not settled, whatever is answered now.
        """
        try:
            known = self.store.proof(digest(script)) if self.store is not None else None
        except ContradictionError as error:
            return _unsettled(str(error))
        if known is not None:
            self.proved.append(obligation(name, statement, script, known.outcome, whole=whole))
            return _settled(known.outcome, self.proved[-1])
        available = self.left if limit is None else min(self.left, limit)
        if available < _LEAST:
            return _unsettled(_USED_UP)
        if (tell := _watcher.get()) is not None:
            tell(f"{len(self.proved)} proved; {_DIGEST.sub('', name)}")
        outcome = self.portfolio.ask(script, constants or {}, available)
        return self._record(name, statement, script, outcome, whole)

    def _record(self, name: str, statement: str, script: str, outcome: Outcome, whole: bool) -> Settled:
        """Record an outcome and return what it counts for: nothing, if it contradicts what the store has."""
        if self.store is not None:
            try:
                self.store.add(digest(script), name, statement, outcome)
            except ContradictionError as error:
                return _unsettled(str(error), outcome.seconds)
        if outcome.verdict != "unsat":
            return _settled(outcome)
        self.proved.append(obligation(name, statement, script, outcome, whole=whole))
        return _settled(outcome, self.proved[-1])

    def prove(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        using: Iterable[z3.BoolRef] = (),
        cut: Iterable[z3.ExprRef] = (),
        limit: float | None = None,
    ) -> Settled:
        """Prove `claim` for all inputs, from claims proved before (`using`).

        Each term in `cut` is replaced by a fresh constant wherever it occurs, in claim and premises alike: what
        holds for any value of a term holds for its own.  So `unsat` is a proof of the claim itself, while `sat`
        may only mean that too much was cut away.  What has premises is no whole obligation.
        """
        using = tuple(using)
        refuted, _ = cut_away(opposite(using, [claim]), cut)
        return self.satisfy(name, statement, [refuted], limit=limit, whole=not using)


def simplified_alone(question: z3.BoolRef) -> z3.BoolRef:
    """Return what z3's simplifier makes of a question: a function of the question alone.

    The simplifier sorts operands by the numbers that terms have in a process; in a context of its own a term has the
    numbers that its parts get in order.
    """
    alone = question.translate(z3.Context())
    return z3.simplify(alone, timeout=_SIMPLIFYING).translate(question.ctx)


def conjunction(claims: Iterable[z3.BoolRef]) -> z3.BoolRef:
    claims = [claim for claim in claims if not z3.is_true(claim)]
    if not claims:
        return z3.BoolVal(True)
    return z3.And(claims) if len(claims) > 1 else claims[0]


def opposite(premises: Sequence[z3.BoolRef], claims: Sequence[z3.BoolRef], whole: bool = False) -> z3.BoolRef:
    """Return what is to be refuted, so that all claims follow from the premises: these hold, and one claim does not.

    The `whole` implication is negated where the question is not simplified first: the scripts of such questions are
    what files of evidence know.
    """
    claim = conjunction(claims)
    if whole:
        return z3.Not(z3.Implies(conjunction(premises), claim))
    return z3.And(*premises, z3.Not(claim))


def cut_away(goal: z3.BoolRef, terms: Iterable[z3.ExprRef]) -> tuple[z3.BoolRef, TermCut]:
    """The goal with a constant in the place of each term, `cut0`, `cut1`, …, none of which it has; and these pairs."""
    terms = list(terms)
    wanted = [constant_like(f"cut{i}", term) for i, term in enumerate(terms)]
    cut = tuple(zip(terms, apart(wanted, [goal]), strict=True))
    return Substitution(cut)(goal), cut


def renamed(term: z3.BoolRef) -> z3.BoolRef:
    """The term with its constants called v0, v1, … in the order in which they occur."""
    return Substitution((c, constant_like(f"v{i}", c)) for i, c in enumerate(constants_of(term)))(term)
