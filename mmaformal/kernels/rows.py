"""Dot product-adds row by row, each with an a, b and c of its own, compiled; parameters are arguments.

`dot_add(spec, a, b, c)` is what the executable encoding gives.  One function is compiled for each algorithm,
whatever its parameters and formats, so that thousands of models can be run on some rows: a call takes microseconds.
It is `Kernel.run_rows`, made of the steps that compute blocks too where these are made of the executable's stages.
`quick_dot_add` gives the same by NumPy's lanes until the compiled function pays.  Importing this module does not import
numba.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings import with_part
from mmaformal.kernels.compiled_before import note_compiled, was_compiled
from mmaformal.spec import DotAdd

if TYPE_CHECKING:
    from mmaformal.kernels.batch import Batch

#: Rows that one thread takes at a time: what they need stays in the second-level cache.
_CHUNK = 1 << 13
#: With fewer products, NumPy's lanes are done before numba is imported and the function read from disk.
MANY = 1 << 23
#: Seconds of NumPy's lanes after which a process that calls again and again is given the compiled function.
PATIENCE = 2.0
#: Seconds that it takes to import numba and read a function from disk; and to make one that is not there.
READING, COMPILING = 0.2, 4.0
#: So many times as many products are made by lanes if the function is not on disk.
UNCOMPILED = 4
#: Seconds that they took, by algorithm.
_taken: dict[str, float] = {}
#: Algorithms whose compiled function this process has run.
_loaded: set[str] = set()


def compiled_pays(spec: DotAdd, products: int) -> bool:
    """Whether so many products are sooner done by the compiled function, its import and reading from disk included."""
    return products >= MANY or _taken.get(spec.parameters.algorithm, 0.0) >= PATIENCE


def lanes_took(spec: DotAdd, seconds: float) -> None:
    """Count what NumPy's lanes took in the place of the compiled function."""
    algorithm = spec.parameters.algorithm
    _taken[algorithm] = _taken.get(algorithm, 0.0) + seconds


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def compiled_algorithms() -> list[str]:
    """Those whose rows are compiled, by name."""
    return with_part("kernel")


def dot_add(
    spec: DotAdd,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    scale_a: NDArray[Any] | None = None,
    scale_b: NDArray[Any] | None = None,
    *,
    threads: int = 1,
    by_stages: bool = False,
) -> NDArray[Any]:
    """The codes of d, (rows,), in words of its format.

    a, b: codes (rows, K) that their formats have, in unsigned words of any width; c: (rows,); scales:
    (rows, K / block), if `spec` has them.  Shapes are the caller's responsibility.  `threads` share the rows.
    by_stages: never on the processor's floats.
    """
    d = _by_chunks(spec, (a, b, c, scale_a, scale_b), lambda rows: _run(spec, rows, by_stages), threads)
    if spec.parameters.algorithm not in _loaded:
        _loaded.add(spec.parameters.algorithm)
        note_compiled(_function(spec))
    return d


def quick_dot_add(
    spec: DotAdd,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    scale_a: NDArray[Any] | None = None,
    scale_b: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return what `dot_add` does, by NumPy's lanes until they have taken as long as the compiled function would to be
    read or made: at most twice the time of whichever is quicker for all calls of a process."""
    if _pays_search(spec, len(c) * spec.k):
        return dot_add(spec, a, b, c, scale_a, scale_b)
    from mmaformal.kernels.batch import on_lanes

    began = time.thread_time()
    d = _by_chunks(spec, (a, b, c, scale_a, scale_b), lambda rows: on_lanes(spec, rows))
    lanes_took(spec, time.thread_time() - began)
    return d


def _by_chunks(
    spec: DotAdd,
    given: tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any] | None, NDArray[Any] | None],
    run: Callable[[Batch], None],
    threads: int = 1,
) -> NDArray[Any]:
    """Return the codes of d of a, b, c and both scales by `run`, given some thousand rows at a time."""
    from mmaformal.kernels.batch import batch

    count = len(given[2])
    d = np.empty(count, spec.d_format.word)

    def part(start: int) -> None:
        some = slice(start, start + _CHUNK)
        a, b, c, *scales = given
        rows = batch(spec, a[some], b[some], c[some], *(x if x is None else x[some] for x in scales))
        run(rows)
        d[some] = rows.d  # NumPy cuts a lane to the word with the same bits

    starts = range(0, count, _CHUNK)
    if threads == 1 or len(starts) < 2:
        for start in starts:
            part(start)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, starts))
    return d


def _pays_search(spec: DotAdd, products: int) -> bool:
    """Whether the compiled function is there, or lanes took as long as it takes to read or to make it."""
    taken = _taken.get(spec.parameters.algorithm, 0.0)
    if spec.parameters.algorithm in _loaded or products >= MANY * UNCOMPILED or taken >= COMPILING:
        return True
    return (products >= MANY or taken >= READING) and was_compiled(_function(spec))


def _function(spec: DotAdd) -> str:
    """Return the name of what is compiled for rows."""
    return f"rows of {spec.parameters.algorithm}"


def one_row(spec: DotAdd, a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """`dot_add` of one row, (K,) codes and one c, without scales."""
    from mmaformal.kernels.batch import batch

    done = batch(spec, a[None], b[None], c.reshape(1), None, None)
    _run(spec, done)
    return done.d.astype(spec.d_format.word)


def _run(spec: DotAdd, rows: Batch, by_stages: bool = False) -> None:
    """Fill in the results of rows; by stages, too, in a thread whose floats are not IEEE 754's."""
    run = _runner(spec, by_stages)
    try:
        if spec.is_signed:
            from mmaformal.kernels.signed import run_signed

            run_signed(spec, rows, run)
        else:
            run(spec, rows)
    except FloatingPointError:
        if by_stages:
            raise
        _run(spec, rows, by_stages=True)


@lru_cache(maxsize=1024)
def _runner(spec: DotAdd, by_stages: bool = False) -> Callable[[DotAdd, Batch], None]:
    """Returns what runs a batch: the function of the algorithm's kernel; where there is none, or it does not know all
    that the parameters say, the executable on NumPy's lanes."""
    from mmaformal.kernels import choose
    from mmaformal.kernels.batch import on_lanes

    kernel = choose.compiled(spec)
    if kernel is None or not kernel.compiles_rows(spec):
        return on_lanes
    return kernel.stage_rows if by_stages else kernel.run_rows
