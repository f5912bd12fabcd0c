"""The parts of theorems: claims, lemmas and inferences; and a conclusion in propositions.

No solver is asked here, and no `Proof` is made: both are the kernel's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import z3

from mmaformal.lanes import SymbolicFlag, SymbolicLane
from mmaformal.solver.asking import TermCut, conjunction
from mmaformal.solver.terms import constants_of

# ---- claims, lemmas, inferences --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Link:
    """A claim about terms, and which terms are cut where it is used.

    The claim determines the `defined` terms by the `free` ones, which are what is cut; so the lemmas are about them
    alone, and no solver has to find out.
    """

    claim: z3.BoolRef
    free: tuple[z3.ExprRef, ...] = ()
    defined: tuple[tuple[z3.ExprRef, z3.ExprRef], ...] = ()
    lanes: tuple[SymbolicLane, ...] = ()  #: those whose terms are among these; their ranges hold too
    flags: tuple[SymbolicFlag, ...] = ()  #: those whose terms are among these

    def __post_init__(self) -> None:
        """Make tuples of what may be an iterator, which is read once, or a list, which may change."""
        for name in ("free", "lanes", "flags"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        object.__setattr__(self, "defined", tuple((term, value) for term, value in self.defined))

    @property
    def said(self) -> z3.BoolRef:
        """The claim, and what it determines."""
        return conjunction([self.claim, *(term == value for term, value in self.defined)])

    @property
    def lane(self) -> SymbolicLane:
        """The lane of a link of one."""
        (lane,) = self.lanes
        return lane

    @property
    def term(self) -> z3.BitVecRef:
        """The free term of a link of one."""
        (term,) = self.free
        assert isinstance(term, z3.BitVecRef)
        return term


@dataclass(frozen=True)
class Lemma:
    """A question for a solver: a formula that holds for all values of its constants."""

    stage: str
    statement: str
    refuted: z3.BoolRef  #: the opposite of the formula, which is to be unsatisfiable
    hard: bool = False  #: to be asked alone
    place: str = ""  #: where it is argued
    cut: TermCut = ()
    simplified: bool = False  #: whether z3's simplifier has it first

    @property
    def formula(self) -> z3.BoolRef:
        return z3.Not(self.refuted)


@dataclass(frozen=True)
class LemmaUse:
    """A lemma with the terms that its constants stand for, and the values of terms that it is about."""

    lemma: Lemma
    cut: TermCut
    values: TermCut = ()


@dataclass(frozen=True)
class Inference:
    """A step from premises to claims; of `cases`, to one of them.  An inference that is `assumed` has no premises."""

    premises: Sequence[z3.BoolRef]
    claims: Sequence[z3.BoolRef]
    cases: bool = False
    assumed: str = ""  #: what is assumed, in words
    uses: Sequence[LemmaUse] = ()  #: the lemmas that show it, for whoever writes the argument down
    given: Sequence[Link] = ()  #: the premises as links

    def __post_init__(self) -> None:
        """Make tuples of what may be an iterator, which is read once, or a list, which may change."""
        for name in ("premises", "claims", "uses", "given"):
            object.__setattr__(self, name, tuple(getattr(self, name)))


@dataclass(frozen=True)
class Conclusion:
    """A claim, the lemma that it follows from what was inferred, and the propositions that stand for claims there."""

    claim: z3.BoolRef
    lemma: Lemma
    propositions: TermCut


@dataclass(frozen=True)
class RuleStep:
    """A claim that a rule gives, and the theorems that it gives it of."""

    rule: Rule
    claim: z3.BoolRef
    premises: tuple[z3.BoolRef, ...]


class NotProvedError(Exception):
    """A lemma was refuted, or not settled in the time given; or there is no argument.  `Asker.failed` tells more."""

    def __init__(self, statement: str, verdict: str, why: str, stage: str = "") -> None:
        self.refuted, self.verdict = verdict == "sat", verdict
        said = "does not hold" if self.refuted else f"is not settled ({why})"
        super().__init__(f"{f'{stage}: ' if stage else ''}that {statement} {said}")


class ArgumentError(Exception):
    """The encodings' traces do not have the structure that an argument is about."""


def demand(holds: bool, why: str) -> None:
    """Raises ArgumentError, saying why not, unless it holds; an `assert` would be left out by `python -O`."""
    if not holds:
        raise ArgumentError(why)


@dataclass(frozen=True)
class Rule:
    """An inference that is no obligation (docs/proofs.md, rules)."""

    name: str
    statement: str

    def __str__(self) -> str:
        return f"{self.name}: {self.statement}"


# ---- conclusions as propositions -------------------------------------------------------------------------------------


def composition(
    inferences: Iterable[Inference],
    conclusion: z3.BoolRef,
    whole: Sequence[z3.BoolRef] = (),
    connectives: bool = True,
) -> tuple[z3.BoolRef, TermCut]:
    """Return the claim that a conclusion holds if every inference does, and what is assumed, in propositions; and the
    claims with the propositions that stand for them."""
    said = _Propositions(connectives, whole)
    steps = [(said.of(inference), inference.assumed) for inference in inferences]
    premises = [step for step, what in steps if what] + [step for step, what in steps if not what]
    formula = z3.Implies(conjunction(premises), said(conclusion))
    return formula, tuple(said.names.values())


_CONNECTIVES = {
    z3.Z3_OP_AND: z3.And,
    z3.Z3_OP_OR: z3.Or,
    z3.Z3_OP_NOT: z3.Not,
    z3.Z3_OP_IMPLIES: z3.Implies,
}


class _Propositions:
    """Claims as propositions p0, p1, …; with `connectives`, those between them as they are, but for claims that are one
    proposition as a whole."""

    def __init__(self, connectives: bool, whole: Sequence[z3.BoolRef]) -> None:
        self._connectives = _CONNECTIVES if connectives else {}
        self._of: dict[int, tuple[z3.BoolRef, z3.BoolRef]] = {}
        self.names: dict[int, tuple[z3.BoolRef, z3.BoolRef]] = {}  #: claims, and the proposition of each
        for claim in whole:
            self._name(claim)

    def _name(self, claim: z3.BoolRef) -> None:
        if claim.get_id() not in self._of:  # one that is told twice has one name
            self._of[claim.get_id()] = self.names[claim.get_id()] = claim, z3.Bool(f"p{len(self._of)}")

    def __call__(self, claim: z3.BoolRef) -> z3.BoolRef:
        demand(claim.ctx is z3.main_ctx(), "a claim is of another z3 context, where ids are of other terms")
        if self._connectives and (z3.is_true(claim) or z3.is_false(claim)):
            return claim
        if claim.get_id() not in self._of:
            make = self._connectives.get(claim.decl().kind())
            if make is None:
                self._name(claim)
            else:
                self._of[claim.get_id()] = claim, make(*map(self, claim.children()))
        return self._of[claim.get_id()][1]

    def of(self, inference: Inference) -> z3.BoolRef:
        premises = conjunction([self(claim) for claim in inference.premises])
        claims = [self(claim) for claim in inference.claims]
        said = z3.Or(claims) if inference.cases else conjunction(claims)
        return said if inference.assumed else z3.Implies(premises, said)


def says_nothing(claim: z3.BoolRef) -> bool:
    """Whether a claim is `true`, a conjunction of nothing, or that such a one follows."""
    if z3.is_implies(claim):
        return says_nothing(claim.arg(1))
    return z3.is_true(claim) or (z3.is_and(claim) and all(map(says_nothing, claim.children())))


def premise_of(claim: z3.BoolRef) -> z3.BoolRef:
    """When a claim says something: where what stands before its `implies` holds, in any part of a conjunction.

    *Not p or q* is the same as *p implies q*.  Where all parts are negated, *not p or not q*, each of p and q has to
    be met, but not both at once, which the claim denies.
    """
    if z3.is_not(claim) and z3.is_not(claim.arg(0)):
        return premise_of(claim.arg(0).arg(0))
    if z3.is_implies(claim):
        return conjunction([claim.arg(0), premise_of(claim.arg(1))])
    kind, parts = _as_clauses(claim)
    if kind == z3.Z3_OP_AND:
        about = [premise_of(each) for each in parts]
        return z3.BoolVal(True) if any(map(z3.is_true, about)) else z3.Or(about)
    if kind == z3.Z3_OP_OR:
        denied = [each.arg(0) for each in parts if z3.is_not(each)]
        others = [premise_of(each) for each in parts if not z3.is_not(each)]
        if len(denied) > 1 and not others:
            denied = [_renamed(each, n) for n, each in enumerate(denied)]
        return conjunction([*denied, *others])
    return z3.BoolVal(True)


def _as_clauses(claim: z3.BoolRef) -> tuple[int, list[z3.BoolRef]]:
    """A claim as the conjunction, or disjunction, that it is equal to: which, and its parts; none of another claim."""
    if z3.is_implies(claim):
        return z3.Z3_OP_OR, [z3.Not(claim.arg(0)), *_disjuncts(claim.arg(1))]
    if z3.is_not(claim):
        kind, parts = _as_clauses(claim.arg(0))
        return _DUAL.get(kind, kind), [_denial(each) for each in parts]
    if z3.is_or(claim):
        return z3.Z3_OP_OR, [part for each in claim.children() for part in _disjuncts(each)]
    return (z3.Z3_OP_AND, claim.children()) if z3.is_and(claim) else (z3.Z3_OP_UNINTERPRETED, [])


_DUAL = {z3.Z3_OP_AND: z3.Z3_OP_OR, z3.Z3_OP_OR: z3.Z3_OP_AND}


def _disjuncts(claim: z3.BoolRef) -> list[z3.BoolRef]:
    """The parts of a disjunction; what is negated is one of them, as a whole."""
    if z3.is_not(claim) and not z3.is_not(claim.arg(0)):
        return [claim]
    kind, parts = _as_clauses(claim)
    return parts if kind == z3.Z3_OP_OR else [claim]


def _denial(claim: z3.BoolRef) -> z3.BoolRef:
    return claim.arg(0) if z3.is_not(claim) else z3.Not(claim)


def _renamed(claim: z3.BoolRef, n: int) -> z3.BoolRef:
    """The claim about constants of its own."""
    own = constants_of(claim)
    return z3.substitute(claim, *((x, z3.Const(f"{x}!{n}", x.sort())) for x in own)) if own else claim
