"""Parts of a computation on the workers of an executor: a thread or process pool, or a Dask cluster.

    with workers("tcp://scheduler:8786") as executor:
        D = matmul(A, B, instruction=i, executor=executor)

What comes of a part depends on nothing but its arguments, and parts are put together in their order; so the result is
the same, bit for bit, however many workers there are and whichever is done first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from mmaformal.checked import Progress
from mmaformal.kernels.rows import processors
from mmaformal.solver.pool import cluster, lost_workers, processes

T = TypeVar("T")

#: Parts handed to an executor, for each of its workers, before one comes back.
_AHEAD = 3
#: Workers, of an executor that does not say how many it has.
_WORKERS = 8


class LostWorkerError(ConnectionError):
    """A worker was killed, or left, and nobody took over what it was at."""


def workers(address: str | None = None, jobs: int | None = None) -> AbstractContextManager[Executor]:
    """An executor for `with`: the workers of the Dask scheduler at an address; `local`: of a cluster on this machine.

    Without an address it has `jobs` processes (default: one for each core).  Leaving the block ends what was begun in
    it.  Raises ImportError without Dask, OSError if there is no scheduler.
    """
    count = jobs or processors()
    return processes(count) if address is None else cluster(address, count)


def width_of(executor: Executor) -> int:
    """How many workers it has."""
    client = getattr(executor, "_client", None)
    if client is not None:  # Dask's
        return max(sum(client.ncores().values()), 1)
    return int(getattr(executor, "_max_workers", _WORKERS))


def in_order(
    executor: Executor, function: Callable[..., T], parts: Sequence[tuple[Any, ...]]
) -> Iterator[tuple[int, T]]:
    """Yield `function` of each part, with its place, as they are done, the results of a place before those after it.

    What is not needed any more is taken back, as when an exception, Ctrl-C or a `break` ends the loop.  Raises what the
    function raises, and LostWorkerError.
    """
    ahead, following, next_one = _AHEAD * width_of(executor), 0, 0
    running: dict[Future[T], int] = {}
    done: dict[int, T] = {}
    try:
        while next_one < len(parts):
            while following < len(parts) and len(running) + len(done) < 2 * ahead and len(running) < ahead:
                running[executor.submit(function, *parts[following])] = following
                following += 1
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                done[running.pop(future)] = future.result()
            while next_one in done:
                yield next_one, done.pop(next_one)
                next_one += 1
    except lost_workers() as error:
        at = f"{len(parts) - next_one:,} of {len(parts):,} parts are left"
        raise LostWorkerError(f"a worker was lost ({type(error).__name__}); {at}: run it again") from None
    finally:
        for future in running:
            future.cancel()


def told_parts(progress: Progress | None, count: int) -> Callable[[int], None]:
    """A function that tells `progress` how many parts of so many are done."""
    return lambda done: progress(f"{done:,} of {count:,} parts") if progress is not None else None
