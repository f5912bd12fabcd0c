"""`mmaformal verify`: campaigns on threads, processes and a cluster, and what is left of one that is killed."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import wait_until

from mmaformal import volta
from mmaformal.cli import main
from mmaformal.encodings.executable import fda
from mmaformal.queries import verify
from mmaformal.queries.campaign import Campaign
from mmaformal.solver import pool
from mmaformal.solver.answers import Holds
from mmaformal.solver.evidence import EvidenceError, EvidenceStore
from mmaformal.solver.pool import cluster, processes

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")

SMALL = volta["HMMA.884.F16.F16"]


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
    monkeypatch.setattr(verify, "_pool", lambda args, jobs: threads(jobs))


def run(*arguments: object) -> int:
    return main(["verify", *map(str, arguments)])


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which `SMALL` is proved."""
    path = tmp_path_factory.mktemp("store") / "e.db"
    with EvidenceStore(path) as store, threads(1) as executor:
        Campaign([SMALL], store).run(executor, 1)
    return path


@pytest.fixture
def known(proved: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(proved, tmp_path / "known.db"))


# ---- what a campaign says


def test_each_obligation_is_asked_once_and_what_is_known_never(tmp_path: Path) -> None:
    instructions = [SMALL, volta["HMMA.884.F16.F16"], volta["HMMA.884.F32.F16"]]
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


def test_verify_tells_proves_writes_and_confirms(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], in_threads: None
) -> None:
    store, folder = known, tmp_path / "smt"
    arguments = "volta", "HMMA.884.F16.F16", "--evidence", store, "--jobs", 1
    assert run(*arguments, "--smtlib", folder, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["instructions"], told["proved"], told["unknown"], told["refuted"]) == (1, 1, 0, 0)
    (answer,) = told["answers"]
    assert answer["answer"] == "holds"
    files = {path.stem: path for path in folder.glob("*.smt2")}
    assert set(files) == set(answer["obligations"])
    for name, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == name
    index = json.loads((folder / "index.json").read_text())
    assert set(index["obligations"]) == set(files)
    assert index["proofs"] == [
        {"instructions": ["volta HMMA.884.F16.F16"], "obligations": answer["obligations"]}
    ]
    # A second solver, which then is in the store too.
    assert run(*arguments, "--confirm") == 0
    out = capsys.readouterr().out
    assert f"{len(files)} of them known" in out
    assert f"{len(files)} confirmed" in out
    with EvidenceStore(store) as records:
        for name in files:
            assert records.proof(name, "z3")
            assert records.proof(name, "bitwuzla")
    assert run(*arguments, "--confirm", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["asked"], told["confirmed"], told["unconfirmed"]) == (0, len(files), [])


def test_a_broken_model_is_refuted_with_a_witness(
    known: Path, capsys: pytest.CaptureFixture[str], in_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = "volta", "HMMA.884.F16.F16", "--evidence", known, "--jobs", 1
    assert run(*arguments) == 0
    monkeypatch.setattr(fda, "with_zero_exponent", lambda x, e_zero: x)
    assert run(*arguments) == 1  # what was proved of the right model is no proof of this one
    out = capsys.readouterr().out
    assert "REFUTED" in out
    executable, smt = (line.split()[1] for line in out.split("results\n")[1].splitlines()[:2])
    assert executable != smt


def test_what_is_not_settled_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], in_threads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = "volta", "HMMA.884.F16.F16", "--evidence", tmp_path / "e.db", "--jobs", 1
    assert run(*arguments, "--timeout", "0.001") == 3
    out = capsys.readouterr().out
    assert "UNKNOWN" in out
    assert "is not settled" in out
    monkeypatch.setattr("mmaformal.queries.prove_encodings.ARGUMENTS", {})
    assert run(*arguments) == 3
    assert "no argument for fda" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--all"),
        (("volta", "--all"), "--all"),
        (("vulcan",), "no architecture 'vulcan'"),
        (("volta", "HMMA.1"), "HMMA.1"),
        (("volta", "--evidence", "/dev/null/e.db"), "cannot hold evidence"),
    ],
)
def test_wrong_use_is_told_in_a_line(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


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
    command = [sys.executable, "-m", "mmaformal.cli", "verify", "volta", "HMMA.884.F16.F16"]
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

    monkeypatch.setattr(verify, "_pool", breaking)
    assert run("volta", "HMMA.884.F16.F16", "--evidence", known, "--jobs", 1) == 0
    assert "going on with new ones" in capsys.readouterr().err
    assert pools == [1, 1]


# ---- a cluster


@linux
@pytest.mark.filterwarnings("default")  # Dask's own
def test_a_cluster_that_loses_a_worker_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="pip install 'mmaformal[cluster]'")

    def worker() -> int:
        client = distributed.default_client()
        return int(next(iter(client.run(os.getpid).values())))

    with EvidenceStore(tmp_path / "e.db") as store, cluster("local", 2) as executor:
        killing = Killing(worker)
        campaign = Campaign([SMALL], store, told=killing)
        campaign.run(executor, 2)
        records = list(store.records())
        workers = set(distributed.default_client().run(os.getpid).values())
    assert killing.killed
    assert killing.killed not in workers
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
