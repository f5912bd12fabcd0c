"""Claims proved one after another, each under claims proved before, and a conclusion that they give."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import z3

from mmaformal.proof.failure import place as place_of_argument
from mmaformal.proof.interfaces import HINT, UNCUT, Ways
from mmaformal.proof.kernel import (
    Inference,
    Lemma,
    LemmaUse,
    Link,
    NotProvedError,
    Theorem,
    cache_of,
    demand_proved,
    lemmas_of,
    prove,
)
from mmaformal.proof.kernel import Rule as Rule
from mmaformal.solver.answers import Obligation, Proof
from mmaformal.solver.asking import Asker, TermCut, cut_away
from mmaformal.solver.portfolio import Outcome

#: Seconds for each way to cut a claim, round after round; in the last they share what is left.
_ROUNDS = (0.5, 2.0, 10.0, 30.0, None)
#: Seconds at once for a hint; the way in which the last such claim was proved has so many times what that took.
_FIRST, _AGAIN = 25.0, 4.0

#: The part of claims' names that tells those of one argument apart.
_NUMBERS = re.compile(r"\d+")


class Composing(Theorem):
    """A theorem whose claims are proved when they are made, each once; what is cut is computed for each claim."""

    connectives = True
    simplified = True

    def __init__(self, asker: Asker) -> None:
        super().__init__()
        self.asker = asker
        self.steps: dict[int, tuple[tuple[z3.BoolRef, ...], z3.BoolRef]] = {}  #: by the claim's id
        self.named: dict[str, z3.BoolRef] = {}  #: the last of each name, for whom puts stages together
        self._proved: dict[str, Obligation] = {}
        #: of claims of a place and name, the way in which one was proved last, and the seconds
        self._worked: dict[tuple[str, str], tuple[int, float]] = {}

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
        """The lemmas, proved.  Raises NotProvedError, and nothing is left of them: another way may be tried."""
        before = set(self.lemmas)
        uses = super()._infer(stage, statement, links, given, inputs, each_value_of, alone)
        try:
            self._settle([each.lemma for each in uses])
        except NotProvedError:
            self._withdraw(before)
            raise
        return uses

    def _withdraw(self, before: Collection[tuple[int, str]]) -> None:
        """Take back the lemmas that came after those of before: no inference was made of them."""
        for key in self._lemmas.keys() - before:
            del self._lemmas[key]

    def claim(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        using: Iterable[z3.BoolRef] = (),
        hint: Iterable[z3.ExprRef] = (),
    ) -> z3.BoolRef:
        """The claim, proved from claims proved before (`using`), cut in one of several ways (`interfaces.Ways`).

        What is cut may have any value, so whichever way is proved proves the claim.  A `hint` is what to cut where no
        computed way is proved, or not as soon.  Raises NotProvedError, which is `refuted` only if the claim is, uncut.
        """
        using = tuple(using)
        return self._claimed(
            name, claim, using, lambda: self._prove_some_way(name, statement, claim, using, hint)
        )

    def claim_each(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        value: z3.BitVecRef,
        using: Iterable[z3.BoolRef] = (),
        cut: Iterable[z3.ExprRef] = (),
    ) -> z3.BoolRef:
        """The claim, by a lemma for each value of a narrow term, where what is `cut` may have any value; or as `claim`
        proves it, if it does not hold of all of these.  Raises NotProvedError."""
        using = tuple(using)

        def prove() -> list[LemmaUse]:
            try:
                return self._infer(name, statement, [Link(claim)], [Link(each) for each in using], cut, value)
            except NotProvedError:
                return self._prove_some_way(name, statement, claim, using, ())

        return self._claimed(name, claim, using, prove)

    def _claimed(
        self,
        name: str,
        claim: z3.BoolRef,
        using: tuple[z3.BoolRef, ...],
        prove: Callable[[], list[LemmaUse]],
    ) -> z3.BoolRef:
        """The claim, inferred from claims before, once it is proved."""
        if claim.get_id() not in self.steps:
            uses = prove()
            self._infers(Inference(using, (claim,), uses=uses, given=[Link(each) for each in using]))
            self.steps[claim.get_id()] = using, claim
        self.named[name] = claim
        return claim

    def _prove_some_way(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        using: Sequence[z3.BoolRef],
        hint: Iterable[z3.ExprRef],
    ) -> list[LemmaUse]:
        """Ask one way after another, for longer each round, beginning with the one that was proved here before, or else
        with the hint: these may have longer than the others at once."""
        argued, refuted, why = (place_of_argument(), _NUMBERS.sub("", name)), set[int](), "no time was left"
        ways, shown = Ways([*using, claim], hint), None
        (first, took), unsettled = self._worked.get(argued, (None, 0.0)), set[int]()
        longer = {first: _AGAIN * took, HINT: _FIRST}
        for limit in _ROUNDS:
            for way, cut in ways.beginning_with(first, unsettled):
                if way in refuted or self.asker.left <= 0:
                    continue
                if limit is None:
                    seconds = self.asker.left / max(ways.count - len(refuted), 1)
                else:
                    seconds = max(limit, longer.get(way, 0.0))
                use, outcome = self._attempt(name, statement, claim, using, cut, seconds)
                if outcome.verdict == "unsat":
                    self._worked[argued] = way, outcome.seconds
                    self._settle([use.lemma])
                    return [use]
                if outcome.verdict == "sat" and way == UNCUT:
                    demand_proved(self.asker, self, use.lemma, outcome)
                elif outcome.verdict == "sat":
                    shown = use.lemma, outcome
                    refuted.add(way)
                else:
                    why = outcome.why
                    unsettled.add(way)
        unknown = Outcome("unknown", "", "", 0.0, why=why)
        use, _ = self._attempt(name, statement, claim, using, [], 0.0)
        demand_proved(self.asker, self, use.lemma, unknown, shown)
        raise AssertionError("what is unknown was taken for proved")

    def _attempt(
        self,
        name: str,
        statement: str,
        claim: z3.BoolRef,
        using: Sequence[z3.BoolRef],
        cut: Sequence[z3.ExprRef],
        seconds: float,
    ) -> tuple[LemmaUse, Outcome]:
        """A lemma of the claim, and what a solver says of it; it is kept only if it was proved."""
        before = set(self.lemmas)
        links, given = [Link(claim)], [Link(each) for each in using]
        (use,) = super()._infer(name, statement, links, given, cut)
        outcome = cache_of(self.asker).attempt(self.asker, use.lemma, seconds)
        if outcome.verdict != "unsat":
            self._withdraw(before)
        return use, outcome

    def _settle(self, lemmas: Iterable[Lemma]) -> None:
        cache = cache_of(self.asker)
        for lemma in lemmas:
            obligation = cache.settle(self.asker, self, lemma)
            self._proved[obligation.digest] = obligation

    def conclude(
        self, statement: str, conclusion: Link | z3.BoolRef, whole: Sequence[z3.BoolRef] = ()
    ) -> None:
        """Conclude from what was proved; `whole` are one proposition each.  Raises NotProvedError if it does not
        follow."""
        before = set(self.lemmas)
        super().conclude(statement, conclusion, whole)
        try:
            self._settle(lemmas_of(self)[-1:])
        except NotProvedError:
            self._withdraw(before)
            raise

    def conclude_all(self, given: z3.BoolRef) -> None:
        """Conclude that where `given` holds, each claim does: each premise is one, or given.  Raises NotProvedError."""
        claims = z3.And([claim for _, claim in self.steps.values()])
        self.conclude("where what is given of the inputs holds, each claim does", z3.Implies(given, claims))

    def proof(self) -> Proof:
        """The proof of the conclusion, with the rules that it rests on.  Raises ArgumentError if there is none."""
        return prove(self.asker, self)

    @property
    def obligations(self) -> tuple[Obligation, ...]:
        """The obligations that were proved so far."""
        return tuple(self._proved.values())

    def _cut(
        self,
        goal: z3.BoolRef,
        inputs: Iterable[z3.ExprRef],
        links: Sequence[Link],
        values: Iterable[tuple[z3.ExprRef, z3.ExprRef]],
    ) -> tuple[z3.BoolRef, TermCut]:
        values = list(values)
        return cut_away(z3.substitute(goal, *values) if values else goal, inputs)
