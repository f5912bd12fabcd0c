"""Proofs of tests before (`known.py`) are known while their text is the same, and asked again now and then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import proved
import pytest
import z3
from proved import Proved, asking_digest
from support.answers import LEAST, KnownAnswers, OtherAnswerError, read
from support.in_process import Here
from support.known import Counts, KnownProofs, why_nothing_is_known

from mmaformal.solver.asking import Asker, smtlib
from mmaformal.solver.evidence import ContradictionError, digest, recording
from mmaformal.solver.portfolio import Outcome, solver_version

Z3 = f"z3 {solver_version('z3')}"
P, Q = z3.BitVecs("p q", 8)
SATISFIABLE = z3.UGT(P, Q) & (P * Q == 3)


class Counting(Here):
    """Answers, and how many."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
        self.asked += 1
        answer = super().ask(script, constants, timeout)
        return Outcome(answer.verdict, "z3", solver_version("z3"), 0.0, answer.model)


def question(number: int) -> z3.BoolRef:
    """Ask whether a square is 3 modulo 4: it is not, and the simplifier does not see it."""
    return z3.UGT(P, Q) & (z3.BitVecVal(4 * number + 3, 8) == P * P)


def text(number: int) -> str:
    return smtlib([z3.simplify(question(number))])


def store(folder: Path, before: Proved, seed: int = 0, counts: Counts | None = None) -> KnownProofs:
    return KnownProofs(folder / "evidence.db", before.usable(), seed, counts or Counts())


def recorded(*scripts: str, solver: str = Z3) -> Proved:
    return Proved("nobody", {solver: frozenset(digest(script)[:32] for script in scripts)})


def settle(asked: z3.BoolRef) -> tuple[str, int]:
    """The verdict, and how many questions were put to a solver."""
    portfolio = Counting()
    return Asker(portfolio, 20).satisfy("a name", "a statement", [asked], whole=True).verdict, portfolio.asked


def seed_that(draws: bool, script: str) -> int:
    known_proofs = object.__new__(KnownProofs)
    for seed in range(1000):
        known_proofs._seed = seed
        if known_proofs._is_drawn(digest(script)) == draws:
            return seed
    raise AssertionError("none draws it")


def test_a_question_of_the_same_text_is_not_asked(tmp_path: Path) -> None:
    counts, seed = Counts(), seed_that(False, text(3))
    with store(tmp_path, recorded(text(3)), seed, counts) as known_proofs, recording(known_proofs):
        assert settle(question(3)) == ("unsat", 0)
        assert settle(question(4)) == ("unsat", 1)
        assert settle(question(4)) == ("unsat", 0)  # this run has proved it
        assert settle(SATISFIABLE) == ("sat", 1)
    assert (counts.known, counts.asked, counts.again) == (1, 2, 0)
    assert counts.proved == {Z3: {digest(text(3))[:32], digest(text(4))[:32]}}


def test_one_that_is_drawn_is_asked_again(tmp_path: Path) -> None:
    counts, seed = Counts(), seed_that(True, text(3))
    with store(tmp_path, recorded(text(3)), seed, counts) as known_proofs, recording(known_proofs):
        assert settle(question(3)) == ("unsat", 1)
    assert (counts.known, counts.asked, counts.again) == (0, 1, 1)


def test_one_in_twenty_is_drawn_and_every_seed_draws_others(tmp_path: Path) -> None:
    names = [digest(str(number)) for number in range(4000)]
    drawn = []
    for seed in (1, 2):
        with store(tmp_path, Proved(), seed) as known_proofs:
            drawn.append({name for name in names if known_proofs._is_drawn(name)})
    assert all(140 < len(each) < 260 for each in drawn)
    assert len(drawn[0] & drawn[1]) < 40


def test_what_another_version_or_nobody_said_is_asked(tmp_path: Path) -> None:
    seed = seed_that(False, text(3))
    for solver in ("z3 0.1", "yices 2.6", "z3"):
        with (
            store(tmp_path / solver, recorded(text(3), solver=solver), seed) as known_proofs,
            recording(known_proofs),
        ):
            assert settle(question(3)) == ("unsat", 1), solver


def test_a_model_where_the_record_says_there_is_none_settles_nothing(tmp_path: Path) -> None:
    script = smtlib([z3.simplify(SATISFIABLE)])
    with store(tmp_path, recorded(script), seed_that(True, script)) as known_proofs, recording(known_proofs):
        assert settle(SATISFIABLE) == ("unknown", 1)
        with pytest.raises(ContradictionError, match=r"says unsat.*says sat"):
            known_proofs.add(digest(script), "name", "statement", Outcome("sat", "z3", "4", 0.0))


def test_the_file_is_a_function_of_what_it_holds(tmp_path: Path) -> None:
    one = Proved("abc", {Z3: frozenset("cab"), "bitwuzla 0.9.1": frozenset("d")})
    one.write(tmp_path / "one")
    assert Proved.read(tmp_path / "one") == one
    Proved("abc", {"bitwuzla 0.9.1": frozenset("d"), Z3: frozenset("bca")}).write(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert Proved.read(tmp_path / "none") == Proved()
    assert one.joined(Proved("old", {Z3: frozenset("x")})).of[Z3] == frozenset("abcx")


def test_when_everything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    fresh, stale = Proved(asking_digest()), Proved("of other code")
    assert why_nothing_is_known("not slow", False, stale) == ""
    assert why_nothing_is_known("slow", False, fresh) == why_nothing_is_known("", False, fresh) != ""
    assert why_nothing_is_known("not slow", True, fresh) == "--ask-all"
    monkeypatch.setenv("CI", "true")
    assert why_nothing_is_known("not slow", False, fresh) == ""
    assert "has changed" in why_nothing_is_known("not slow", False, stale)


def test_the_code_that_asks_is_all_of_solvers_kernel_and_store(monkeypatch: pytest.MonkeyPatch) -> None:
    before, read_bytes = asking_digest(), Path.read_bytes
    for name in (
        "asking.py",
        "worker.py",
        "portfolio.py",
        "script.py",
        "evidence.py",
        "kernel.py",
        "claims.py",
        "known.py",
        "answers.py",
    ):
        changed = lambda path, name=name: read_bytes(path) + (b"#" if path.name == name else b"")  # noqa: E731
        monkeypatch.setattr(Path, "read_bytes", changed)
        assert asking_digest() != before, name


def test_the_tool_asks_everything_or_adds(tmp_path: Path) -> None:
    assert "--ask-all" in proved.command(tmp_path, False, ())
    assert "--ask-all" not in proved.command(tmp_path, True, ())


# ---- what is not proved ----------------------------------------------------------------------------------------------


class Scripted(Here):
    """Portfolio whose answers are given, and that counts how often it is asked."""

    backends, memory = ("z3",), 100

    def __init__(self, *outcomes: Outcome) -> None:
        self.outcomes, self.asked = [*outcomes], 0

    def ask(self, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
        self.asked += 1
        return self.outcomes.pop(0)


SAT = Outcome("sat", "z3", solver_version("z3"), 0.2, {"p": 3, "q": 1, "r": 9})
OPEN = Outcome("unknown", "", "", 5.0, why="no answer in 5 s")
WANTED = {"p": 8, "q": 8}


def put(portfolio: Scripted, known: KnownAnswers, script: str = "(s)", timeout: float = 5.0) -> Outcome:
    return known.ask(Scripted.ask, portfolio, script, WANTED, timeout)


def known_after(*outcomes: Outcome, drawn: bool = False) -> KnownAnswers:
    """The answers of a run in which these questions were asked: `(s0)`, `(s1)`, …"""
    first, portfolio = KnownAnswers({}, lambda _: False), Scripted(*outcomes)
    for number in range(len(outcomes)):
        put(portfolio, first, f"(s{number})")
    return KnownAnswers(first.found, lambda _: drawn)


def test_a_model_and_an_open_question_are_known() -> None:
    known, nobody = known_after(SAT, OPEN), Scripted()
    model, unsettled = put(nobody, known, "(s0)"), put(nobody, known, "(s1)", 9.0)
    assert (model.verdict, model.model, model.solver) == ("sat", {"p": 3, "q": 1}, "z3")
    assert (unsettled.verdict, unsettled.why, known.known) == ("unknown", OPEN.why, 2)


def test_what_depends_on_something_else_is_asked() -> None:
    portfolio = Scripted(SAT, SAT, SAT)
    put(portfolio, known_after(OPEN), "(s0)", 11.0)  # more than twice the time it had
    put(portfolio, known_after(SAT), "(another)")
    portfolio.memory = 200
    put(portfolio, known_after(SAT), "(s0)")
    assert portfolio.asked == 3


def test_what_was_answered_soon_or_refuted_is_not_kept() -> None:
    soon = Outcome("sat", "z3", solver_version("z3"), LEAST / 2, {"p": 3, "q": 1})
    refuted = Outcome("unsat", "z3", solver_version("z3"), 7.0)
    assert known_after(soon, refuted)._before == {}


def test_one_that_is_drawn_is_asked_and_may_not_be_refuted() -> None:
    portfolio = Scripted(SAT, Outcome("unsat", "z3", solver_version("z3"), 1.0))
    assert put(portfolio, known_after(SAT, drawn=True), "(s0)") == SAT
    with pytest.raises(OtherAnswerError, match=r"z3 refutes what z3 has a model of: \(s0\)"):
        put(portfolio, known_after(SAT, drawn=True), "(s0)")


def test_a_known_answer_is_not_counted_as_asked(tmp_path: Path) -> None:
    counts, known = Counts(), known_after(SAT)
    with KnownProofs(tmp_path / "evidence.db", {}, 0, counts, known) as known_proofs:
        known_proofs.add(digest("(s0)"), "name", "statement", put(Scripted(), known, "(s0)"))
        known_proofs.add(digest("(s1)"), "name", "statement", SAT)
    assert counts.asked == 1


def test_answers_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = known_after(SAT, OPEN)._before
    proved.write_answers({key: asdict(each) for key, each in found.items()}, tmp_path / "one.json")
    assert read(tmp_path / "one") == found
    assert len((tmp_path / "one.json").read_text().splitlines()) == 4
    assert read(tmp_path / "none") == {}


def test_a_question_without_time_is_unknown_and_says_so() -> None:
    portfolio = Counting()
    answer = Asker(portfolio, 0.0).satisfy("a name", "a statement", [question(0)], whole=True)
    assert (answer.verdict, answer.why, portfolio.asked) == ("unknown", "the time given was used up", 0)
