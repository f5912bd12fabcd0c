"""The bias of rounding down: cdna3's fp16 instruction beside one that would round toward zero (MMA-Sim §VI-C).

A, B ~ 1000·N(0, 1) and C ~ N(0, 1), as in the paper: where the products are large and c small, what is cut off is
always taken downward.  δ = d − (the exact result), for ten million results of v_mfma_f32_32x32x8_f16 (the real model)
and of the same with `cut` toward zero (a hypothetical one).  The figure is the paper's Fig. 2.

    python examples/cdna3_bias.py [--outputs 10000000] [--figure cdna3_bias.png]      (figures: pip install matplotlib)
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from mmaformal import cdna3
from mmaformal.algorithms import Rounding
from mmaformal.statistics import Errors, joined, matplotlib_pyplot, plot, sample

SIZE = 512  #: rows and columns that share their operands; then come new ones

REAL = cdna3["f32_32x32x8_f16"]
TOWARD_ZERO = REAL.replace(cut=Rounding.RZ)


def operands(outputs: int, seed: int = 0) -> Iterator[tuple[Any, Any, Any]]:
    rng = np.random.default_rng(seed)
    for _ in range(-(-outputs // SIZE**2)):
        A, B = ((1000 * rng.normal(size=s)).astype(np.float16) for s in ((SIZE, REAL.k), (REAL.k, SIZE)))
        yield A, B, rng.normal(size=(SIZE, SIZE)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--outputs", type=int, default=10_000_000)
    parser.add_argument("--figure", metavar="PNG")
    args = parser.parse_args()
    if args.figure:
        matplotlib_pyplot()  # missing matplotlib is said before the work

    start = time.monotonic()
    parts: dict[str, list[Errors]] = {"rounding down (cdna3)": [], "rounding toward zero (hypothetical)": []}
    for A, B, C in operands(args.outputs):
        for found, unit in zip(parts.values(), (REAL, TOWARD_ZERO), strict=True):
            found.append(sample(unit, A, B, C))
    errors = {name: joined(found) for name, found in parts.items()}
    print(
        f"{REAL.name}, {errors['rounding down (cdna3)'].errors.size:,} results, {time.monotonic() - start:.1f} s\n"
    )
    for name, each in errors.items():
        s = each.statistics()
        standard_error = float(np.nanstd(each.errors)) / s.count**0.5
        print(
            f"{name}\n  mean deviation {s.bias:+.6f} ± {standard_error:.6f}, mean magnitude {s.mean_absolute:.6f}"
        )
        negative = np.mean(each.errors[np.isfinite(each.errors)] < 0)
        print(f"  {negative:.1%} of the deviations are negative, {s.exact:.1%} are 0")
    if args.figure:
        plot(errors, args.figure, title="Deviation from the exact result, A, B ~ 1000·N(0, 1), C ~ N(0, 1)")
        print(f"\n{args.figure}")


if __name__ == "__main__":
    main()
