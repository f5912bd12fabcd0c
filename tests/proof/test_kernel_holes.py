"""Mistakes that a person may make, and gets no proof of: each of these was a way to prove what is not so."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import pickle
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import z3
from support.in_process import OPEN, Forgetful, Here
from support.proofs import NOTHING, answered, some_proof

import mmaformal
from mmaformal.encodings import smt
from mmaformal.facts.rounding_model import argue_rounding
from mmaformal.formats import FORMATS
from mmaformal.lanes import LaneError, Range, SymbolicLane, Tracer
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import (
    ArgumentError,
    Digests,
    Inference,
    Link,
    NotProvedError,
    Scripts,
    Theorem,
    by_rule,
    conjunction,
    digests_of,
    direct,
    gathered,
    prove,
    together,
)
from mmaformal.proof.lemmas import Argument, condition, number
from mmaformal.proof.rules import Instance, Theory, instance
from mmaformal.solver import asking
from mmaformal.solver.answers import Equal, Holds, Obligation, Proof
from mmaformal.solver.asking import Asker, Settled, cut_away, obligation, opposite, renamed, restated
from mmaformal.solver.portfolio import Outcome, Portfolio
from mmaformal.solver.script import smtlib

X, Y = z3.BitVecs("x y", 8)


def settled(claim: z3.BoolRef) -> z3.CheckSatResult:
    solver = z3.Solver()
    solver.add(claim)
    return solver.check()


# ---- several claims at once ------------------------------------------------------------------------------------------


def test_of_several_claims_each_follows() -> None:
    """x < 200 or x > 100 for all bytes, but not both."""
    proving = Composing(Forgetful())
    below, above = Link(z3.ULT(X, 200)), Link(z3.UGT(X, 100))
    with pytest.raises(NotProvedError):
        proving.derive("step", "100 < x < 200", [below, above])
    assert not proving.inferences


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_opposite_of_claims_is_that_one_of_them_is_false(count: int, whole: bool) -> None:
    premises, claims = [z3.Bool("p"), z3.Bool("q")], [z3.Bool(f"c{i}") for i in range(count)]
    said = opposite(premises, claims, whole)
    assert settled(said != z3.And(*premises, z3.Not(z3.And(*claims, True)))) == z3.unsat


# ---- premises nobody proves -----------------------------------------------------------------------------------------


def test_what_is_assumed_is_in_the_text() -> None:
    for what in ("", " "):
        with pytest.raises(ArgumentError, match="in words"):
            Theorem().assume(what, Link(X == 3))
    proving = Composing(Forgetful())
    proving.assume("x is 3", Link(X == 3))
    proving.claim("odd", "x is odd", z3.Extract(0, 0, X) == 1, [X == 3])
    proving.conclude("x is odd", z3.Extract(0, 0, X) == 1)
    assert proving.proof().obligations[-1].statement.endswith("if x is 3, x is odd")


def a_lane() -> tuple[Tracer, SymbolicLane]:
    """A lane of two bits that is at most 2."""
    tracer = Tracer()
    x = tracer.input(z3.BitVec("x", 1), np.arange(2))
    y = tracer.input(z3.BitVec("y", 1), np.arange(2))
    return tracer, x + y


def about_range(made: Theorem, lane: SymbolicLane) -> None:
    """Derive that a term is not 3, from its being a lane that is at most 2."""
    given, claim = number(lane, lane.term), Link(lane.term != 3)
    made.derive("lane", "the lane is its term", [given], inputs=[lane.term])
    made.derive("range", "so it is not 3", [claim], [given])
    made.conclude("it is not 3", claim)


def uses_of(made: Theorem, lane: SymbolicLane) -> list[Callable[[], Any]]:
    """Ways to use a lane in a theorem."""
    given, claim, flag = number(lane, lane.term), Link(lane.term != 3), condition(lane > 1, z3.Bool("f"))
    return [
        lambda: about_range(made, lane),
        lambda: made.derive("lane", "the lane is its term", [given]),
        lambda: made.derive("range", "so it is not 3", [claim], [given]),
        lambda: made.derive("flag", "a flag is a condition", [flag]),
        lambda: made.split("one of one", [claim], [given]),
        lambda: made.split("one of one", [given]),
        lambda: made.assume("the lane is its term", Link(claim.claim, lanes=(lane,))),
        lambda: made.conclude("the lane is its term", given),
        lambda: made.conclude("a flag is a condition", flag),
    ]


def test_the_range_of_a_lane_is_a_premise() -> None:
    """Only an argument about the lane's own trace has the rules that give its range."""
    tracer, lane = a_lane()
    argument = Argument(tracer)
    about_range(argument, lane)
    proof = prove(Forgetful(), argument)
    assert any(each.name.startswith("64-bit lanes") for each in proof.obligations)
    for other in (Theorem(), Argument(a_lane()[0])):
        for attempt in uses_of(other, lane):
            with pytest.raises(ArgumentError, match="whose rules are no lemmas here"):
                attempt()
    with pytest.raises(ArgumentError, match="may wrap"):
        Argument(Tracer(strict=False))


def of_another_range(tracer: Tracer) -> SymbolicLane:
    lane = tracer.input(z3.BitVec("t", 2), np.arange(4))
    lane.range = Range(0, 2)
    return lane


@pytest.mark.parametrize(
    "make",
    [
        lambda tracer: SymbolicLane(tracer, "input", (), Range(0, 2), z3.BitVec("t", 2), np.arange(3)),
        of_another_range,
    ],
)
def test_the_range_of_a_lane_is_its_tracers(make: Callable[[Tracer], SymbolicLane]) -> None:
    """Nobody has proved that of two bits it is never 3 that there are."""
    tracer = Tracer()
    lane = make(tracer)
    for attempt in (lambda: about_range(Argument(tracer), lane), lambda: lane + 1, lambda: lane < 1):
        with pytest.raises(LaneError, match="did not make"):
            attempt()


def test_what_may_wrap_has_no_range() -> None:
    tracer = Tracer(strict=False)
    lane = tracer.input(z3.BitVec("t", 64), np.arange(4)) * 3
    tracer.strict = True  # type: ignore[misc]
    with pytest.raises(LaneError, match="did not make"):
        about_range(Argument(tracer), lane)


def test_lanes_of_two_tracers_are_not_put_together() -> None:
    """The rules of one of them would be no lemmas."""
    (one, x), (_, y) = a_lane(), a_lane()
    for attempt in (
        lambda: x + y,
        lambda: 1 - (x << 1) * y,
        lambda: x < y,
        lambda: (x > 1) & (y > 1),
        lambda: (x > 1).select(x, y),
        lambda: (x >= 0).select(y, x),
        lambda: (y > 1).select(x, x),
        lambda: one.lift(y),
        lambda: one.binary("+", y, y),
        lambda: one.compare("<", y, y),
        lambda: one.select(y > 1, x, x),
    ):
        with pytest.raises(LaneError, match="lanes of two tracers"):
            attempt()
    with pytest.raises(LaneError, match="has 65 bits"):
        Tracer().input(z3.BitVec("w", 65), np.arange(2))


def test_an_idle_value_is_not_taken_modulo_the_width() -> None:
    """The lane is 1, which is 65 modulo 64: it is not 65."""
    tracer = Tracer()
    lane = tracer.input(z3.BitVec("c", 4), np.arange(16))
    for value in (1, 65, 17, -1, -15):
        made, given = Argument(tracer), Link(lane.term == 1)
        link = number(lane, z3.BitVecVal(0, 4), idle=(lane.term == 1, value))
        made.assume("the code is 1", given)
        made.derive("idle", "where it is idle, the lane is that value", [link], [given])
        made.conclude("the lane is that value", link)
        if value == 1:
            assert prove(Forgetful(), made)
        else:
            with pytest.raises(NotProvedError):
                prove(Forgetful(), made)


def test_a_lemma_that_is_not_proved_leaves_those_that_are_needed() -> None:
    """Another way to the same claim may fail; what was claimed is still to be proved."""
    proving, wrong = Composing(Forgetful()), Link(X == Y)
    with pytest.raises(NotProvedError):
        proving.derive("step", "x is y", [wrong])
    with pytest.raises(NotProvedError):
        proving.claim("step", "x is y", X == Y)
    with pytest.raises(NotProvedError):
        proving.conclude("x is y", X == Y)
    with pytest.raises(NotProvedError):
        proving.proof()


# ---- what is read once, what may change ------------------------------------------------------------------------------


def test_premises_may_be_an_iterator() -> None:
    """An iterator gives its premises once: to the lemma and to the conclusion alike."""
    given = [X == 3, Y == 3]
    proving = Composing(Forgetful())
    proving.claim("equal", "both are equal", X == Y, iter(given), iter([X]))
    with pytest.raises(NotProvedError):
        proving.conclude("all bytes are equal", X == Y)
    made = Composing(Forgetful())
    made.derive("equal", "both are equal", (Link(X == Y) for _ in "1"), (Link(each) for each in given))
    made.split("one of one", (Link(X == Y) for _ in "1"), (Link(each) for each in given))
    with pytest.raises(NotProvedError):
        made.conclude("all bytes are equal", X == Y)
    step = Inference(iter(given), iter([X == Y]))
    assert len(tuple(step.premises)) == len(step.premises) == 2
    assert len(step.claims) == 1
    link = Link(X == Y, iter([X]), iter([[Y, X]]))  # type: ignore[arg-type]
    assert (len(link.free), len(link.defined), link.lanes) == (1, 1, ())


def test_an_instance_does_not_change() -> None:
    theory, claim = Theory(Forgetful()), z3.Or(X + 1 != Y, Y != X + 2)
    theory.claim("c", "y is not both", claim)
    theory.theorem("y is not both x + 1 and x + 2", claim)
    pairs: list[Any] = [(X, X)]
    first = Instance(claim, pairs)  # type: ignore[arg-type]
    pairs.append((X + 1, X + 2))
    assert theory.by_rule(first).eq(claim)


# ---- constants in the place of terms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [X + 1, X * Y])
def test_what_is_cut_is_no_constant_of_the_claim(of: z3.BitVecRef) -> None:
    """A term is not another constant, whatever that is called: `cut0` in claims, `t0_8` in lemmas."""
    for name, make in (("cut0", Composing), ("t0_8", lambda _: Theorem())):
        other = z3.BitVec(name, 8)
        made = make(Forgetful())
        with pytest.raises(NotProvedError):
            derived(made, of == other, of)


def derived(made: Theorem, claim: z3.BoolRef, inside: z3.ExprRef) -> None:
    made.derive("step", "so", [Link(claim)], inputs=[inside])
    made.conclude("so", claim)
    prove(Forgetful(), made)


def test_what_determines_a_term_is_not_captured() -> None:
    """y is t0_8 where x is 0: with x cut to `t0_8`, y would be x."""
    other = z3.BitVec("t0_8", 8)
    made = Theorem()
    given = Link(z3.BoolVal(True), (X,), ((Y, other),))
    made.derive("step", "y is x", [Link(X == Y)], [given])
    (lemma,) = made.lemmas.values()
    assert settled(lemma.refuted) == z3.sat


def test_an_askers_cuts_are_fresh() -> None:
    other = z3.BitVec("cut0", 8)
    assert Forgetful().prove("step", "one is the other", other == X + 1, cut=[X + 1]).verdict == "sat"
    goal, cut = cut_away(z3.And(other == X + 1, Y == X), [X + 1, Y])
    assert [str(constant) for _, constant in cut] == ["cut0!", "cut1"]
    assert settled(goal != z3.And(z3.BitVec("cut0!", 8) == other, z3.BitVec("cut1", 8) == X)) == z3.unsat
    taken = [z3.BitVec(name, 8) for name in ("cut0", "cut0!", "cut1!")]
    constants = [constant for _, constant in cut_away(z3.And(sum(taken) == X + Y, Y == 3), [X, Y])[1]]
    assert [str(each) for each in constants] == ["cut0!!", "cut1"]


def test_terms_are_put_in_places_all_at_once() -> None:
    assert z3.substitute(X - Y, (X, Y), (Y, X)).eq(Y - X)
    assert z3.substitute((X + 1) * X, (X + 1, Y), (X, X + 1)).eq(Y * (X + 1))
    v0, v1 = z3.BitVecs("v0 v1", 8)
    assert renamed(v1 - v0 == 1).eq(v0 - v1 == 1)
    assert not renamed(v1 - v0 == v1).eq(renamed(v0 - v1 == v1))


def test_a_function_is_no_operation_of_its_name() -> None:
    """Not every function called `bvmul` is commutative."""
    f, g = z3.Function("bvmul", X.sort(), X.sort(), X.sort()), z3.RecFunction("bvneg", X.sort(), X.sort())
    for claim in (f(X, Y) == f(Y, X), g(g(X)) == X):
        with pytest.raises(ValueError, match="not an operation"):
            smtlib([z3.Not(claim)])
        made = Theorem()
        made.derive("step", "any function", [Link(claim)])
        made.conclude("any function", claim)
        with pytest.raises(ValueError, match="not an operation"):
            prove(Forgetful(), made)
    assert smtlib([X * Y == Y * X])


@pytest.mark.parametrize("make", [Theorem, lambda: Composing(Forgetful())])
def test_a_claim_that_is_told_twice_has_one_name(make: Callable[[], Theorem]) -> None:
    """Else its second name is the next claim's too: x - x = 0 was x = y."""
    known, wrong = X - X == 0, X == Y
    for whole in ([known, known, wrong], [known, known, known, wrong], [known, wrong, known]):
        assert concluded(make(), known, known, whole)
        with pytest.raises(NotProvedError):
            concluded(make(), known, wrong, whole)


def concluded(made: Theorem, known: z3.BoolRef, claim: z3.BoolRef, whole: Sequence[z3.BoolRef]) -> Proof:
    made.derive("step", "it is known", [Link(known)])
    made.conclude("so", claim, whole)
    return prove(Forgetful(), made)


V0, BOUND = z3.BitVecs("v0 bound", 8)


def test_constants_under_a_quantifier_are_not_overlooked() -> None:
    """x = 1 and v0 = 2 is satisfiable; it was taken for v0 = 1 and v0 = 2, since the walk did not see the second v0."""
    asker = Forgetful()
    for first in (V0, X):
        with pytest.raises(ValueError, match="a quantifier"):
            asker.satisfy("so", "not both", [z3.And(first == 1, z3.Exists([BOUND], V0 == 2))], whole=True)
    assert not asker.proved
    with pytest.raises(ValueError, match="a quantifier"):
        smtlib([z3.ForAll([BOUND], BOUND == BOUND)])
    with pytest.raises(ValueError, match="a quantifier"):
        Composing(Forgetful()).claim("so", "so", z3.Or(X + 1 != 1, z3.ForAll([BOUND], V0 != 2)), (), [X + 1])


def test_a_constructor_is_no_constant_of_its_name() -> None:
    """Colours called x and y are two, whatever the numbers x and y are."""
    _, (x, y) = z3.EnumSort("colour", ["x", "y"])
    with pytest.raises(ValueError, match="neither a constant nor a value"):
        smtlib([z3.And(X == Y, x != y)])
    assert smtlib([z3.And(z3.And([]), z3.Not(z3.Or([])), z3.BoolVal(True), X == Y)])


def test_terms_of_another_context_are_not_taken_for_those_of_their_ids() -> None:
    """An id is a term's within its context; a claim was another one's proposition."""
    other = z3.Context()
    known = X - X == 0
    made, wrong = Theorem(), []
    made.derive("step", "x - x = 0", [Link(known)])
    while not wrong or wrong[-1].get_id() < known.get_id():
        wrong.append(z3.Not(wrong[-1]) if wrong else z3.Bool("wrong", other))
    with pytest.raises(ArgumentError, match="another z3 context"):
        made.conclude("so", wrong[-1])
    q = z3.BitVec("q", 8, other)
    for attempt in (lambda: smtlib([q == 1]), lambda: Forgetful().satisfy("so", "so", [q != q], whole=True)):
        with pytest.raises(ValueError, match="another z3 context"):
            attempt()


def test_a_script_has_one_meaning_for_each_name() -> None:
    for two in (
        [z3.Bool("x"), X == 0],
        [z3.Const(0, z3.BitVecSort(8)) == z3.BitVec("k!0", 8)],
        [z3.BitVec("$0", 8) + (X + Y) * (X + Y) == 0],
        [z3.Bool("bvadd")],
        [z3.Bool("a|b")],
        [z3.Bool("a\\b")],
    ):
        with pytest.raises(ValueError, match="called"):
            smtlib(two)


# ---- proofs of nothing -----------------------------------------------------------------------------------------------


def test_of_nothing_there_is_no_proof() -> None:
    attempts: list[Callable[[], Any]] = [
        lambda: prove(Forgetful()),
        direct,
        together,
        lambda: by_rule("a rule"),
    ]
    for attempt in attempts:
        with pytest.raises(ArgumentError, match="nothing"):
            attempt()


NO_CLAIM = z3.And([])


@pytest.mark.parametrize("claim", [NO_CLAIM, conjunction([]), z3.And(NO_CLAIM), z3.Implies(X == 3, NO_CLAIM)])
def test_a_conclusion_says_something(claim: z3.BoolRef) -> None:
    for made in (Theorem(), Composing(Forgetful()), Theory(Forgetful())):
        made.derive("step", "x is x", [Link(X == X)])
        for conclusion in (claim, Link(claim)):
            with pytest.raises(ArgumentError, match="nothing is concluded"):
                made.conclude("all sums are exact", conclusion)
    with pytest.raises(ArgumentError, match="nothing is derived"):
        Theorem().derive("step", "every product is exact", [])
    with pytest.raises(ArgumentError, match="nothing is concluded"):
        Composing(Forgetful()).conclude_all(X == 3)


def test_only_the_asker_makes_an_obligation() -> None:
    with pytest.raises(TypeError, match="asking alone"):
        Obligation("p", "p", "(assert p)", "z3", "1", 0.0)
    with pytest.raises(TypeError, match="asking alone"):
        dataclasses.replace(NOTHING, statement="everything")
    with pytest.raises(TypeError, match="alone"):
        dataclasses.replace(some_proof(), obligations=())
    for verdict in ("sat", "unknown"):
        with pytest.raises(ValueError, match=f"{verdict} proves nothing"):
            obligation("p", "p", "(assert p)", Outcome(verdict, "z3", "1", 0.0), whole=True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no solver"):
        obligation("p", "p", "(assert p)", Outcome("unsat", "", "", 0.0), whole=True)


def test_an_answer_is_to_the_script_that_was_asked() -> None:
    """Answers in another order than the questions prove nothing."""
    scripts = [smtlib([each]) for each in (X != X, X != Y)]
    with Portfolio(["z3"]) as portfolio:
        outcomes = [portfolio.ask(script, {}, 10.0) for script in scripts]
    assert [each.verdict for each in outcomes] == ["unsat", "sat"]
    assert obligation("so", "x is x", scripts[0], outcomes[0], whole=True)
    with pytest.raises(ValueError, match="another script"):
        obligation("so", "x is y", scripts[1], outcomes[0], whole=True)


def test_what_is_proved_has_no_subclasses() -> None:
    for of in (Proof, Obligation, Settled):
        with pytest.raises(TypeError, match="no subclasses"):
            type("Mine", (of,), {"__post_init__": lambda self, key: None})


def test_only_ways_to_infer_add_inferences() -> None:
    made, theory = Theorem(), Theory(Forgetful())
    with pytest.raises(AttributeError):
        made.inferences.append(Inference((), (X == Y,)))  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        made.inferences = (Inference((), (X == Y,)),)  # type: ignore[misc]
    with pytest.raises(AttributeError):
        theory.theorems  # type: ignore[attr-defined]  # noqa: B018


def test_a_proof_is_made_of_obligations() -> None:
    for wrong in ("the moon is green", None, Outcome("unsat", "z3", "1", 0.0)):
        with pytest.raises(TypeError, match="questions"):
            direct(wrong)  # type: ignore[arg-type]
        for answer in (Holds, Equal):
            with pytest.raises(TypeError, match="proof"):
                answer("anything", wrong, 0.0)  # type: ignore[arg-type]


def test_what_was_proved_is_the_same_in_another_process() -> None:
    proof = some_proof(NOTHING, answered("p", "p", "(assert p)"))
    assert pickle.loads(pickle.dumps(proof)) == proof


# ---- theorems about nothing ------------------------------------------------------------------------------------------


def of_nothing(made: Theorem, *assumed: z3.BoolRef) -> None:
    for each in assumed:
        made.assume("x is such a number", Link(each))
    made.derive("step", "so x is y", [Link(X == Y)], [Link(each) for each in assumed])
    made.conclude("x is y", X == Y)


LOW, HIGH = z3.ULT(X, 3), z3.UGT(X, 3)


@pytest.mark.parametrize(
    ("nothing", "something"),
    [
        (z3.Implies(LOW, z3.Implies(HIGH, X == 77)), z3.Implies(LOW, z3.Implies(X == 1, X + 1 == 2))),
        (z3.And(z3.Implies(z3.And(LOW, HIGH), X == 77), z3.Implies(z3.And(LOW, HIGH), Y == 77)),
         z3.And(z3.Implies(z3.And(LOW, HIGH), X == 77), z3.Implies(X == 1, X + 1 == 2))),
        (z3.Or(z3.Not(z3.And(LOW, HIGH)), X == 77), z3.Or(z3.Not(X == 1), X + 1 == 2)),
        (z3.Or(z3.Not(LOW), z3.Not(HIGH), X == 77), z3.Or(z3.Not(LOW), z3.Not(HIGH))),
        (z3.Or(z3.Not(LOW), z3.Implies(HIGH, X == 77)), z3.Or(z3.Not(LOW), z3.Implies(X == 1, X + 1 == 2))),
        (z3.Or(z3.Implies(LOW, Y == 1), z3.Implies(HIGH, X == 77)),
         z3.Or(z3.Implies(LOW, X == 1), z3.Implies(X < 3, X != 4))),
    ],
)  # fmt: skip
def test_premises_inside_a_conclusion_are_met(nothing: z3.BoolRef, something: z3.BoolRef) -> None:
    def concluded(*claims: z3.BoolRef) -> Any:
        proving = Composing(Forgetful())
        for claim in claims:
            proving.claim("step", "so", claim)
        proving.conclude("so", z3.And(claims) if len(claims) > 1 else claims[0])
        return proving.proof()

    assert concluded(something)
    assert concluded(nothing, something)
    for claims in ([nothing], [nothing, nothing]):
        with pytest.raises(ArgumentError, match="about nothing"):
            concluded(*claims)
    assumed = Theorem()
    assumed.assume("x is less than 3", Link(LOW))
    link = Link(z3.Implies(HIGH, X == 77), (X,), ((X, X),))
    assumed.derive("step", "so", [link], [Link(LOW)])
    assumed.conclude("so", link)
    with pytest.raises(ArgumentError, match="about nothing"):
        prove(Forgetful(), assumed)


def test_a_theorem_is_about_something() -> None:
    made = Theorem()
    of_nothing(made, z3.ULT(X, 3), z3.UGT(X, 3))
    with pytest.raises(ArgumentError, match="about nothing"):
        prove(Forgetful(), made)
    made = Theorem()
    of_nothing(made, X == Y, z3.UGT(X, 3))
    assert prove(Forgetful(), made)


def test_the_premise_of_an_implication_is_one() -> None:
    for high, some in ((2, False), (3, True)):
        proving = Composing(Forgetful())
        given = z3.And(z3.ULT(2, X), z3.ULE(X, high))
        said = z3.Implies(given, X == 3)
        proving.claim("step", "x is 3", said)
        proving.conclude("x is 3", said)
        if some:
            assert proving.proof()
        else:
            with pytest.raises(ArgumentError, match="about nothing"):
                proving.proof()


def test_premises_that_may_have_no_values_are_not_proved() -> None:
    class Silent(Forgetful):
        def meet(self, premises: z3.BoolRef) -> Outcome:
            return OPEN

    made = Theorem()
    of_nothing(made, X == Y)
    with pytest.raises(NotProvedError, match="something meets the premises, x is such a number"):
        prove(Silent(), made)


def test_values_of_premises_are_put_into_them() -> None:
    class Wrong(Here):
        def ask(self, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
            return Outcome("sat", "wrong", "1", 0.0, dict.fromkeys(constants, 0))

    asker = Asker(Wrong(), 10.0)
    assert asker.meet(X < Y + 1).verdict == "sat"
    with pytest.raises(RuntimeError, match="wrong is wrong"):
        asker.meet(z3.ULT(X * Y, X))
    assert Forgetful().meet(z3.And(z3.ULT(X * Y, 3), X * Y == 5)).verdict == "unsat"


# ---- what a proof says -----------------------------------------------------------------------------------------------


def test_a_lemma_is_told_in_its_own_words() -> None:
    """Two theorems that ask the same of a solver: each says what it is about, and both together say both."""
    asker = Forgetful()
    formats = FORMATS["e4m3"], FORMATS["e5m2"]
    proofs = [prove(asker, argue_rounding(fmt)) for fmt in formats]
    for proof, fmt in zip(proofs, formats, strict=True):
        assert proof.obligations[-1].statement.endswith(f"for numbers of {fmt}")
    cut = prove(asker, argue_rounding(formats[0], nearest=False))
    assert "toward zero" in cut.obligations[-1].statement
    assert "nearer" not in cut.obligations[-1].statement
    said = [each.statement for each in together(*proofs).obligations]
    assert sum(f"for numbers of {fmt}" in each for fmt in formats for each in said) == 2
    first, last = proofs[0].obligations[-1], proofs[1].obligations[-1]
    assert (first.digest == last.digest) == (first.script == last.script)


def test_what_has_premises_is_no_whole_conclusion() -> None:
    """`x is odd` was proved where x is 3, or as the lemma of a theorem."""
    odd, asker = z3.Extract(0, 0, X) == 1, Forgetful()
    proving = Composing(asker)
    proving.claim("odd", "every x is odd", odd, [X == 3])
    asker.prove("odd", "each x is odd", odd, [X == 3])
    assert len(asker.proved) == 2
    for each in (*proving.obligations, *asker.proved):
        assert not each.whole
        with pytest.raises(ArgumentError, match="under premises"):
            some_proof(each)
        with pytest.raises(ArgumentError, match="under premises"):
            some_proof(NOTHING, restated(each, "again", "x is odd, always", 0.0))
    assert direct(asker.prove("same", "what is asked again, as a whole", z3.Implies(X == 3, odd)))


def test_the_proof_is_of_the_question_that_was_refuted() -> None:
    """The obligation of the question before does not prove one that is open."""
    asker = Forgetful(lambda name: name == "open")
    assert direct(asker.prove("known", "x is x", X == X)).obligations[-1].statement == "x is x"
    for open_ in (asker.prove("open", "x is y", X == Y), asker.prove("wrong", "x is 3", X == 3)):
        assert open_.obligation is None
        with pytest.raises(ArgumentError, match="not refuted"):
            direct(open_)
    for verdict, proved in (("unsat", None), ("sat", NOTHING)):
        with pytest.raises(ValueError, match="with the obligation"):
            asking._settled(Outcome(verdict, "z3", "1", 0.0), proved)  # type: ignore[arg-type]


def test_only_the_asker_settles_a_question() -> None:
    """The obligation of another question is not put in the place of an open one, or of one's own."""
    asker = Forgetful(lambda name: name == "open")
    open_, one, other = (
        asker.prove("open", "x is y", X == Y),
        asker.prove("one", "x is x", X == X),
        asker.prove("other", "y is y", Y == Y),
    )
    for wrong in (
        lambda: Settled("unsat", "z3", "1", 0.0, obligation=asker.proved[-1]),
        lambda: dataclasses.replace(open_, verdict="unsat", solver="z3", obligation=asker.proved[-1]),
        lambda: dataclasses.replace(one, obligation=other.obligation),
    ):
        with pytest.raises(TypeError, match="only the asker"):
            wrong()


def test_another_wording_does_not_make_a_lemma_whole() -> None:
    lemma = restated(NOTHING, "a lemma", "true", lemma=True)
    assert not lemma.whole
    assert not restated(lemma, "again", "true is true").whole


def test_whether_a_statement_tells_all_that_is_asserted_has_to_be_said() -> None:
    with pytest.raises(TypeError, match="whole"):
        Forgetful().satisfy("odd", "every x is 3", [X != 3, X == 3])  # type: ignore[call-arg]


def test_a_proof_tells_its_rules_whoever_asks_for_it() -> None:
    theory, claim = Theory(Forgetful()), X - X == 0
    theory.claim("c", "x - x = 0", claim)
    theory.theorem("x - x = 0", claim)
    theory.theorem("xy - xy = 0", instance(theory, claim, [(X, X * Y)]))
    (rule,) = theory.proof().rules
    assert rule.startswith("instance: ")
    made = Theorem()
    of_nothing(made, X == Y)
    for proof in (prove(theory.asker, theory), prove(theory.asker, theory, made)):
        assert proof.rules == (rule,)


def test_the_last_obligation_is_the_last_conclusion() -> None:
    made = []
    for q in (X, Y):
        theorem, claim = Theorem(), Link(q - q == 0)
        theorem.derive("step", f"{q} - {q} = 0", [claim])
        theorem.conclude("it is zero", claim)
        made.append(theorem)
    proof = prove(Forgetful(), *made)
    assert proof.obligations[-1].statement.endswith("it is zero")
    again = gathered(digests_of(made[0], Scripts()), proof.obligations)
    assert again is not None
    assert again.obligations[-1].statement.endswith("it is zero")


def test_what_is_gathered_is_a_theorem() -> None:
    """Without its conclusion, or without its premises, it would be another one."""
    with pytest.raises(TypeError, match="made of a theorem"):
        Digests((NOTHING.digest,), ())
    with pytest.raises(TypeError, match="made of a theorem"):
        dataclasses.replace(digests_of(small_theorem(), Scripts()), lemmas=())
    with pytest.raises(ArgumentError, match="without a conclusion"):
        digests_of(Theorem(), Scripts())
    made = Theorem()
    of_nothing(made, X == Y)
    with pytest.raises(ArgumentError, match="no premises"):
        digests_of(made, Scripts())


def small_theorem() -> Theorem:
    made = Theorem()
    made.derive("step", "x is x", [Link(X == X)])
    made.conclude("x is x", X == X)
    return made


def test_other_words_are_of_the_same_evidence() -> None:
    again = restated(NOTHING, "other", "false is false")
    assert (again.script, again.solver, again.statement) == (NOTHING.script, "z3", "false is false")


def test_no_lemma_of_a_theorem_is_taken_out_or_put_in_its_place() -> None:
    """Its inference would count all the same: x + 1 = x was proved so."""
    made = Theorem()
    made.derive("step", "x + 1 is x", [Link(X + 1 == X)])
    (key,) = made.lemmas
    with pytest.raises(TypeError):
        del made.lemmas[key]  # type: ignore[attr-defined]
    for name in ("lemmas", "composition", "conclusion", "rules"):
        with pytest.raises(AttributeError):
            setattr(made, name, getattr(small_theorem(), name))


def test_no_rule_of_a_trace_is_taken_out() -> None:
    """The ranges of its lanes rest on all of them."""
    tracer = Tracer()
    _ = tracer.input(z3.BitVec("x", 8), np.arange(3)) + 1
    assert tracer.rules
    with pytest.raises(AttributeError):
        tracer.rules.clear()  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        tracer.rules = {}  # type: ignore[misc]


NEVER = z3.And(z3.ULT(X, 3), z3.UGT(X, 5))


@pytest.mark.parametrize(
    "claim",
    [
        z3.Implies(NEVER, z3.Not(Y == 0)),
        z3.Or(z3.Not(NEVER), z3.Not(Y == 0)),
        z3.Not(z3.And(NEVER, Y == 0)),
        z3.Not(z3.Not(z3.Implies(NEVER, z3.Not(Y == 0)))),
        z3.Or(z3.Implies(NEVER, Y == 0), Y == 1),
    ],
)
def test_a_premise_that_nothing_meets_is_seen_however_it_is_written(claim: z3.BoolRef) -> None:
    made = Theorem()
    made.derive("step", "y is not 0", [Link(claim)])
    made.conclude("where x is so, y is not 0", claim)
    with Portfolio(["z3"]) as portfolio, pytest.raises(ArgumentError, match="about nothing"):
        prove(Asker(portfolio, 20), made)


def test_what_denies_two_things_that_occur_is_about_something() -> None:
    for claim in (z3.Not(z3.And(X == 0, X == 1)), z3.Or(z3.Not(X == 0), z3.Not(X == 1)), z3.Not(X + 1 == X)):
        made = Theorem()
        made.derive("step", "not both", [Link(claim)])
        made.conclude("not both", claim)
        with Portfolio(["z3"]) as portfolio:
            assert prove(Asker(portfolio, 20), made).obligations


# ---- python -O -------------------------------------------------------------------------------------------------------

PACKAGE = Path(mmaformal.__file__).parent
QUERIES = Path(importlib.import_module("mmaformal.queries").__file__ or "").parent
PROVING = (
    *(
        PACKAGE / folder
        for folder in ("proof", "solver", "facts", "cases", "analysis", "studies", "hardware")
    ),
    Path(smt.__file__).resolve().parents[1],
    PACKAGE / "lanes",
    PACKAGE / "campaign.py",
    QUERIES,
)


def is_of_types(test: ast.expr) -> bool:
    """Whether it tells a type checker what Python would stumble over anyway."""
    if isinstance(test, ast.UnaryOp):
        return is_of_types(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(map(is_of_types, test.values))
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], (ast.Is, ast.IsNot)) and ast.unparse(test.comparators[0]) == "None"
    return isinstance(test, ast.Call) and ast.unparse(test.func) == "isinstance"


def test_no_check_is_left_out_by_python_O() -> None:
    """An `assert` is: so it may tell of types, and nothing that a proof rests on."""
    files = [file for each in PROVING for file in ([each] if each.suffix else sorted(each.rglob("*.py")))]
    assert len(files) > 150
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assert):
                assert is_of_types(node.test), f"{file}:{node.lineno}: {ast.unparse(node)}"
