"""Having other solvers say it too: in turn, for longer, in cases; and that the cases are all there are."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from mmaformal.solver import confirming as confirming_module
from mmaformal.solver import portfolio
from mmaformal.solver.confirming import Confirmation, Question, confirming, others, put
from mmaformal.solver.portfolio import NoSolverError, Outcome
from mmaformal.solver.script import smtlib, with_assertions
from mmaformal.solver.splitting import Split, splits

x, n = z3.BitVec("x", 32), z3.BitVec("n", 12)
amount = z3.Extract(5, 0, n)
by = z3.ZeroExt(26, amount)
TRUE = smtlib(
    [z3.UGT(z3.LShR(x << by, by), x)]
)  #: unsatisfiable: what is shifted up and down again is not larger
FALSE = smtlib([x << by == 1 << 17, amount == 17])  #: satisfiable, in one case


def decide(script: str) -> str:
    solver = z3.SolverFor("QF_BV")
    solver.add(z3.parse_smt2_string(script))
    return str(solver.check())


def said(verdict: str, question: Question, seconds: float = 0.1) -> Outcome:
    return Outcome(verdict, "" if verdict == "unknown" else question.solver, "1", seconds)  # type: ignore[arg-type]


def confirm(
    script: str,
    ask: Callable[[Question], Outcome],
    timeout: float = 60.0,
    solvers: tuple[str, ...] = ("z3", "cvc5"),
) -> tuple[Confirmation, list[Question]]:
    asked: list[Question] = []

    def recorded(question: Question) -> Outcome:
        asked.append(question)
        return ask(question)

    return put(confirming(script, solvers, timeout), recorded), asked


def test_each_is_asked_in_turn_for_a_moment_and_then_for_longer() -> None:
    found, asked = confirm(
        TRUE, lambda q: said("unsat" if (q.solver, q.limit) == ("cvc5", 20.0) else "unknown", q)
    )
    assert (found.verdict, found.solvers, found.cases) == ("unsat", ("cvc5",), 1)
    assert [(q.solver, q.limit) for q in asked] == [("z3", 2.0), ("cvc5", 2.0), ("z3", 20.0), ("cvc5", 20.0)]
    assert {q.script for q in asked} == {TRUE}
    assert found.seconds == pytest.approx(0.4)


def test_what_nobody_settles_whole_is_settled_in_cases_that_are_all_there_are() -> None:
    found, asked = confirm(TRUE, lambda q: said(decide(q.script) if q.about else "unknown", q))
    assert found.verdict == "unsat"
    assert found.cases == 33  # 0 … 31, and 32 or more
    cases = {q.script for q in asked if q.script.startswith(TRUE.removesuffix("(check-sat)\n")) and q.about}
    assert len(cases) == 33
    (exhaustive,) = [q for q in asked if "one of 33 cases" in q.about]
    assert exhaustive.script not in cases
    assert str(found) == "unsat in each of 33 cases"


def test_one_case_that_is_not_settled_leaves_the_whole_open() -> None:
    def ask(question: Question) -> Outcome:
        if not question.about or "is 17" in question.about:
            return said("unknown", question)
        return said(decide(question.script), question)

    found, _ = confirm(TRUE, ask)
    assert found.verdict == "unknown"
    assert "is 17" in found.why


def test_that_the_cases_are_all_there_are_has_to_be_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(question: Question) -> Outcome:
        return said(decide(question.script) if question.about else "unknown", question)

    monkeypatch.setattr(Split, "__len__", lambda self: self.count - 1)  # the last one is forgotten
    claim = Split._claim
    monkeypatch.setattr(
        Split, "_claim", lambda self, term, case: term == case if case else claim(self, term, 0)
    )
    found, _ = confirm(TRUE, ask)
    assert found.verdict == "sat"


def test_a_case_that_is_satisfiable_is_told() -> None:
    assert decide(FALSE) == "sat"
    found, asked = confirm(FALSE, lambda q: said(decide(q.script) if q.about else "unknown", q))
    assert (found.verdict, found.why) == ("sat", asked[-1].about)
    assert "is 17" in found.why


def test_the_time_given_is_kept() -> None:
    found, asked = confirm(TRUE, lambda q: said("unknown", q, q.limit), timeout=30.0)
    assert found.verdict == "unknown"
    assert "the time given was used up" in found.why
    assert sum(q.limit for q in asked) == found.seconds == 30.0


def test_a_question_that_shifts_nothing_is_not_split() -> None:
    assert splits(smtlib([x * x == 3])) == []
    found, asked = confirm(smtlib([x * x == 3]), lambda q: said("unknown", q))
    assert str(found) == "unknown: no answer from z3 or cvc5"
    assert len(asked) == 4


@given(st.integers(1, 8), st.integers(1, 40), st.integers(0, 255))
def test_every_value_is_in_exactly_one_case(bits: int, width: int, value: int) -> None:
    term = z3.BitVec("amount", bits)
    split = Split(smtlib([term == term]), term, min(1 << bits, width + 1))
    assert decide(split.exhaustive) == "unsat"
    value %= 1 << bits
    inside = [
        case
        for case in range(len(split))
        if z3.is_true(z3.simplify(split._claim(z3.BitVecVal(value, bits), case)))
    ]
    assert inside == [min(value, len(split) - 1)]


def test_a_case_is_the_script_and_one_assertion_more() -> None:
    for split in splits(TRUE):
        for case in (0, len(split) - 1):
            assert split[case].startswith(TRUE.removesuffix("(check-sat)\n"))
        with pytest.raises(IndexError):
            split[len(split)]
    deep = z3.BitVec("x", 32)
    for _ in range(40):
        deep = deep * deep + 1
    more = with_assertions(TRUE, [deep == 7], "$$")
    assert "(define-fun $$" in more
    solver = z3.Solver()
    solver.add(z3.parse_smt2_string(more))
    assert more.count("(assert ") == 2
    with pytest.raises(ValueError, match="check-sat"):
        with_assertions("(assert true)", [], "$$")


def test_a_case_of_a_case_is_a_question_too() -> None:
    u, v = z3.BitVecs("u v", 8)
    far = z3.If(
        z3.ULT(u * v + v * u * u, 11), u * v + v * u * u, u + v * v
    )  # has names of its own in each case
    script = smtlib([z3.LShR(x, z3.ZeroExt(24, far)) << z3.ZeroExt(24, u * u * v + far) == 3])
    case = splits(script)[0][1]
    for again in splits(case):
        assert decide(again[0]) in ("sat", "unsat")
        assert "(define-fun $$$0 " in again[0] or again.script == case
    assert any("(define-fun $$$0 " in again[0] for again in splits(case))


def test_a_short_factor_is_split_too() -> None:
    u, v = z3.BitVec("u", 4), z3.BitVec("v", 40)
    by_factor = splits(smtlib([z3.ZeroExt(36, u) * v == 3]))
    assert [(len(split), str(split.term)) for split in by_factor] == [(16, "u")]


def test_who_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert others("bitwuzla") == ("z3", "cvc5")
    assert others("z3") == ("bitwuzla", "cvc5")
    assert others("bitwuzla", "cvc5") == ("cvc5",)
    assert others("cvc5", "cvc5") == ("z3", "bitwuzla")
    there = portfolio.find_spec
    monkeypatch.setattr(portfolio, "find_spec", lambda name: there(name) if name == "z3" else None)
    assert confirming_module.others("bitwuzla") == ("z3",)
    for first, wanted in (("z3", None), ("z3", "cvc5")):
        with pytest.raises(NoSolverError, match="pip install"):
            others(first, wanted)
