"""Executors that put questions to solvers: processes of this machine, or the workers of a Dask cluster.

What runs in a worker is given as plain functions and text, so that any `concurrent.futures.Executor` will do.  Each
worker (each thread of it, if it has several) has solver processes of its own, which die with it; and a worker of this
machine dies with the process that started it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, TypeVar

from mmaformal.solver.portfolio import DEFAULT_MEMORY, LazyPortfolio, Outcome, Portfolio

if TYPE_CHECKING:
    from distributed import LocalCluster

_T = TypeVar("_T")

_own = threading.local()
_all: list[Portfolio] = []
_at_end: list[Callable[[], object]] = []
_hiding = threading.Lock()


def decide(
    scripts: Sequence[str],
    timeout: float,
    backend: str | tuple[str, ...] | None = None,
    memory: int = DEFAULT_MEMORY,
) -> list[Outcome]:
    """Ask the solvers of this thread, or `backend` alone, each script for `timeout` seconds; return their outcomes.

    `memory` is in megabytes for each solver's process; `backend` is one solver, or several by their names.
    """
    portfolios: dict[object, Portfolio] = _own.__dict__.setdefault("portfolios", {})
    if (backend, memory) not in portfolios:
        kind = Portfolio if isinstance(backend, str) else LazyPortfolio
        portfolio = kind([backend] if isinstance(backend, str) else backend, memory)
        portfolios[backend, memory] = portfolio
        _all.append(portfolio)
    return [portfolios[backend, memory].ask(script, {}, timeout) for script in scripts]


def lost_workers() -> tuple[type[BaseException], ...]:
    """Return what executors raise where a worker was lost, and with it what it was at."""
    if "distributed" not in sys.modules:
        return (BrokenExecutor,)
    from distributed import KilledWorker  # Dask gave the task to several workers, and lost them all

    return (BrokenExecutor, KilledWorker)


# ---- this machine ----------------------------------------------------------------------------------------------


class _Processes(ProcessPoolExecutor):
    """Processes that Ctrl-C passes by from the start: one that is still importing would print a traceback.

    They do not run the caller's script again: it need not say `if __name__ == "__main__"`, nor be a file.
    """

    def submit(self, fn: Callable[..., _T], /, *args: object, **kwargs: object) -> Future[_T]:
        """Give a function of a module, no script's, to a process; the base class starts processes here."""
        with _without_main():
            if not hasattr(signal, "pthread_sigmask"):  # as on Windows
                return super().submit(fn, *args, **kwargs)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # inherited by what is started
            try:
                return super().submit(fn, *args, **kwargs)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the module `__main__` from `multiprocessing`, which would import its file in each new process."""
    with _hiding:  # another thread would take what stands in its place for it
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


@contextmanager
def processes(jobs: int) -> Iterator[Executor]:
    """So many worker processes; leaving the block ends them, and their solvers, whatever they are at."""
    before = set(multiprocessing.active_children())
    executor = _Processes(jobs, multiprocessing.get_context("spawn"), _begin)
    try:
        yield executor
    finally:
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        # It joins its thread only if the first `shutdown` waits; the interpreter's end would race with that thread.
        executor.shutdown(wait=True, cancel_futures=True)


def _begin() -> None:
    """In a new worker process: Ctrl-C is the parent's to handle; end if told to, or when the parent has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _end)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        _end()

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def undone_at_end(undo: Callable[[], object]) -> Iterator[None]:
    """While in the block: a worker that is ended, which runs no `finally`, calls `undo` first."""
    _at_end.append(undo)
    try:
        yield
    finally:
        _at_end.remove(undo)


def _end(number: int = 0, frame: FrameType | None = None) -> None:
    for portfolio in _all:
        portfolio.kill()
    for undo in reversed(_at_end):
        undo()
    os._exit(0)


# ---- a cluster -------------------------------------------------------------------------------------------------


@contextmanager
def cluster(address: str, jobs: int) -> Iterator[Executor]:
    """The workers of the Dask scheduler at an address; `local`: a cluster of `jobs` workers on this machine.

    A worker that is lost takes nothing along: Dask gives what it was at to another.  Raises ImportError if
    `distributed` is not installed, OSError if there is no scheduler.
    """
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        scheduler: str | LocalCluster = address
        if address == "local":
            scheduler = LocalCluster(
                n_workers=jobs, threads_per_worker=1, processes=True, dashboard_address=None
            )
            stack.enter_context(scheduler)
        executor = stack.enter_context(Client(scheduler)).get_executor()
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)
