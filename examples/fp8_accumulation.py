"""How the errors of hopper's fp8 accumulation grow with K, and what promotion does about them.

Hopper's QGMMA aligns fp8 products to 13 fractional bits and keeps 13 bits of its accumulator: the reason why
DeepSeek-V3 (arXiv 2412.19437 §3.3.2) adds it to an fp32 total after every 128 products.  Three ways to sum the same
products, of e4m3 numbers: QGMMA; QGMMA promoted every 128, that is 4 instructions; and HMMA on the numbers as fp16,
which holds them exactly.  Errors are against the exact sums, as √(Σ error² / Σ exact²), for numbers around zero and
for positive ones, whose sums grow.

    python examples/fp8_accumulation.py [--figure fp8_accumulation.png]        (figures: pip install matplotlib)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from mmaformal import hopper
from mmaformal.statistics import Statistics, matplotlib_pyplot, sample

M = N = 64
LENGTHS = [2**e for e in range(5, 17)]

QGMMA = hopper["QGMMA.64x64x32.F32.E4M3.E4M3"]
HMMA = hopper["HMMA.16816.F32"]

#: name → (statistics of A · B, the style of its line)
WAYS: dict[str, tuple[Callable[[Any, Any], Statistics], str]] = {
    "QGMMA (fp8)": (lambda A, B: sample(QGMMA, A, B).statistics(), "o-"),
    "QGMMA, promoted every 128": (lambda A, B: sample(QGMMA, A, B, promote_every=4).statistics(), "s-"),
    "HMMA (fp16)": (lambda A, B: sample(HMMA, A.astype(np.float16), B.astype(np.float16)).statistics(), "^-"),
}

Draw = Callable[[np.random.Generator, tuple[int, int]], Any]
INPUTS: dict[str, Draw] = {
    "N(0, 1)": lambda rng, shape: rng.normal(size=shape),
    "|N(0, 1)|": lambda rng, shape: np.abs(rng.normal(size=shape)),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--figure", metavar="PNG")
    args = parser.parse_args()
    if args.figure:
        matplotlib_pyplot()  # missing matplotlib is said before the work

    start = time.monotonic()
    found: dict[str, dict[str, list[Statistics]]] = {}
    for inputs, draw in INPUTS.items():
        rng = np.random.default_rng(0)
        found[inputs] = {way: [] for way in WAYS}
        print(f"A, B ~ {inputs}\n{'K':>7}  " + "  ".join(f"{way:>26}" for way in WAYS) + "    relative error")
        for k in LENGTHS:
            A, B = (draw(rng, s).astype(np.float32).astype(ml_dtypes.float8_e4m3fn) for s in ((M, k), (k, N)))
            for way, (judge, _) in WAYS.items():
                found[inputs][way].append(judge(A, B))
            print(
                f"{k:7}  " + "  ".join(f"{each[-1].relative:26.3g}" for each in found[inputs].values()),
                flush=True,
            )
    print(f"{time.monotonic() - start:.1f} s")
    if args.figure:
        draw_figure(found, args.figure)
        print(args.figure)


def draw_figure(found: dict[str, dict[str, list[Statistics]]], path: str) -> None:
    pyplot = matplotlib_pyplot()
    figure, axes = pyplot.subplots(1, len(found), figsize=(9, 3.8), sharey=True, layout="constrained")
    for axis, (inputs, ways) in zip(axes, found.items(), strict=True):
        for way, statistics in ways.items():
            axis.loglog(
                LENGTHS,
                [s.relative or np.nan for s in statistics],
                WAYS[way][1],
                label=way,
                markersize=4,
                base=2,
            )
        axis.set_yscale("log", base=10)
        axis.set_title(f"A, B ~ {inputs}, e4m3", fontsize=10)
        axis.set_xlabel("K")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("√(Σ error² / Σ exact²)")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
