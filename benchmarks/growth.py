"""Processor time per product as M, N, K and threads grow: pictures and numbers.

    python benchmarks/growth.py --json benchmarks/growth.json
    python benchmarks/growth.py --draw benchmarks/growth.json docs/growth.svg

D = A·B of normally distributed numbers, in one process, the best of some turns; HMMA.16816.F32 and QGMMA E4M3.E4M3.
Drawing needs matplotlib.
"""

from __future__ import annotations

import argparse
import json
from math import prod
from pathlib import Path
from typing import Any

from throughput import machine, operands, timed

from mmaformal import Instruction, hopper, matmul
from mmaformal.kernels import first

UNITS = {"HMMA fp16": hopper["HMMA.16816.F32"], "QGMMA fp8": hopper["QGMMA.64x8x32.F32.E4M3.E4M3"]}
#: by what grows: shapes M × N × K
SHAPES = {
    "M = N = K": [(n, n, n) for n in (64, 128, 256, 512, 1024, 2048, 4096, 8192)],
    "M, of N = K = 4096": [(m, 4096, 4096) for m in (1, 2, 4, 8, 16, 32, 128, 512)],
    "N, of M = K = 1024": [(1024, n, 1024) for n in (1, 4, 16, 64, 128, 256, 1024)],
    "K, of M = N = 256": [(256, 256, k) for k in (32, 128, 512, 2048, 8192, 32768)],
}
#: single products beyond the pictures
OTHERS = [(1, 11008, 4096), (11008, 1, 4096), (16, 16, 65536), (4096, 128, 4096), (128, 4096, 4096)]
#: products after which there is one turn only
LONG = 10**10


def measured(i: Instruction, shape: tuple[int, int, int], threads: int) -> dict[str, Any]:
    """Seconds of the best turn."""
    given = operands(i, *shape)
    given.pop("C")

    def product() -> Any:
        return matmul(**given, instruction=i, jobs=threads)

    products = prod(shape)
    if products < LONG:
        product()
    turns = [timed(product) for _ in range(1 if products >= LONG else 7)]
    wall, cpu = (min(each) for each in zip(*turns, strict=True))
    return {
        "shape": list(shape),
        "threads": threads,
        "seconds": wall,
        "ns": 1e9 * wall / products,
        "cpu_ns": 1e9 * cpu / products,
    }


def measure(largest: int) -> dict[str, Any]:
    """All shapes of at most so many products."""
    found: list[dict[str, Any]] = []
    shapes = [shape for each in SHAPES.values() for shape in each] + OTHERS
    for name, i in UNITS.items():
        for shape in dict.fromkeys(shapes):
            for threads in (1, 2):
                if prod(shape) <= largest and (prod(shape) < LONG or threads == 2):
                    found.append({"unit": name, **measured(i, shape, threads)})
                    last = found[-1]
                    print(
                        f"{name} {' × '.join(map(str, shape))}, {threads} threads: {last['seconds']:.4f} s, "
                        f"{last['cpu_ns']:.3f} ns of a processor a product",
                        flush=True,
                    )
    return {"machine": machine(), "rows": found}


def draw(data: dict[str, Any], path: Path) -> None:
    """Draw processor time against size, on one thread and two, and time by the clock against threads."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(13, 6.5), layout="constrained")
    for axis, (title, shapes) in zip(axes.flat, SHAPES.items(), strict=False):
        place = 2 if title.startswith("K") else 1 if title.startswith("N") else 0
        for colour, unit in zip(("tab:blue", "tab:orange"), UNITS, strict=True):
            rows = {(tuple(row["shape"]), row["threads"]): row for row in data["rows"] if row["unit"] == unit}
            for threads, style in ((1, "o-"), (2, "s--")):
                points = []
                for shape in shapes:
                    row = rows.get((shape, threads))
                    if row is not None:
                        points.append((shape[place], row["cpu_ns"]))
                said = "one thread" if threads == 1 else "two threads"
                axis.plot(*zip(*points, strict=True), style, color=colour, ms=4, label=f"{unit}, {said}")
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xlabel(title)
        axis.set_ylabel("processor ns per product")
        axis.set_yticks([0.1, 0.15, 0.2, 0.3, 0.5, 1, 2, 5], minor=False)
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter("")
        axis.set_ylim(0.09, 6)
        axis.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=8)
    _draw_threads(data, axes.flat[4])
    axes.flat[5].set_axis_off()
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _draw_threads(data: dict[str, Any], axis: Any) -> None:
    """Draw the clock's time for a product on one thread and on two, of the largest cubes that both have."""
    for colour, unit in zip(("tab:blue", "tab:orange"), UNITS, strict=True):
        for n, style in ((256, ":"), (1024, "--"), (2048, "-")):
            rows = [row for row in data["rows"] if row["unit"] == unit and row["shape"] == [n, n, n]]
            points = [(row["threads"], row["ns"]) for row in rows]
            if points:
                axis.plot(*zip(*points, strict=True), f"o{style}", color=colour, ms=4, label=f"{unit}, {n}³")
    axis.set_xlabel("threads")
    axis.set_ylabel("ns per product, by the clock")
    axis.set_xticks([1, 2])
    axis.set_ylim(bottom=0)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--largest", type=float, default=6e11, help="products of the largest shape")
    parser.add_argument("--draw", type=Path, nargs=2, metavar=("JSON", "SVG"))
    args = parser.parse_args()
    if args.draw:
        draw(json.loads(args.draw[0].read_text()), args.draw[1])
        return
    first.MANY = 0  # compiled kernels are measured
    data = measure(int(args.largest))
    if args.json:
        args.json.write_text(json.dumps(data, indent=1) + "\n")


if __name__ == "__main__":
    main()
