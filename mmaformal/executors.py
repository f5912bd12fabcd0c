"""Parts of a computation on the workers of an executor: a thread or process pool, or a Dask cluster.

    with workers("tcp://scheduler:8786") as executor:
        D = matmul(A, B, instruction=i, executor=executor)

What comes of a part depends on nothing but its arguments, and parts are put together in their order; so the result is
the same, bit for bit, however many workers there are and whichever is done first.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import ExitStack, closing, contextmanager
from typing import TypeVar

from mmaformal.checked import Progress, integer
from mmaformal.kernels.rows import processors
from mmaformal.solver.pool import _without_main, cluster, lost_workers, processes

T = TypeVar("T")

#: Parts handed to an executor, for each of its workers, before one comes back.
_AHEAD = 3
#: Workers, of an executor that does not say how many it has.
_WORKERS = 8


class LostWorkerError(ConnectionError):
    """A worker was killed, or left, and nobody took over what it was at."""


@contextmanager
def workers(address: str | None = None, jobs: int | None = None) -> Iterator[Executor]:
    """An executor for `with`: the workers of the Dask scheduler at an address; `local`: of a cluster on this machine.

    Without an address it has `jobs` processes (default: one for each core).  Leaving the block ends what was begun in
    it.  Raises ImportError without Dask, OSError if there is no scheduler.
    """
    count = checked_jobs(jobs)
    with ExitStack() as stack:
        if address is None:
            executor = stack.enter_context(processes(count))
        else:
            with _without_main():  # Dask's processes would run the caller's script again
                executor = stack.enter_context(cluster(address, count))
        yield executor


@contextmanager
def workers_given(executor: Executor | None, jobs: int | None) -> Iterator[Executor | None]:
    """Gives the executor, or one of `jobs` processes where there is none; None where neither is given, or `jobs` is 1.

    Raises TypeError or ValueError as `checked_jobs`.
    """
    if jobs is None or checked_jobs(jobs) == 1 or executor is not None:
        yield executor
        return
    with workers(jobs=jobs) as made:
        yield made


def checked_jobs(jobs: int | None) -> int:
    """Returns how many processes, or threads, there are to be: `jobs`, or one for each core if it is None.

    Raises TypeError or ValueError for what counts nothing.
    """
    if jobs is not None and integer(jobs, "jobs") < 1:
        raise ValueError(f"jobs is {jobs}; it counts from 1")
    return processors() if jobs is None else int(jobs)


def width_of(executor: Executor) -> int:
    """Returns how many workers an executor has.  Raises TypeError for what is none."""
    if not callable(getattr(executor, "submit", None)):
        raise TypeError(f"executor is one of concurrent.futures, or of Dask, not {executor!r}")
    client = getattr(executor, "_client", None)
    if client is not None:  # Dask's
        return max(len(client.ncores()), 1)
    return int(getattr(executor, "_max_workers", _WORKERS))


def results_in_order(
    executor: Executor, function: Callable[..., T], parts: Iterable[tuple[object, ...]]
) -> Generator[tuple[int, T], None, None]:
    """Yield `function` of each part, with its place, as they are done, the results of a place before those after it.

    Parts are asked for when workers have room for them, so they may be read from a file meanwhile.  What is not needed
    any more is taken back, as when an exception, Ctrl-C or a `break` ends the loop.  Raises what the function raises,
    and LostWorkerError.
    """
    ahead, next_one = _AHEAD * width_of(executor), 0
    running: dict[Future[T], int] = {}
    done: dict[int, T] = {}
    following = enumerate(parts)
    left = f"{len(parts):,} parts are" if isinstance(parts, Sized) else "this is"
    try:
        with telling_lost_workers(f"{left} not done"):
            while True:
                while len(running) < ahead and len(running) + len(done) < 2 * ahead:
                    place, part = next(following, (-1, ()))
                    if place < 0:
                        break
                    running[executor.submit(function, *part)] = place
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    done[running.pop(future)] = future.result()
                while next_one in done:
                    yield next_one, done.pop(next_one)
                    next_one += 1
    finally:
        for future in running:
            future.cancel()


def each_in_order(
    executor: Executor | None, function: Callable[..., T], parts: Iterable[tuple[object, ...]]
) -> Generator[T, None, None]:
    """Yield `function` of each part, in the order of the parts; made here where there is no executor.

    Raises as `results_in_order`.
    """
    if executor is None:
        yield from (function(*part) for part in parts)
        return
    with closing(results_in_order(executor, function, parts)) as made:
        yield from (each for _, each in made)


@contextmanager
def telling_lost_workers(what: str) -> Iterator[None]:
    """Let what executors raise where a worker was lost be a LostWorkerError, which says so and `what` is to be said."""
    try:
        yield
    except lost_workers():
        raise LostWorkerError(f"a worker was lost (out of memory?): {what}; run it again") from None


def told_parts(progress: Progress | None, count: int) -> Callable[[int], None]:
    """A function that tells `progress` how many parts of so many are done."""
    return lambda done: progress(f"{done:,} of {count:,} parts") if progress is not None else None
