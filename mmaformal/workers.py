"""Threads that run the parts of a long computation, and say how far it is."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Lock

from mmaformal.checked import Progress
from mmaformal.renamed import lines


class ProgressReport:
    """Says how far a run is."""

    def __init__(self, progress: bool | Progress | None, total: int) -> None:
        """Raises TypeError for a progress that is none."""
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise TypeError(
                f"progress is True, False, None or a function of a line of text, not {progress!r}"
            )
        self.total, self.done = total, 0
        self.call = lines(progress, "done, total") if callable(progress) else None
        terminal = progress is None and sys.stderr is not None and sys.stderr.isatty()
        self.line = progress is True or terminal
        self.start = self.written = time.monotonic()

    def add(self, products: int) -> None:
        self.done += products
        if self.call is not None:
            self.call(f"{self.done:,} of {self.total:,} products", self.done, self.total)
        now = time.monotonic()
        if self.line and now - self.start > 2 and now - self.written > 0.2:
            self.written = now
            left = (now - self.start) * (self.total / max(self.done, 1) - 1)
            print(
                f"\rmatmul {self.done / self.total:4.0%}, {left:.0f} s left ",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def end(self) -> None:
        if self.line and self.written != self.start:
            print("\r" + " " * 40 + "\r", end="", file=sys.stderr, flush=True)


class Workers:
    """Threads that run parts of a block, the caller's one of them; an exception, or Ctrl-C, ends them all within the
    part they are at."""

    def __init__(self, threads: int, report: ProgressReport) -> None:
        self.threads, self.report = threads, report
        self.pool = ThreadPoolExecutor(threads - 1, "matmul") if threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
        self.report.end()

    def run(self, function: Callable[[slice], int], parts: list[slice]) -> None:
        """Run `function`, which says how many products it did, on all parts."""
        left, done, lock = iter(parts), deque[int](), Lock()

        def take() -> slice | None:
            with lock:
                return next(left, None)

        def take_all() -> None:
            while take() is not None:
                pass

        def work(after: Callable[[], None]) -> None:
            """Do parts while there are any."""
            try:
                while (part := take()) is not None:
                    done.append(function(part))
                    after()
            finally:  # where a part failed, none is left for the others
                take_all()

        def report() -> None:
            while done:
                self.report.add(done.popleft())

        helpers: list[Future[None]] = []
        try:
            if self.pool is not None:
                for _ in range(min(self.threads, len(parts)) - 1):
                    helpers.append(self.pool.submit(work, lambda: None))
            work(report)
        finally:
            take_all()
            wait(helpers)
        for each in helpers:
            each.result()
        report()
