"""Asking: every solver that is installed works on the same question, each in its own process; the first answer wins.

    with Portfolio() as portfolio:
        outcome = portfolio.ask(script, {"x": 16}, timeout=10)

The losers are killed at once and replaced when next needed.  Leaving the block, by an exception or Ctrl-C too,
kills and reaps every process.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Literal, NotRequired, Self, TypedDict, get_args

from mmaformal.display import ShortRepr
from mmaformal.solver.deadline import shielded

SolverVerdict = Literal["sat", "unsat", "unknown"]

_DISTRIBUTIONS = {"z3": "z3-solver", "bitwuzla": "bitwuzla", "cvc5": "cvc5"}

#: Those that a question is put to where none is named; cvc5 is for confirming (docs/design.md, "Proofs").
RACING = ("z3", "bitwuzla")

#: The program of a solver's process, by its path: `-m` imports the package first, which takes longer than most lemmas.
_WORKER = Path(__file__).with_name("worker.py")

#: Megabytes of address space per solver process.
DEFAULT_MEMORY = 4096

#: The solvers that can be asked where they are installed.
BACKENDS = tuple(_DISTRIBUTIONS)


class NoSolverError(RuntimeError):
    """No solver is installed, or none of those asked for."""


def installed_backends() -> tuple[str, ...]:
    """The solvers that can be asked here, of `z3`, `bitwuzla` and `cvc5`."""
    return tuple(name for name in _DISTRIBUTIONS if find_spec(name) is not None)


def solver_version(backend: str) -> str:
    return metadata.version(_DISTRIBUTIONS[backend])


@dataclass(frozen=True, repr=False)
class Outcome(ShortRepr):
    """The end of a question: `sat` with a model, `unsat`, or `unknown` with why."""

    verdict: SolverVerdict
    solver: str  #: who answered; empty for `unknown`
    version: str
    seconds: float
    model: Mapping[str, int] = field(default_factory=dict)
    why: str = ""
    memory: int = 0  #: the most that the solver's process held meanwhile, in bytes; 0 if not known
    asked: str = ""  #: SHA-256 of the script that it answers; empty for what no script was asked for

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raises ValueError if this is no answer: also of one that came from another process, and was not made here."""
        if self.verdict not in get_args(SolverVerdict):
            raise ValueError(
                f"a verdict is one of {', '.join(get_args(SolverVerdict))}, not {self.verdict!r}"
            )
        if not isinstance(self.solver, str) or not isinstance(self.version, str):
            raise ValueError(f"a solver and its version are text, not {self.solver!r}, {self.version!r}")
        if self.verdict != "unknown" and not self.solver:
            raise ValueError(f"{self.verdict}, but no solver that says so")
        if not (isinstance(self.seconds, (int, float)) and 0 <= self.seconds < math.inf):
            raise ValueError(f"seconds are a number, at least 0, not {self.seconds!r}")
        if type(self.memory) is not int or self.memory < 0:
            raise ValueError(f"memory is a number of bytes, not {self.memory!r}")


class _Query(TypedDict):
    """A question to a worker."""

    number: int
    script: str
    constants: dict[str, int]


class _Reply(TypedDict):
    """A worker's reply, as far as it was checked."""

    verdict: SolverVerdict
    memory: int
    model: NotRequired[dict[str, int]]
    why: NotRequired[object]


def _reply(line: str, asked: _Query) -> _Reply | None:
    """A worker's answer to what was `asked`; None for what is none: solvers print to stdout as they break."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(reply, dict) or reply.get("verdict") not in get_args(SolverVerdict):
        return None
    if type(reply.get("number")) is not int or reply["number"] != asked["number"]:
        return None
    if reply.get("sha256") != sha256(asked["script"].encode()).hexdigest():
        return None
    memory = reply.setdefault("memory", 0)
    if type(memory) is not int or memory < 0:
        return None
    if reply["verdict"] == "sat":
        model = reply.get("model")
        if not isinstance(model, dict):
            return None
        values = [(model.get(name), bits) for name, bits in asked["constants"].items()]
        if not all(type(value) is int and 0 <= value < 1 << bits for value, bits in values):
            return None
    found: _Reply = {"verdict": reply["verdict"], "memory": memory}
    if "model" in reply:
        found["model"] = reply["model"]
    if "why" in reply:
        found["why"] = reply["why"]
    return found


class _Worker:
    """One solver process and the thread that reads its answers into a shared queue."""

    def __init__(self, backend: str, memory: int, answers: queue.Queue[tuple[_Worker, str | None]]) -> None:
        self.backend = backend
        command = [sys.executable, "-P", str(_WORKER), backend, str(os.getpid()), str(memory)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        stdout = self.process.stdout
        assert stdout is not None

        def read() -> None:
            with stdout:
                for line in stdout:
                    answers.put((self, line))
            answers.put((self, None))

        threading.Thread(target=read, daemon=True).start()

    @property
    def stdin(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin

    def send(self, query: str) -> None:
        with contextlib.suppress(OSError):  # it died: the reader reports that, and the answer is `unknown`
            self.stdin.write(query + "\n")
            self.stdin.flush()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.stdin.close()


class Portfolio:
    """Racing solver processes; see the module.  Not for use by several threads at once.

    With a `head_start`, in seconds, Bitwuzla starts and the others join it only after that time, or once it gives up.

    Raises NoSolverError if none of `backends` is installed, ValueError for a backend that does not exist and for
    `memory` (megabytes per process) that is not positive.
    """

    head_start = 0.0

    def __init__(self, backends: Sequence[str] | None = None, memory: int = DEFAULT_MEMORY) -> None:
        wanted = tuple(RACING if backends is None else [backends] if isinstance(backends, str) else backends)
        unknown = [repr(b) for b in wanted if b not in _DISTRIBUTIONS]
        if unknown or not wanted:
            raise ValueError(
                f"solvers are {', '.join(_DISTRIBUTIONS)}, not {', '.join(unknown) or 'none of them'}"
            )
        if memory <= 0:
            raise ValueError(f"memory is a number of megabytes above 0, not {memory}")
        installed = installed_backends()
        chosen = tuple(b for b in wanted if b in installed)
        if not chosen:
            raise NoSolverError(
                f"no solver to ask: {', '.join(wanted)} not installed; pip install z3-solver bitwuzla"
            )
        self.backends = chosen
        self.memory = memory
        self._answers: queue.Queue[tuple[_Worker, str | None]] = queue.Queue()
        self._workers: dict[str, _Worker] = {}
        self._asked = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    @shielded
    def close(self) -> None:
        while self._workers:
            self._workers.popitem()[1].stop()

    def kill(self) -> None:
        """Kill every process without waiting for any, for a process that is about to end, in whatever state it is."""
        for worker in [*self._workers.values()]:
            with contextlib.suppress(OSError):
                os.kill(worker.process.pid, signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL)

    def _start(self, backends: Sequence[str], query: str, racing: dict[str, _Worker]) -> None:
        for backend in backends:
            self._worker(backend, racing).send(query)

    @shielded
    def _worker(self, backend: str, racing: dict[str, _Worker]) -> _Worker:
        """The process of a solver, started if it is not; whoever is interrupted knows of it."""
        if backend not in self._workers:
            self._workers[backend] = _Worker(backend, self.memory, self._answers)
        racing[backend] = self._workers[backend]
        return racing[backend]

    @shielded
    def _drop(self, worker: _Worker) -> None:
        if self._workers.get(worker.backend) is worker:
            del self._workers[worker.backend]
        worker.stop()

    def ask(
        self,
        script: str,
        constants: Mapping[str, int],
        timeout: float,
    ) -> Outcome:
        """Decide an SMT-LIB 2 script of bit-vector assertions.

        `constants` maps the names whose values are wanted of a model to their widths in bits; `timeout` is in
        seconds.  The answer is `unknown` if every solver gave up, died (memory), or ran out of time.
        """
        start = time.monotonic()
        self._asked += 1
        query: _Query = {"number": self._asked, "script": script, "constants": dict(constants)}
        waiting = [b for b in self.backends if self.head_start and b != "bitwuzla"]
        first = [b for b in self.backends if b not in waiting]
        racing: dict[str, _Worker] = {}
        reasons: list[str] = []
        try:
            self._start(first, json.dumps({**query, "timeout": timeout}), racing)
            while True:
                elapsed = time.monotonic() - start
                if elapsed >= timeout:
                    waiting = []
                if waiting and (not racing or elapsed >= self.head_start):
                    self._start(waiting, json.dumps({**query, "timeout": timeout - elapsed}), racing)
                    waiting = []
                if not racing:
                    break
                left = (min(self.head_start, timeout) if waiting else timeout + 1.0) - elapsed
                try:
                    worker, line = self._answers.get(timeout=max(left, 0.001))
                except queue.Empty:
                    if waiting:
                        continue
                    reasons.append(f"no answer in {timeout:.3g} s")
                    break
                if racing.get(worker.backend) is not worker:
                    continue  # the last words of a process that was stopped
                del racing[worker.backend]
                reply = self._verdict(worker, line, query)
                if isinstance(reply, str):
                    reasons.append(reply)
                    continue
                return Outcome(
                    reply["verdict"],
                    worker.backend,
                    solver_version(worker.backend),
                    time.monotonic() - start,
                    reply.get("model", {}),
                    memory=reply["memory"],
                    asked=sha256(script.encode()).hexdigest(),
                )
        finally:
            self._stop(racing.values())
        return Outcome("unknown", "", "", time.monotonic() - start, why="; ".join(reasons))

    def _verdict(self, worker: _Worker, line: str | None, asked: _Query) -> _Reply | str:
        """Return a worker's `sat` or `unsat`, or why it gave none; a process that broke is dropped."""
        if line is None:
            self._drop(worker)
            return f"{worker.backend}: its process ended ({worker.process.returncode}); out of memory?"
        reply = _reply(line, asked)
        if reply is None:
            self._drop(worker)
            return f"{worker.backend}: no answer but {line[:40]!r}"
        return str(reply.get("why", worker.backend)) if reply["verdict"] == "unknown" else reply

    @shielded
    def _stop(self, racing: Iterable[_Worker]) -> None:
        """End those that are still working on a question that nobody asks any more.

        None is asked again, even if this is interrupted before all are stopped.
        """
        for worker in racing:
            self._workers.pop(worker.backend, None)
            worker.process.kill()
        for worker in racing:
            worker.stop()


class LazyPortfolio(Portfolio):
    """Bitwuzla alone for the first seconds, then all solvers at once.

    A race ends with the loser killed and started anew, which costs more than most lemmas do.
    """

    head_start = 20.0
