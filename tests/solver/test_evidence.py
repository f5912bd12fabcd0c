"""The store of evidence, and the scripts whose hashes it goes by."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from mmaformal import ampere, volta
from mmaformal.facts.equality import argue_equality
from mmaformal.proof.kernel import Scripts
from mmaformal.queries.verify import verify
from mmaformal.solver.answers import Holds
from mmaformal.solver.asking import Asker
from mmaformal.solver.evidence import (
    ContradictionError,
    EvidenceError,
    EvidenceStore,
    current_store,
    digest,
    recording,
)
from mmaformal.solver.portfolio import Outcome, Portfolio
from mmaformal.solver.script import smtlib

SMALL = volta["HMMA.884.F16.F16"]


def outcome(verdict: str, solver: str = "z3", seconds: float = 1.0) -> Outcome:
    return Outcome(verdict, solver, "1.0", seconds, memory=4096)  # type: ignore[arg-type]


# ---- scripts


def test_scripts_say_what_terms_say_and_nothing_of_when_they_were_made() -> None:
    def question() -> str:
        x, y = z3.BitVecs("x y", 8)
        shared = x * y + 1
        return smtlib([z3.And(shared == 3, z3.Or(z3.ULT(x, shared), z3.And(y == 7)), z3.Xor(x == y, y == 0))])

    first = question()
    ballast = [
        z3.BitVec(f"other{i}", 8) * i == 1 for i in range(50)
    ]  # takes up numbers that z3 gives to terms
    assert question() == first
    assert len(ballast) == 50
    assert first.startswith("(set-logic QF_BV)\n")
    assert first.endswith("(check-sat)\n")
    assert "(and (= y" not in first  # of one operand


@given(st.lists(st.integers(0, 11), min_size=1, max_size=30))
def test_scripts_are_read_back_as_the_same_question(choices: list[int]) -> None:
    x, y, p = z3.BitVec("x", 8), z3.BitVec("y", 8), z3.Bool("p q")
    terms, claims = [x, y, z3.BitVecVal(200, 8)], [p, z3.BoolVal(True)]
    for n in choices:
        u, v = terms[n % len(terms)], terms[(3 * n + 1) % len(terms)]
        terms.append(
            [
                u + v, u - v, u * v, u & ~v, u << v, z3.LShR(u, v), u >> v, -u, z3.UDiv(u, v), z3.SRem(u, v),
                z3.If(claims[n % len(claims)], u, v),
                z3.Concat(z3.Extract(3, 0, u), z3.Extract(7, 4, v)),
            ][n]
        )  # fmt: skip
        claims.append(
            [z3.ULE(u, v), u < v, u == v, z3.Not(u != v), z3.And(claims), z3.Or(claims[-1:]), z3.And([])][
                n % 7
            ]
        )
    claim = z3.Implies(claims[-2], claims[-1]) if len(claims) > 3 else claims[-1]
    question = z3.Or(claim, z3.SignExt(4, terms[-1]) == z3.ZeroExt(4, terms[-2]))
    script = smtlib([question])
    assert smtlib(z3.parse_smt2_string(script)).count("\n") >= 3
    solver = z3.Solver()
    solver.add(z3.Xor(z3.And(*z3.parse_smt2_string(script), z3.BoolVal(True)), question))
    assert solver.check() == z3.unsat


def test_what_is_no_question_of_bit_vectors_is_refused() -> None:
    with pytest.raises(ValueError, match=r"QF_BV|bit-vector"):
        smtlib([z3.Int("n") > 0])
    with pytest.raises(ValueError, match=r"QF_BV|bit-vector"):
        smtlib([z3.fpIsNaN(z3.FP("f", z3.Float16()))])


LEMMAS = """
import sys
from mmaformal import ARCHITECTURES
from mmaformal.facts.equality import argue_equality
from mmaformal.proof.kernel import Scripts
from mmaformal.solver.evidence import digest
scripts = Scripts()
for arch, name in (("turing", "HMMA.1688.F32"), ("volta", "HMMA.884.F16.F16")):
    digests = [digest(scripts[lemma]) for lemma in argue_equality(ARCHITECTURES[arch][name].spec).lemmas.values()]
print(*digests)
"""


def test_lemmas_have_the_same_hash_in_every_process() -> None:
    scripts = Scripts()
    mine = [digest(scripts[lemma]) for lemma in argue_equality(SMALL.spec).lemmas.values()]
    run = subprocess.run([sys.executable, "-c", LEMMAS], capture_output=True, text=True, check=True)
    assert run.stdout.split() == mine


@pytest.fixture(scope="module")
def lemma_files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every lemma of an instruction as a file."""
    folder, scripts = tmp_path_factory.mktemp("lemmas"), Scripts()
    paths = []
    for i, lemma in enumerate(argue_equality(SMALL.spec).lemmas.values()):
        paths.append(folder / f"{i}.smt2")
        paths[-1].write_text(scripts[lemma])
    return paths


def test_stock_bitwuzla_and_z3_read_every_lemma(lemma_files: list[Path]) -> None:
    import bitwuzla

    assert len(lemma_files) > 100
    for path in lemma_files:
        parser = bitwuzla.Parser(bitwuzla.TermManager(), bitwuzla.Options())
        parser.parse(str(path), True, True)
        assert parser.bitwuzla().check_sat() == bitwuzla.Result.UNSAT
        solver = z3.Solver()
        solver.from_file(str(path))
        assert len(solver.assertions()) == 1


def test_stock_cvc5_reads_every_lemma(lemma_files: list[Path]) -> None:
    import cvc5

    answers = []
    for path in lemma_files:
        solver = cvc5.Solver()
        solver.setOption("strict-parsing", "true")
        solver.setOption("tlimit-per", "1000")
        parser = cvc5.InputParser(solver)
        parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
        while not (command := parser.nextCommand()).isNull():
            answer = command.invoke(solver, parser.getSymbolManager()).strip()
        answers.append(answer)
    assert set(answers) <= {"unsat", "unknown (TIMEOUT)"}  # it is slow on a few
    assert answers.count("unsat") > 0.9 * len(answers)


# ---- the store


def test_a_proof_is_found_by_its_hash_and_never_replaced(tmp_path: Path) -> None:
    with EvidenceStore(tmp_path / "new" / "folder" / "e.db") as store:
        assert store.proof("ab") is None
        store.add("ab", "name", "statement", outcome("unknown", ""))
        assert store.proof("ab") is None
        store.add("ab", "name", "statement", outcome("unsat", seconds=2.5))
        store.add("ab", "other", "other", outcome("unknown", "", seconds=9.0))
        store.add("ab", "other", "other", outcome("unsat", seconds=9.0))
        store.add("ab", "name", "statement", outcome("unsat", "bitwuzla"))
        found = store.proof("ab")
        assert found is not None
        assert (found.solver, found.version, found.verdict, found.seconds) == ("z3", "1.0", "unsat", 2.5)
        assert (found.name, found.statement, found.memory) == ("name", "statement", 4096)
        assert found.date.endswith("+00:00")
        assert store.proof("ab", "bitwuzla") is not None
        assert store.proof("ab", "cvc5") is None
        assert store.proof("a") is None
    with EvidenceStore(store.path) as again:
        assert [r.solver for r in again.records() if r.verdict == "unsat"] == ["z3", "bitwuzla"]
        assert [r.seconds for r in again.records() if r.verdict == "unknown"] == [9.0]  # the last one


@pytest.mark.parametrize("second", ["z3", "bitwuzla"])
@pytest.mark.parametrize("verdicts", [("unsat", "sat"), ("sat", "unsat")])
def test_a_contradiction_is_kept_and_named_and_proves_nothing(
    tmp_path: Path, verdicts: tuple[str, str], second: str
) -> None:
    said = rf"on ab \(name: statement\): z3 1\.0 says {verdicts[0]}, {second} 1\.0 says {verdicts[1]}"
    with EvidenceStore(tmp_path / "e.db") as store:
        store.add("ab", "name", "statement", outcome(verdicts[0]))
        store.add("cd", "fine", "fine", outcome("unsat"))
        with pytest.raises(ContradictionError, match=said) as caught:
            store.add("ab", "name", "statement", outcome(verdicts[1], second))
        assert "\n" not in str(caught.value)
    with EvidenceStore(store.path) as again:
        assert [(r.solver, r.verdict) for r in again.records() if r.sha256 == "ab"] == [
            ("z3", verdicts[0]),
            (second, verdicts[1]),
        ]
        for solver in (None, "z3", "bitwuzla"):
            with pytest.raises(ContradictionError, match=said):
                again.proof("ab", solver)
        with pytest.raises(ContradictionError):  # whatever is said later
            again.add("ab", "name", "statement", outcome("unsat", "cvc5"))
        again.add("ab", "name", "statement", outcome("unknown", ""))
        assert again.proof("cd") is not None
        (contradiction,) = again.contradictions()
        assert [r.solver for r in contradiction.records] == ["z3", second, "cvc5"]


def test_what_nobody_says_is_no_answer(tmp_path: Path) -> None:
    for verdict in ("unsat", "sat"):
        with pytest.raises(ValueError, match=f"{verdict}, but no solver"):
            outcome(verdict, "")
    forged = Outcome("unknown", "", "", 0.0)
    object.__setattr__(forged, "verdict", "unsat")  # as what comes from another process may be
    with EvidenceStore(tmp_path / "e.db") as store:
        with pytest.raises(ValueError, match="no solver that says so"):
            store.add("ab", "name", "statement", forged)
        with pytest.raises(sqlite3.IntegrityError):
            store._db.execute("INSERT INTO records VALUES ('ab', '', '', 'unsat', '', '', 0, 0, '')")
        assert list(store.records()) == []
    for wrong in (
        {"seconds": -1.0},
        {"seconds": float("nan")},
        {"memory": -1},
        {"memory": 1.5},
        {"version": None},
    ):
        with pytest.raises(ValueError, match=r"memory is|seconds are|are text"):
            Outcome(**{"verdict": "unsat", "solver": "z3", "version": "1", "seconds": 1.0} | wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="a verdict is one of"):
        outcome("maybe")


LAYOUT_1 = """
CREATE TABLE records (sha256 TEXT NOT NULL, solver TEXT NOT NULL, version TEXT NOT NULL,
    verdict TEXT NOT NULL CHECK (verdict IN ('sat', 'unsat', 'unknown')), name TEXT NOT NULL, statement TEXT NOT NULL,
    seconds REAL NOT NULL, memory INTEGER NOT NULL, date TEXT NOT NULL,
    PRIMARY KEY (sha256, solver, version)) WITHOUT ROWID;
INSERT INTO records VALUES ('ab', 'z3', '1', 'unsat', 'name', 'statement', 2.5, 4096, '2026-01-01T00:00:00+00:00');
INSERT INTO records VALUES ('ab', '', '', 'unknown', 'name', 'statement', 2.5, 0, '2025-01-01T00:00:00+00:00');
INSERT INTO records VALUES ('cd', '', '', 'unsat', 'name', 'statement', 2.5, 0, '2026-01-01T00:00:00+00:00');
INSERT INTO records VALUES ('ef', 'z3', '1', 'unsat', 'n', 's', 1, 0, '2026-01-01T00:00:00+00:00');
INSERT INTO records VALUES ('ef', 'cvc5', '1', 'sat', 'n', 's', 1, 0, '2026-01-02T00:00:00+00:00');
PRAGMA user_version = 1;
"""

OPENER = """
import sys
from mmaformal.solver.evidence import EvidenceStore
sys.stdin.readline()
with EvidenceStore(sys.argv[1]) as store:
    print(len(list(store.records())))
"""


def test_a_file_of_the_layout_before_is_brought_up_to_date_once(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(LAYOUT_1)
    openers = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for opener in openers:  # all at once
        assert opener.stdin is not None
        opener.stdin.write("\n")
        opener.stdin.flush()
    assert [opener.communicate(timeout=60)[0] for opener in openers] == ["5\n"] * 3
    with EvidenceStore(path) as store:
        found = store.proof("ab")
        assert found is not None
        assert (found.solver, found.seconds, found.memory, found.date) == (
            *("z3", 2.5, 4096),
            "2026-01-01T00:00:00+00:00",
        )
        assert store.proof("cd") is None  # by nobody
        assert len(store.contradictions()) == 1
        with pytest.raises(ContradictionError):
            store.add("ab", "name", "statement", Outcome("sat", "z3", "1", 1.0))
        assert len(list(store.records())) == 6


def test_what_is_no_store_is_said_to_be_none(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("not a database, but long enough to be looked at as one " * 20)
    with pytest.raises(EvidenceError, match="cannot hold evidence"):
        EvidenceStore(text)
    other = tmp_path / "other.db"
    db = sqlite3.connect(other)
    db.execute("CREATE TABLE things (x)")
    db.close()
    with pytest.raises(EvidenceError, match="another program"):
        EvidenceStore(other)
    for number in (1, 2):  # which other programs have too
        with contextlib.closing(sqlite3.connect(other)) as db:
            db.execute(f"PRAGMA user_version = {number}")
        with pytest.raises(EvidenceError, match="another program"):
            EvidenceStore(other)
        with contextlib.closing(sqlite3.connect(other)) as db:
            assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("things",)]  # left as it was
            assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    later = tmp_path / "later.db"
    db = sqlite3.connect(later)
    db.execute("PRAGMA user_version = 7")
    db.close()
    with pytest.raises(EvidenceError, match="layout 7"):
        EvidenceStore(later)
    with pytest.raises(EvidenceError):
        EvidenceStore(tmp_path)


WRITER = """
import sys
from mmaformal.solver.evidence import EvidenceStore
from mmaformal.solver.portfolio import Outcome
with EvidenceStore(sys.argv[1]) as store:
    for i in range(int(sys.argv[3])):
        store.add(f"{i:04}", sys.argv[2], "", Outcome("unsat", "z3", "1", 0.0))
        store.add(f"{i:04}{sys.argv[2]}", sys.argv[2], "", Outcome("unsat", "z3", "1", 0.0))
        print(i, flush=True)
"""


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    command = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*command, name, "200"], stdout=subprocess.DEVNULL) for name in "abc"]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    with EvidenceStore(path) as store:
        records = list(store.records())
    assert len(records) == len({r.sha256 for r in records}) == 4 * 200


@pytest.mark.skipif(sys.platform == "win32", reason="kills with a signal")
def test_what_was_recorded_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    command = [sys.executable, "-c", WRITER, str(path), "w", "100000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        lines = [writer.stdout.readline() for _ in range(100)]
        os.kill(writer.pid, signal.SIGKILL)
    with EvidenceStore(path) as store:
        assert all(store.proof(f"{int(line):04}") for line in lines)


# ---- recording


class Counting:
    """A portfolio that gives one answer and counts."""

    def __init__(self, verdict: str) -> None:
        self.verdict, self.asked = verdict, 0

    def ask(self, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
        self.asked += 1
        return outcome(self.verdict)


def ask(store: EvidenceStore | None, verdict: str, x: z3.BoolRef) -> tuple[Counting, Asker, Outcome]:
    counting = Counting(verdict)
    with recording(store):
        asker = Asker(counting, 60)  # type: ignore[arg-type]
    return counting, asker, asker.satisfy("name", "statement", [x], whole=True)


@pytest.mark.parametrize("verdict", ["unsat", "sat", "unknown"])
def test_only_proofs_of_the_same_text_are_used_again(tmp_path: Path, verdict: str) -> None:
    x, y = z3.BitVecs("x y", 8)
    with EvidenceStore(tmp_path / "e.db") as store:
        first, asker, said = ask(store, verdict, x * y == 35)
        assert (first.asked, said.verdict) == (1, verdict)
        again, asker, said = ask(store, verdict, x * y == 35)
        assert (again.asked, said.verdict) == (verdict != "unsat", verdict)
        if verdict == "unsat":
            (obligation,) = asker.proved
            assert (obligation.solver, obligation.seconds, obligation.memory) == ("z3", 1.0, 4096)
            assert hashlib.sha256(obligation.script.encode()).hexdigest() == obligation.digest
        changed, *_ = ask(store, verdict, x * y == 36)
        assert changed.asked == 1
        nowhere, *_ = ask(None, verdict, x * y == 35)
        assert nowhere.asked == 1
        assert len(list(store.records())) == 2
    assert current_store() is None


def test_a_proof_is_recorded_and_then_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EvidenceStore(tmp_path / "e.db") as store, recording(store):
        first = verify(SMALL)
        assert isinstance(first, Holds)
        records = {r.sha256: r for r in store.records()}
        assert set(records) == {o.digest for o in first.proof.obligations}
        if sys.platform == "linux":
            assert all(2**23 < r.memory < 2**30 for r in records.values())

        def never(*_: object) -> Outcome:
            raise AssertionError("what is known was asked")

        monkeypatch.setattr(Portfolio, "ask", never)
        again = verify(SMALL)
        assert isinstance(again, Holds)
        assert again.proof == first.proof
        with pytest.raises(AssertionError, match="what is known"):
            verify(ampere["HMMA.1688.F16"])


@pytest.mark.parametrize("verdicts", [("unsat", "sat"), ("sat", "unsat")])
def test_solvers_that_contradict_each_other_prove_nothing(tmp_path: Path, verdicts: tuple[str, str]) -> None:
    x, y = z3.BitVecs("x y", 8)
    with EvidenceStore(tmp_path / "e.db") as store:
        with recording(store):
            asker = Asker(Counting("unsat"), 60)  # type: ignore[arg-type]
        script = smtlib([z3.simplify(z3.And(x * y == 35))])
        store.add(digest(script), "name", "statement", outcome(verdicts[0], "cvc5"))
        if verdicts[0] == "unsat":
            with pytest.raises(ContradictionError):
                store.add(digest(script), "name", "statement", outcome(verdicts[1], "z3"))
        said = asker.satisfy("name", "statement", [x * y == 35], whole=True)
        assert said.verdict == "unknown"
        assert "solvers contradict each other" in said.why
        assert asker.proved == []
        again = asker.satisfy("name", "statement", [x * y == 35], whole=True)
        assert again.verdict == "unknown"
        assert len(list(store.records())) == 2


def test_a_file_that_could_only_be_read_for_a_moment_is_opened_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process's last connection takes its log away while this one opens the file."""
    prepare, refusals = EvidenceStore._prepare, [sqlite3.SQLITE_READONLY]

    def refuse(store: EvidenceStore) -> None:
        if refusals:
            error = sqlite3.OperationalError("attempt to write a readonly database")
            error.sqlite_errorcode = refusals.pop()
            raise error
        prepare(store)

    monkeypatch.setattr(EvidenceStore, "_prepare", refuse)
    with EvidenceStore(tmp_path / "e.db") as store:
        assert not list(store.records())
    refusals += [sqlite3.SQLITE_READONLY] * 2
    with pytest.raises(EvidenceError, match="readonly"):
        EvidenceStore(tmp_path / "e.db")
