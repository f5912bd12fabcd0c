"""Questions that a reader of a local site asks: commands of mmaformal as processes, watched and cancelled.

What may be asked is a list: kinds of questions, about instructions of the tables and about files that were named where
the server was started.  Nothing that comes from a page is an option or a path.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from mmaformal.architectures import ARCHITECTURES
from mmaformal.display import ShortRepr
from mmaformal.instruction import Instruction
from mmaformal.queries.properties import PROPERTIES

#: How many jobs run, wait and are remembered; the most seconds of one; the most characters of its output.
RUNNING, WAITING, REMEMBERED, SECONDS, CHARACTERS = 2, 8, 50, 600.0, 200_000

JobState = Literal["waiting", "running", "done", "cancelled"]


class JobRefusedError(ValueError):
    """A question that is not put; the message says why."""


@dataclass(eq=False, repr=False)
class AskedJob(ShortRepr):
    """A question, and what became of it."""

    number: int
    title: str
    command: list[str]  #: arguments of `mmaformal`
    state: JobState = "waiting"
    output: str = ""
    progress: str = ""  #: the last line of it
    status: int | None = None  #: the command's exit status
    begun: float = 0.0
    seconds: float = 0.0
    process: subprocess.Popen[str] | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, object]:
        seconds = time.monotonic() - self.begun if self.state == "running" else self.seconds
        return {
            "number": self.number,
            "title": self.title,
            "command": " ".join(["mmaformal", *self.command]),
            "state": self.state,
            "output": self.output,
            "progress": self.progress,
            "status": self.status,
            "seconds": round(seconds, 1),
        }


@dataclass(frozen=True, repr=False)
class Served(ShortRepr):
    """The things that the server was started with: models, recordings and designs that questions may be about."""

    models: Sequence[str] = ()  #: as `--model` has them
    recordings: Sequence[Path] = ()
    designs: Sequence[str] = ()  #: arguments of `mmaformal signoff` for each, as a shell takes them

    def command(self, asked: Mapping[str, object]) -> tuple[str, list[str]]:
        """The title and the arguments of a question.  Raises JobRefusedError for one that makes no sense."""
        kinds: dict[str, Callable[[Mapping[str, object]], tuple[str, list[str]]]] = {
            "diff": self._diff,
            "prove": self._prove,
            "check": self._check,
            "signoff": self._signoff,
        }
        kind = asked.get("kind")
        if not isinstance(kind, str) or kind not in kinds:
            raise JobRefusedError(f"a kind is one of {', '.join(kinds)}, not {kind!r}")
        title, command = kinds[kind](asked)
        models = [word for each in self.models for word in ("--model", each)]
        limit = ["--timeout", f"{_seconds(asked.get('timeout', 60)):g}"] if kind != "check" else []
        return title, [kind, *models, *limit, *command]

    def _diff(self, asked: Mapping[str, object]) -> tuple[str, list[str]]:
        x, y = _instruction(asked.get("x")), _instruction(asked.get("y"))
        chained = [] if x.k == y.k else ["--k", str(_common(x, y))]
        return f"{x.label} and {y.label}", [*chained, x.architecture, y.architecture, x.name, y.name]

    def _prove(self, asked: Mapping[str, object]) -> tuple[str, list[str]]:
        name, i = asked.get("property"), _instruction(asked.get("x"))
        if not isinstance(name, str) or name not in PROPERTIES:
            raise JobRefusedError(f"no property {name!r}")
        return f"{name} of {i.label}", [name, i.architecture, i.name]

    def _check(self, asked: Mapping[str, object]) -> tuple[str, list[str]]:
        name = asked.get("recording")
        found = [each for each in self.recordings if each.name == name]
        if not found:
            raise JobRefusedError(f"no recording {name!r} was named where the server was started")
        return f"recording {name}", [str(found[0])]

    def _signoff(self, asked: Mapping[str, object]) -> tuple[str, list[str]]:
        design, i = asked.get("design"), _instruction(asked.get("x"))
        if not isinstance(design, str) or design not in self.designs:
            raise JobRefusedError(f"no design {design!r} was named where the server was started")
        return f"{design} and {i.label}", [*shlex.split(design), "--against", i.architecture, i.name]


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= SECONDS:
        raise JobRefusedError(f"timeout is a number of seconds up to {SECONDS:g}, not {value!r}")
    return float(value)


def _instruction(label: object) -> Instruction:
    architecture, _, name = label.partition(" ") if isinstance(label, str) else ("", "", "")
    if architecture not in ARCHITECTURES or name not in ARCHITECTURES[architecture]:
        raise JobRefusedError(f"no instruction is called {label!r}")
    return ARCHITECTURES[architecture][name]


def _common(x: Instruction, y: Instruction) -> int:
    return math.lcm(x.k, y.k)


class Jobs:
    """All jobs of a server; `close` ends those that run."""

    def __init__(self, asks: Served) -> None:
        self.asks = asks
        self._jobs: dict[int, AskedJob] = {}
        self._lock = threading.Lock()
        self._next = 1

    def listed(self) -> list[dict[str, object]]:
        """All that are remembered, the newest first."""
        with self._lock:
            return [job.to_json() for job in reversed(self._jobs.values())]

    def start(self, asked: Mapping[str, object]) -> AskedJob:
        """Put a question, now or once others are done.  Raises JobRefusedError for one that is not to be put."""
        title, command = self.asks.command(asked)
        with self._lock:
            waiting = sum(job.state in ("waiting", "running") for job in self._jobs.values())
            if waiting >= RUNNING + WAITING:
                raise JobRefusedError(f"{waiting} questions are being asked already; cancel one, or wait")
            job = AskedJob(self._next, title, command)
            self._next += 1
            self._jobs[job.number] = job
            for old in [n for n, each in self._jobs.items() if each.state in ("done", "cancelled")][
                :-REMEMBERED
            ]:
                del self._jobs[old]
            self._go_on()
        return job

    def cancel(self, number: int) -> AskedJob:
        """End a job.  Raises JobRefusedError where there is none of that number."""
        with self._lock:
            if number not in self._jobs:
                raise JobRefusedError(f"there is no job {number}")
            job = self._jobs[number]
            if job.state in ("waiting", "running"):
                job.state, job.seconds = "cancelled", time.monotonic() - job.begun if job.begun else 0.0
                _end(job)
                self._go_on()
        return job

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            for job in self._jobs.values():
                if job.state in ("waiting", "running"):
                    job.state = "cancelled"
                    _end(job)

    def _go_on(self) -> None:
        """Start as many of those that wait as may run; the lock is held."""
        running = sum(job.state == "running" for job in self._jobs.values())
        for job in [each for each in self._jobs.values() if each.state == "waiting"][
            : max(RUNNING - running, 0)
        ]:
            job.state, job.begun = "running", time.monotonic()
            threading.Thread(target=self._run, args=(job,), daemon=True).start()

    def _run(self, job: AskedJob) -> None:
        path = str(Path(__file__).resolve().parents[2])
        environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join([path, *sys.path[1:]])}
        with self._lock:
            if job.state != "running":
                return
            job.process = process = subprocess.Popen(
                [sys.executable, "-m", "mmaformal", *job.command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env=environment,
                start_new_session=True,
            )
        assert process.stdout is not None
        assert process.stderr is not None
        watching = threading.Thread(target=_watch, args=(job, process.stderr), daemon=True)
        watching.start()
        for line in process.stdout:
            if len(job.output) < CHARACTERS:
                job.output += line
        status = process.wait()
        watching.join()
        process.stdout.close()
        process.stderr.close()
        with self._lock:
            job.status = status
            if job.state == "running":
                job.state, job.seconds = "done", time.monotonic() - job.begun
                if status not in (0, 1, 3) and not job.output:
                    job.output = job.progress
            self._go_on()


def _watch(job: AskedJob, stream: IO[str]) -> None:
    for line in stream:
        if line.strip():
            job.progress = line.strip()[:500]


def _end(job: AskedJob) -> None:
    """Kill a job's process with all that it started."""
    if job.process is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(job.process.pid, signal.SIGKILL)
