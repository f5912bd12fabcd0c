"""The kernel of proofs: what it proves is true, and what is not proved has no `Proof`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import z3
from hypothesis import given, settings
from hypothesis import strategies as st
from support.in_process import OPEN, Forgetful
from support.proofs import NOTHING, answered, some_proof

from mmaformal.lanes import Tracer
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import (
    ArgumentError,
    Inference,
    Link,
    NotProvedError,
    Rule,
    Scripts,
    Theorem,
    by_rule,
    composition,
    digests_of,
    direct,
    gathered,
    lemmas_of,
    prove,
    together,
)
from mmaformal.proof.lemmas import Argument, number
from mmaformal.solver.answers import Obligation, Proof, made_by

X, Y = z3.BitVecs("x y", 2)
UP, DOUBLE, SUM, TOP = X + 1, X + X, X + Y, z3.Extract(1, 1, Y)
TERMS: tuple[Any, ...] = (X, Y, UP, DOUBLE, SUM, TOP)
CLAIMS: tuple[Any, ...] = (
    X == Y,
    z3.ULT(X, 2),
    Y == UP,
    z3.ULE(X, SUM),
    z3.Extract(0, 0, DOUBLE) == 0,
    TOP == 1,
    z3.Implies(z3.ULT(X, 2), z3.ULT(UP, 3)),
    z3.Or(X == 0, X != 0),
    z3.Or(X == 0, Y == 0),
    z3.And(X == 0, Y == 0),
    z3.Not(X == Y),
    DOUBLE == Y,
    X == X,
)


def true_everywhere(assumed: Sequence[z3.BoolRef], claim: z3.BoolRef) -> bool:
    """By looking at every x and y."""
    for x in range(4):
        for y in range(4):
            here = [(X, z3.BitVecVal(x, 2)), (Y, z3.BitVecVal(y, 2))]
            premises, said = (
                z3.is_true(z3.simplify(z3.substitute(each, *here)))
                for each in (z3.And([*assumed, True]), claim)
            )
            if premises and not said:
                return False
    return True


claims, terms = st.sampled_from(CLAIMS), st.lists(st.sampled_from(TERMS), max_size=3)
inferences = st.lists(
    st.tuples(st.lists(claims, max_size=2), claims, terms, st.sampled_from(["derive", "cases", "values"])),
    min_size=1,
    max_size=4,
)


def theorem(
    made: Theorem, steps: Sequence[tuple[Any, Any, Any, str]], assumed: Sequence[z3.BoolRef], conclusion: Any
) -> None:
    for each in assumed:
        made.assume("it is so", Link(each))
    for using, claim, inside, how in steps:
        links = [Link(each) for each in using]
        if how == "cases":
            made.split("one of two", [Link(claim), Link(z3.Not(claim))], links, inside)
        else:
            made.derive("step", "so", [Link(claim)], links, inside, X if how == "values" else None)
    made.conclude("it follows", conclusion)


@settings(max_examples=400, deadline=None)
@given(inferences, st.lists(claims, max_size=2), claims, st.booleans())
def test_what_is_proved_is_true(
    steps: list[tuple[Any, Any, Any, str]], assumed: list[Any], conclusion: Any, connectives: bool
) -> None:
    made = Theorem()
    made.connectives = connectives
    theorem(made, steps, assumed, conclusion)
    try:
        prove(Forgetful(), made)
    except NotProvedError:
        return
    except ArgumentError:
        given_ = [conclusion.arg(0)] if z3.is_implies(conclusion) else []
        assert true_everywhere([*assumed, *given_], z3.BoolVal(False)), "something meets the premises"
        return
    assert true_everywhere(assumed, conclusion)


@settings(max_examples=200, deadline=None)
@given(inferences, claims)
def test_what_claims_give_is_true(steps: list[tuple[Any, Any, Any, str]], conclusion: Any) -> None:
    proving = Composing(Forgetful())
    try:
        for using, claim, inside, _ in steps:
            proving.claim("step", "so", claim, using, inside)
        proving.conclude("it follows", conclusion)
    except NotProvedError:
        return
    assert true_everywhere([], conclusion)


@pytest.mark.parametrize("inside", [(), (X,), (UP,), (SUM, X), (DOUBLE, Y), (TOP,)])
def test_one_claim_from_another(inside: tuple[Any, ...]) -> None:
    """Each claim under each premise, with these terms cut: no proof of what is not so; nothing cut, all of what is."""
    proved = {Theorem: 0, Composing: 0}
    asker = Forgetful()
    for premise in CLAIMS:
        for claim in CLAIMS:
            made, proving = Theorem(), Composing(asker)
            theorem(made, [([premise], claim, inside, "derive")], [premise], claim)
            so = true_everywhere([premise], claim)
            for kind, attempt in (
                (Theorem, lambda made=made: prove(asker, made)),
                (
                    Composing,
                    lambda proving=proving, claim=claim, premise=premise: proving.claim(
                        "step", "so", claim, [premise], inside
                    ),
                ),
            ):
                try:
                    attempt()
                except NotProvedError:
                    assert inside or not so, (premise, claim)
                    continue
                assert so, (premise, claim)
                proved[kind] += 1
    assert min(proved.values()) > 20


# ---- what is refused -------------------------------------------------------------------------------------------------


def refused(build: Callable[[Theorem], None]) -> str:
    """Why a theorem has no proof."""
    made = Theorem()
    build(made)
    with pytest.raises(NotProvedError) as error:
        prove(Forgetful(), made)
    return str(error.value)


def proof_of(build: Callable[[Theorem], None], made: Theorem | None = None) -> Proof:
    made = made or Theorem()
    build(made)
    return prove(Forgetful(), made)


SMALL, SMALLER = Link(z3.ULT(X, 2), (X,)), Link(z3.ULT(X, 3), (X,))


def test_a_claim_follows_from_claims_before() -> None:
    def build(made: Theorem) -> None:
        made.assume("x is small", SMALL)
        made.derive("step", "so it is smaller", [SMALLER], [SMALL])
        made.conclude("x is smaller", SMALLER)

    proof = proof_of(build)
    assert proof.obligations[-1].name.startswith("composition")
    assert "if x is small, x is smaller" in proof.obligations[-1].statement
    assert len(proof.obligations) == 2


def test_what_is_used_has_to_be_derived_or_assumed() -> None:
    def build(made: Theorem) -> None:
        made.derive("step", "so it is smaller", [SMALLER], [SMALL])
        made.conclude("x is smaller", SMALLER)

    assert refused(build).startswith("composition")


def test_the_conclusion_is_what_is_said() -> None:
    def build(made: Theorem) -> None:
        made.derive("step", "a term is itself", [Link(X == X)], inputs=[X])
        made.conclude("x is smaller", SMALLER)

    assert refused(build).startswith("composition")


def test_a_claim_does_not_follow_from_what_follows_from_it() -> None:
    def build(made: Theorem) -> None:
        made.assume("x is smaller", SMALLER)
        made.derive("step", "so", [SMALLER], [SMALL])
        made.conclude("x is small", SMALL)

    assert refused(build).startswith("composition")


@pytest.mark.parametrize("missing", range(4))
def test_each_value_is_a_case(missing: int) -> None:
    def build(made: Theorem) -> None:
        not_that = Link(missing != X)
        made.derive("step", "x is another", [not_that], each_value_of=X)
        made.conclude("x is another", not_that)

    assert refused(build).startswith("step")


def test_one_of_the_cases_is_not_all_of_them() -> None:
    low, high = Link(z3.ULT(X, 2)), Link(z3.UGE(X, 2))

    def build(made: Theorem) -> None:
        made.split("low or high", [low, high])
        made.conclude("low", low)

    def whole(made: Theorem) -> None:
        made.split("low or high", [low, high])
        goal = Link(z3.ULE(X, 3))
        made.derive("step", "low", [goal], [low])
        made.derive("step", "high", [goal], [high])
        made.conclude("at most 3", goal)

    def not_all(made: Theorem) -> None:
        made.split("low", [low])
        made.conclude("low", low)

    assert refused(build).startswith("composition")
    assert refused(not_all).startswith("cases")
    assert proof_of(whole)


def test_terms_that_are_cut_are_any() -> None:
    """Two terms are two constants, in premises and conclusion alike."""

    def equal(made: Theorem) -> None:
        made.derive("step", "so", [Link(UP == DOUBLE)], inputs=[UP, DOUBLE])
        made.conclude("so", Link(UP == DOUBLE))

    def odd(made: Theorem) -> None:
        even = Link(z3.Extract(0, 0, DOUBLE) == 0)
        made.derive("step", "so", [even], inputs=[DOUBLE])
        made.conclude("so", even)

    assert refused(equal).startswith("step")
    assert refused(odd).startswith("step")

    def kept(made: Theorem) -> None:
        same = Link(DOUBLE == Y, (DOUBLE, Y))
        made.assume("2x = y", same)
        made.derive("step", "so", [Link(DOUBLE + 1 == Y + 1)], [same])
        made.conclude("so", Link(DOUBLE + 1 == Y + 1))

    assert proof_of(kept)


def test_what_a_claim_determines_is_part_of_it() -> None:
    smuggled = Link(z3.BoolVal(True), (X,), ((Y, X),))

    def build(made: Theorem) -> None:
        made.derive("step", "nothing", [Link(z3.BoolVal(True))])
        made.derive("step", "so", [Link(Y == X)], [smuggled])
        made.conclude("so", Link(Y == X))

    assert refused(build).startswith("composition")
    with pytest.raises(ArgumentError, match="determines nothing"):
        Theorem().assume("so", smuggled)


def test_without_a_conclusion_there_is_no_proof() -> None:
    made = Theorem()
    made.derive("step", "a term is itself", [Link(X == X)])
    with pytest.raises(ArgumentError, match="without a conclusion"):
        prove(Forgetful(), made)
    assert composition([], z3.BoolVal(True))[0].decl().kind() == z3.Z3_OP_IMPLIES


def test_what_is_not_settled_is_not_proved() -> None:
    made = Theorem()
    made.derive("hard", "a term is itself", [Link(X == X)], inputs=[X])
    made.conclude("so", Link(X == X))
    for name in ("hard", "composition"):
        with pytest.raises(NotProvedError, match=f"not settled \\({OPEN.why}\\)") as error:
            prove(ForgetfulOf(name), made)
        assert not error.value.refuted
    proving = Composing(Forgetful(lambda name: name == "hard"))
    with pytest.raises(NotProvedError, match="not settled"):
        proving.claim("hard", "a sum is one in any order", SUM == Y + X)


class ForgetfulOf(Forgetful):
    """Does not settle scripts of a stage."""

    def __init__(self, stage: str) -> None:
        super().__init__()
        self.stage = stage

    def decide(self, name: str, *more: Any, **how: Any) -> Any:
        return OPEN if name.startswith(self.stage) else super().decide(name, *more, **how)


def test_lemmas_of_one_statement_are_two() -> None:
    def build(made: Theorem) -> None:
        made.derive("step", "so", [Link(X == X)], inputs=[X])
        made.derive("step", "so", [Link(X == Y)], inputs=[X, Y])
        made.conclude("so", Link(X == Y))

    assert refused(build).startswith("step")


def test_connectives_are_what_they_are() -> None:
    p, q = X == 0, Y == 0
    both, either = z3.And(p, q), z3.Or(p, q)
    follows: list[tuple[list[Any], Any, bool]] = [
        ([both], p, True),
        ([either], p, False),
        ([either, z3.Not(p)], q, True),
        ([z3.Implies(p, q), p], q, True),
        ([z3.Implies(p, q)], q, False),
        ([z3.Not(p)], p, False),
    ]
    for given_, conclusion, holds in follows:
        said = composition([Inference((), (each,)) for each in given_], conclusion)[0]
        assert (prove_here(said) == z3.unsat) == holds, given_
    inferences_ = [Inference((), (both,))]
    assert prove_here(composition(inferences_, p, whole=[both])[0]) == z3.sat
    assert prove_here(composition(inferences_, p, connectives=False)[0]) == z3.sat
    assert prove_here(composition(inferences_, both, whole=[both])[0]) == z3.unsat


def prove_here(formula: z3.BoolRef) -> z3.CheckSatResult:
    solver = z3.Solver()
    solver.add(z3.Not(formula))
    return solver.check()


def test_a_premise_of_an_inference_is_needed_only_if_it_is_one() -> None:
    p, q, r = X == 0, Y == 0, X == Y
    one = [Inference((p, q), (r,)), Inference((), (p,))]
    assert prove_here(composition(one, r)[0]) == z3.sat
    assert prove_here(composition([*one, Inference((), (q,), assumed="y is zero")], r)[0]) == z3.unsat
    assert prove_here(composition([Inference((), (p, q), cases=True)], p)[0]) == z3.sat
    assert prove_here(composition([Inference((), (p, q))], q)[0]) == z3.unsat


# ---- lanes -----------------------------------------------------------------------------------------------------------


def traced() -> tuple[Tracer, Any, Any]:
    tracer = Tracer()
    return tracer, tracer.input(X, np.arange(4)), tracer.input(Y, np.arange(4))


def test_a_lane_is_in_its_range_and_its_rules_are_lemmas() -> None:
    tracer, x, y = traced()
    total = x + y
    argument = Argument(tracer)
    assert [lemma.stage for lemma in argument.lemmas.values()] == ["64-bit lanes"] * len(tracer.rules)
    links = [number(x, X), number(y, Y)]
    argument.derive("inputs", "codes", links, inputs=[X, Y])
    wide = z3.ZeroExt(1, X) + z3.ZeroExt(1, Y)
    result = number(total, wide)
    argument.derive("sum", "sum", [result], links)
    argument.conclude("the sum", result)
    assert prove(Forgetful(), argument)
    other, u, _ = traced()
    with pytest.raises(ArgumentError, match="another trace"):
        argument.derive("sum", "sum", [result], [number(u, X)])
    assert other is not tracer


# ---- proofs ----------------------------------------------------------------------------------------------------------


def obligation(name: str) -> Obligation:
    return answered(name, name, f"(assert {name})")


def test_only_the_kernel_makes_a_proof() -> None:
    with pytest.raises(TypeError, match="kernel alone"):
        Proof((NOTHING,))
    with pytest.raises(TypeError, match="kernel alone"):
        Proof((NOTHING,), key=object())
    with pytest.raises(TypeError, match="proves nothing"):
        made_by(__name__)
    with pytest.raises(ArgumentError, match="nothing was proved"):
        direct()


def test_an_obligation_is_told_with_its_seconds_to_a_thousandth() -> None:
    told = answered("p", "q", "(assert false)(check-sat)", "z3", "4", 1.23456).to_json()
    assert (told["name"], told["solver"], told["version"], told["seconds"]) == ("p", "z3", "4", 1.235)


def test_proofs_are_put_together_with_the_last_conclusion_last() -> None:
    first, second = some_proof(obligation("p"), obligation("q")), some_proof(obligation("q"), obligation("r"))
    both = together(by_rule("a rule", first), second)
    assert [each.name for each in both.obligations] == ["p", "q", "r"]
    assert both.rules == ("a rule",)
    assert by_rule("another", both).rules == ("a rule", "another")
    assert "by the rule: a rule" in str(both)
    assert both.to_json()["rules"] == ["a rule"]
    assert [each.name for each in together(second, first).obligations] == ["r", "p", "q"]


def test_a_proof_is_gathered_of_all_its_lemmas() -> None:
    made = Theorem()
    made.derive("step", "a term is itself", [Link(X == X)])
    made.conclude("so", Link(X == X))
    made.rests_on(Rule("so", "it is so"))
    digests, (first, last) = digests_of(made, Scripts()), prove(Forgetful(), made).obligations
    assert gathered(digests, [last]) is None
    assert gathered(digests, [first]) is None
    proof = gathered(digests, [last, obligation("p"), first])
    assert proof is not None
    assert proof.obligations == (first, last)
    assert proof.rules == ("so: it is so",)


def test_the_conclusion_is_the_last_lemma() -> None:
    made = Theorem()
    made.conclude("so", Link(X == X))
    made.derive("step", "a term is itself", [Link(X == X)])
    made.conclude("so, really", Link(X == X))
    assert [lemma.statement for lemma in lemmas_of(made)][-1] == "from all of these, so, really"


def test_a_claim_is_proved_once_and_with_its_premises() -> None:
    proving = Composing(Forgetful())
    proving.claim("first", "so", z3.ULT(X, 3), [z3.ULT(X, 2)], [X])
    assert proving.claim("again", "so", z3.ULT(X, 3)) is not None
    with pytest.raises(NotProvedError, match="from all of these"):
        proving.conclude("x is smaller", z3.ULT(X, 3))
    proving.claim(
        "cut", "so", z3.Extract(0, 0, DOUBLE) == 0, (), [DOUBLE]
    )  # not of any term, but of that one
    with pytest.raises(NotProvedError):
        proving.claim("false", "so", z3.Extract(0, 0, DOUBLE) == 1, (), [DOUBLE])
