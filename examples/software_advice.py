"""The software advice of MMA-Sim (Xie et al., §VI), tried on the models: what it costs not to follow it, and to.

- CDNA2 counts subnormal factors as zero (§VI-B): scale the inputs of fp16 products, or use the bf16 instructions.
  A ~ σ·N(0, 1) in fp16, as small gradients are; B ~ N(0, 1).  Scaling by a power of two is exact and undone at the end.
- Hopper and Ada keep 13 bits of fp8 products (§VI-A): use the fp16 instructions, which hold fp8 numbers exactly.
  A, B ~ |N(0, 1)| in e4m3, whose sums grow with K.
- CDNA3 rounds the accumulator down (§VI-C): give it C = 0, and add the results in fp32 (here after each instruction).
  A, B ~ 1000·N(0, 1), C ~ N(0, 1).

Errors are against the exact results of the numbers that were there at first (for bf16: before they became bf16).

    python examples/software_advice.py [--size 128] [--figure software_advice.png]     (figures: pip install matplotlib)
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from mmaformal import ada, cdna2, cdna3, hopper, matmul
from mmaformal.statistics import matplotlib_pyplot, sample

CDNA2_FP16, CDNA2_BF16 = cdna2["f32_32x32x8f16"], cdna2["f32_32x32x8bf16_1k"]
CDNA3_FP16 = cdna3["f32_32x32x8_f16"]
FP8 = {"hopper QGMMA": hopper["QGMMA.64x64x32.F32.E4M3.E4M3"], "ada QMMA": ada["QMMA.16832.F32.E4M3.E4M3"]}
FP16 = {"hopper HMMA": hopper["HMMA.16816.F32"], "ada HMMA": ada["HMMA.16816.F32"]}

K = 256  #: of the products on AMD
SIGMAS = [2.0**-e for e in range(4, 25, 2)]
LENGTHS = [2**e for e in range(5, 13)]
INSTRUCTIONS = [1, 2, 4, 8, 16]

#: title, what the rows are, the rows, and for each way its numbers
Table = tuple[str, str, Sequence[float], dict[str, list[float]]]


def scaled(X: Any) -> tuple[Any, np.float32]:
    """X times a power of two, so that the largest is 2^14 to 2^15, and that power."""
    s = np.float32(2.0 ** (14 - np.floor(np.log2(float(np.abs(X).max()) or 1.0))))
    return (X.astype(np.float32) * s).astype(np.float16), s


def subnormals(size: int) -> Table:
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"fp16": [], "fp16, scaled": [], "bf16": []}
    for sigma in SIGMAS:
        A = (sigma * rng.normal(size=(size, K))).astype(np.float16)
        B = rng.normal(size=(K, size)).astype(np.float16)
        (scaled_a, s), (scaled_b, t) = scaled(A), scaled(B)
        results = {
            "fp16": matmul(A, B, instruction=CDNA2_FP16),
            "fp16, scaled": matmul(scaled_a, scaled_b, instruction=CDNA2_FP16) / s / t,
            "bf16": matmul(*(x.astype(ml_dtypes.bfloat16) for x in (A, B)), instruction=CDNA2_BF16),
        }
        for way, D in results.items():
            found[way].append(sample(CDNA2_FP16, A, B, D=D).statistics().relative)
    return "CDNA2: small fp16 numbers, relative error", "σ", SIGMAS, found


def fp8(size: int) -> Table:
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {name: [] for name in (*FP8, *FP16)}
    for k in LENGTHS:
        A, B = (
            np.abs(rng.normal(size=s)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
            for s in ((size, k), (k, size))
        )
        for name, instruction in FP8.items():
            found[name].append(sample(instruction, A, B).statistics().relative)
        for name, instruction in FP16.items():
            wide = (x.astype(np.float16) for x in (A, B))
            found[name].append(sample(instruction, *wide).statistics().relative)
    return "Hopper, Ada: fp8 products, relative error", "K", LENGTHS, found


def rounding_down(size: int) -> Table:
    rng = np.random.default_rng(0)
    ways: dict[str, Callable[[Any, Any, Any], Any]] = {
        "C given": lambda A, B, C: sample(CDNA3_FP16, A, B, C),
        "C = 0, added in fp32": lambda A, B, C: sample(CDNA3_FP16, A, B, C, promote_every=1),
    }
    found: dict[str, list[float]] = {way: [] for way in ways}
    standard_error = 0.0
    for n in INSTRUCTIONS:
        k = n * CDNA3_FP16.k
        A, B = ((1000 * rng.normal(size=s)).astype(np.float16) for s in ((size, k), (k, size)))
        C = rng.normal(size=(size, size)).astype(np.float32)
        for way, judge in ways.items():
            s = judge(A, B, C).statistics()
            found[way].append(s.bias)
            standard_error = max(standard_error, float(np.sqrt(s.mse / s.count)))
    return (
        f"CDNA3: mean deviation (standard error ≤ {standard_error:.2g})",
        "K",
        [n * CDNA3_FP16.k for n in INSTRUCTIONS],
        found,
    )


def show(table: Table) -> None:
    title, what, rows, found = table
    print(f"\n{title}\n{what:>10}  " + "  ".join(f"{way:>20}" for way in found))
    for i, row in enumerate(rows):
        print(f"{row:10.4g}  " + "  ".join(f"{each[i]:20.3g}" for each in found.values()))


def draw(tables: Sequence[Table], path: str) -> None:
    pyplot = matplotlib_pyplot()
    figure, axes = pyplot.subplots(1, len(tables), figsize=(13, 3.8), layout="constrained")
    for axis, (title, what, rows, found) in zip(axes, tables, strict=True):
        for (way, numbers), style in zip(found.items(), ("o-", "s-", "^--", "v--"), strict=False):
            axis.plot(rows, [x or np.nan for x in numbers], style, label=way, markersize=4)
        axis.set_xscale("log", base=2)
        if min(min(each) for each in found.values()) >= 0:
            axis.set_yscale("log")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel(what)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=128, help="rows of A and columns of B (default 128)")
    parser.add_argument("--figure", metavar="PNG")
    args = parser.parse_args()
    if args.figure:
        matplotlib_pyplot()  # missing matplotlib is said before the work
    tables = [make(args.size) for make in (subnormals, fp8, rounding_down)]
    for table in tables:
        show(table)
    if args.figure:
        draw(tables, args.figure)
        print(f"\n{args.figure}")


if __name__ == "__main__":
    main()
