"""Where a fused kernel's time goes: its parts one by one, on one row of 256 outputs whose data are in the cache.

    python benchmarks/profile.py hopper HMMA.16816.F32

Times are processor time, the best of many; a cycle is a quarter of a dependent integer multiplication and exclusive or
(3 + 1 cycles on x86 processors of the last ten years).  The bound is that of the loops over products: the vector
operations that they need, two of 512 bits in a cycle.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from mmaformal import ARCHITECTURES
from mmaformal.encodings.executable.blocks import canonical_nan, quiet_nan
from mmaformal.encodings.fda import kernel as fda
from mmaformal.encodings.fda.kernel import FdaKernel
from mmaformal.encodings.fdrda import kernel as fdrda
from mmaformal.encodings.fdrda.kernel import FdrdaKernel
from mmaformal.kernels import kernel_for, terms, tiles
from mmaformal.kernels.compiled import Ends
from mmaformal.kernels.fused import zero_exponent
from mmaformal.kernels.kernel import WIDTH


@numba.njit  # type: ignore[misc, unused-ignore]
def multiply_on(n: int, x: int, y: int) -> int:
    for _ in range(n):
        x = (x * y) ^ 1
    return x


@numba.njit  # type: ignore[misc, unused-ignore]
def largest(n: int, ea: Any, eb: Any, L: int, out: Any) -> None:
    for q in range(n):
        terms.largest_exponent(ea[q & 7], eb, 0, L, out)


@numba.njit  # type: ignore[misc, unused-ignore]
def total(n: int, va: Any, vb: Any, L: int, chunk: int, scale: Any, some: Any, out: Any) -> None:
    for q in range(n):
        terms.aligned_sum(va[q & 7], vb, 0, L, chunk, scale, some, out)


@numba.njit  # type: ignore[misc, unused-ignore]
def chunk(n: int, va: Any, vb: Any, L: int, scale: Any, some: Any) -> None:
    for q in range(n):
        terms.sum_of_chunk(va[q & 7], vb, 0, L, scale, some)


@numba.njit  # type: ignore[misc, unused-ignore]
def begin_tile(
    n: int, c: Any, F: int, zero: int, least: int, floor: int, s: Any, d: Any, e: Any, m: Any, scale: Any
) -> None:
    for _ in range(n):
        tiles.begin(c, F, zero, least, floor, s, d, e, m, scale)


@numba.njit  # type: ignore[misc, unused-ignore]
def finish_tile(n: int, rho: Any, c: Any, F: int, e: Any, sums: Any, d: Any) -> None:
    for _ in range(n):
        tiles.finish(rho, c, F, e, sums, d)


@numba.njit  # type: ignore[misc, unused-ignore]
def begin_fda(
    n: int,
    c: Any,
    F: int,
    zero: int,
    least: int,
    floor: int,
    s: int,
    t: Any,
    d: Any,
    e: Any,
    m: Any,
    scale: Any,
) -> None:
    for _ in range(n):
        fda.begin_fda(c, F, zero, least, floor, s, t, d, e, m, scale)


@numba.njit  # type: ignore[misc, unused-ignore]
def finish_fda(
    n: int, rho: Any, c: Any, F: int, zero: int, nan: int, e: Any, sums: Any, flags: Any, d: Any
) -> None:
    for _ in range(n):
        fda.finish_fda(rho, c, F, zero, nan, False, e, sums, False, flags, d)


@numba.njit  # type: ignore[misc, unused-ignore]
def begin_dot(n: int, F: int, least: int, floor: int, skipped: int, e: Any, e_dot: Any, scale: Any) -> None:
    for _ in range(n):
        fdrda.begin_dot(F, least, floor, skipped, e, e_dot, scale)


@numba.njit  # type: ignore[misc, unused-ignore]
def finish_dots(
    n: int, ends: Any, p: Any, nan: int, e: Any, x: Any, f: Any, y: Any, flags: Any, d: Any
) -> None:
    for _ in range(n):
        special = terms.any_special(ends.c_format, d)
        fdrda.finish_dots(ends, p, nan, e, x, f, y, special, flags, d)


def best(function: Callable[..., Any], *arguments: Any, count: int = 400) -> float:
    """Seconds of one turn."""
    function(3, *arguments)
    times = []
    for _ in range(15):
        start = time.thread_time()
        function(count, *arguments)
        times.append(time.thread_time() - start)
    return min(times) / count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("architecture")
    parser.add_argument("instruction")
    args = parser.parse_args()
    i = ARCHITECTURES[args.architecture][args.instruction]
    kernel = kernel_for(i.spec)
    if not isinstance(kernel, (FdaKernel, FdrdaKernel)):
        raise SystemExit(f"{i.label} is {i.algorithm}; the profile is of fda, fdrda and gfdrda")
    wide, p, L = kernel.widths, kernel.parameters, kernel.L
    rng = np.random.default_rng(0)
    assert i.a_format.dtype is not None
    assert i.b_format.dtype is not None
    A = rng.normal(size=(8, i.k)).astype(i.a_format.dtype).view(i.a_format.word)
    B = rng.normal(size=(i.k, WIDTH)).astype(i.b_format.dtype).view(i.b_format.word)
    a, b = kernel.rows(A), kernel.columns(B)
    values: Any = a[1], b[1]  # narrow ones, of numbers near 1
    (ea, va), (eb, vb) = (a[0], values[0].array), (b[0][0], values[1].array[0])
    e, d = np.empty(WIDTH, ea.dtype), np.zeros(WIDTH, i.d_format.word)
    scale, some, sums = np.ones(WIDTH, va.dtype), np.empty(WIDTH, wide.term), np.zeros(WIDTH, np.int64)
    e_max, flags = np.zeros(WIDTH, np.int32), np.zeros(WIDTH, np.uint8)
    size = L if isinstance(kernel, FdaKernel) else L // kernel.groups
    times = {"largest exponent": best(largest, ea, eb, size, e) * (L // size)}
    if isinstance(kernel, FdaKernel):
        p = kernel.parameters
        limits = zero_exponent(p.e_zero, i.c_format), wide.least, wide.floor
        if kernel.on_words:
            words, none = d.astype(np.int32), np.zeros(WIDTH, np.int32)
            times["aligned sum"] = best(chunk, va, vb, size, scale, some)
            first = (i.c_format, p.F, *limits, none, words, e, e_max, scale)
            times["e_max and scale"] = best(begin_tile, *first)
            last = (p.rho, i.c_format, p.F, e_max, some, words)
            times["c, rounding, encoding"] = best(finish_tile, *last)
        else:
            times["aligned sum"] = best(total, va, vb, size, wide.chunk, scale, some, sums)
            none = np.zeros(WIDTH, np.int16)
            first = (i.c_format, p.F, *limits, np.int64(0), none, d, e, e_max, scale)
            times["e_max and scale"] = best(begin_fda, *first)
            nan = canonical_nan(i.d_format)
            last = (p.rho, i.c_format, p.F, limits[0], nan, e_max, sums, flags, d)
            times["c, rounding, encoding"] = best(finish_fda, *last)
    else:
        times["aligned sum"] = best(total, va, vb, size, wide.chunk, scale, some, sums) * (L // size)
        times["e_max and scale"] = best(
            begin_dot, p.F, wide.least, wide.floor, kernel.skipped, e, e_max, scale
        ) * (L // size)
        ends = (Ends(i.c_format), kernel.parameters, quiet_nan(i.d_format))
        times["c, rounding, encoding"] = best(finish_dots, *ends, e_max, sums, e_max, sums, flags, d)
    steps = 8
    A, B = np.tile(A, (8, steps)), np.tile(B, (steps, 1))
    a, b, D = kernel.rows(A), kernel.columns(B), np.zeros((64, WIDTH), i.d_format.word)

    def whole(n: int) -> None:
        for _ in range(n):
            kernel.run(a, b, D, 0, steps)

    times["whole kernel"] = best(whole, count=4) / (64 * steps * kernel.steps)
    cycle = best(multiply_on, 3, 5, count=10**6) / 4
    lanes = 64 // np.dtype(wide.value).itemsize
    operations = 2 * np.dtype(wide.exponent).itemsize / 64 + 4 / lanes
    print(f"{i.label}: {kernel.description}; a cycle is {1e9 * cycle:.3f} ns\n")
    print("| part | ns per output | cycles per product | share |\n|---|---|---|---|")
    for name, seconds in times.items():
        per_product = seconds / WIDTH / L / cycle
        share = seconds / times["whole kernel"]
        print(f"| {name} | {1e9 * seconds / WIDTH:.2f} | {per_product:.3f} | {share:.0%} |")
    print(f"| bound of the products alone |  | {operations / 2:.3f} |  |")
    print(f"\n{1e6 * times['whole kernel'] / WIDTH / L * 2048:.3f} µs per 2048 products on one processor")


if __name__ == "__main__":
    main()
