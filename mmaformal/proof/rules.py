"""Rules by which theorems follow from theorems, where no obligation can say it: for all numbers of something.

A *theorem* is a claim that was concluded without premises: it holds for all values of its constants.  A rule takes
theorems, of exactly the shapes that it states, and gives another one.  That a rule is right is not for a solver: the
rules are few and stated here, and each is checked in full on small formats (tests/proof/test_rules.py).  A conclusion
says by which rules it was reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import z3

from mmaformal.cases.out_of_order import order
from mmaformal.proof.composition import Composing, Rule
from mmaformal.proof.kernel import Inference, Link
from mmaformal.solver.asking import Asker, constants_of


class RuleError(Exception):
    """A rule was given something that was not concluded."""


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
        self.theorems: dict[int, z3.BoolRef] = {}  #: by the claim's id

    def theorem(self, statement: str, claim: z3.BoolRef) -> z3.BoolRef:
        """The claim, concluded from those proved since the last theorem, and the theorems.  Raises NotProvedError."""
        self.conclude(statement, claim)
        self.steps.clear()
        self.inferences.clear()
        for each in (*self.theorems.values(), claim):
            self._add_theorem(each)
        return claim

    def holds(
        self, name: str, statement: str, claim: z3.BoolRef, cut: Sequence[z3.ExprRef] = ()
    ) -> z3.BoolRef:
        """A claim without premises, whatever it was claimed under before: a theorem.  Raises NotProvedError."""
        self._settle(self._infer(name, statement, [Link(claim)], [], cut))
        self._add_theorem(claim)
        return claim

    def by_rule(self, rule: Rule, given: Sequence[z3.BoolRef], claim: z3.BoolRef) -> z3.BoolRef:
        for each in given:
            if not self.proves(each):
                raise RuleError(f"the rule {rule.name} needs a theorem, and this is none: {each}")
        self.rests_on(rule)
        self._add_theorem(claim)
        return claim

    def proves(self, statement: z3.BoolRef) -> bool:
        """Whether it is a theorem."""
        return statement.get_id() in self.theorems

    def _add_theorem(self, claim: z3.BoolRef) -> None:
        self.theorems[claim.get_id()] = claim
        if self.steps.get(claim.get_id(), ((claim,), claim))[0]:  # not claimed, or under premises
            self.steps[claim.get_id()] = (), claim
            self.inferences.append(Inference((), (claim,)))


def instance(
    theory: Theory, theorem: z3.BoolRef, pairs: Sequence[tuple[z3.ExprRef, z3.ExprRef]]
) -> z3.BoolRef:
    """A theorem with terms in the places of its constants."""
    assert all(z3.is_const(x) and x.decl().kind() == z3.Z3_OP_UNINTERPRETED for x, _ in pairs)
    return theory.by_rule(INSTANCE, [theorem], z3.substitute(theorem, *pairs))


class _Results:
    """What both rules have: results, a relation of them, and that it is one of a chain."""

    result: z3.BitVecRef
    relation: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]  #: of two results

    @property
    def own(self) -> tuple[z3.BitVecRef, ...]:
        """The constants of the rule, but for that of which the result is one."""
        raise NotImplementedError

    def check(self, rule: Rule, *given: z3.BoolRef) -> None:
        """Nothing else may be called as the rule's own constants are."""
        own = {x.get_id() for x in (*self.own, *self._chain)}
        if any(own & {x.get_id() for x in constants_of(term)} for term in (self.result, *given)):
            raise RuleError(
                f"the rule {rule.name} cannot be used of this result: it has the rule's own constants"
            )

    @property
    def _chain(self) -> tuple[z3.BitVecRef, ...]:
        return tuple(z3.BitVec(f"result {i}", self.result.size()) for i in range(3))

    @property
    def transitive(self) -> z3.BoolRef:
        x, y, z = self._chain
        return z3.Implies(z3.And(self.relation(x, y), self.relation(y, z)), self.relation(x, z))

    @property
    def reflexive(self) -> z3.BoolRef:
        x = self._chain[0]
        return self.relation(x, x)


@dataclass(frozen=True)
class Successor(_Results):
    """The rule for a term `result` with a constant `code` in it: a sign and a magnitude, up to the magnitude `last`."""

    code: z3.BitVecRef
    result: z3.BitVecRef
    relation: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]
    last: int  #: the largest magnitude

    def __post_init__(self) -> None:
        self.check(SUCCESSOR)
        assert self.last < 1 << (self.code.size() - 1)

    @property
    def own(self) -> tuple[z3.BitVecRef, ...]:
        return (self.sign, self.magnitude, *self.codes)

    def at(self, code: z3.BitVecRef) -> z3.BitVecRef:
        return z3.substitute(self.result, (self.code, code))

    @property
    def sign(self) -> z3.BitVecRef:
        return z3.BitVec("sign of a code", 1)

    @property
    def magnitude(self) -> z3.BitVecRef:
        return z3.BitVec("magnitude of a code", self.code.size() - 1)

    @property
    def neighbouring(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """A code, and the one of the next larger magnitude."""
        return z3.Concat(self.sign, self.magnitude), z3.Concat(self.sign, self.magnitude + 1)

    @property
    def is_below_last(self) -> z3.BoolRef:
        return z3.ULT(self.magnitude, self.last)

    def in_turn(self, x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
        """Of the results x and y of neighbouring codes."""
        plus = self.sign == 0
        return z3.And(z3.Implies(plus, self.relation(x, y)), z3.Implies(z3.Not(plus), self.relation(y, x)))

    @property
    def neighbours(self) -> z3.BoolRef:
        return z3.Implies(self.is_below_last, self.in_turn(*map(self.at, self.neighbouring)))

    @property
    def zeros(self) -> z3.BoolRef:
        bits = self.code.size()
        plus, minus = (self.at(z3.BitVecVal(code, bits)) for code in (0, 1 << (bits - 1)))
        return z3.And(self.relation(plus, minus), self.relation(minus, plus))

    @property
    def premises(self) -> tuple[z3.BoolRef, ...]:
        return self.neighbours, self.zeros, self.transitive, self.reflexive

    @property
    def codes(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """What the conclusion is about."""
        bits = self.code.size()
        return z3.BitVec("smaller code", bits), z3.BitVec("larger code", bits)

    @property
    def conclusion(self) -> z3.BoolRef:
        x, y = self.codes
        inside = [z3.ULE(z3.Extract(x.size() - 2, 0, code), self.last) for code in (x, y)]
        return z3.Implies(z3.And(*inside, order(x) <= order(y)), self.relation(self.at(x), self.at(y)))

    def conclude(self, theory: Theory) -> z3.BoolRef:
        """The conclusion.  Raises RuleError unless all four premises are theorems."""
        return theory.by_rule(SUCCESSOR, self.premises, self.conclusion)


@dataclass(frozen=True)
class Ascent(_Results):
    """The rule for a term `result` with a constant `number` in it, in two's complement, from −reach to reach.

    `given` is about the other constants.
    """

    number: z3.BitVecRef
    result: z3.BitVecRef
    relation: Callable[[z3.BitVecRef, z3.BitVecRef], z3.BoolRef]
    reach: int
    given: z3.BoolRef

    def __post_init__(self) -> None:
        self.check(ASCENT, self.given)
        if self.number.get_id() in {x.get_id() for x in constants_of(self.given)}:
            raise RuleError("what is given is not about the number")
        assert self.reach < 1 << (self.number.size() - 1)

    @property
    def own(self) -> tuple[z3.BitVecRef, ...]:
        return self.numbers

    @property
    def numbers(self) -> tuple[z3.BitVecRef, z3.BitVecRef]:
        """What the conclusion is about."""
        bits = self.number.size()
        return z3.BitVec("smaller number", bits), z3.BitVec("larger number", bits)

    def at(self, number: z3.BitVecRef) -> z3.BitVecRef:
        return z3.substitute(self.result, (self.number, number))

    @property
    def neighbours(self) -> z3.BoolRef:
        n = self.number
        inside = z3.And(self.given, n >= -self.reach, n < self.reach)
        return z3.Implies(inside, self.relation(self.at(n), self.at(n + 1)))

    @property
    def premises(self) -> tuple[z3.BoolRef, ...]:
        return self.neighbours, self.transitive, self.reflexive

    @property
    def conclusion(self) -> z3.BoolRef:
        x, y = self.numbers
        inside = z3.And(self.given, x >= -self.reach, x <= y, y <= self.reach)
        return z3.Implies(inside, self.relation(self.at(x), self.at(y)))

    def conclude(self, theory: Theory) -> z3.BoolRef:
        """The conclusion.  Raises RuleError unless all three premises are theorems."""
        return theory.by_rule(ASCENT, self.premises, self.conclusion)
