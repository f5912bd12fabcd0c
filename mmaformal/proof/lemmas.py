"""Proofs from many small lemmas, each about fresh constants, and each solved once.

An `Argument` is built without a solver: every `derive` states links (claims about terms) that follow from links
derived before, with the terms that those are about *cut*: replaced by fresh constants, in premises and conclusion
alike.  What holds for any value of a term holds for its own.  What remains is a formula without inputs, and the same
formula wherever the same argument is made: for all products of an instruction, for all steps of a chain, for all
instructions that have a stage in common.  Each is an obligation of its own, and is solved once: a `Ledger` remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import z3

from mmaformal.lanes import Flag, Lane, Tracer, fit
from mmaformal.proof.failure import Failure, examine, place
from mmaformal.solver.answers import Obligation
from mmaformal.solver.asking import Asker
from mmaformal.solver.evidence import digest
from mmaformal.solver.portfolio import Outcome
from mmaformal.solver.portfolio import Relay as Relay
from mmaformal.solver.script import smtlib

# ---- links -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    """A claim about terms of both wings: what is cut where the claim is used.

    The claim determines the `defined` terms by the `free` ones, which are what is cut; so the lemmas are about them
    alone, and no solver has to find out.
    """

    claim: z3.BoolRef
    free: tuple[z3.ExprRef, ...]
    defined: tuple[tuple[z3.ExprRef, z3.ExprRef], ...] = ()
    lanes: tuple[Lane, ...] = ()  #: those whose terms are among these; their ranges hold too

    @property
    def said(self) -> z3.BoolRef:
        """The claim, and what it determines."""
        return _all([self.claim, *(term == value for term, value in self.defined)])

    @property
    def lane(self) -> Lane:
        """The lane of a link of one."""
        (lane,) = self.lanes
        return lane

    @property
    def term(self) -> Any:
        """The free term of a link of one."""
        (term,) = self.free
        return term


def number(
    lane: Lane,
    term: z3.BitVecRef,
    *,
    signed: bool = False,
    low: int = 0,
    idle: tuple[z3.BoolRef, int] | None = None,
) -> Link:
    """That the lane is the number `low + term`.

    With `idle`, a condition and a value: where that holds, the lane is the value and the term is 0.
    """
    bits = max(lane.term.size(), term.size(), low.bit_length() + 1) + 2
    right = fit(term, signed, bits)
    right = right + low if low else right
    extra = []
    if idle is not None:
        where, value = idle
        right = z3.If(where, z3.BitVecVal(value, bits), right)
        extra = [z3.Implies(where, term == 0)]
    claim = _all([lane.fit(bits) == right, *extra])
    return Link(claim, (term,), ((lane.term, fit(right, True, lane.term.size())),), (lane,))


@dataclass(frozen=True)
class Idle:
    """Which of several terms say nothing, and the number that their lanes have instead."""

    flags: Sequence[z3.BoolRef]
    value: int

    @property
    def all(self) -> z3.BoolRef:
        return self.first(len(self.flags))

    def first(self, n: int) -> z3.BoolRef:
        """Whether the first n are idle; contains `first(n - 1)`."""
        return reduce(z3.And, self.flags[:n])


def condition(mine: Flag, other: z3.BoolRef) -> Link:
    """That a flag and a condition are the same."""
    return Link(mine.term == other, (other,), ((mine.term, other),))


def at_most(x: z3.BitVecRef, y: z3.BitVecRef) -> Link:
    return Link(z3.ULE(x, y), (x, y))


def _residue(lane: Lane, term: z3.BitVecRef) -> Link:
    """That lane and term are the same modulo 2 to the width of the term."""
    value = lane.fit(term.size())
    return Link(value == term, (lane.term,), ((term, value),), (lane,))


# ---- arguments -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lemma:
    stage: str
    statement: str
    formula: z3.BoolRef  #: holds for all values of its constants
    hard: bool = False  #: to be asked alone
    place: str = ""  #: where it is argued
    cut: tuple[tuple[z3.ExprRef, z3.ExprRef], ...] = ()  #: terms, and the constants in their place


class Argument:
    """What is claimed, and the lemmas it rests on, each formula once.

    `tracer` is that of the lanes: the rules of their operations are the first lemmas.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self.lemmas: dict[int, Lemma] = {}
        self._atoms: dict[
            int, tuple[z3.BoolRef, z3.BoolRef]
        ] = {}  #: what a link says, and the letter that stands for it
        self._steps: list[z3.BoolRef] = []  #: every derivation, in letters
        #: the interfaces that terms are, by name: asked for when a proof has failed
        self.interfaces: Callable[[], Iterable[tuple[str, z3.ExprRef]]] = tuple
        for rule in tracer.rules.values():
            self._add(Lemma("64-bit lanes", f"{rule.where}: {rule.statement}", rule.claim, rule.hard))

    def _add(self, lemma: Lemma) -> None:
        self.lemmas.setdefault(lemma.formula.get_id(), lemma)

    def letter(self, link: Link) -> z3.BoolRef:
        """What stands for a link in the composition: for all of it that is made use of where it is given."""
        said = link.said
        if said.get_id() not in self._atoms:
            self._atoms[said.get_id()] = said, z3.Bool(f"p{len(self._atoms)}")
        return self._atoms[said.get_id()][1]

    def derive(
        self,
        stage: str,
        statement: str,
        links: Sequence[Link],
        given: Iterable[Link] = (),
        inputs: Iterable[z3.ExprRef] = (),
        each_value_of: z3.BitVecRef | None = None,
        alone: bool = False,
    ) -> Sequence[Link]:
        """Claim that `links` follow from `given`, all of which were derived before; returns `links`.

        The terms of `given`, and `inputs`, are cut; but for `each_value_of` one of them, a narrow one, there is a
        lemma of its own.  A lemma that is to be asked `alone` is easy, but not in company.
        """
        given = list(given)
        lanes = {id(lane): lane for link in given for lane in link.lanes}
        if any(lane.tracer is not self._tracer for lane in lanes.values()):
            raise ArgumentError("a lane is of another trace, whose rules are no lemmas here")
        premises = [*(link.claim for link in given), *(lane.in_range for lane in lanes.values())]
        goal = z3.Implies(_all(premises), _all([link.said for link in links]))
        where = place()
        if each_value_of is None:
            formula, cut = _cut(goal, inputs, given)
            self._add(Lemma(stage, statement, formula, alone, where, cut))
        else:
            for value in range(1 << each_value_of.size()):
                pair = (each_value_of, z3.BitVecVal(value, each_value_of.size()))
                formula, cut = _cut(goal, inputs, given, pair)
                self._add(Lemma(stage, statement, formula, True, where, cut))
        self._steps.append(
            z3.Implies(
                _all([self.letter(link) for link in given]),
                _all([self.letter(link) for link in links]),
            )
        )
        return links

    def conclude(self, link: Link) -> None:
        """The conclusion follows from all derivations.  Each link is a letter here; what it says was for the lemmas.

        Without this lemma a premise could be used that was never derived.
        """
        formula = z3.Implies(_all(self._steps), self.letter(link))
        self._add(Lemma("composition", "from all of these, in both wings d is the same code", formula))

    # ---- sums and maxima: both wings have the same operands in different orders -----------------------------------

    def add_up(
        self, stage: str, what: str, total: Lane, sum_: z3.BitVecRef, summands: Sequence[Link]
    ) -> Link:
        """That a sum of lanes is a two's complement sum, from the links of its summands, in the lanes' order.

        Partial sum by partial sum in the lanes' order, modulo 2^n, n the width of `sum_`, which adds the same terms
        in an order of its own.
        """
        terms = [link.term for link in summands]
        link = number(total, sum_, signed=True)
        partials = _partial_sums(total, [summand.lane for summand in summands])
        if partials is None:
            return self.derive(stage, f"{what}: the sums are equal", [link], summands)[0]
        text = f"{what}: the partial sums are equal"
        running = terms[0]
        given: list[Link] = []
        for lane, summand, term in zip(partials, summands, terms, strict=True):
            running = running + term if given else term
            given = [*self.derive(stage, text, [_residue(lane, running)], [*given, summand])]
        text = f"{what}: the order of summation does not matter"
        same = Link(running == sum_, (running,), ((sum_, running),))
        self.derive(stage, text, [same], inputs=terms)
        return self.derive(stage, f"{what}: the sums are equal", [link], [*given, same])[0]

    def largest(
        self,
        stage: str,
        what: str,
        top: Lane,
        maximum: z3.BitVecRef,
        candidates: Sequence[Link],
        low: int,
        idle: Idle | None = None,
    ) -> tuple[Link, list[Link]]:
        """That a maximum of lanes is `low` + a maximum of unsigned terms, from the links of the candidates; and that
        each term is at most that maximum.  With `idle`, the maximum is idle if all candidates are.

        The maximum of the terms in the lanes' order follows the lanes one by one.  It is equal to `maximum`, for
        neither is above the other: each is at least every term, and at most what all terms are at most.
        """

        def follows(lane: Lane, term: z3.BitVecRef, n: int) -> Link:
            return number(lane, term, low=low, idle=(idle.first(n), idle.value) if idle is not None else None)

        terms, n = [link.term for link in candidates], len(candidates)
        link = follows(top, maximum, n)
        below = self._not_below(stage, what, maximum, terms)
        text = f"{what}: the largest are equal"
        chain = _maxima(top, [candidate.lane for candidate in candidates])
        if chain is None:
            return self.derive(stage, text, [link], candidates, idle.flags if idle is not None else ())[
                0
            ], below
        step = f"{what}: the larger of two is the same"
        running, following = terms[0], candidates[0]
        for i, (lane, candidate, term) in enumerate(zip(chain, candidates[1:], terms[1:], strict=True), 2):
            running = z3.If(z3.UGT(running, term), running, term)
            flags = [idle.first(i - 1), idle.flags[i - 1]] if idle is not None else []
            (following,) = self.derive(
                stage, step, [follows(lane, running, i)], [following, candidate], flags
            )
        same = self._same_maximum(stage, what, running, maximum, terms, below)
        flags = [idle.all] if idle is not None else []
        return self.derive(stage, text, [link], [following, same], flags)[0], below

    def _same_maximum(
        self,
        stage: str,
        what: str,
        running: z3.BitVecRef,
        maximum: z3.BitVecRef,
        terms: Sequence[z3.BitVecRef],
        below_maximum: Sequence[Link],
    ) -> Link:
        text = f"{what}: maxima of the same are equal"
        same = Link(running == maximum, (running,), ((maximum, running),))
        if running.eq(maximum) or not is_maximum(maximum, terms):
            return self.derive(stage, text, [same], inputs=terms)[0]
        below_running = self._not_below(stage, what, running, terms)
        order = [
            self._not_above(
                stage, what, small, large, {x.get_id(): y for x, y in zip(terms, below, strict=True)}
            )
            for small, large, below in ((running, maximum, below_maximum), (maximum, running, below_running))
        ]
        return self.derive(stage, text, [same], order)[0]

    def _not_below(
        self, stage: str, what: str, tree: z3.BitVecRef, terms: Sequence[z3.BitVecRef]
    ) -> list[Link]:
        """That each term is at most a maximum of all, from the top of its tree down."""
        links = [at_most(term, tree) for term in terms]
        if not is_maximum(tree, terms):
            return [*self.derive(stage, f"{what}: none is above the largest", links, inputs=terms)]
        stack = [(tree, self.derive(stage, f"{what}: x ≤ x", [at_most(tree, tree)], inputs=[tree])[0])]
        leaves = {term.get_id() for term in terms}
        while stack:
            node, below = stack.pop()
            if node.get_id() in leaves:
                continue
            operands = node.arg(1), node.arg(2)
            for x in operands:
                text = f"{what}: neither of two is above the larger"
                (step,) = self.derive(stage, text, [at_most(x, node)], inputs=operands)
                if node is not tree:
                    (step,) = self.derive(
                        stage, f"{what}: ≤ is transitive", [at_most(x, tree)], [step, below]
                    )
                stack.append((x, step))
        return links

    def _not_above(
        self, stage: str, what: str, tree: z3.BitVecRef, bound: z3.BitVecRef, below: dict[int, Link]
    ) -> Link:
        """That a maximum is at most what all its terms are at most."""
        if tree.get_id() in below:
            return below[tree.get_id()]
        parts = [self._not_above(stage, what, tree.arg(i), bound, below) for i in (1, 2)]
        return self.derive(
            stage, f"{what}: the larger of two is not above a bound of both", [at_most(tree, bound)], parts
        )[0]


def is_maximum(tree: z3.ExprRef, terms: Sequence[z3.ExprRef]) -> bool:
    """Whether a term is made of the given ones by `If(UGT(x, y), x, y)` alone."""
    leaves = {term.get_id() for term in terms}
    stack = [tree]
    while stack:
        node = stack.pop()
        if node.get_id() in leaves:
            continue
        if not z3.is_app_of(node, z3.Z3_OP_ITE) or not z3.is_app_of(node.arg(0), z3.Z3_OP_UGT):
            return False
        test, x, y = node.children()
        if not (test.arg(0).eq(x) and test.arg(1).eq(y)):
            return False
        stack += [x, y]
    return True


def _partial_sums(total: Lane, summands: Sequence[Lane]) -> list[Lane] | None:
    """The lanes that hold `x0`, `x0 + x1`, …, the last of them `total`; None if it was not made so."""
    partials = []
    lane = total
    for summand in reversed(summands):
        partials.append(lane)
        if lane is summand and len(partials) == len(summands):
            return partials[::-1]
        if lane.op != "+" or lane.operands[1] is not summand:
            return None
        lane = lane.operands[0]  # type: ignore[assignment]
    return partials[::-1] if lane.range == (0, 0) else None


def _maxima(top: Lane, candidates: Sequence[Lane]) -> list[Lane] | None:
    """The lanes that hold the larger of the first two, of that and the third, …; None if it was not made so."""
    chain = []
    lane = top
    for candidate in reversed(candidates[1:]):
        if lane.op != "select" or lane.operands[2] is not candidate:
            return None
        chain.append(lane)
        lane = lane.operands[1]  # type: ignore[assignment]
    return chain[::-1] if lane is candidates[0] else None


def _all(claims: Sequence[z3.BoolRef]) -> z3.BoolRef:
    claims = [claim for claim in claims if not z3.is_true(claim)]
    if not claims:
        return z3.BoolVal(True)
    return z3.And(claims) if len(claims) > 1 else claims[0]


def _is_value(term: z3.ExprRef) -> bool:
    return bool(z3.is_bv_value(term) or z3.is_true(term) or z3.is_false(term))


def _cut(
    goal: z3.BoolRef,
    inputs: Iterable[z3.ExprRef],
    links: Iterable[Link],
    *values: tuple[z3.ExprRef, z3.ExprRef],
) -> tuple[z3.BoolRef, tuple[tuple[z3.ExprRef, z3.ExprRef], ...]]:
    """The goal with each free term replaced by its value, or by a constant whose name tells its place among them
    and its sort; and those terms and constants."""
    pairs = {term.get_id(): (term, value) for term, value in values}
    cut: list[tuple[z3.ExprRef, z3.ExprRef]] = []

    def replace(term: z3.ExprRef, value: z3.ExprRef | None) -> None:
        if term.get_id() in pairs or _is_value(term):
            return
        if value is None:
            bits = f"_{term.size()}" if isinstance(term, z3.BitVecRef) else ""
            value = z3.Const(f"t{len(pairs)}{bits}", term.sort())
            cut.append((term, value))
        elif pairs:
            value = z3.substitute(value, *pairs.values())
        pairs[term.get_id()] = term, value

    links = list(links)
    for term in (*inputs, *(term for link in links for term in link.free)):
        replace(term, None)
    for link in links:
        for term, value in link.defined:
            replace(term, value)
    return z3.substitute(goal, *pairs.values()) if pairs else goal, tuple(cut)


# ---- proving ---------------------------------------------------------------------------------------------------


class UnprovedError(Exception):
    """A lemma was refuted, or not settled in the time given; `failure_of` the asker tells more."""

    def __init__(self, lemma: Lemma, outcome: Outcome) -> None:
        verdict = "does not hold" if outcome.verdict == "sat" else f"is not settled ({outcome.why})"
        super().__init__(f"{lemma.stage}: that {lemma.statement} {verdict}")
        self.lemma, self.outcome = lemma, outcome


class ArgumentError(Exception):
    """The wings' traces do not have the structure that an argument is about."""


class Scripts:
    """Lemmas as SMT-LIB 2 scripts that are to be refuted; each formula is written once."""

    def __init__(self) -> None:
        self._written: dict[int, tuple[z3.BoolRef, str]] = {}

    def __getitem__(self, lemma: Lemma) -> str:
        formula = lemma.formula
        if formula.get_id() not in self._written:
            self._written[formula.get_id()] = formula, smtlib([z3.Not(formula)])
        return self._written[formula.get_id()][1]


class Ledger:
    """Lemmas proved so far."""

    def __init__(self) -> None:
        self._scripts = Scripts()
        self._proved: dict[str, Obligation] = {}  #: by script

    def settle(self, asker: Asker, argument: Argument) -> tuple[Obligation, ...]:
        """The obligations an argument rests on, one per lemma, after proving those that are new.

        Raises UnprovedError.
        """
        cited = {}
        for lemma in argument.lemmas.values():
            script = self._scripts[lemma]
            if script not in self._proved:
                outcome = asker.decide(name_of(lemma, script), lemma.statement, script)
                if outcome.verdict != "unsat":
                    asker.failed = partial(_failure, asker, argument, lemma, script, outcome)
                    raise UnprovedError(lemma, outcome)
                self._proved[script] = asker.proved[-1]
            cited[script] = self._proved[script]
        return tuple(cited.values())


def _failure(asker: Asker, argument: Argument, lemma: Lemma, script: str, outcome: Outcome) -> Failure:
    refuted = outcome.verdict == "sat"
    values = examine(asker, z3.Not(lemma.formula), lemma.cut, argument.interfaces()) if refuted else ()
    return Failure(lemma.stage, lemma.statement, refuted, outcome.why, lemma.place, values, script)


def name_of(lemma: Lemma, script: str) -> str:
    """Its stage, and the beginning of its script's hash."""
    return f"{lemma.stage} {digest(script)[:12]}"
