"""Known proofs of tests: a question whose text is the same is answered by the record, not by a solver.

`tests/store/proved.txt` holds the digest of every script that the quick suite found unsatisfiable, under the solver
that said so and its version; `python tools/proved.py` writes it anew.  A record speaks for one text alone, so a model
that is broken asks questions that have none.  What was not refuted and took long stands beside it (`answers.py`).
Each run asks one in twenty of the known questions again, drawn by a seed that the run's last lines tell, and everything

- with `--ask-all`, and wherever slow tests are run (`-m slow`);
- of a test that is about asking itself: those in the folders of solvers, campaigns and the kernel, and those that are
  marked `asks`;
- of a solver of another version;
- with `CI` in the environment, once the code of solvers, kernel or store is another than the records were made with.
"""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Generator, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pytest
from proved import KEPT, PATH, Proved, answers_beside, asking_digest, write_answers

from mmaformal.solver.evidence import ContradictionError, EvidenceStore, Record, recording
from mmaformal.solver.portfolio import Outcome, Portfolio
from support import answers
from support.answers import Answer, KnownAnswers

#: One question in so many is asked again.
ONE_IN = 20

#: Folders of tests that are about asking.
_ABOUT_ASKING = ("campaign", "proof", "solver")


@dataclass
class Counts:
    """The numbers of a run's questions, asked and known, and what was proved."""

    asked: int = 0
    again: int = 0  #: of those asked, how many were drawn from the known ones
    known: int = 0
    proved: dict[str, set[str]] = field(default_factory=dict)  #: as in `Proved.of`
    answers: dict[str, dict[str, Any]] = field(
        default_factory=dict
    )  #: fields of `Answer`, by the keys of questions

    def add(
        self,
        asked: int,
        again: int,
        known: int,
        proved: Mapping[str, Iterable[str]],
        answers: Mapping[str, dict[str, Any]] | None = None,
    ) -> None:
        self.asked, self.again, self.known = self.asked + asked, self.again + again, self.known + known
        for solver, digests in proved.items():
            self.proved.setdefault(solver, set()).update(digests)
        self.answers.update(answers or {})


class KnownProofs(EvidenceStore):
    """A store of evidence that knows, besides what is put to it, what was proved before, but for those drawn."""

    def __init__(
        self,
        path: Path,
        known: Mapping[str, tuple[str, str]],
        seed: int,
        counts: Counts,
        answers: KnownAnswers | None = None,
    ) -> None:
        super().__init__(path)
        self._known, self._seed, self._counts, self._unproved = known, seed, counts, answers

    def proof(self, sha256: str, solver: str | None = None, not_by: str | None = None) -> Record | None:
        record = super().proof(sha256, solver, not_by)
        said = self._known.get(sha256[:KEPT])
        if record is not None or said is None or said[0] == not_by or solver not in (None, said[0]):
            return record
        if self._is_drawn(sha256):
            return None
        self._counts.known += 1
        self._counts.add(0, 0, 0, {" ".join(said): [sha256[:KEPT]]})
        return Record(sha256, *said, "unsat", "", "", 0.0, 0, "")

    def add(self, sha256: str, name: str, statement: str, outcome: Outcome) -> None:
        if self._unproved is not None and outcome is self._unproved.last:  # nobody was asked
            return
        super().add(sha256, name, statement, outcome)
        if outcome.version.endswith("simplifier"):  # nobody was asked
            return
        said = self._known.get(sha256[:KEPT])
        self._counts.add(1, int(said is not None), 0, {})
        if outcome.verdict == "unsat":
            self._counts.add(0, 0, 0, {f"{outcome.solver} {outcome.version}": [sha256[:KEPT]]})
        if outcome.verdict == "sat" and said is not None:
            before = Record(sha256, *said, "unsat", name, statement, 0.0, 0, "")
            now = Record(sha256, outcome.solver, outcome.version, "sat", name, statement, 0.0, 0, "")
            raise ContradictionError(PATH, (before, now))

    def _is_drawn(self, sha256: str) -> bool:
        return is_drawn(self._seed, sha256)


def is_drawn(seed: int, key: str) -> bool:
    """Whether a run with this seed asks a known question again; the same in all processes of the run."""
    return random.Random(f"{seed} {key}").randrange(ONE_IN) == 0


def why_nothing_is_known(markers: str, ask_all: bool, proved: Proved) -> str:
    """Why a run asks everything; empty if it does not."""
    if ask_all:
        return "--ask-all"
    if markers != "not slow":
        return "slow tests are run"
    if os.environ.get("CI") and proved.asked_by != asking_digest():
        return "the code of solvers, kernel or store has changed"
    return ""


# ---- a run of the tests ------------------------------------------------------------------------------------------


@dataclass
class Run:
    """The part of a run in one process: what it knows, counts and tells."""

    seed: int
    why_all: str  #: why everything is asked; empty if not
    changed: bool  #: whether the code that asks is another than the records were made with
    known: Mapping[str, tuple[str, str]]
    before: Mapping[str, Answer]
    counts: Counts = field(default_factory=Counts)

    @cached_property
    def answers(self) -> KnownAnswers:
        return KnownAnswers(self.before, partial(is_drawn, self.seed))

    @cached_property
    def store(self) -> KnownProofs:
        """The store of this process, in a folder that is removed with it."""
        self._folder = tempfile.TemporaryDirectory(prefix="mmaformal-tests-")
        path = Path(self._folder.name) / "evidence.db"
        return KnownProofs(path, self.known, self.seed, self.counts, self.answers)

    def close(self) -> None:
        if "store" in self.__dict__:
            self.store.close()
            self._folder.cleanup()

    def lines(self) -> list[str]:
        """Return the run's last lines."""
        counts = self.counts
        asked = f"{counts.asked} questions asked"
        if self.why_all:
            return [f"{asked}, none known: {self.why_all}"]
        changed = (
            "; the code that asks has changed since they were: in CI all are asked" if self.changed else ""
        )
        drawn = f"{counts.again} of them known ones, drawn with --seed={self.seed}"
        return [f"{asked}, {drawn}; {counts.known} known from tests/store{changed}"]


_RUN = pytest.StashKey[Run]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("known", "what was proved before")
    group.addoption("--ask-all", action="store_true", help="take nothing from tests/store")
    group.addoption("--seed", type=int, metavar="N", help="draws the known questions that are asked again")
    group.addoption(
        "--write-proved", type=Path, metavar="FILE", help="write what was proved, and what was known"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "asks: is about asking itself: nothing is known to it")
    worker = getattr(config, "workerinput", {})
    seed = worker.get("seed", config.option.seed)
    proved = Proved.read()
    why = why_nothing_is_known(config.option.markexpr, config.option.ask_all, proved)
    config.stash[_RUN] = Run(
        random.SystemRandom().randrange(10**6) if seed is None else seed,
        why,
        proved.asked_by != asking_digest(),
        {} if why else proved.usable(),
        {} if why else answers.read(),
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """All processes of a run draw with one seed."""
    node.workerinput["seed"] = node.config.stash[_RUN].seed


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a process that ended has counted; one that was killed has told nothing."""
    if counted := getattr(node, "workeroutput", {}).get("known"):
        node.config.stash[_RUN].counts.add(**counted)


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_RUN].close()


def pytest_sessionfinish(session: pytest.Session) -> None:
    run, output = session.config.stash[_RUN], getattr(session.config, "workeroutput", None)
    run.counts.add(
        0, 0, run.answers.known, {}, {key: asdict(each) for key, each in run.answers.found.items()}
    )
    if output is not None:
        proved = {solver: sorted(digests) for solver, digests in run.counts.proved.items()}
        output["known"] = vars(run.counts) | {"proved": proved}
    elif path := session.config.option.write_proved:
        Proved(asking_digest(), {s: frozenset(d) for s, d in run.counts.proved.items()}).write(path)
        write_answers(run.counts.answers, answers_beside(path))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    run = config.stash[_RUN]
    if run.counts.asked or run.counts.known:
        for line in run.lines():
            terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Ask no more what this run or one before it has proved, but in tests of asking."""
    run = item.config.stash[_RUN]
    if item.path.parent.name in _ABOUT_ASKING or item.get_closest_marker("asks"):
        return (yield)
    ask = Portfolio.ask

    def known_or_asked(self: Portfolio, script: str, constants: Mapping[str, int], timeout: float) -> Outcome:
        return run.answers.ask(ask, self, script, constants, timeout)

    Portfolio.ask = known_or_asked  # type: ignore[method-assign]
    try:
        with recording(run.store):
            return (yield)
    finally:
        Portfolio.ask = ask  # type: ignore[method-assign]
