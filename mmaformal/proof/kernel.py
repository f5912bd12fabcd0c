"""The kernel: theorems, and the only place that makes a `Proof`.

A `Theorem` is built without a solver.  It has premises (`assume`), inferences (`derive`: claims that follow from claims
before; `split`: that one of several does) and a conclusion (`conclude`).

Links, lemmas and inferences, and a conclusion in propositions, are what theorems are made of (`proof/claims.py`).

An inference is shown by a lemma: claims and premises with terms *cut*, replaced by fresh constants in all of them.
What holds for any value of a term holds for its own, so a lemma proved is a proof of its inference.  What remains is
a formula without inputs, and the same formula wherever the same inference is made: for all products of an
instruction, for all steps of a chain, for all instructions that have a stage in common.

The last lemma is the conclusion's: "if each inference holds, and the premises do, so does the conclusion", in
propositions, one for each claim.  A claim that was used and never derived, or an inference forgotten, is a proposition
that nothing gives, and a solver finds it.

`prove` makes a `Proof` of theorems all of whose lemmas were proved, `direct` of what a solver refuted as a whole,
`by_rule` of what a rule concludes from proofs.  Nothing else can: `Proof` asks for the kernel's key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import InitVar, dataclass
from functools import partial
from types import MappingProxyType
from weakref import WeakKeyDictionary

import z3

from mmaformal.lanes import SymbolicLane
from mmaformal.proof.claims import ArgumentError as ArgumentError
from mmaformal.proof.claims import Conclusion as Conclusion
from mmaformal.proof.claims import Inference as Inference
from mmaformal.proof.claims import Lemma as Lemma
from mmaformal.proof.claims import LemmaUse as LemmaUse
from mmaformal.proof.claims import Link as Link
from mmaformal.proof.claims import NotProvedError as NotProvedError
from mmaformal.proof.claims import Rule as Rule
from mmaformal.proof.claims import RuleStep as RuleStep
from mmaformal.proof.claims import composition as composition
from mmaformal.proof.claims import demand as demand
from mmaformal.proof.claims import premise_of, says_nothing
from mmaformal.proof.failure import failure_of, place
from mmaformal.solver.answers import Obligation, Proof, made_by
from mmaformal.solver.asking import Asker, Settled, TermCut, opposite, restated
from mmaformal.solver.asking import conjunction as conjunction
from mmaformal.solver.evidence import digest
from mmaformal.solver.portfolio import Outcome, Portfolio
from mmaformal.solver.script import smtlib
from mmaformal.solver.terms import Substitution, apart, constant_like

_KEY = made_by(__name__)

# ---- theorems --------------------------------------------------------------------------------------------------------


class Theorem:
    """Premises, inferences with their lemmas, each formula once, and a conclusion."""

    #: whether and, or, not and implies between claims count in the conclusion; if not, a claim is one proposition
    connectives = False
    #: whether z3's simplifier has lemmas before they are asked
    simplified = False

    def __init__(self) -> None:
        self._lemmas: dict[tuple[int, str], Lemma] = {}
        self._inferences: list[Inference] = []
        self._history: list[Inference | Conclusion | RuleStep] = []
        self._concluded: tuple[Lemma, z3.BoolRef] | None = None
        self._given = z3.BoolVal(True)  #: what the conclusion is given under
        #: the interfaces that terms are, by name: asked for when a proof has failed
        self.interfaces: Callable[[], Iterable[tuple[str, z3.ExprRef]]] = tuple
        self._rules: list[Rule] = []

    @property
    def lemmas(self) -> Mapping[tuple[int, str], Lemma]:
        """All of them, by what is refuted; conclusions by what they say, too.  Nothing can be taken out of it: an
        inference counts as far as its lemmas are proved."""
        return MappingProxyType(self._lemmas)

    @property
    def composition(self) -> Lemma | None:
        """The lemma that the conclusion follows from all inferences; None as long as nothing is concluded."""
        return self._concluded and self._concluded[0]

    @property
    def conclusion(self) -> z3.BoolRef | None:
        """The claim that is concluded, if anything is."""
        return None if self._concluded is None else self._concluded[1]

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Those that the conclusion rests on."""
        return tuple(self._rules)

    @property
    def inferences(self) -> tuple[Inference, ...]:
        """All that was inferred, and assumed: only `assume`, `derive` and `split`, and rules, add to it."""
        return tuple(self._inferences)

    @property
    def history(self) -> tuple[Inference | Conclusion | RuleStep, ...]:
        """Everything that was assumed, inferred and concluded, in its order, for whoever writes it down."""
        return tuple(self._history)

    @property
    def lanes(self) -> tuple[Sequence[SymbolicLane], Sequence[z3.BoolRef]]:
        """The lanes whose ranges are taken for granted, and the rules that give these; none but in an `Argument`."""
        return (), ()

    def _infers(self, inference: Inference) -> None:
        self._inferences.append(inference)
        self._history.append(inference)

    def rests_on(self, rule: Rule) -> None:
        """The proof will tell the rule."""
        if rule not in self._rules:
            self._rules.append(rule)

    def _add(self, lemma: Lemma, said: str = "") -> Lemma:
        return self._lemmas.setdefault((lemma.refuted.get_id(), said), lemma)

    def assume(self, what: str, link: Link) -> Link:
        """A condition under which the conclusion is claimed, `what` says which.  Raises ArgumentError for no words."""
        if not what.strip():
            raise ArgumentError("what is assumed is said in words: the conclusion has them")
        self._look_at([link])
        if link.defined:
            raise ArgumentError("what is assumed of the inputs is a claim, and determines nothing")
        self._infers(Inference((), (link.said,), assumed=what))
        return link

    def derive(
        self,
        stage: str,
        statement: str,
        links: Iterable[Link],
        given: Iterable[Link] = (),
        inputs: Iterable[z3.ExprRef] = (),
        each_value_of: z3.BitVecRef | None = None,
        alone: bool = False,
    ) -> Sequence[Link]:
        """Claim that `links` follow from `given`, all of which were derived before; returns `links`.

        Raises ArgumentError if there are none.  The terms of `given`, and `inputs`, are cut; but for `each_value_of`
        one of them, a narrow one, there is a lemma of its own.  A lemma that is to be asked `alone` is easy, but not
        in company.
        """
        links, given = list(links), list(given)
        demand(bool(links), f"nothing is derived: {statement}")
        self._look_at([*links, *given])
        uses = self._infer(
            stage,
            statement,
            links=links,
            given=given,
            inputs=inputs,
            each_value_of=each_value_of,
            alone=alone,
        )
        premises, claims = ([link.said for link in each] for each in (given, links))
        self._infers(Inference(premises, claims, uses=uses, given=given))
        return links

    def split(
        self,
        statement: str,
        links: Iterable[Link],
        given: Iterable[Link] = (),
        terms: Iterable[z3.ExprRef] = (),
    ) -> None:
        """Derive that at least one of the links follows from those given, whatever the terms."""
        links, given = list(links), list(given)
        self._look_at([*links, *given])
        claims = [link.said for link in links]
        uses = self._infer("cases", statement, [Link(z3.Or(claims))], given, terms)
        premises = [link.said for link in given]
        self._infers(Inference(premises, claims, cases=True, uses=uses, given=given))

    def _look_at(self, links: Iterable[Link]) -> None:
        """Raises ArgumentError for links of lanes and flags whose rules are no lemmas here: of any, but in an
        `Argument`."""
        if any(link.lanes or link.flags for link in links):
            raise ArgumentError(
                "a link is of lanes, whose rules are no lemmas here: make an Argument of their tracer"
            )

    def _infer(
        self,
        stage: str,
        statement: str,
        links: Sequence[Link],
        given: Sequence[Link],
        inputs: Iterable[z3.ExprRef],
        each_value_of: z3.BitVecRef | None = None,
        alone: bool = False,
    ) -> list[LemmaUse]:
        """The lemmas of an inference: one, or one for each value of a term."""
        premises = [*(link.claim for link in given), *(lane.in_range for lane in _lanes(given))]
        goal = opposite(premises, [link.said for link in links], whole=not self.simplified)
        where, inputs, uses = place(), list(inputs), []
        values: list[tuple[tuple[z3.ExprRef, z3.ExprRef], ...]] = [()]
        if each_value_of is not None:
            bits, alone = each_value_of.size(), True
            values = [((each_value_of, z3.BitVecVal(value, bits)),) for value in range(1 << bits)]
        for pairs in values:
            refuted, cut = self._cut(goal, inputs, given, pairs)
            lemma = Lemma(stage, statement, refuted, alone, where, cut, self.simplified)
            uses.append(LemmaUse(self._add(lemma), cut, pairs))
        return uses

    def _cut(
        self,
        goal: z3.BoolRef,
        inputs: Iterable[z3.ExprRef],
        links: Sequence[Link],
        values: Iterable[tuple[z3.ExprRef, z3.ExprRef]],
    ) -> tuple[z3.BoolRef, TermCut]:
        """The goal with each free term replaced by its value, or by a constant that it does not have, whose name tells
        its place among them and its sort; and those terms and constants."""
        pairs = {term.get_id(): (term, value) for term, value in values}
        free: dict[int, z3.ExprRef] = {}
        for term in (*inputs, *(term for link in links for term in link.free)):
            if term.get_id() not in pairs and not _is_value(term):
                free.setdefault(term.get_id(), term)
        wanted = [_constant(n, term) for n, term in enumerate(free.values(), len(pairs))]
        determined = [value for link in links for _, value in link.defined]
        cut = tuple(zip(free.values(), apart(wanted, [goal, *determined]), strict=True))
        known = {*pairs, *(term.get_id() for term, _ in cut)}
        substituted = Substitution((*pairs.values(), *cut))
        for link in links:
            for term, value in link.defined:
                if term.get_id() not in known and not _is_value(term):
                    known.add(term.get_id())
                    substituted.add(term, substituted(value))
        return substituted(goal), cut

    def conclude(
        self, statement: str, conclusion: Link | z3.BoolRef, whole: Sequence[z3.BoolRef] = ()
    ) -> None:
        """The conclusion follows from all inferences, and from what was assumed; `whole` claims are one proposition
        each.  Raises ArgumentError if it says nothing."""
        if isinstance(conclusion, Link):
            self._look_at([conclusion])
        claim = conclusion.said if isinstance(conclusion, Link) else conclusion
        demand(not says_nothing(claim), f"nothing is concluded: {statement}")
        formula, propositions = composition(self.inferences, claim, whole, self.connectives)
        given = [f"if {what}" for what in dict.fromkeys(each.assumed for each in self.inferences) if what]
        text = ", ".join(["from all of these", *given, statement])
        lemma = Lemma("composition", text, z3.Not(formula), place=place(), simplified=self.simplified)
        self._concluded = self._add(lemma, text), claim
        self._history.append(Conclusion(claim, lemma, propositions))
        self._given = premise_of(conclusion.claim if isinstance(conclusion, Link) else conclusion)

    @property
    def premises(self) -> tuple[list[str], z3.BoolRef]:
        """The premises of the conclusion, in words and as a claim: what was assumed, and what it is about."""
        assumed = [each for each in self.inferences if each.assumed]
        claims = [claim for each in assumed for claim in each.claims]
        words = list(dict.fromkeys(each.assumed for each in assumed))
        if not z3.is_true(self._given):
            claims.append(self._given)
            words.append("what is given")
        return words, conjunction(claims)


def _lanes(links: Iterable[Link]) -> list[SymbolicLane]:
    """The lanes that links are about, each once."""
    return list({id(lane): lane for link in links for lane in link.lanes}.values())


def _constant(n: int, term: z3.ExprRef) -> z3.ExprRef:
    """Return the constant that is put in the place of the n-th term that is cut."""
    bits = f"_{term.size()}" if isinstance(term, z3.BitVecRef) else ""
    return constant_like(f"t{n}{bits}", term)


def _is_value(term: z3.ExprRef) -> bool:
    return bool(z3.is_bv_value(term) or z3.is_true(term) or z3.is_false(term))


# ---- proving ---------------------------------------------------------------------------------------------------------


class Scripts:
    """Lemmas as SMT-LIB 2 scripts that are to be refuted; each formula is written once."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[z3.BoolRef, str]] = {}

    def __getitem__(self, lemma: Lemma) -> str:
        refuted = lemma.refuted
        if refuted.get_id() not in self._written:
            self._written[refuted.get_id()] = refuted, smtlib([refuted])
        return self._written[refuted.get_id()][1]


def name_of(lemma: Lemma, script: str) -> str:
    """Its stage, and the beginning of its script's hash."""
    return f"{lemma.stage} {digest(script)[:12]}"


class LemmaCache:
    """Lemmas proved so far, with what proved them."""

    def __init__(self) -> None:
        self._scripts = Scripts()
        self._by_script: dict[str, Obligation] = {}
        self._met: dict[int, z3.BoolRef] = {}  #: premises that something meets
        self._by_formula: dict[int, tuple[z3.BoolRef, Obligation]] = {}  #: of those that are simplified first
        #: of those that were attempted and not proved, with the seconds given
        self._failed: dict[int, tuple[z3.BoolRef, Outcome, float]] = {}

    def settle(self, asker: Asker, theorem: Theorem, lemma: Lemma) -> Obligation:
        """The obligation of a lemma, in its own words, after proving it if it is new.  Raises NotProvedError."""
        known = (self._simplified if lemma.simplified else self._as_it_is)(asker, theorem, lemma)
        name = lemma.stage if lemma.simplified else name_of(lemma, known.script)
        return restated(known, name, lemma.statement, lemma=True)

    def demand_premises(self, asker: Asker, theorem: Theorem) -> None:
        """Raises ArgumentError if nothing meets a theorem's premises, NotProvedError if that is not settled."""
        words, premises = theorem.premises
        if premises.get_id() in self._met:
            return
        outcome = asker.meet(premises)
        if outcome.verdict == "sat":
            self._met[premises.get_id()] = premises
            return
        text = " and ".join(words)
        if outcome.verdict == "unsat":
            raise ArgumentError(f"nothing meets the premises, {text}: the theorem would be about nothing")
        raise NotProvedError(f"something meets the premises, {text},", "unknown", outcome.why, "premises")

    def attempt(self, asker: Asker, lemma: Lemma, limit: float) -> Outcome:
        """Try for so many seconds to prove a lemma that is simplified first; what came of it is known from then on."""
        key = lemma.refuted.get_id()
        if key in self._by_formula:
            known = self._by_formula[key][1]
            return Outcome("unsat", known.solver, known.version, 0.0)
        if key in self._failed:
            _, outcome, before = self._failed[key]
            if outcome.verdict == "sat" or limit <= before:
                return outcome
        given = min(limit, asker.left)
        outcome = asker.satisfy(lemma.stage, lemma.statement, [lemma.refuted], limit=limit, whole=False)
        if outcome.obligation is not None:
            self._by_formula[key] = lemma.refuted, outcome.obligation
        else:
            self._failed[key] = lemma.refuted, outcome, given
        return outcome

    def _as_it_is(self, asker: Asker, theorem: Theorem, lemma: Lemma) -> Obligation:
        script = self._scripts[lemma]
        if script not in self._by_script:
            outcome = asker.decide(name_of(lemma, script), lemma.statement, script, whole=False)
            demand_proved(asker, theorem, lemma, outcome)
            assert outcome.obligation is not None
            self._by_script[script] = outcome.obligation
        return self._by_script[script]

    def _simplified(self, asker: Asker, theorem: Theorem, lemma: Lemma) -> Obligation:
        key = lemma.refuted.get_id()
        if key not in self._by_formula:
            outcome = asker.satisfy(lemma.stage, lemma.statement, [lemma.refuted], whole=False)
            demand_proved(asker, theorem, lemma, outcome)
            assert outcome.obligation is not None
            self._by_formula[key] = lemma.refuted, outcome.obligation
        return self._by_formula[key][1]


@dataclass(frozen=True)
class Premises:
    """A theorem's premises: in words, and as a claim that something has to meet."""

    words: tuple[str, ...]
    claim: z3.BoolRef


@dataclass(frozen=True)
class Noted:
    """A theorem that was proved, with the digests of its obligations."""

    theorem: Theorem
    obligations: frozenset[str]

    @property
    def premises(self) -> Premises:
        """The premises of the theorem, each in words, and all as one claim."""
        words, claim = self.theorem.premises
        return Premises(tuple(words), claim)


_noted: ContextVar[list[Noted] | None] = ContextVar("noted", default=None)


@contextmanager
def noting() -> Iterator[list[Noted]]:
    """Give a list, to which each theorem is added that is proved within this block."""
    noted: list[Noted] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def demand_proved(
    asker: Asker,
    theorem: Theorem,
    lemma: Lemma,
    outcome: Outcome,
    shown: tuple[Lemma, Outcome] | None = None,
) -> None:
    """Raises NotProvedError unless a lemma's outcome is a proof; the asker can tell why, from then on.

    What it tells is of the lemma that is `shown`, if there is another one: the same claim, cut and refuted.
    """
    if outcome.verdict != "unsat":
        asker.failed = partial(failure_of, asker, theorem, *(shown or (lemma, outcome)))
        stage = "" if lemma.simplified else lemma.stage
        raise NotProvedError(lemma.statement, outcome.verdict, outcome.why, stage)


_CACHES: WeakKeyDictionary[Portfolio, LemmaCache] = WeakKeyDictionary()


def cache_of(asker: Asker) -> LemmaCache:
    """Return the record of what was proved with one portfolio, so that it is not asked again."""
    return _CACHES.setdefault(asker.portfolio, LemmaCache())


def prove(asker: Asker, *theorems: Theorem) -> Proof:
    """Prove every lemma of the theorems; the last theorem's conclusion is the last obligation.

    Raises NotProvedError, and ArgumentError if there is no theorem, or one without a conclusion, or whose premises
    nothing meets.
    """
    if not theorems:
        raise ArgumentError("nothing is to be proved")
    cache, proofs = cache_of(asker), []
    for theorem in theorems:
        cache.demand_premises(asker, theorem)
        proved = [cache.settle(asker, theorem, lemma) for lemma in lemmas_of(theorem)]
        rules = dict.fromkeys(map(str, theorem.rules))
        proofs.append(Proof(_each_once(proved), tuple(rules), key=_KEY))
        if (noted := _noted.get()) is not None:
            noted.append(Noted(theorem, frozenset(each.digest for each in proved)))
    return together(*proofs)


def lemmas_of(theorem: Theorem) -> list[Lemma]:
    """All lemmas of a theorem, the conclusion's last.  Raises ArgumentError if it has no conclusion."""
    last = theorem.composition
    if last is None:
        raise ArgumentError("a theorem without a conclusion proves nothing")
    return [*(lemma for lemma in theorem.lemmas.values() if lemma is not last), last]


@dataclass(frozen=True)
class Digests:
    """Those of the scripts of a theorem's lemmas, for other processes.  `digests_of` alone makes them."""

    lemmas: tuple[str, ...]  #: the conclusion's last
    rules: tuple[str, ...]
    key: InitVar[object] = None

    def __post_init__(self, key: object) -> None:
        if key is not _KEY:
            raise TypeError("digests are made of a theorem, by digests_of")


def digests_of(theorem: Theorem, scripts: Scripts) -> Digests:
    """Return what `gathered` takes.  Raises ArgumentError for a theorem that has no conclusion, or premises."""
    demand(not theorem.premises[0], "a proof that is gathered is for all inputs, under no premises")
    lemmas = tuple(digest(scripts[lemma]) for lemma in lemmas_of(theorem))
    return Digests(lemmas, tuple(dict.fromkeys(map(str, theorem.rules))), key=_KEY)


def gathered(theorem: Digests, proved: Sequence[Obligation]) -> Proof | None:
    """The proof of a theorem from its lemmas, wherever they were proved; None if one was not."""
    by_digest = {obligation.digest: obligation for obligation in proved}
    if any(each not in by_digest for each in theorem.lemmas):
        return None
    return Proof(_each_once([by_digest[each] for each in theorem.lemmas]), theorem.rules, key=_KEY)


def _each_once(obligations: Sequence[Obligation]) -> tuple[Obligation, ...]:
    """Each obligation once, where it comes last: so the last is the conclusion."""
    return tuple({_said(each): each for each in reversed(obligations)}.values())[::-1]


def _said(obligation: Obligation) -> tuple[str, str]:
    """Two theorems may ask the same of a solver: they are two, by what they say."""
    return obligation.digest, obligation.statement


def direct(*settled: Settled) -> Proof:
    """Return the proof of what was refuted as a whole: these questions are the conclusion, each of a part of it.

    Raises ArgumentError if there is none, for one that was not refuted, and for one that was refuted under premises, or
    as a lemma of a theorem.
    """
    if not settled:
        raise ArgumentError("nothing was proved")
    obligations = []
    for each in settled:
        if not isinstance(each, Settled):
            raise TypeError(f"a proof is made of questions that an asker settled, not of {each!r}")
        if each.obligation is None:
            raise ArgumentError(f"it was not refuted, but is {each.verdict}: {each.why}")
        if not each.obligation.whole:
            raise ArgumentError(
                f"it was proved under premises, which its words do not tell: {each.obligation.statement}"
            )
        obligations.append(each.obligation)
    return Proof(tuple(obligations), key=_KEY)


def together(*proofs: Proof) -> Proof:
    """Return a proof that all of several hold, each obligation once; the last one's conclusion is the last.

    Raises ArgumentError if there is none.
    """
    if not proofs:
        raise ArgumentError("nothing was proved")
    last = {_said(each) for each in proofs[-1].obligations}
    before = {_said(o): o for proof in proofs[:-1] for o in proof.obligations if _said(o) not in last}
    rules = dict.fromkeys(rule for proof in proofs for rule in proof.rules)
    return Proof((*before.values(), *proofs[-1].obligations), tuple(rules), key=_KEY)


def by_rule(rule: str, *proofs: Proof) -> Proof:
    """Return what a rule that is no obligation concludes from proofs; a proof tells its rules (docs/proofs.md)."""
    proof = together(*proofs)
    return Proof(proof.obligations, tuple(dict.fromkeys((*proof.rules, rule))), key=_KEY)
