"""A GEMM of 4096 × 4096 × 4096 on HMMA.16816.F32: its time, its memory, its progress, and Ctrl-C in the middle.

    python benchmarks/large.py [--size 4096]

Memory is the process's peak above what it had before the call, D included, against that of A, B, C and D (Linux).
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import threading
import time

import numpy as np

from mmaformal import hopper, matmul


def peak() -> int:
    """Bytes of memory this process ever had."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=4096)
    n = parser.parse_args().size
    i = hopper["HMMA.16816.F32"]
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal((n, n), np.float32).astype(np.float16) for _ in range(2))
    C = rng.standard_normal((n, n), np.float32)
    matmul(A[:256, :256], B[:256, :256], instruction=i)  # compiles, or loads what was

    before, cpu, start = peak(), time.process_time(), time.monotonic()
    D = matmul(A, B, C, instruction=i, progress=True)
    seconds, used = time.monotonic() - start, time.process_time() - cpu
    operands = sum(x.nbytes for x in (A, B, C, D))
    print(
        f"{n}³: {seconds:.1f} s, {used:.1f} s of processor time, {1e6 * used / (n**3 / 2048):.3f} µs per tile"
    )
    taken, beyond = operands / 2**20, (peak() - before) / 2**20
    inputs = taken - D.nbytes / 2**20
    print(
        f"A, B, C and D take {taken:.0f} MiB; A, B, C and the call, D included, took {inputs + beyond:.0f} MiB at most,"
    )
    print(f"{(inputs + beyond) / taken:.2f} times the operands")
    worst = np.abs(D[:64] - (A[:64].astype(np.float64) @ B.astype(np.float64) + C[:64])).max()
    print(f"largest difference from float64, first 64 rows: {worst:.2g}")

    pressed: list[float] = []

    def press() -> None:
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(min(2.0, seconds / 2), press)
    timer.start()
    try:
        matmul(A, B, C, instruction=i)
    except KeyboardInterrupt:
        late = time.monotonic() - pressed[0]
        print(f"interrupted {late:.2f} s after Ctrl-C; threads left: {threading.active_count() - 1}")
    again = matmul(A[:64, :256], B[:256], C[:64], instruction=i)
    print("and on it goes:", again.shape)


if __name__ == "__main__":
    main()
