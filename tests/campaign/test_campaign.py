"""`mmaformal verify`: campaigns on threads, processes and a cluster, and what is left of one that is killed."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.slow import slow
from support.solvers import wait_until

from mmaformal import datapath
from mmaformal.campaign import Campaign, checked_outcomes
from mmaformal.cli import main, verification
from mmaformal.encodings.executable import stages
from mmaformal.facts.protocol import Facts
from mmaformal.queries.verify import verify
from mmaformal.solver import pool
from mmaformal.solver.answers import Holds, Unknown
from mmaformal.solver.evidence import EvidenceError, EvidenceStore, Record, digest, recording
from mmaformal.solver.pool import cluster, processes
from mmaformal.solver.portfolio import Outcome

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

POINT = "fda(k=1,frac_bits=6,a=e4m3,rho=RNE-FP16)"
SMALL = datapath[POINT]


@contextmanager
def threads(jobs: int = 2) -> Iterator[Executor]:
    """An executor in this process, where a test can break the model."""
    with ThreadPoolExecutor(jobs) as executor:
        yield executor
        list(executor.map(lambda _: _close(), range(jobs)))
    pool._all.clear()


def _close() -> None:
    for portfolio in pool._all:
        portfolio.close()


@pytest.fixture
def in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_pool", lambda args, jobs: threads(jobs))


def run(*arguments: object) -> int:
    return main(["verify", *map(str, arguments)])


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which `SMALL` is proved; and what takes other solvers long, confirmed."""
    path = tmp_path_factory.mktemp("store") / "e.db"
    with EvidenceStore(path) as store, threads(1) as executor:
        Campaign([SMALL], store).run(executor, 1)
        for record in list(store.records()):
            if record.name.startswith("round"):
                store.add(record.sha256, record.name, record.statement, Outcome("unsat", "z3", "1.0", 9.0))
    return path


@pytest.fixture
def known(proved: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(proved, tmp_path / "known.db"))


@pytest.fixture
def one_left(known: Path) -> Record:
    """The obligation in `known` that no other solver has confirmed, when all others are said to be."""
    with EvidenceStore(known) as store:
        first, *rest = [record for record in store.records() if record.solver == "bitwuzla"]
        for record in rest:
            store.add(record.sha256, record.name, record.statement, Outcome("unsat", "z3", "1.0", 0.0))
    return first


# ---- what a campaign says


def test_each_obligation_is_asked_once_and_what_is_known_never(tmp_path: Path) -> None:
    instructions = [SMALL, datapath[POINT], datapath["fda(k=2,frac_bits=7,a=e4m3,rho=RNE-FP16)"]]
    with EvidenceStore(tmp_path / "e.db") as store, threads() as executor:
        campaign = Campaign(instructions, store)
        campaign.run(executor, 2)
        answers = [answer for _, answer in campaign.answers()]
        assert [type(answer) for answer in answers] == [Holds] * 3
        records = list(store.records())
        assert campaign.asked == len(campaign.outcomes) == len(records) == len({r.sha256 for r in records})
        proofs = [answer.proof for answer in answers if isinstance(answer, Holds)]
        cited = {o.digest for proof in proofs for o in proof.obligations}
        assert cited == {r.sha256 for r in records}
        assert sum(len(proof.obligations) for proof in proofs[1:]) > len(cited)  # they share some
        again = Campaign(instructions, store)
        again.run(executor, 2)
        assert (again.asked, again.known) == (0, len(records))
        assert [answer for _, answer in again.answers()] == answers


def test_one_solver_alone_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_threads: None
) -> None:
    store = tmp_path / "e.db"
    assert run("datapath", POINT, "--evidence", store, "--jobs", 1, "--solver", "z3") == 0
    assert "1 proved" in capsys.readouterr().out
    with EvidenceStore(store) as known:
        assert {record.solver for record in known.records()} == {"z3"}


def test_verify_tells_proves_writes_and_confirms(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], in_threads: None
) -> None:
    store, folder = known, tmp_path / "smt"
    arguments = "datapath", POINT, "--evidence", store, "--jobs", 1
    assert run(*arguments, "--smtlib", folder, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["instructions"], told["proved"], told["unknown"], told["refuted"]) == (1, 1, 0, 0)
    (answer,) = told["answers"]
    assert answer["answer"] == "holds"
    files = {path.stem: path for path in folder.glob("*.smt2")}
    assert set(files) == set(answer["obligations"])
    assert run(*arguments, "--csv") == 0
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["instruction"], row["answer"], row["obligations"]) == (POINT, "holds", str(len(files)))
    for name, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == name
    index = json.loads((folder / "index.json").read_text())
    assert set(index["obligations"]) == set(files)
    assert index["proofs"] == [{"instructions": [SMALL.label], "obligations": answer["obligations"]}]
    # A second solver, which then is in the store too.
    assert run(*arguments, "--confirm") == 0
    out = capsys.readouterr().out
    assert f"{len(files)} of them known" in out
    assert f"{len(files)} confirmed" in out
    with EvidenceStore(store) as records:
        for name in files:
            assert records.proof(name, "bitwuzla")
            assert records.proof(name, "z3") or records.proof(name, "cvc5")
    assert run(*arguments, "--confirm", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["asked"], told["confirmed"], told["unconfirmed"]) == (0, len(files), [])


def test_a_broken_model_is_refuted_with_a_witness(
    known: Path, capsys: pytest.CaptureFixture[str], in_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = "datapath", POINT, "--evidence", known, "--jobs", 1
    assert run(*arguments) == 0
    monkeypatch.setattr(stages, "with_zero_exponent", lambda x, e_zero: x)
    assert run(*arguments) == 1  # what was proved of the right model is no proof of this one
    out = capsys.readouterr().out
    assert "REFUTED" in out
    results = [re.search(rf"^ *{encoding} +(0x[0-9a-f]+)", out, re.M) for encoding in ("executable", "smt")]
    assert results[0]
    assert results[1]
    assert results[0][1] != results[1][1]


def test_what_is_not_settled_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = "datapath", POINT, "--evidence", tmp_path / "e.db", "--jobs", 1
    assert run(*arguments, "--timeout", "0.001") == 3
    out = capsys.readouterr().out
    assert "UNKNOWN" in out
    assert "is not settled" in out
    monkeypatch.setattr(Facts, "equal", lambda facts, *_: facts.unsupported("why both encodings agree"))
    assert run(*arguments) == 3
    assert "no argument for fda" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--all"),
        (("volta", "--all"), "--all"),
        (("vulcan",), "no architecture 'vulcan'"),
        (("volta", "HMMA.1"), "HMMA.1"),
        (("volta", "--evidence", "/dev/null/e.db"), "cannot write to"),
    ],
)
def test_wrong_use_is_told_in_a_line(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


# ---- solvers that do not agree, workers that cannot be believed


def lie(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str, Outcome], Any], digests: list[str]) -> None:
    """Give another answer to one lemma."""

    def lying(scripts: list[str], timeout: float, backend: str | None, memory: int) -> Any:
        said = pool.decide(scripts, timeout, backend, memory)
        wrong = [i for i, script in enumerate(scripts) if digest(script) in digests]
        return answer(str(backend), said[wrong[0]]) if len(said) == 1 and wrong else said

    monkeypatch.setattr("mmaformal.campaign.decide", lying)


def check_contradiction(told: dict[str, Any], record: Record) -> None:
    assert (told["proved"], told["unknown"], len(told["contradictions"])) == (0, 1, 1)
    (answer,) = told["answers"]
    assert answer["answer"] == "unknown"
    assert f"contradict each other on {record.sha256}" in answer["why"]
    assert record.sha256 not in answer["obligations"]


def test_a_contradiction_between_solvers_settles_nothing(
    known: Path,
    one_left: Record,
    capsys: pytest.CaptureFixture[str],
    in_threads: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments, first = ("datapath", POINT, "--evidence", known, "--jobs", 1), one_left
    lie(monkeypatch, lambda backend, _: [Outcome("sat", backend, "1", 0.1)], [first.sha256])
    assert run(*arguments, "--confirm", "--json") == 3
    check_contradiction(json.loads(capsys.readouterr().out), first)
    monkeypatch.undo()
    monkeypatch.setattr(verification, "_pool", lambda args, jobs: threads(jobs))
    assert run(*arguments, "--json") == 3  # nor does it the next day
    check_contradiction(json.loads(capsys.readouterr().out), first)
    assert run(*arguments) == 3
    out = capsys.readouterr().out
    assert f"CONTRADICTION  {known}: solvers contradict each other on {first.sha256} ({first.name}" in out
    assert f"{first.solver} {first.version} says unsat, " in out
    assert "0 proved, 1 unknown" in out
    with EvidenceStore(known) as store:
        assert {r.verdict for r in store.records() if r.sha256 == first.sha256} == {"sat", "unsat"}
    with EvidenceStore(known) as store, recording(store):
        assert isinstance(verify(SMALL, timeout=3), Unknown)


def test_what_was_satisfiable_once_is_not_proved_by_asking_again(known: Path, tmp_path: Path) -> None:
    path = tmp_path / "e.db"
    with EvidenceStore(known) as old, EvidenceStore(path) as store, threads(1) as executor:
        first, *rest = old.records()
        for record in rest:
            store.add(record.sha256, record.name, record.statement, record.outcome)
        store.add(first.sha256, first.name, first.statement, Outcome("sat", "cvc5", "1", 0.1))
        campaign = Campaign([SMALL], store)
        campaign.run(executor, 1)
        assert campaign.asked == 1
        ((_, answer),) = campaign.answers()
        assert isinstance(answer, Unknown)
        assert "contradict each other" in answer.why
        assert list(campaign.contradicted) == [first.sha256]


def forged() -> Outcome:
    """An `unsat` that nobody said, as another process may send."""
    outcome = Outcome("unknown", "", "", 0.0)
    object.__setattr__(outcome, "verdict", "unsat")
    return outcome


@pytest.mark.parametrize(
    "rubbish",
    [None, "unsat", [], ["unsat"], [None], [forged()], [Outcome("unsat", "yices", "1", 0.1)]],
    ids=["None", "text", "none", "a list of text", "[None]", "forged", "another solver"],
)
def test_an_answer_that_cannot_be_one_is_none(rubbish: Any) -> None:
    (outcome,) = checked_outcomes(rubbish, 1, "z3")
    assert outcome.verdict == "unknown"
    assert outcome.why.startswith("a worker gave ")
    fine = [Outcome("unsat", "z3", "1", 0.1)]
    assert checked_outcomes(fine, 1, "z3") == fine
    assert [o.verdict for o in checked_outcomes(fine, 2, "z3")] == ["unknown"] * 2


def test_what_a_worker_says_is_no_proof_unless_it_can_be_one(
    known: Path,
    one_left: Record,
    capsys: pytest.CaptureFixture[str],
    in_threads: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lie(monkeypatch, lambda *_: [forged()], [one_left.sha256])
    arguments = "datapath", POINT, "--evidence", known, "--jobs", 1, "--confirm-timeout", 1
    assert run(*arguments, "--confirm", "--json") == 3
    told = json.loads(capsys.readouterr().out)
    assert told["proved"] == 1
    assert told["confirmed"] == told["obligations"] - 1
    (unconfirmed,) = told["unconfirmed"]
    assert unconfirmed["sha256"] == one_left.sha256


# ---- processes that are killed


def marked(mark: str) -> list[int]:
    """The processes with a mark in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # it ended meanwhile
            continue
        if mark.encode() in environment and state != "Z":
            found.append(int(folder.name))
    return found


def count(path: Path) -> int:
    if not path.exists():
        return 0
    with EvidenceStore(path) as store:
        return len(list(store.records()))


@contextmanager
def verifying(path: Path, mark: str) -> Iterator[subprocess.Popen[str]]:
    """`mmaformal verify`, of `SMALL`, with one worker, in a process group of its own."""
    command = [sys.executable, "-m", "mmaformal.cli", "verify", "datapath", POINT]
    command += ["--jobs", "1", "--evidence", str(path)]
    with subprocess.Popen(
        command,
        env={**os.environ, "MMAFORMAL_MARK": mark},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@linux
def test_a_campaign_that_is_interrupted_or_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    path, mark = tmp_path / "e.db", uuid.uuid4().hex
    with verifying(path, mark) as process:
        assert wait_until(lambda: count(path) >= 20, 60)
        assert len(marked(mark)) >= 3  # itself, a worker, a solver
        os.killpg(process.pid, signal.SIGINT)
        os.killpg(process.pid, signal.SIGINT)  # an impatient one
        _, errors = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "Traceback" not in errors
        assert "is not asked again" in errors
    assert wait_until(lambda: not marked(mark), 10)
    first = count(path)
    with verifying(path, mark) as process:
        assert wait_until(lambda: count(path) >= first + 20, 60)
        os.killpg(process.pid, signal.SIGKILL)
    assert wait_until(lambda: not marked(mark), 10)
    with EvidenceStore(path) as store:
        before = {r.sha256: r for r in store.records()}
        with threads() as executor:
            campaign = Campaign([SMALL], store)
            campaign.run(executor, 2)
        after = {r.sha256: r for r in store.records()}
    assert campaign.known == len(before) >= first + 20
    assert campaign.asked == len(after) - len(before) > 0
    assert all(after[sha256] == record for sha256, record in before.items())  # nothing was done again


@linux
def test_the_workers_of_a_killed_process_end(tmp_path: Path) -> None:
    path, mark = tmp_path / "e.db", uuid.uuid4().hex
    with verifying(path, mark) as process:
        assert wait_until(lambda: count(path) >= 1, 60)
        process.kill()  # it alone, not its group
    assert wait_until(lambda: not marked(mark), 10)


class Killing:
    """Kills a process, once, when a campaign is some way on."""

    def __init__(self, victim: Callable[[], int]) -> None:
        self.victim, self.killed = victim, 0

    def __call__(self, campaign: Campaign) -> None:
        if len(campaign.outcomes) >= 30 and not self.killed:
            self.killed = self.victim()
            os.kill(self.killed, signal.SIGKILL)


@linux
def test_a_killed_worker_of_this_machine_loses_nothing(tmp_path: Path) -> None:
    import multiprocessing

    with EvidenceStore(tmp_path / "e.db") as store:
        killing = Killing(lambda: int(multiprocessing.active_children()[0].pid or 0))
        campaign = Campaign([SMALL], store, told=killing)
        with pytest.raises(BrokenExecutor), processes(2) as executor:
            campaign.run(executor, 2)
        assert 30 <= len(campaign.outcomes) < len(campaign.claims)
        with threads() as executor:
            campaign.run(executor, 2)
        assert campaign.asked == len(campaign.outcomes) == len(list(store.records()))
    ((_, answer),) = campaign.answers()
    assert isinstance(answer, Holds)
    assert killing.killed


@linux
def test_verify_goes_on_when_a_worker_is_killed(
    known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pools: list[int] = []

    @contextmanager
    def breaking(args: Any, jobs: int) -> Iterator[Executor]:
        pools.append(jobs)
        if len(pools) == 1:
            raise BrokenExecutor("a worker was killed")
        with threads(jobs) as executor:
            yield executor

    monkeypatch.setattr(verification, "_pool", breaking)
    assert run("datapath", POINT, "--evidence", known, "--jobs", 1) == 0
    assert "going on with new ones" in capsys.readouterr().err
    assert pools == [1, 1]


class Losing(Executor):
    """Loses the worker of each task: of the first ones, or of all."""

    def __init__(self, error: Exception, losses: int, executor: Executor) -> None:
        self.error, self.losses, self.executor = error, losses, executor

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Any:
        if self.losses == 0:
            return self.executor.submit(function, *arguments, **named)
        self.losses -= 1
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future


@pytest.mark.parametrize("losses", [1, 100])
@pytest.mark.filterwarnings("default")  # Dask's own
def test_a_worker_that_dask_gives_up_is_a_lost_worker(
    losses: int, known: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="pip install 'mmaformal[cluster]'")
    killed = distributed.KilledWorker("decide-1", None, 3)
    pools: list[int] = []

    @contextmanager
    def losing(args: Any, jobs: int) -> Iterator[Executor]:
        pools.append(jobs)
        with threads(jobs) as executor:
            yield Losing(killed, losses if len(pools) == 1 or losses > 1 else 0, executor)

    monkeypatch.setattr(verification, "_pool", losing)
    assert run("datapath", POINT, "--evidence", known, "--jobs", 1) == (0 if losses == 1 else 3)
    said = capsys.readouterr()
    assert "going on with new ones" in said.err
    assert "Traceback" not in said.err
    if losses == 1:
        assert pools == [1, 1]
        assert "1 proved" in said.out
    else:
        assert len(pools) == 3
        assert "giving up" in said.err
        assert "0 proved, 1 unknown" in said.out


# ---- a cluster


@linux
@pytest.mark.parametrize("workers", slow([1, 2], [2]))
@pytest.mark.filterwarnings("default")  # Dask's own
def test_a_cluster_that_loses_a_worker_loses_nothing_and_counts_nothing_twice(
    workers: int, tmp_path: Path
) -> None:
    distributed = pytest.importorskip("distributed", reason="pip install 'mmaformal[cluster]'")

    def worker() -> int:
        client = distributed.default_client()
        return int(next(iter(client.run(os.getpid).values())))

    with EvidenceStore(tmp_path / "e.db") as store, cluster("local", workers) as executor:
        killing = Killing(worker)
        campaign = Campaign([SMALL], store, told=killing)
        campaign.run(executor, 2)
        records = list(store.records())
        left = set(distributed.default_client().run(os.getpid).values())
    assert killing.killed
    assert killing.killed not in left
    ((_, answer),) = campaign.answers()
    assert isinstance(answer, Holds)
    assert campaign.asked == len(campaign.claims) == len(records) == len({r.sha256 for r in records})
    assert campaign.known == 0


@pytest.mark.parametrize("fine", [0, 20])
def test_an_instruction_is_not_proved_by_lemmas_that_were_not_asked(
    fine: int, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store breaks while lemmas are looked up."""
    calls, proof = iter(range(10_000)), EvidenceStore.proof

    def breaks(self: EvidenceStore, sha256: str, solver: str | None = None) -> Any:
        if next(calls) == fine:
            raise EvidenceError("the disk is gone")
        return proof(self, sha256, solver)

    monkeypatch.setattr(EvidenceStore, "proof", breaks)
    with EvidenceStore(known) as store, threads(1) as executor:
        campaign = Campaign([SMALL], store)
        with pytest.raises(EvidenceError, match="the disk is gone"):
            campaign.run(executor, 1)
        assert list(campaign.answers()) == []
