"""Solver processes: what they answer, how they end, and what is made of it.  Asking, cut points and evidence."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.proofs import answered, some_proof
from support.solvers import solver_processes, wait_until

from mmaformal import Equal, ampere, blackwell, find_difference, hopper
from mmaformal.proof.kernel import together
from mmaformal.solver import portfolio as portfolio_module
from mmaformal.solver.answers import Proof
from mmaformal.solver.asking import Asker, constants_of, renamed, smtlib
from mmaformal.solver.portfolio import NoSolverError, Outcome, Portfolio, installed_backends

BACKENDS = ("z3", "bitwuzla")
ALL = (*BACKENDS, "cvc5")
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

x, y, z = z3.BitVecs("x y z", 8)


def factoring(bits: int, value: int) -> str:
    """`value` is a product of two numbers > 1 of `bits` bits: without an answer for long where it is large."""
    p, q = z3.BitVecs("p q", bits)
    wide = z3.ZeroExt(bits, p) * z3.ZeroExt(bits, q)
    return smtlib([wide == value, z3.UGT(p, 1), z3.UGT(q, 1), z3.ULE(p, q)])


EASY = factoring(8, 11 * 13)
NONE = factoring(8, 251)
HARD = factoring(40, 2**79 - 67)  # a prime


# ---- answers


@pytest.mark.parametrize("backend", ALL)
def test_a_model_a_refutation_and_a_time_limit(backend: str) -> None:
    with Portfolio([backend]) as portfolio:
        sat = portfolio.ask(EASY, {"p": 8, "q": 8}, 20)
        assert (sat.verdict, sat.solver, sat.model) == ("sat", backend, {"p": 11, "q": 13})
        unsat = portfolio.ask(NONE, {}, 20)
        assert (unsat.verdict, unsat.solver, unsat.model) == ("unsat", backend, {})
        start = time.monotonic()
        late = portfolio.ask(HARD, {"p": 40, "q": 40}, 0.4)
        assert late.verdict == "unknown"
        assert late.why
        assert time.monotonic() - start < 10
        # What was asked before has no part in what is answered next.
        assert portfolio.ask(EASY, {"p": 8, "q": 8}, 20).model == {"p": 11, "q": 13}


def test_both_race_and_the_loser_is_gone() -> None:
    with Portfolio() as portfolio:
        assert portfolio.backends == BACKENDS
        for _ in range(3):
            assert portfolio.ask(EASY, {"p": 8, "q": 8}, 20).model == {"p": 11, "q": 13}
            assert portfolio.ask(NONE, {}, 20).verdict == "unsat"
        if sys.platform == "linux":
            assert len(solver_processes(os.getpid())) <= 2
    assert not solver_processes(os.getpid())


def test_a_constant_that_the_script_does_not_mention_has_a_value() -> None:
    script = smtlib([x == 5])
    for backend in ALL:
        with Portfolio([backend]) as portfolio:
            model = portfolio.ask(script, {"x": 8, "elsewhere": 16}, 20).model
            assert model["x"] == 5
            assert 0 <= model["elsewhere"] < 1 << 16


@linux
def test_many_questions_leave_no_descriptors_and_no_threads() -> None:
    with Portfolio(["bitwuzla"]) as portfolio:
        portfolio.ask(EASY, {}, 20)
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(3):
        with Portfolio(["bitwuzla"]) as portfolio:
            portfolio.ask(EASY, {}, 20)
            portfolio.ask(HARD, {}, 0.1)
    assert wait_until(lambda: (len(os.listdir("/proc/self/fd")), threading.active_count()) <= before, 5)


# ---- which solvers


@pytest.mark.parametrize("missing", BACKENDS)
def test_where_one_solver_is_missing_the_other_serves(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    there = portfolio_module.find_spec
    monkeypatch.setattr(portfolio_module, "find_spec", lambda name: None if name == missing else there(name))
    assert installed_backends() == tuple(b for b in ALL if b != missing)
    answer = find_difference(
        ampere["HMMA.1688.F32"].replace(k=1, L=1),
        hopper["HMMA.16816.F32"].replace(k=1, L=1, e_zero=-132, F=24),
    )
    assert isinstance(answer, Equal)  # one term
    with Portfolio() as portfolio:
        assert portfolio.ask(NONE, {}, 20).solver in set(BACKENDS) - {missing}
    with pytest.raises(NoSolverError, match=f"{missing} not installed"):
        Portfolio([missing])


def test_without_any_solver_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio_module, "find_spec", lambda _: None)
    with pytest.raises(NoSolverError, match="pip install"):
        find_difference(ampere, hopper, "HMMA.16816.F32")


def test_backends_that_are_none_are_errors() -> None:
    for wrong in (["yices"], ["z3", "yices"], "yices", []):
        with pytest.raises(ValueError, match="solvers are z3, bitwuzla"):
            Portfolio(wrong)
    assert Portfolio("z3").backends == ("z3",)
    for megabytes in (0, -1):
        with pytest.raises(ValueError, match="megabytes"):
            Portfolio(memory=megabytes)


# ---- solvers that break


@pytest.mark.parametrize("backend", ALL)
def test_without_memory_the_answer_is_unknown(backend: str) -> None:
    with Portfolio([backend], memory=8) as portfolio:
        outcome = portfolio.ask(EASY, {"p": 8, "q": 8}, 10)
    assert outcome.verdict == "unknown"
    assert backend in outcome.why


#: Breakdowns of a solver's process, as Python with `say` (a line on stdout) and `answer` at hand: a line
#: that is right but for what is given.
BREAKDOWNS = {
    "text": "say('(error \"out of memory\")')",
    "half a line": 'sys.stdout.write(\'{"verdict": "uns\'); sys.exit()',
    "no text": "sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush()",
    "an empty line": "say('')",
    "no object": "say('[]')",
    "nested too deeply": "say('[' * 10 ** 6)",
    "another verdict": "answer(verdict='maybe')",
    "a list of verdicts": "answer(verdict=['unsat'])",
    "no verdict": "answer(verdict=None)",
    "no number": "answer(number=None)",
    "another number": "answer(number=7)",
    "a number that is none": "answer(number=True)",
    "another script": "answer(sha256='0' * 64)",
    "no script": "answer(sha256=None)",
    "memory in words": "answer(memory='much')",
    "memory below 0": "answer(memory=-1)",
    "no model": "answer(verdict='sat', model=None)",
    "a model without p": "answer(verdict='sat', model={'q': 1})",
    "a value too large": "answer(verdict='sat', model={'p': 256, 'q': 1})",
    "a value that is none": "answer(verdict='sat', model={'p': True, 'q': 1})",
    "exit": "sys.exit(1)",
    "killed": "os.kill(os.getpid(), 9)",
}
Breaking = Callable[[str, str], None]
FAKE = """#!{python}
import hashlib, json, os, sys
backend = sys.argv[3]
if backend != {broken!r}:
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
def say(line):
    print(line, flush=True)
def answer(**changes):
    script = asked["script"].encode()
    right = dict(number=asked["number"], sha256=hashlib.sha256(script).hexdigest(), verdict="unsat", memory=0)
    say(json.dumps(right | changes))
for line in sys.stdin:
    asked = json.loads(line)
    {does}
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Breaking:
    """Call it to make one backend's process do something else than its work; the other one is as it is."""

    def breaking(backend: str, does: str) -> None:
        script = tmp_path / "python"
        script.write_text(FAKE.format(python=sys.executable, broken=backend, does=does))
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(portfolio_module, "sys", SimpleNamespace(executable=str(script)))

    return breaking


@pytest.mark.parametrize("how", BREAKDOWNS)
def test_a_solver_that_breaks_gives_no_answer_and_a_reason(how: str, broken: Breaking) -> None:
    broken("z3", BREAKDOWNS[how])
    with Portfolio(["z3"]) as portfolio:
        outcome = portfolio.ask(EASY, {"p": 8, "q": 8}, 10)
    assert (outcome.verdict, outcome.model) == ("unknown", {})
    assert "z3: " in outcome.why


def test_what_is_checked_of_an_answer_is_right_otherwise(broken: Breaking) -> None:
    broken("z3", "answer()")
    with Portfolio(["z3"]) as portfolio:
        assert portfolio.ask(EASY, {}, 10).verdict == "unsat"


@pytest.mark.parametrize("how", ["text", "killed"])
def test_the_other_solver_answers_where_one_breaks(how: str, broken: Breaking) -> None:
    broken("z3", BREAKDOWNS[how])
    with Portfolio() as portfolio:
        for _ in range(2):  # the broken one is started again
            outcome = portfolio.ask(EASY, {"p": 8, "q": 8}, 20)
            assert (outcome.solver, outcome.model) == ("bitwuzla", {"p": 11, "q": 13})
    broken("bitwuzla", BREAKDOWNS[how])
    with Portfolio() as portfolio:
        assert portfolio.ask(NONE, {}, 20).solver == "z3"


def test_a_solver_that_says_nothing_runs_out_of_time(broken: Breaking) -> None:
    broken("z3", "pass")
    with Portfolio(["z3"]) as portfolio:
        outcome = portfolio.ask(EASY, {}, 0.2)
    assert outcome.verdict == "unknown"
    assert "no answer in 0.2 s" in outcome.why


@linux
def test_solvers_killed_at_work_are_an_unknown_with_its_reason() -> None:
    me = os.getpid()

    def kill() -> None:
        wait_until(lambda: len(solver_processes(me)) == 2, 10)
        time.sleep(0.3)
        for process in solver_processes(me):
            os.kill(process, signal.SIGKILL)

    with Portfolio() as portfolio:
        killer = threading.Thread(target=kill)
        killer.start()
        outcome = portfolio.ask(HARD, {}, 60)
        killer.join()
        assert outcome.verdict == "unknown"
        assert all(f"{backend}: its process ended (-9)" in outcome.why for backend in BACKENDS)
        assert portfolio.ask(NONE, {}, 20).verdict == "unsat"  # with new processes


# ---- the end of solver processes


def test_an_exception_while_waiting_kills_the_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    portfolio = Portfolio()

    def interrupted(timeout: float) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio._answers, "get", interrupted)
    with pytest.raises(KeyboardInterrupt):
        portfolio.ask(HARD, {}, 60)
    assert not solver_processes(os.getpid())  # even before it is closed
    portfolio.close()


WAITING = f"""
import sys, threading
from mmaformal.solver.portfolio import Portfolio
with Portfolio() as portfolio:
    portfolio.ask({NONE!r}, {{}}, 30)
    print("asking", flush=True)
    portfolio.ask({HARD!r}, {{}}, 100)
"""


@linux
def test_the_answer_to_another_question_is_none() -> None:
    """A worker that is still at an old question, whoever let it live, does not answer the new one."""
    unsat = {"number": 1, "script": "(assert false)", "constants": {}, "timeout": 10}
    with Portfolio(["bitwuzla"]) as portfolio:
        assert portfolio.ask("(set-logic QF_BV)(check-sat)", {}, 10).verdict == "sat"
        (worker,) = portfolio._workers.values()
        worker.send(json.dumps(unsat))
        outcome = portfolio.ask("(set-logic QF_BV)(check-sat)", {}, 10)
    assert outcome.verdict == "unknown"
    assert "no answer but" in outcome.why


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_solvers_die_with_their_parent(how: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "asking\n"
        assert wait_until(lambda: len(solver_processes(parent.pid)) == 2, 20)
        parent.send_signal(how)
        _, errors = parent.communicate(timeout=20)
    assert parent.returncode == -how
    assert ("KeyboardInterrupt" in errors) == (how == signal.SIGINT)
    assert wait_until(lambda: not solver_processes(parent.pid), 5)


# ---- asking: renaming, cut points


class Recorder:
    """A portfolio that decides with z3 in this process and remembers what it was asked."""

    def __init__(self) -> None:
        self.scripts: list[str] = []

    def ask(self, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
        self.scripts.append(script)
        solver = z3.Solver()
        solver.add(z3.parse_smt2_string(script))
        return Outcome(str(solver.check()), "z3", "", 0.0)  # type: ignore[arg-type]


def asker(timeout: float = 60.0) -> tuple[Asker, Recorder]:
    recorder = Recorder()
    return Asker(recorder, timeout), recorder  # type: ignore[arg-type]


def terms(names: Sequence[str] = ("x", "y", "z"), depth: int = 3) -> st.SearchStrategy[z3.BitVecRef]:
    leaves = st.one_of(
        st.sampled_from([z3.BitVec(n, 4) for n in names]),
        st.integers(0, 15).map(lambda v: z3.BitVecVal(v, 4)),
    )
    binary = st.sampled_from(
        [
            lambda p, q: p + q,
            lambda p, q: p * q,
            lambda p, q: p & q,
            lambda p, q: z3.LShR(p, q),
            lambda p, q: z3.If(z3.ULT(p, q), p, q),
        ]
    )
    term = leaves
    for _ in range(depth):
        term = st.one_of(leaves, st.tuples(binary, term, term).map(lambda t: t[0](t[1], t[2])))
    return term


def claims() -> st.SearchStrategy[z3.BoolRef]:
    relation = st.sampled_from([lambda p, q: p == q, z3.ULE, lambda p, q: p <= q])
    return st.tuples(relation, terms(), terms()).map(lambda t: t[0](t[1], t[2]))


def always(claim: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.add(z3.Not(claim))
    return solver.check() == z3.unsat


@given(claims(), st.permutations(["x", "y", "z"]))
def test_renaming_sees_through_names_and_nothing_else(claim: z3.BoolRef, names: list[str]) -> None:
    old = [z3.BitVec(n, 4) for n in ("x", "y", "z")]
    other = z3.substitute(claim, *zip(old, (z3.BitVec(n, 4) for n in names), strict=True))
    assert renamed(claim).eq(renamed(other))
    merged = z3.substitute(claim, (old[0], old[1]))
    if len(constants_of(merged)) < len(constants_of(claim)):
        assert not renamed(claim).eq(renamed(merged))


def test_a_refuted_question_is_not_asked_again_under_other_names() -> None:
    ask, portfolio = asker()
    less = lambda p, q: z3.And(z3.ULT(p * p, q), z3.ULT(q, p * p))  # noqa: E731
    assert ask.satisfy("one", "first", [less(x, y)], whole=True).verdict == "unsat"
    assert ask.satisfy("two", "second", [less(z, x)], whole=True).verdict == "unsat"
    assert len(portfolio.scripts) == 1
    assert [(o.name, o.statement) for o in ask.proved] == [("one", "first"), ("two", "second")]
    assert ask.proved[0].script == ask.proved[1].script
    # Three constants where there were two, and one that was satisfiable, are asked.
    third = z3.And(z3.ULT(x * x, y), z3.ULT(z, x * x))
    assert ask.satisfy("three", "third", [third], whole=True).verdict == "sat"
    assert ask.satisfy("four", "fourth", [third], whole=True).verdict == "sat"
    assert len(portfolio.scripts) == 3
    assert len(ask.proved) == 2


@settings(max_examples=60, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(claims(), st.lists(claims(), max_size=2), st.lists(terms(depth=2), max_size=3))
def test_what_is_proved_with_cuts_holds_without(
    claim: z3.BoolRef, using: list[z3.BoolRef], cut: list[z3.BitVecRef]
) -> None:
    ask, _ = asker()
    inside = [t for t in cut if not z3.is_bv_value(t)]
    inside += [t for t in claim.children() if t.num_args()]  # nested in, and overlapping with, the others
    if ask.prove("claim", "claim", claim, using=using, cut=inside).verdict == "unsat":
        assert always(z3.Implies(z3.And(using), claim))


def test_a_cut_forgets_what_the_term_was() -> None:
    ask, _ = asker()
    assert ask.prove("even", "2x is even", (2 * x) & 1 == 0).verdict == "unsat"
    assert ask.prove("cut", "2x is even", (2 * x) & 1 == 0, cut=[2 * x]).verdict == "sat"


@given(claims())
def test_a_script_says_what_the_term_says(claim: z3.BoolRef) -> None:
    one_armed = z3.And(z3.Or(claim))
    solver = z3.Solver()
    solver.add(z3.Xor(z3.And(*z3.parse_smt2_string(smtlib([one_armed])), z3.BoolVal(True)), claim))
    assert solver.check() == z3.unsat


def test_time_used_up_is_unknown_and_nothing_is_asked() -> None:
    ask, portfolio = asker(timeout=0.001)
    time.sleep(0.01)
    outcome = ask.satisfy("late", "late", [x * y == 35], whole=True)
    assert (outcome.verdict, outcome.why) == ("unknown", "the time given was used up")
    assert not portfolio.scripts
    assert not ask.proved


# ---- evidence


def _stock_verdicts(path: Path) -> dict[str, str]:
    """Return what solvers that know nothing of mmaformal say of a file."""
    solver = z3.Solver()
    solver.from_file(str(path))
    verdicts = {"z3": str(solver.check())}
    import bitwuzla

    parser = bitwuzla.Parser(bitwuzla.TermManager(), bitwuzla.Options())
    parser.parse(str(path), True, True)
    verdicts["bitwuzla"] = str(parser.bitwuzla().check_sat()).rpartition(".")[2].lower()
    beside = Path(sys.executable).with_name("z3")
    command = str(beside) if beside.exists() else shutil.which("z3")
    if command:
        run = subprocess.run([command, str(path)], capture_output=True, text=True, timeout=60, check=False)
        verdicts["z3 command"] = run.stdout.strip()
    return verdicts


@pytest.fixture(scope="module")
def proof() -> Proof:
    """A staged proof and one of one and the same term; without those of the encodings' equality, which are many."""
    e4m3 = hopper["QGMMA.64x8x32.F32.E4M3.E4M3"].replace(k=1, L=1)
    with pytest.MonkeyPatch.context() as patch:
        module = importlib.import_module("mmaformal.queries.find_difference")
        patch.setattr(module, "equal_in_both_encodings", lambda answer, *_: answer)
        staged = find_difference(e4m3, e4m3.replace(e_zero=-134))
    x, y = (i["HMMA.1688.F32"].replace(k=2, L=2) for i in (hopper, blackwell))
    same = find_difference(x, y)
    assert isinstance(staged, Equal)
    assert isinstance(same, Equal)
    assert len(staged.proof.obligations) > 3
    return together(staged.proof, same.proof)


def test_proofs_are_files_that_stock_solvers_refute(proof: Proof, tmp_path: Path) -> None:
    paths = proof.write_smtlib(tmp_path / "new" / "folder")
    assert len({p.name for p in paths}) == len(proof.obligations)
    for path, obligation in zip(paths, proof.obligations, strict=True):
        text = path.read_text()
        assert obligation.statement in text.splitlines()[0]
        assert text.endswith("(check-sat)\n")
        assert set(_stock_verdicts(path).values()) == {"unsat"}, path.name


def test_proofs_are_standard_enough_for_cvc5(proof: Proof, tmp_path: Path) -> None:
    import cvc5

    for path in proof.write_smtlib(tmp_path):
        solver = cvc5.Solver()
        solver.setOption("strict-parsing", "true")
        parser = cvc5.InputParser(solver)
        parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(path))
        answers = []
        while not (command := parser.nextCommand()).isNull():
            answers.append(command.invoke(solver, parser.getSymbolManager()).strip())
        assert answers[-1] == "unsat", path.name


@pytest.mark.parametrize("backend", [*BACKENDS, None])
def test_either_solver_and_any_other_confirms_a_proof(proof: Proof, backend: str | None) -> None:
    confirmed = proof.confirm(backend, 60)
    assert set(confirmed) == {o.name for o in proof.obligations}
    assert set(confirmed.values()) == {"unsat"}


def test_what_is_no_proof_is_not_confirmed() -> None:
    wrong = some_proof(answered("wrong", "143 has no factors", EASY, "z3", "0", 0.0))
    assert wrong.confirm("z3") == {"wrong": "sat"}
    beside = some_proof(*wrong.obligations, answered("wrong", "false is false", "(assert false)(check-sat)"))
    assert beside.confirm("z3") == {"wrong": "sat"}
    late = some_proof(answered("late", "…", HARD, "z3", "0", 0.0))
    assert late.confirm("bitwuzla", 0.2)["late"].startswith("unknown: ")


def test_evidence_is_json_with_the_digest_of_the_script(proof: Proof) -> None:
    told = json.loads(json.dumps(proof.to_json()))["obligations"]
    assert [o["sha256"] for o in told] == [o.digest for o in proof.obligations]
    assert all(o["name"] and o["statement"] and o["solver"] and o["version"] for o in told)
    assert str(proof).count("\n") == len(told) - 1


@pytest.mark.parametrize(
    "constant",
    [z3.BitVec("x", 5), z3.Bool("a b"), z3.FreshConst(z3.BitVecSort(5), "x"), z3.Const(7, z3.BitVecSort(3))],
)
def test_the_constants_of_a_term_are_its_own(constant: z3.ExprRef) -> None:
    """Not others of the same name."""
    (found,) = constants_of(z3.Or(constant == constant, z3.Not(constant == constant), constant != constant))
    assert found.eq(constant)
