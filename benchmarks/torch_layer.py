"""A layer of a torch model on an instruction: `mmaformal.torch` beside mmasim 2.1.1's simulation, in one process.

    python benchmarks/torch_layer.py --json benchmarks/torch-layer.json     (in the environment of tests/oracle)

The layer is `nn.Linear` without bias, of normally distributed inputs and weights: BATCH rows, from and to FEATURES.
Ours is the whole of it under `mmaformal.torch.arithmetic`, quantisation included.  mmasim's is the same instruction's
`dpa` on operands that were quantised before: a chain of K / k of them for each output, 1 to 64 rows at a time by
broadcasting, of which the fastest counts; the time of the layer is in proportion.  Results of those rows are compared,
bit for bit, where inputs have no scales.  Turns alternate, the best of each counts, of wall-clock and processor time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(sys.path.pop(0))  # where `profile` is not the standard library's, which torch imports
sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "oracle"))

import numpy as np
import torch
from compare_mmasim import find_oracle, to_torch
from throughput import machine

from mmaformal import Instruction, blackwell, cdna3, hopper
from mmaformal.quantise import quantise
from mmaformal.torch import arithmetic

BATCH, FEATURES = 512, 512


def timed(call: Callable[[], torch.Tensor]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def simulated(i: Instruction, x: torch.Tensor, w: torch.Tensor) -> Callable[[int], torch.Tensor]:
    """A function that computes so many rows of the layer with mmasim."""
    oracle = find_oracle(i)
    assert oracle is not None, f"mmasim has no {i.label}"
    a, b = (to_torch(quantise(t.numpy(), i, s).codes, f, 1) for t, s, f in _sides(i, x, w))
    k, steps = i.k, x.shape[1] // i.k

    def rows(count: int) -> torch.Tensor:
        d = torch.zeros(count, len(b), dtype=torch.float32)
        for step in range(steps):
            part = slice(step * k, (step + 1) * k)
            d = oracle.operation.dpa(a[:count, None, part], b[None, :, part], d)
        return d

    return rows


def _sides(i: Instruction, x: torch.Tensor, w: torch.Tensor):
    return (x, "a", i.a_format), (w, "b", i.b_format)


def compare(i: Instruction, repeats: int) -> dict[str, object]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(BATCH, FEATURES, generator=generator)
    layer = torch.nn.Linear(FEATURES, FEATURES, bias=False)
    w = layer.weight.detach()

    def ours() -> torch.Tensor:
        with torch.no_grad(), arithmetic(i):
            return layer(x)

    rows = simulated(i, x, w)
    d = ours()
    rate = {count: timed(lambda count=count: rows(count))[0] / count for count in (1, 4, 16, 64)}
    count = min(rate, key=lambda each: rate[each])
    scaled = quantise(x.numpy(), i, "a").factor is not None
    same = "–" if scaled else str(bool(torch.equal(d[:count], rows(count))))
    mine, theirs = [], []
    for _ in range(repeats):
        mine.append(timed(ours))
        theirs.append(timed(lambda: rows(count)))
        mine.append(timed(ours))
    best = {name: np.min(times, axis=0) for name, times in (("ours", mine), ("mmasim", theirs))}
    whole = best["mmasim"] * BATCH / count
    return {
        "instruction": i.label,
        "ms": round(1e3 * best["ours"][0], 2),
        "cpu_ms": round(1e3 * best["ours"][1], 2),
        "mmasim_ms": round(1e3 * whole[0], 1),
        "mmasim_cpu_ms": round(1e3 * whole[1], 1),
        "mmasim_rows": count,
        "same": same,
        "ratio": round(whole[0] / best["ours"][0], 1),
        "cpu_ratio": round(whole[1] / best["ours"][1], 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    chosen = [
        hopper["HMMA.16816.F32"],
        hopper["HMMA.16816.F32.BF16"],
        hopper["QGMMA.64x8x32.F32.E4M3.E4M3"],
        blackwell["UTCQMMA.F32.E4M3.E4M3"],
        cdna3["f32_16x16x16_f16"],
    ]
    found = []
    print("| instruction | ours, ms | CPU | mmasim, ms | CPU | rows at a time | same bits | ratio | of CPU |")
    print("|---|---|---|---|---|---|---|---|---|")
    for i in chosen:
        row = compare(i, args.repeats)
        found.append(row)
        print("| " + " | ".join(str(each) for each in row.values()) + " |", flush=True)
    if args.json:
        told = {"kind": "torch layer", "machine": machine() | {"torch": torch.__version__}, "rows": found}
        args.json.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
