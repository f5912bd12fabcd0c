"""One tile: processor time of `run` and `dot_add` on lanes and compiled, and of `matmul` with two threads and one.

    python benchmarks/tile.py

A process is given the compiled function once lanes have taken `mmaformal.kernels.rows.PATIENCE` seconds; `matmul` here,
at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from mmaformal import Instruction, hopper, matmul, volta
from mmaformal.kernels import first, rows

UNITS = volta["HMMA.884.F32.F32"], hopper["HMMA.16816.F32"], hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]


def microseconds(call: Callable[[], object], patience: float, count: int) -> float:
    """The best of five turns, a call."""
    rows.PATIENCE, first.MANY = patience, 0
    call()
    turns = []
    for _ in range(5):
        start = time.process_time()
        for _ in range(count):
            call()
        turns.append((time.process_time() - start) / count)
    return min(turns) * 1e6


def calls(i: Instruction) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """Return by name the calls to time: the slow way and the quick way."""
    rng = np.random.default_rng(0)
    shapes = ((i.m, i.k), i.a_format), ((i.k, i.n), i.b_format), ((i.m, i.n), i.c_format)
    a, b, c = (rng.integers(0, fmt.codes, shape).astype(fmt.word) for shape, fmt in shapes)
    run, dot_add = lambda: i.run(a, b, c), lambda: i.dot_add(a[0], b[:, 0], c[0, 0])
    product, threads = (partial(matmul, a, b, c, instruction=i, jobs=jobs) for jobs in (None, 2))
    return {"run": (run, run), "dot_add": (dot_add, dot_add), "matmul": (threads, product)}


if __name__ == "__main__":
    print("| instruction | call | µs, lanes or two threads | µs | ratio |\n|---|---|---|---|---|")
    for unit in UNITS:
        for name, (slow, quick) in calls(unit).items():
            before, after = microseconds(slow, float("inf"), 10), microseconds(quick, -1.0, 60)
            print(f"| {unit.name} | {name} | {before:.0f} | {after:.0f} | {before / after:.1f} |", flush=True)
