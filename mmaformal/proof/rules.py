"""Rules by which theorems follow from theorems, where no obligation can say it: for all numbers of something.

A *theorem* is a claim that was concluded without premises: it holds for all values of its constants.  A rule takes
theorems, of exactly the shapes that it states, and gives another one, which it makes itself.  That a rule is right is
not for a solver: the rules are few and stated here, each looks at its side conditions when it is made (docs/proofs.md
lists them), and each is checked in full on small formats (tests/proof/test_rules.py).  A conclusion says by which rules
it was reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import z3

from mmaformal.cases.out_of_order import order
from mmaformal.proof.composition import Composing, Rule
from mmaformal.proof.kernel import ArgumentError, Inference, Link, RuleStep
from mmaformal.solver.asking import Asker, constants_of


class RuleError(ArgumentError):
    """A rule was given something that was not concluded, or that it is not about."""


INSTANCE = Rule("instance", "what holds for all values of its constants holds for any terms in their places")
SUCCESSOR = Rule(
    "successor",
    "a relation that is reflexive and transitive, and holds of the results of neighbouring codes and of both zeros, "
    "holds of the results of any two codes in order",
)
ASCENT = Rule(
    "ascent",
    "a relation that is reflexive and transitive, and holds of the results of each number of a range and the next, "
    "holds of the results of any two numbers of it in order",
)


class Theory(Composing):
    """Claims, the theorems that they give one after another, and what follows from these by rules."""

    def __init__(self, asker: Asker) -> None:
        super().__init__(asker)
        self._theorems: dict[int, z3.BoolRef] = {}  #: by the claim's id

    def theorem(self, statement: str, claim: z3.BoolRef) -> z3.BoolRef:
        """The claim, concluded from those proved since the last theorem, and the theorems.  Raises NotProvedError."""
        self.conclude(statement, claim)
        self.steps.clear()
        self._inferences.clear()
        for each in (*self._theorems.values(), claim):
            self._add_theorem(each)
        return claim

    def holds(
        self, name: str, statement: str, claim: z3.BoolRef, cut: Sequence[z3.ExprRef] = ()
    ) -> z3.BoolRef:
        """A claim without premises, whatever it was claimed under before: a theorem.  Raises NotProvedError."""
        uses = self._infer(name, statement, [Link(claim)], [], cut)
        self._history.append(Inference((), (claim,), uses=uses))
        self._add_theorem(claim)
        return claim

    def assume(self, what: str, link: Link) -> Link:
        """Raises RuleError: a theorem holds for all values of its constants."""
        raise RuleError(f"a theorem has no premises: claim what follows if {what} as an implication")

    def by_rule(self, step: Instance | Successor | Ascent) -> z3.BoolRef:
        """The conclusion of a rule.  Raises RuleError unless its premises are theorems."""
        if type(step) not in (Instance, Successor, Ascent):
            raise RuleError(f"{type(step).__name__} is none of the rules: Instance, Successor, Ascent")
        for each in step.premises:
            if not self.proves(each):
                raise RuleError(f"the rule {step.rule.name} needs a theorem, and this is none: {each}")
        claim = step.conclusion
        self.rests_on(step.rule)
        self._history.append(RuleStep(step.rule, claim, tuple(step.premises)))
        self._add_theorem(claim)
        return claim

    def proves(self, statement: z3.BoolRef) -> bool:
        """Whether it is a theorem."""
        return statement.get_id() in self._theorems

    def _add_theorem(self, claim: z3.BoolRef) -> None:
        self._theorems[claim.get_id()] = claim
        if self.steps.get(claim.get_id(), ((claim,), claim))[0]:  # not claimed, or under premises
            self.steps[claim.get_id()] = (), claim
            self._inferences.append(Inference((), (claim,)))


def _is_constant(term: z3.ExprRef) -> bool:
    return bool(z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED)


def _names(*terms: z3.ExprRef) -> set[str]:
    """Return the names of the constants of terms."""
    return {str(each.decl().name()) for term in terms for each in constants_of(term)}


@dataclass(frozen=True)
class Instance:
    """The rule for a theorem and terms, each for a constant of the same sort, all put in at once."""

    theorem: z3.BoolRef
    pairs: tuple[tuple[z3.ExprRef, z3.ExprRef], ...]
    rule: ClassVar[Rule] = INSTANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "pairs", tuple((constant, term) for constant, term in self.pairs))
        for constant, term in self.pairs:
            if not _is_constant(constant):
                raise RuleError(f"terms are put in the places of constants, and this is none: {constant}")
            if constant.sort() != term.sort():
                raise RuleError(f"{constant} is of the sort {constant.sort()}, {term} of {term.sort()}")

    @property
    def premises(self) -> tuple[z3.BoolRef, ...]:
        return (self.theorem,)

    @property
    def conclusion(self) -> z3.BoolRef:
        return z3.substitute(self.theorem, *self.pairs) if self.pairs else self.theorem


def instance(
    theory: Theory, theorem: z3.BoolRef, pairs: Sequence[tuple[z3.ExprRef, z3.ExprRef]]
) -> z3.BoolRef:
    """A theorem with terms in the places of its constants.  Raises RuleError."""
    return theory.by_rule(Instance(theorem, tuple(pairs)))


@dataclass(frozen=True)
class _Results:
    """The common part of both rules: results of what is counted, a relation of them, and that it is one of a chain."""

    counted: z3.BitVecRef  #: the constant: a code, a number
    result: z3.BitVecRef
    relation: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]  #: of two results
    rule: ClassVar[Rule]
    _related: z3.BoolRef = field(init=False, repr=False)  #: the relation, of `_places`

    def __post_init__(self) -> None:
        """Look at the side conditions.  Raises RuleError."""
        if not _is_constant(self.counted) or self.counted.size() < 2:
            raise self._error(f"{self.counted} is no constant of two bits or more")
        self._look_for_own("the result", self.result)
        object.__setattr__(self, "_related", self._formula())

    def _error(self, why: str) -> RuleError:
        return RuleError(f"the rule {self.rule.name} cannot be used: {why}")

    def _look_for_own(self, what: str, term: z3.ExprRef, *further: z3.BitVecRef) -> None:
        """Nothing else may be called as the rule's own constants are."""
        if taken := _names(term) & _names(*self.own, *self._chain, *further):
            raise self._error(f"{what} has the rule's own constants: {', '.join(sorted(taken))}")

    def _formula(self) -> z3.BoolRef:
        """The relation as a formula of two constants: the same one, whatever it is of."""
        places, others = self._places, self._chain[:2]
        said, again = self.relation(*places), self.relation(*others)
        if not z3.is_bool(said):
            raise self._error("the relation is no claim")
        if _names(*places) & _names(again):
            raise self._error("the relation has constants that stand for any result")
        moved = z3.substitute(said, *zip(places, others, strict=True))
        if not moved.eq(again):
            raise self._error("the relation is another one of other results")
        self._look_for_own("the relation", said, self.counted)
        return said

    def related(self, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
        """The relation, of two results."""
        return z3.substitute(self._related, *zip(self._places, (x, y), strict=True))

    def at(self, value: z3.BitVecRef) -> z3.BitVecRef:
        """The result of a code, of a number."""
        return z3.substitute(self.result, (self.counted, value))

    @property
    def own(self) -> tuple[z3.BitVecRef, ...]:
        """The constants of the rule, but for that which is counted, and for results."""
        raise NotImplementedError

    @property
    def _chain(self) -> tuple[z3.BitVecRef, ...]:
        return tuple(z3.BitVec(f"result {i}", self.result.size()) for i in range(3))

    @property
    def _places(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        size = self.result.size()
        return z3.BitVec("one of two results", size), z3.BitVec("the other of two results", size)

    @property
    def transitive(self) -> z3.BoolRef:
        x, y, z = self._chain
        return z3.Implies(z3.And(self.related(x, y), self.related(y, z)), self.related(x, z))

    @property
    def reflexive(self) -> z3.BoolRef:
        x = self._chain[0]
        return self.related(x, x)


@dataclass(frozen=True)
class Successor(_Results):
    """The rule for a `result` of codes, a sign and a magnitude each, up to the magnitude `last`."""

    last: int  #: the largest magnitude
    rule: ClassVar[Rule] = SUCCESSOR

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.last < 1 << (self.counted.size() - 1):
            raise self._error(f"{self.last} is no magnitude of a code of {self.counted.size()} bits")

    @property
    def own(self) -> tuple[z3.BitVecRef, ...]:
        return (self.sign, self.magnitude, *self.codes)

    @property
    def sign(self) -> z3.BitVecRef:
        return z3.BitVec("sign of a code", 1)

    @property
    def magnitude(self) -> z3.BitVecRef:
        return z3.BitVec("magnitude of a code", self.counted.size() - 1)

    @property
    def neighbouring(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """A code, and the one of the next larger magnitude."""
        return z3.Concat(self.sign, self.magnitude), z3.Concat(self.sign, self.magnitude + 1)

    @property
    def is_below_last(self) -> z3.BoolRef:
        return z3.ULT(self.magnitude, self.last)

    def in_turn(self, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
        """Claim the relation of the results x and y of neighbouring codes: y to x where the sign is minus."""
        plus = self.sign == 0
        return z3.And(z3.Implies(plus, self.related(x, y)), z3.Implies(z3.Not(plus), self.related(y, x)))

    @property
    def neighbours(self) -> z3.BoolRef:
        return z3.Implies(self.is_below_last, self.in_turn(*map(self.at, self.neighbouring)))

    @property
    def zeros(self) -> z3.BoolRef:
        bits = self.counted.size()
        plus, minus = (self.at(z3.BitVecVal(code, bits)) for code in (0, 1 << (bits - 1)))
        return z3.And(self.related(plus, minus), self.related(minus, plus))

    @property
    def premises(self) -> tuple[z3.BoolRef, ...]:
        return self.neighbours, self.zeros, self.transitive, self.reflexive

    @property
    def codes(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """The two codes that the conclusion is about."""
        bits = self.counted.size()
        return z3.BitVec("smaller code", bits), z3.BitVec("larger code", bits)

    @property
    def conclusion(self) -> z3.BoolRef:
        x, y = self.codes
        inside = [z3.ULE(z3.Extract(x.size() - 2, 0, code), self.last) for code in (x, y)]
        return z3.Implies(z3.And(*inside, order(x) <= order(y)), self.related(self.at(x), self.at(y)))

    def conclude(self, theory: Theory) -> z3.BoolRef:
        """The conclusion.  Raises RuleError unless all four premises are theorems."""
        return theory.by_rule(self)


@dataclass(frozen=True)
class Ascent(_Results):
    """The rule for a `result` of numbers, in two's complement, from −reach to reach.

    `given` is about the other constants.
    """

    reach: int
    given: z3.BoolRef
    rule: ClassVar[Rule] = ASCENT

    def __post_init__(self) -> None:
        super().__post_init__()
        self._look_for_own("what is given", self.given, self.counted)
        if not 0 <= self.reach < 1 << (self.counted.size() - 1):
            raise self._error(f"±{self.reach} are no numbers of {self.counted.size()} bits")

    @property
    def own(self) -> tuple[z3.BitVecRef, ...]:
        return self.numbers

    @property
    def numbers(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """The two numbers that the conclusion is about."""
        bits = self.counted.size()
        return z3.BitVec("smaller number", bits), z3.BitVec("larger number", bits)

    @property
    def neighbours(self) -> z3.BoolRef:
        n = self.counted
        inside = z3.And(self.given, n >= -self.reach, n < self.reach)
        return z3.Implies(inside, self.related(self.at(n), self.at(n + 1)))

    @property
    def premises(self) -> tuple[z3.BoolRef, ...]:
        return self.neighbours, self.transitive, self.reflexive

    @property
    def conclusion(self) -> z3.BoolRef:
        x, y = self.numbers
        inside = z3.And(self.given, x >= -self.reach, x <= y, y <= self.reach)
        return z3.Implies(inside, self.related(self.at(x), self.at(y)))

    def conclude(self, theory: Theory) -> z3.BoolRef:
        """The conclusion.  Raises RuleError unless all three premises are theorems."""
        return theory.by_rule(self)
