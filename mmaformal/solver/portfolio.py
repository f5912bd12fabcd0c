"""Asking: every solver that is installed works on the same question, each in its own process; the first answer wins.

    with Portfolio() as portfolio:
        outcome = portfolio.ask(script, {"x": 16}, timeout=10)

The losers are killed at once and replaced when next needed.  Leaving the block, by an exception or Ctrl-C too,
kills and reaps every process.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from types import TracebackType
from typing import IO, Literal

Verdict = Literal["sat", "unsat", "unknown"]

_DISTRIBUTIONS = {"z3": "z3-solver", "bitwuzla": "bitwuzla"}

#: Megabytes of address space per solver process.
DEFAULT_MEMORY = 4096


class NoSolverError(RuntimeError):
    """No solver is installed, or none of those asked for."""


def installed_backends() -> tuple[str, ...]:
    """The solvers that can be asked here, of `z3` and `bitwuzla`."""
    return tuple(name for name in _DISTRIBUTIONS if find_spec(name) is not None)


def solver_version(backend: str) -> str:
    return metadata.version(_DISTRIBUTIONS[backend])


@dataclass(frozen=True)
class Outcome:
    """What a question came to: `sat` with a model, `unsat`, or `unknown` with why."""

    verdict: Verdict
    solver: str  #: who answered; empty for `unknown`
    version: str
    seconds: float
    model: Mapping[str, int] = field(default_factory=dict)
    why: str = ""


class _Worker:
    """One solver process and the thread that reads its answers into a shared queue."""

    def __init__(self, backend: str, memory: int, answers: queue.Queue[tuple[_Worker, str | None]]) -> None:
        self.backend = backend
        command = [sys.executable, "-m", "mmaformal.solver.worker", backend, str(os.getpid()), str(memory)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        stdout = self.process.stdout
        assert stdout is not None

        def read() -> None:
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

    Raises NoSolverError if none of `backends` is installed.
    """

    def __init__(self, backends: Sequence[str] | None = None, memory: int = DEFAULT_MEMORY) -> None:
        installed = installed_backends()
        chosen = tuple(installed if backends is None else (b for b in backends if b in installed))
        if not chosen:
            wanted = ", ".join(backends) if backends is not None else "z3, bitwuzla"
            raise NoSolverError(f"no solver to ask: {wanted} not installed; pip install z3-solver bitwuzla")
        self.backends = chosen
        self.memory = memory
        self._answers: queue.Queue[tuple[_Worker, str | None]] = queue.Queue()
        self._workers: dict[str, _Worker] = {}

    def __enter__(self) -> Portfolio:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        while self._workers:
            self._workers.popitem()[1].stop()

    def _running(self) -> dict[str, _Worker]:
        for backend in self.backends:
            if backend not in self._workers:
                self._workers[backend] = _Worker(backend, self.memory, self._answers)
        return self._workers

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
        query = json.dumps({"script": script, "constants": dict(constants), "timeout": timeout})
        racing = dict(self._running())
        reasons: list[str] = []
        try:
            for worker in racing.values():
                worker.send(query)
            while racing:
                left = start + timeout + 1.0 - time.monotonic()
                try:
                    worker, line = self._answers.get(timeout=max(left, 0.001))
                except queue.Empty:
                    reasons.append(f"no answer in {timeout:.3g} s")
                    break
                if racing.get(worker.backend) is not worker:
                    continue  # the last words of a process that was stopped
                del racing[worker.backend]
                if line is None:
                    self._drop(worker)
                    code = worker.process.returncode
                    reasons.append(f"{worker.backend}: its process ended ({code}); out of memory?")
                    continue
                reply = json.loads(line)
                if reply["verdict"] == "unknown":
                    reasons.append(reply.get("why", worker.backend))
                    continue
                return Outcome(
                    reply["verdict"],
                    worker.backend,
                    solver_version(worker.backend),
                    time.monotonic() - start,
                    reply.get("model", {}),
                )
        finally:
            for worker in racing.values():  # they are still working on a question nobody asks any more
                self._drop(worker)
        return Outcome("unknown", "", "", time.monotonic() - start, why="; ".join(reasons))
