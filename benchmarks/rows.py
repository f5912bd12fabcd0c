"""Dot product-adds of rows, each with an a, b and c of its own: NumPy's lanes and compiled rows, in one process.

    python benchmarks/rows.py [--rows 65536] [--json FILE]

For one instruction of each algorithm: microseconds a row on NumPy's lanes (the executable as it stands), compiled on
one thread, and on all; the best of some turns, which alternate.  `call`: five rows, as a search gives them, in
microseconds a call.  Processor time is told for one thread, which does not mind what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from throughput import normal

from mmaformal import ARCHITECTURES, Instruction
from mmaformal.encodings import executable
from mmaformal.kernels import rows

INSTRUCTIONS = {
    "hopper": ["HMMA.16816.F32", "QGMMA.64x8x32.F32.E4M3.E4M3", "mma.m16n8k32.f32.e4m3.e4m3.f32"],
    "rtx_blackwell": [
        "QMMA.SF.16832.F32.E4M3.E4M3.E8",
        "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
    ],
    "cdna3": ["f32_16x16x16_f16", "f32_16x16x32_fp8_fp8"],
    "cdna2": ["f32_16x16x16f16", "f32_16x16x4f32", "f64_16x16x4f64"],
    "cdna1": ["f32_16x16x16f16", "f32_16x16x8bf16"],
    "sapphire_rapids": ["TDPBF16PS", "VDPBF16PS", "VFMADD231PH"],
    "armv8_6": ["BFMMLA"],
}
TURNS = 5
#: NumPy's lanes do fewer: they are slow, and as fast on these
FEW = 8192


def operands(i: Instruction, n: int) -> dict[str, Any]:
    rng, spec = np.random.default_rng(0), i.spec
    found = {
        "a": normal(rng, i.a_format, (n, i.k)),
        "b": normal(rng, i.b_format, (n, i.k)),
        "c": normal(rng, i.c_format, (n,)),
    }
    if spec.scale_format is not None:
        found |= {side: normal(rng, spec.scale_format, (n, spec.scales)) for side in ("scale_a", "scale_b")}
    return found


def on_lanes(i: Instruction, given: dict[str, Any]) -> Any:
    lanes = {name: [x.astype(np.int64) for x in codes.T] for name, codes in given.items() if name != "c"}
    return executable.dot_add(i.spec, c=given["c"].astype(np.int64), **lanes).result


def seconds(clock: Callable[[], float], function: Callable[[], Any]) -> float:
    start = clock()
    function()
    return clock() - start


def measured(i: Instruction, n: int, threads: int) -> dict[str, Any]:
    given = operands(i, n)
    few = {name: codes[:FEW] for name, codes in given.items()}
    five = {name: codes[:5] for name, codes in given.items()}
    assert (rows.dot_add(i.spec, **few) == on_lanes(i, few).astype(i.d_format.word)).all()
    times: dict[str, list[float]] = {"lanes": [], "one": [], "all": [], "call": []}
    for _ in range(TURNS):
        times["lanes"].append(seconds(time.process_time, lambda: on_lanes(i, few)) / len(few["c"]))
        times["one"].append(seconds(time.process_time, lambda: rows.dot_add(i.spec, **given)) / n)
        times["all"].append(
            seconds(time.perf_counter, lambda: rows.dot_add(i.spec, **given, threads=threads)) / n
        )
        calls = seconds(time.process_time, lambda: [rows.dot_add(i.spec, **five) for _ in range(100)])
        times["call"].append(calls / 100)
    best = {name: min(each) * 1e6 for name, each in times.items()}
    return {"instruction": i.label, "algorithm": i.algorithm, "k": i.k, "rows": n, "threads": threads} | best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1 << 16)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = []
    print("µs a row".rjust(62), "lanes", "one thread", "ratio", "all", "call", sep="\t")
    for architecture, names in INSTRUCTIONS.items():
        for name in names:
            each = measured(ARCHITECTURES[architecture][name], options.rows, rows.processors())
            found.append(each)
            ratio = each["lanes"] / each["one"]
            label = f"{each['instruction']} ({each['algorithm']}, K = {each['k']})".rjust(62)
            numbers = (
                f"{each['lanes']:.2f}\t{each['one']:.4f}\t{ratio:.0f}\t{each['all']:.4f}\t{each['call']:.0f}"
            )
            print(label, numbers, sep="\t", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
