"""Threads that run the parts of a long computation, and say how far it is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

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
    """Threads that run parts of a block; an exception, or Ctrl-C, ends them all within the part they are at."""

    def __init__(self, threads: int, report: ProgressReport) -> None:
        self.threads, self.report = threads, report
        self.pool = ThreadPoolExecutor(threads, "matmul") if threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self.pool is not None:
            self.pool.shutdown(wait=True, cancel_futures=True)
        self.report.end()

    def run(self, function: Callable[[slice], int], parts: list[slice]) -> None:
        """Run `function`, which says how many products it did, on all parts."""
        if self.pool is None or len(parts) == 1:
            for part in parts:
                self.report.add(function(part))
            return
        running: set[Future[int]] = {self.pool.submit(function, part) for part in parts}
        try:
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for each in done:
                    self.report.add(each.result())
        except BaseException:
            for each in running:
                each.cancel()
            wait(running)
            raise
