"""What a person may do by mistake, and does not get a proof of: each of these was a way to prove what is not so."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import z3
from in_process import Forgetful
from proofs import NOTHING, answered

from mmaformal.facts.rounding_model import argue
from mmaformal.formats import FORMATS
from mmaformal.proof.composition import Composing
from mmaformal.proof.kernel import (
    ArgumentError,
    Link,
    NotProvedError,
    Theorem,
    by_rule,
    direct,
    gathered,
    prove,
    together,
)
from mmaformal.solver.answers import Equal, Holds, Obligation
from mmaformal.solver.asking import cut_away, obligation, opposite, renamed, restated
from mmaformal.solver.portfolio import Outcome
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
    proving.derive("step", "100 < x < 200", [below, above])
    proving.conclude("100 < x < 200", z3.And(below.claim, above.claim))
    with pytest.raises(NotProvedError):
        proving.proof()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_the_opposite_of_claims_is_that_one_of_them_is_false(count: int, whole: bool) -> None:
    premises, claims = [z3.Bool("p"), z3.Bool("q")], [z3.Bool(f"c{i}") for i in range(count)]
    said = opposite(premises, claims, whole)
    assert settled(said != z3.And(*premises, z3.Not(z3.And(*claims, True)))) == z3.unsat


# ---- constants in the place of terms ---------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [X + 1, X * Y])
def test_what_is_cut_is_no_constant_of_the_claim(of: z3.BitVecRef) -> None:
    """A term is not another constant, whatever that is called: `cut0` in claims, `t0_8` in lemmas."""
    for name, make in (("cut0", Composing), ("t0_8", lambda _: Theorem())):
        other = z3.BitVec(name, 8)
        made = make(Forgetful())
        made.derive("step", "one is the other", [Link(of == other)], inputs=[of])
        made.conclude("one is the other", of == other)
        with pytest.raises(NotProvedError):
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
    assert gathered([], []) is None


def test_only_the_asker_makes_an_obligation() -> None:
    with pytest.raises(TypeError, match="asking alone"):
        Obligation("p", "p", "(assert p)", "z3", "1", 0.0)
    with pytest.raises(TypeError, match="asking alone"):
        dataclasses.replace(NOTHING, statement="everything")
    with pytest.raises(TypeError, match="alone"):
        dataclasses.replace(direct(NOTHING), obligations=())
    for verdict in ("sat", "unknown"):
        with pytest.raises(ValueError, match=f"{verdict} proves nothing"):
            obligation("p", "p", "(assert p)", Outcome(verdict, "z3", "1", 0.0))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no solver"):
        obligation("p", "p", "(assert p)", Outcome("unsat", "", "", 0.0))


def test_a_proof_is_made_of_obligations() -> None:
    for wrong in ("the moon is green", None, Outcome("unsat", "z3", "1", 0.0)):
        with pytest.raises(TypeError, match="obligations"):
            direct(wrong)  # type: ignore[arg-type]
        for answer in (Holds, Equal):
            with pytest.raises(TypeError, match="proof"):
                answer("anything", wrong, 0.0)  # type: ignore[arg-type]


def test_what_was_proved_is_the_same_in_another_process() -> None:
    proof = direct(NOTHING, answered("p", "p", "(assert p)"))
    assert pickle.loads(pickle.dumps(proof)) == proof


# ---- what a proof says -----------------------------------------------------------------------------------------------


def test_a_lemma_is_told_in_its_own_words() -> None:
    """Two theorems that ask the same of a solver: each says what it is about, and both together say both."""
    asker = Forgetful()
    formats = FORMATS["e4m3"], FORMATS["e5m2"]
    proofs = [prove(asker, argue(fmt)) for fmt in formats]
    for proof, fmt in zip(proofs, formats, strict=True):
        assert proof.obligations[-1].statement.endswith(f"for numbers of {fmt}")
    cut = prove(asker, argue(formats[0], nearest=False))
    assert "toward zero" in cut.obligations[-1].statement
    assert "nearer" not in cut.obligations[-1].statement
    said = [each.statement for each in together(*proofs).obligations]
    assert sum(f"for numbers of {fmt}" in each for fmt in formats for each in said) == 2
    first, last = proofs[0].obligations[-1], proofs[1].obligations[-1]
    assert (first.digest == last.digest) == (first.script == last.script)


def test_other_words_are_of_the_same_evidence() -> None:
    again = restated(NOTHING, "other", "false is false")
    assert (again.script, again.solver, again.statement) == (NOTHING.script, "z3", "false is false")
