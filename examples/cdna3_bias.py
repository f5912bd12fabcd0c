"""The bias of rounding down: cdna3's fp16 instruction beside one that would round toward zero (MMA-Sim §VI-C).

A, B ~ 1000·N(0, 1) and C ~ N(0, 1), as in the paper: where the products are large and c small, what is cut off is
always taken downward.  δ = d − (the exact result), for ten million results of v_mfma_f32_32x32x8_f16 (the real model)
and of the same with `cut` toward zero (a hypothetical one).  The figure is the paper's Fig. 2.

    python examples/cdna3_bias.py [--outputs 10000000] [--figure cdna3_bias.png]      (figures: pip install matplotlib)
    python examples/cdna3_bias.py --fp8 [--outputs 1000000]

With --fp8, v_mfma_f32_16x16x32_fp8_fp8, with A, B ~ 64·N(0, 1): beside the real model the same without its patch (a c
with e_c < e_max − 25 is dropped, not rounded down).  The paper says that the patch avoids the bias; it does not, for a
c that is large enough to be kept is still cut downward, by half a unit 2^(e_max − 24) on average in each step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from mmaformal import cdna3
from mmaformal.rounding import Rounding
from mmaformal.statistics import Errors, join_samples, matplotlib_pyplot, plot, sample

SIZE = 512  #: rows and columns that share their operands; then come new ones

REAL = cdna3["f32_32x32x8_f16"]
UNITS = {
    "rounding down (cdna3)": REAL,
    "rounding toward zero (hypothetical)": REAL.replace(cut=Rounding.RZ),
}

FP8 = cdna3["f32_16x16x32_fp8_fp8"]
FP8_UNITS = {
    "rounding down, small c dropped (cdna3)": FP8,
    "rounding down, no c dropped (hypothetical)": FP8.replace(c_reach=4096),
    "rounding toward zero (hypothetical)": FP8.replace(cut=Rounding.RZ),
}


def operands(outputs: int, *, fp8: bool = False, seed: int = 0) -> Iterator[tuple[Any, Any, Any]]:
    """Matrices for so many results; numbers of fp8 that are too large become the largest, 240."""
    rng = np.random.default_rng(seed)
    K, deviation = (FP8.k, 64.0) if fp8 else (REAL.k, 1000.0)
    for _ in range(-(-outputs // SIZE**2)):
        A, B = (deviation * rng.normal(size=shape) for shape in ((SIZE, K), (K, SIZE)))
        if fp8:
            A, B = (x.clip(-240, 240).astype(ml_dtypes.float8_e4m3fnuz) for x in (A, B))
        else:
            A, B = A.astype(np.float16), B.astype(np.float16)
        yield A, B, rng.normal(size=(SIZE, SIZE)).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--outputs", type=int, default=10_000_000)
    parser.add_argument("--fp8", action="store_true")
    parser.add_argument("--figure", metavar="PNG")
    args = parser.parse_args()
    if args.figure:
        matplotlib_pyplot()  # missing matplotlib is said before the work

    start = time.monotonic()
    units = FP8_UNITS if args.fp8 else UNITS
    parts: dict[str, list[Errors]] = {name: [] for name in units}
    for A, B, C in operands(args.outputs, fp8=args.fp8):
        for name, unit in units.items():
            parts[name].append(sample(unit, A, B, C))
    errors = {name: join_samples(found) for name, found in parts.items()}
    first = next(iter(units))
    print(f"{units[first].name}, {errors[first].errors.size:,} results, {time.monotonic() - start:.1f} s\n")
    for name, each in errors.items():
        s = each.statistics()
        standard_error = float(np.nanstd(each.errors)) / s.count**0.5
        print(
            f"{name}\n  mean deviation {s.bias:+.4g} ± {standard_error:.1g}, mean magnitude {s.mean_absolute:.4g}"
        )
        negative = np.mean(each.errors[np.isfinite(each.errors)] < 0)
        print(f"  {negative:.1%} of the deviations are negative, {s.exact:.1%} are 0")
    if args.figure:
        deviation = 64 if args.fp8 else 1000
        title = f"Deviation from the exact result, A, B ~ {deviation}·N(0, 1), C ~ N(0, 1)"
        plot(errors, args.figure, title=title)
        print(f"\n{args.figure}")


if __name__ == "__main__":
    main()
