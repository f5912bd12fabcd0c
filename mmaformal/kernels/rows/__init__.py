"""Dot product-adds row by row, each with an a, b and c of its own, compiled; parameters are arguments.

`dot_add(spec, a, b, c)` is what the executable wing gives.  One function is compiled for each algorithm, whatever its
parameters and formats, so that thousands of models can be run on some rows: a call takes microseconds.  The functions
are in the files of their algorithms' names, made of the executable's own stages (`kernels.compiled`).  Importing this
package compiles nothing and does not import numba.
"""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.spec import DotAdd

if TYPE_CHECKING:
    from mmaformal.kernels.rows.batch import Batch

#: Rows that one thread takes at a time: what they need stays in the second-level cache.
_CHUNK = 1 << 13
#: With fewer products, NumPy's lanes are done before numba is imported and the function read from disk.
MANY = 1 << 23


def processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def algorithms() -> list[str]:
    """Those whose rows are compiled, by name."""
    return [each.name for each in pkgutil.iter_modules(__path__) if each.name not in ("batch", "given")]


def dot_add(
    spec: DotAdd,
    a: NDArray[Any],
    b: NDArray[Any],
    c: NDArray[Any],
    scale_a: NDArray[Any] | None = None,
    scale_b: NDArray[Any] | None = None,
    *,
    threads: int = 1,
) -> NDArray[Any]:
    """The codes of d, (rows,), in words of its format.

    a, b: codes (rows, K) that their formats have, in unsigned words of any width; c: (rows,); scales:
    (rows, K / block), if `spec` has them.  Shapes are the caller's responsibility.  `threads` share the rows.
    """
    run = _runner(spec.parameters.algorithm)
    d = np.empty(len(c), spec.d_format.word)

    def part(start: int) -> None:
        from mmaformal.kernels.rows.batch import batch

        some = slice(start, start + _CHUNK)
        scales = (x if x is None else x[some] for x in (scale_a, scale_b))
        done = batch(spec, a[some], b[some], c[some], *scales)
        run(spec, done)
        d[some] = done.d  # NumPy cuts a lane to the word with the same bits

    starts = range(0, len(c), _CHUNK)
    if threads == 1 or len(starts) < 2:
        for start in starts:
            part(start)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(part, starts))
    return d


@lru_cache(maxsize=32)
def _runner(algorithm: str) -> Callable[[DotAdd, Batch], None]:
    """What runs a batch: the function of the algorithm's file; without one, the executable on NumPy's lanes."""
    if algorithm not in algorithms():
        return _on_lanes
    run: Callable[[DotAdd, Batch], None] = import_module(f"{__name__}.{algorithm}").run
    return run


def _on_lanes(spec: DotAdd, rows: Batch) -> None:
    from mmaformal.encodings import executable

    sides = (rows.a, rows.b, rows.scale_a, rows.scale_b)
    a, b, scale_a, scale_b = ([lane.astype(np.int64) for lane in side.T] for side in sides)
    rows.d[:] = executable.dot_add(spec.in_order, a, b, rows.c, scale_a, scale_b).result
