"""The rules of proofs, checked in full on small formats: of all results, and all relations of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
import z3
from support.in_process import Forgetful

from mmaformal.proof.definitions import at_least
from mmaformal.proof.kernel import Link, NotProvedError
from mmaformal.proof.rules import INSTANCE, Ascent, Instance, RuleError, Successor, Theory, instance
from mmaformal.solver.asking import constants_of

BITS = 3  #: of a code: 8 of them
RESULT = 2  #: bits of a result: 4 of them

#: Which results are related, and what each code gives: any of all there are.
RELATED = [z3.Bool(f"related {i}") for i in range(1 << 2 * RESULT)]
GIVEN = [z3.BitVec(f"given {i}", RESULT) for i in range(1 << BITS)]


def related(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    pair = z3.Concat(x, y)
    return z3.Or([z3.And(pair == i, each) for i, each in enumerate(RELATED)])


def result_of(code: z3.BitVecRef) -> z3.BitVecRef:
    out = GIVEN[0]
    for i, each in enumerate(GIVEN):
        out = z3.If(code == i, each, out)
    return out


def for_all(claim: z3.BoolRef) -> z3.BoolRef:
    """The claim, for all values of its constants but those above."""
    fixed = {x.get_id() for x in (*RELATED, *GIVEN)}
    free = [x for x in constants_of(claim) if x.get_id() not in fixed]
    values = [[z3.BitVecVal(v, x.size()) for v in range(1 << x.size())] for x in free]  # type: ignore[attr-defined]
    return z3.And(
        [z3.substitute(claim, *zip(free, each, strict=True)) for each in product(*values)]
        if free
        else [claim]
    )


def follows(premises: Sequence[z3.BoolRef], conclusion: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.add(*map(for_all, premises), z3.Not(for_all(conclusion)))
    verdict = solver.check()
    assert verdict != z3.unknown
    return bool(verdict == z3.unsat)


CODE = z3.BitVec("code", BITS)
GUARD = z3.BitVec("guard", 1)
RULES: list[Callable[[], Any]] = [
    lambda: Successor(CODE, result_of(CODE), related, 3),
    lambda: Successor(CODE, result_of(CODE), related, 2),
    lambda: Ascent(CODE, result_of(CODE), related, 3, z3.BoolVal(True)),
    lambda: Ascent(CODE, result_of(CODE), related, 2, GUARD == 1),
]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_is_right_and_needs_each_of_its_premises(rule: Callable[[], Any]) -> None:
    made = rule()
    assert follows(made.premises, made.conclusion)
    for left_out in range(len(made.premises)):
        rest = [each for i, each in enumerate(made.premises) if i != left_out]
        assert not follows(rest, made.conclusion)


def number(code: int, rule: Any) -> int | None:
    """The number that a code stands for, of those that the rule is about; None of others."""
    if isinstance(rule, Ascent):
        value = code - (code >> BITS - 1 << BITS)
        return value if abs(value) <= rule.reach else None
    sign, magnitude = code >> BITS - 1, code % (1 << BITS - 1)
    return (-magnitude if sign else magnitude) if magnitude <= rule.last else None


@pytest.mark.parametrize("rule", RULES)
def test_a_conclusion_says_it_of_all_numbers_and_of_no_others(rule: Callable[[], Any]) -> None:
    made = rule()
    numbers = {code: x for code in range(1 << BITS) if (x := number(code, made)) is not None}
    every = [related(GIVEN[x], GIVEN[y]) for x, y in product(numbers, numbers) if numbers[x] <= numbers[y]]
    assert follows([made.conclusion], z3.And(every))
    assert follows(every, made.conclusion)


def test_a_rule_of_one_code_less_does_not_reach_it() -> None:
    made, further = (Successor(CODE, result_of(CODE), related, last) for last in (2, 3))
    assert not follows(made.premises, further.conclusion)


X, Y = z3.BitVecs("x y", 4)


def at_most(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
    return x <= y


def test_a_rule_takes_theorems_alone(theory: Theory) -> None:
    rule = Ascent(X, z3.SignExt(1, X) + 1, at_most, 7, z3.BoolVal(True))
    theory.claim("next", "a claim, of which nothing was concluded", rule.neighbours)
    with pytest.raises(RuleError, match="ascent needs a theorem"):
        rule.conclude(theory)
    for i, each in enumerate(rule.premises):
        theory.holds(f"premise {i}", "a theorem", each)
    conclusion = rule.conclude(theory)
    assert theory.proves(conclusion)
    theory.theorem("the conclusion", conclusion)
    assert [rule.split(":")[0] for rule in theory.proof().rules] == ["ascent"]


def test_what_holds_under_a_premise_is_no_theorem(theory: Theory) -> None:
    """Else it would hold of any other term as well, of which nothing is known."""
    small = theory.claim("small", "x < 5", z3.ULT(X, 5), [z3.ULT(X, 3)])
    with pytest.raises(RuleError, match="instance needs a theorem"):
        instance(theory, small, [(X, Y)])
    with pytest.raises(NotProvedError):
        theory.theorem("x < 5", small)
    said = theory.theorem("x < 3 gives x < 5", z3.Implies(z3.ULT(X, 3), small))
    assert theory.proves(instance(theory, said, [(X, Y + 1)]))
    theory.theorem("of y + 1", z3.Implies(z3.ULT(Y + 1, 3), z3.ULT(Y + 1, 5)))


ANY = z3.BoolVal(True)
SHORT = z3.Extract(RESULT - 1, 0, CODE)
OWN = {
    Successor: ("sign of a code", "magnitude of a code", "smaller code"),
    Ascent: ("larger number", "code"),
}


def own_in_relation(name: str) -> Callable[[Any, Any], Any]:
    return lambda x, y: z3.Or(x == y, z3.BitVec(name, RESULT) == x)


def at_another_time() -> Callable[[Any, Any], Any]:
    """A relation that is asked the second time for another one."""
    asked: list[Any] = []
    return lambda x, y: asked.append(x) or (x == y if len(asked) > 1 else x <= y)


#: Breaks of what each rule demands of what it is made of.
BROKEN: list[tuple[str, Callable[[], Any]]] = [
    ("no constant of two bits", lambda: Successor(CODE + 1, SHORT, related, 3)),
    ("no constant of two bits", lambda: Ascent(z3.BitVecVal(1, BITS), SHORT, related, 3, ANY)),
    ("no constant of two bits", lambda: Successor(z3.BitVec("code", 1), SHORT, related, 0)),
    ("no magnitude", lambda: Successor(CODE, SHORT, related, 4)),
    ("no magnitude", lambda: Successor(CODE, SHORT, related, -1)),
    ("no numbers", lambda: Ascent(CODE, SHORT, related, 4, ANY)),
    ("no numbers", lambda: Ascent(CODE, SHORT, related, -1, ANY)),
    ("the result has", lambda: Successor(CODE, z3.BitVec("magnitude of a code", 2), related, 3)),
    ("the result has", lambda: Successor(CODE, z3.BitVec("larger code", 2), related, 3)),
    ("the result has", lambda: Ascent(CODE, SHORT + z3.BitVec("result 1", 2), related, 3, ANY)),
    ("what is given has", lambda: Ascent(CODE, SHORT, related, 3, CODE == 1)),
    ("what is given has", lambda: Ascent(CODE, SHORT, related, 3, z3.BitVec("smaller number", 3) == 1)),
    ("no claim", lambda: Ascent(CODE, SHORT, lambda x, y: x + y, 3, ANY)),  # type: ignore[arg-type, return-value]
    ("stand for any", lambda: Ascent(CODE, SHORT, own_in_relation("one of two results"), 3, ANY)),
    ("the relation has", lambda: Ascent(CODE, SHORT, own_in_relation("result 0"), 3, ANY)),
    ("another one", lambda: Successor(CODE, SHORT, at_another_time(), 3)),
    ("another one", lambda: Successor(CODE, SHORT, lambda x, y: x == y if "two" in str(x) else ANY, 3)),
    ("the relation has", lambda: Ascent(CODE, SHORT, own_in_relation("result 2"), 3, ANY)),
    *(
        ("the relation has", lambda n=n: Successor(CODE, SHORT, own_in_relation(n), 3))
        for n in OWN[Successor]
    ),
    *(("the relation has", lambda n=n: Ascent(CODE, SHORT, own_in_relation(n), 3, ANY)) for n in OWN[Ascent]),
    ("and this is none", lambda: Instance(CODE == 1, ((CODE + 1, CODE),))),
    ("and this is none", lambda: Instance(CODE == 1, ((z3.BitVecVal(1, BITS), CODE),))),
    ("is of the sort", lambda: Instance(CODE == 1, ((CODE, GUARD),))),
]


@pytest.mark.parametrize(("why", "make"), BROKEN)
def test_a_rule_looks_at_its_side_conditions(why: str, make: Callable[[], Any]) -> None:
    with pytest.raises(RuleError, match=why):
        make()


def test_zero_is_not_three_by_a_relation_of_the_rules_own_constants() -> None:
    """Equal, or the code's magnitude and the next: holds of neighbours, and of nothing else."""
    magnitude = z3.BitVec("magnitude of a code", RESULT)

    def neighbours(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BoolRef:
        pairs = z3.And(x == magnitude, y == magnitude + 1), z3.And(y == magnitude, x == magnitude + 1)
        return z3.Or(x == y, *pairs)

    with pytest.raises(RuleError, match="magnitude of a code"):
        Successor(CODE, SHORT, neighbours, 3)


def test_a_rule_makes_its_own_conclusion() -> None:
    theory = Theory(Forgetful())

    @dataclass(frozen=True)
    class Wrong(Instance):
        @property
        def conclusion(self) -> z3.BoolRef:
            return X == Y

    with pytest.raises(RuleError, match="none of the rules"):
        theory.by_rule(Wrong(theory.holds("so", "x is x", X == X), ()))
    with pytest.raises(TypeError):
        theory.by_rule(INSTANCE, [], X == Y)  # type: ignore[call-arg, arg-type]
    with pytest.raises(NotProvedError):
        theory.theorem("x is y", X == Y)


def test_a_theorem_has_no_premises() -> None:
    """Else it would be told without them: x is 3."""
    with pytest.raises(RuleError, match="no premises"):
        Theory(Forgetful()).assume("x is 3", Link(X == 3))


def test_a_claim_under_premises_is_no_theorem() -> None:
    theory, x = Theory(Forgetful()), z3.BitVec("x", 4)
    small = theory.claim("small", "x < 3 if x < 2", z3.ULT(x, 3), [z3.ULT(x, 2)], [x])
    assert not theory.proves(small)
    with pytest.raises(NotProvedError):
        theory.holds("small", "x < 3", small)
    assert not theory.proves(small)
    with pytest.raises(NotProvedError):
        theory.theorem("x < 3", small)
    twice = theory.claim("even", "2x is even if x < 2", z3.Extract(0, 0, x + x) == 0, [z3.ULT(x, 2)])
    assert theory.proves(theory.holds("even", "2x is even", twice))
    theory.theorem("2x is even", twice)
    assert theory.proof().obligations


# ---- trees of additions ----------------------------------------------------------------------------------------------

#: The sum of each two results: any of all additions there are.
SUMS = [z3.BitVec(f"sum {i}", RESULT) for i in range(1 << 2 * RESULT)]


def plus(x: z3.BitVecRef, y: z3.BitVecRef) -> z3.BitVecRef:
    out = SUMS[0]
    for i, each in enumerate(SUMS):
        out = z3.If(z3.Concat(x, y) == i, each, out)
    return out


def test_what_is_alike_stays_alike_in_every_tree_of_additions() -> None:
    """The rule holds of three leaves, for all relations and all additions; not where an addition does not keep it."""
    x, u, y, v, z, w = z3.BitVecs("x u y v z w", RESULT)
    kept = z3.Implies(z3.And(related(x, u), related(y, v)), related(plus(x, y), plus(u, v)))
    leaves = [related(x, u), related(y, v), related(z, w)]
    for tree in (lambda p, q, r: plus(plus(p, q), r), lambda p, q, r: plus(p, plus(q, r))):
        conclusion = z3.Implies(z3.And(leaves), related(tree(x, y, z), tree(u, v, w)))
        solver = z3.Solver()
        instances = [(x, y), (plus(x, y), z), (y, z), (x, plus(y, z))]
        others = [(u, v), (plus(u, v), w), (v, w), (u, plus(v, w))]
        lemmas = [
            z3.substitute(kept, (x, p), (y, q), (u, r), (v, t))
            for (p, q), (r, t) in zip(instances, others, strict=True)
        ]
        solver.add(z3.Not(conclusion))
        assert solver.check() == z3.sat
        solver.add(lemmas)
        assert solver.check() == z3.unsat


# ---- fixed point -----------------------------------------------------------------------------------------------------


def test_comparisons_of_numbers_are_those_of_rationals() -> None:
    """`at_least`, and with it `is_sharp`, `is_around`: all significands and exponents of 3 bits."""
    m, n, t, q = z3.BitVecs("m n t q", 3)
    claim = at_least(m, z3.SignExt(1, t), n, z3.SignExt(1, q))
    for u, v, i, j in product(range(8), range(8), range(-4, 4), range(-4, 4)):
        pairs = [(x, z3.BitVecVal(value, 3)) for x, value in ((m, u), (n, v), (t, i), (q, j))]
        said = z3.is_true(z3.simplify(z3.substitute(claim, *pairs)))
        assert said == (u * Fraction(2) ** i >= v * Fraction(2) ** j)


def test_comparisons_of_numbers_are_those_of_integers_of_a_fixed_point() -> None:
    """The rule: of all fixed points that have both numbers."""
    m, n, t, q = z3.BitVecs("m n t q", 4)
    lowest = z3.BitVec("lowest", 4)
    integers = [z3.ZeroExt(16, x) << z3.ZeroExt(16, e - lowest) for x, e in ((m, t), (n, q))]
    solver = z3.Solver()
    solver.add(lowest <= t, lowest <= q)
    solver.add(at_least(m, z3.SignExt(1, t), n, z3.SignExt(1, q)) != z3.UGE(*integers))
    assert solver.check() == z3.unsat
