"""The processes of solvers that tests look for."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def solver_processes(parent: int) -> list[int]:
    """The ids of the running solver processes that were started for `parent`, which may be gone (Linux)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:  # it ended meanwhile
            continue
        # python -P …/solver/worker.py BACKEND PARENT MEMORY
        started = any(word.endswith(b"worker.py") for word in words[:3])
        if started and str(parent).encode() in words[4:6] and state != "Z":
            found.append(int(folder.name))
    return found


def wait_until(happened: Callable[[], bool], seconds: float) -> bool:
    """Whether it happened within so many seconds."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
