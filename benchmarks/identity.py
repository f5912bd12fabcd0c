"""Kernels against the plain executable, bit for bit, on millions of dot product-adds of every algorithm.

    python benchmarks/identity.py --dot-adds 10000000 --markdown docs/performance.md

The inputs are the families of tests/oracle (random bits, cancellation, ties, subnormals, special values, …): 192 rows
of A, 192 columns of B and as many C of one family at a time, every row with every column, until an algorithm has had
its number, each distinct behaviour in turn.  Exits with 1 on any difference.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "oracle"))

from families import FAMILIES, Operands, generate
from throughput import distinct, put_between

from mmaformal import Instruction, matmul
from mmaformal.kernels import rows

SIZE = 192


def cases(i: Instruction, family: str, seed: int) -> dict[str, Any]:
    spec = i.spec
    operands = Operands(
        spec.a_format, spec.b_format, spec.c_format, spec.d_format, spec.k, spec.scale_format, spec.scales
    )
    found = generate(family, operands, n=SIZE, seed=seed)
    # One c for each row and column: those of the family, each row beginning with another.
    c = found.c[(np.arange(SIZE)[:, None] + np.arange(SIZE)) % SIZE]
    given = {"A": found.a, "B": np.ascontiguousarray(found.b.T), "C": c}
    if found.scale_a is not None and found.scale_b is not None:
        given |= {"scale_a": found.scale_a, "scale_b": np.ascontiguousarray(found.scale_b.T)}
    return given


def differences(i: Instruction, given: dict[str, Any]) -> int:
    mine = matmul(**given, instruction=i)
    scales = (given["scale_a"][:, None], given["scale_b"].T[None]) if "scale_a" in given else ()
    theirs = i.dot_add(given["A"][:, None], given["B"].T[None], given["C"], *scales)
    return int((mine != theirs).sum())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dot-adds", type=int, default=10**7, help="of each algorithm")
    parser.add_argument("--algorithm")
    parser.add_argument("--markdown", type=Path)
    args = parser.parse_args()
    behaviours: dict[str, list[Instruction]] = {}
    for i in distinct(None, ""):
        behaviours.setdefault(i.algorithm, []).append(i)
    lines = [
        "| algorithm | behaviours | dot product-adds | products | differences |",
        "|---|---|---|---|---|",
    ]
    rows.PATIENCE = float("inf")  # `dot_add` is the executable on NumPy's lanes, however long that takes
    wrong = 0
    for algorithm, instructions in behaviours.items():
        if args.algorithm not in (None, algorithm):
            continue
        start, done, products, bad, seen = time.monotonic(), 0, 0, 0, set()
        for round_ in itertools.count():
            if done >= args.dot_adds and len(seen) == len(instructions):
                break
            i = instructions[round_ % len(instructions)]
            family = list(FAMILIES)[(round_ // len(instructions) + round_) % len(FAMILIES)]
            found = differences(i, cases(i, family, round_))
            if found:
                print(f"{i.label}, {family}: {found} differ", flush=True)
            bad, done, products = bad + found, done + SIZE * SIZE, products + SIZE * SIZE * i.k
            seen.add(i.label)
        wrong += bad
        lines.append(f"| {algorithm} | {len(seen)} | {done:,} | {products:,} | {bad} |")
        print(lines[-1], f"{time.monotonic() - start:.0f} s", flush=True)
    if args.markdown:
        put_between(args.markdown, "identity", lines)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
