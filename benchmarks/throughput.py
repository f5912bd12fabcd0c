"""Throughput of `matmul` beside mmasim 2.1.1, in one process, as ratios.

    python benchmarks/throughput.py compare --json benchmarks/throughput.json     (in the environment of tests/oracle)
    python benchmarks/throughput.py table benchmarks/throughput.json docs/performance.md

`compare` times D = A·B + C of 1024 × 1024 and one instruction's K, of normally distributed numbers: `matmul` on the
whole of it, and mmasim's `dpa` in each of its batched forms, of which the fastest counts: whole rows of D at a time, 1
to 64 of them, by broadcasting (`a[:, None]`, `b[None]`) or with the operands of every dot product-add laid out before
(which is not counted).  Turns alternate, the best of each counts.  mmasim does a part of the rows where it would take
long.  Both have as many threads.  The unit is µs per *tile*, 2048 products, as one 16×8×16 instruction has.

Wall-clock time and processor time are both told: the ratio of the latter does not mind what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from mmaformal import ARCHITECTURES, Instruction, cdna2, cdna3, hopper, matmul, rtx_blackwell
from mmaformal.formats import Format
from mmaformal.kernels import first, kernel_for

TILE = 2048  #: products
SIZE = 1024
#: Calls of one side after another, in one turn: the first find the other's data in the cache, and its threads waiting.
CALLS = 4
BEGIN, END = "<!-- {}: begin -->\n", "<!-- {}: end -->\n"

Timing = tuple[float, float]  #: wall-clock and processor seconds


def normal(rng: np.random.Generator, fmt: Format, shape: tuple[int, ...]) -> Any:
    """Normally distributed codes; scales around 1."""
    if fmt.dtype is not None and fmt.signed:
        return rng.normal(size=shape).astype(np.float32).astype(fmt.dtype).view(fmt.word)
    return (rng.integers(-3, 4, shape) + (fmt.bias << fmt.fraction_bits)).astype(fmt.word)


def operands(i: Instruction, m: int, n: int, k: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    found = {
        "A": normal(rng, i.a_format, (m, k)),
        "B": normal(rng, i.b_format, (k, n)),
        "C": normal(rng, i.c_format, (m, n)),
    }
    if i.spec.scale_format is not None:
        blocks = k // i.spec.scale_block
        found["scale_a"] = normal(rng, i.spec.scale_format, (m, blocks))
        found["scale_b"] = normal(rng, i.spec.scale_format, (blocks, n))
    return found


def timed(function: Callable[[], Any]) -> Timing:
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


def best(timings: Iterable[Timing]) -> Timing:
    walls, cpus = zip(*timings, strict=True)
    return min(walls), min(cpus)


# ---- mmasim ------------------------------------------------------------------------------------------------


def mmasim_forms(
    i: Instruction, found: dict[str, Any], threads: int
) -> dict[str, tuple[int, Callable[[], Any]]]:
    """Name → (dot product-adds, a call that does them), or nothing if mmasim has no such instruction."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "oracle"))
    import torch
    from compare_mmasim import find_oracle, to_torch

    torch.set_num_threads(threads)
    oracle = find_oracle(i)
    if oracle is None:
        return {}
    packing = getattr(oracle.operation, "packing", 1)
    a, b = to_torch(found["A"], i.a_format, packing), to_torch(found["B"].T, i.b_format, packing)
    c = to_torch(found["C"], i.c_format, 1)
    scaled = "scale_a" in found
    if scaled:
        fmt = i.spec.scale_format
        alpha, beta = to_torch(found["scale_a"], fmt, 1), to_torch(found["scale_b"].T, fmt, 1)
    forms: dict[str, tuple[int, Callable[[], Any]]] = {}
    n = len(b)
    for rows in (1, 4, 16, 64):
        part = slice(0, rows)

        def broadcast(part: slice = part) -> None:
            extra = (alpha[part, None], beta[None]) if scaled else ()
            oracle.operation.dpa(a[part, None], b[None], c[part], *extra)

        laid_out = [
            a[part, None].expand(rows, n, -1).reshape(rows * n, -1),
            b[None].expand(rows, n, -1).reshape(rows * n, -1),
            c[part].reshape(-1),
        ]
        if scaled:
            laid_out.append(alpha[part, None].expand(rows, n, -1).reshape(rows * n, -1))
            laid_out.append(beta[None].expand(rows, n, -1).reshape(rows * n, -1))

        def separate(laid_out: list[Any] = laid_out) -> None:
            oracle.operation.dpa(*laid_out)

        # sfma takes operands of one shape only
        if i.algorithm != "sfma":
            forms[f"{rows} rows, broadcast"] = (rows * n, broadcast)
        forms[f"{rows} rows"] = (rows * n, separate)
    return forms


def compare(i: Instruction, threads: int, repeats: int) -> dict[str, Any] | None:
    """One row of the comparison; None if mmasim does not have the instruction."""
    found = operands(i, SIZE, SIZE, i.k)
    forms = mmasim_forms(i, found, threads)
    if not forms:
        return None

    def ours() -> Any:
        return matmul(**found, instruction=i, jobs=threads)

    ours()
    kernel = kernel_for(i.spec).description
    single: dict[str, list[Timing]] = {}
    for name, (_, call) in forms.items():  # a first, quick look at all forms
        single[name] = [timed(call) for _ in range(4)]
    rate = {name: best(times)[1] / forms[name][0] for name, times in single.items()}
    name = min(rate, key=lambda each: rate[each])
    count, call = forms[name]
    mine, theirs = [], single[name]
    for _ in range(repeats):
        mine += [timed(ours) for _ in range(CALLS)]
        theirs += [timed(call) for _ in range(CALLS)]
    tiles = SIZE * SIZE * i.k / TILE
    my_wall, my_cpu = (1e6 * x / tiles for x in best(mine))
    their_wall, their_cpu = (1e6 * x / (count * i.k / TILE) for x in best(theirs))
    return {
        "instruction": i.label,
        "algorithm": i.algorithm,
        "types": i.spec.types,
        "k": i.k,
        "kernel": kernel,
        "us_per_tile": round(my_wall, 4),
        "cpu_us_per_tile": round(my_cpu, 4),
        "mmasim_us_per_tile": round(their_wall, 2),
        "mmasim_cpu_us_per_tile": round(their_cpu, 2),
        "mmasim_form": name,
        "ratio": round(their_wall / my_wall, 1),
        "cpu_ratio": round(their_cpu / my_cpu, 1),
    }


def distinct(architecture: str | None, pattern: str) -> list[Instruction]:
    """One instruction for each behaviour."""
    seen: dict[Any, Instruction] = {}
    for a in ARCHITECTURES.values():
        for i in a:
            if architecture in (None, a.name) and pattern in i.name:
                seen.setdefault(i.spec, i)
    return list(seen.values())


def headline() -> list[Instruction]:
    """One or two instructions of every algorithm."""
    return [
        hopper["HMMA.16816.F32"],
        hopper["HMMA.16816.F16"],
        hopper["HMMA.16816.F32.BF16"],
        hopper["HMMA.1688.F32.TF32"],
        hopper["QGMMA.64x8x32.F32.E4M3.E4M3"],
        rtx_blackwell["QMMA.16832.F32.E4M3.E4M3"],
        rtx_blackwell["QMMA.SF.16832.F32.E4M3.E4M3.E8"],
        rtx_blackwell["OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X"],
        cdna3["f32_16x16x16_f16"],
        cdna3["f32_16x16x16_bf16"],
        cdna3["f32_16x16x8_xf32"],
        cdna3["f32_16x16x32_fp8_fp8"],
        ARCHITECTURES["cdna1"]["f32_16x16x16f16"],
        ARCHITECTURES["cdna1"]["f32_16x16x8bf16"],
        cdna2["f32_16x16x16f16"],
        cdna2["f32_16x16x8bf16"],
        cdna2["f32_16x16x4f32"],
        cdna2["f64_16x16x4f64"],
        hopper["DMMA.16x8x16"],
    ]


# ---- output ------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    import llvmlite.binding as llvm
    import numba

    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": llvm.get_host_cpu_name(),
        "processors": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg() if hasattr(os, "getloadavg") else None,
        "avx512": bool(llvm.get_host_cpu_features().get("avx512f")),
        "python": platform.python_version(),
        "numba": numba.__version__,
        "numpy": np.__version__,
    }


def compare_table(rows: list[dict[str, Any]]) -> list[str]:
    lines = [
        "| instruction | algorithm | matmul, µs | CPU µs | mmasim, µs | in the form | ratio | of CPU time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['instruction']} | {row['algorithm']} | {row['us_per_tile']:.3f} | "
            f"{row['cpu_us_per_tile']:.3f} | {row['mmasim_us_per_tile']:.1f} | {row['mmasim_form']} | "
            f"{row['ratio']:.0f} | {row['cpu_ratio']:.0f} |"
        )
    return lines


def put_between(document: Path, name: str, lines: list[str]) -> None:
    """Replace what stands between the marks of that name."""
    begin, end = BEGIN.format(name), END.format(name)
    before, found, rest = document.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{document} has no marks {begin.strip()} and {end.strip()}")
    document.write_text(before + begin + "\n".join(lines) + "\n" + end + after)


def write_tables(files: list[Path], document: Path) -> None:
    """Put the tables of results between their marks in a document."""
    for path in files:
        data = json.loads(path.read_text())
        about = ", ".join(f"{name} {value}" for name, value in data["machine"].items())
        put_between(document, data["kind"], [f"({about})", "", *compare_table(data["rows"])])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    command = commands.add_parser("compare")
    command.add_argument("--json", type=Path)
    command.add_argument("--threads", type=int, default=2)
    command.add_argument("--repeats", type=int, default=5)
    command.add_argument("--arch")
    command.add_argument("--instruction", default="", help="a part of its name")
    command.add_argument("--all", action="store_true", help="every distinct behaviour, not a choice")
    table = commands.add_parser("table")
    table.add_argument("files", type=Path, nargs="+")
    args = parser.parse_args()
    first.MANY = 0  # compiled kernels are measured
    if args.command == "table":
        write_tables(args.files[:-1], args.files[-1])
        return

    rows: list[dict[str, Any]] = []
    for i in (
        distinct(args.arch, args.instruction) if args.all or args.arch or args.instruction else headline()
    ):
        row = compare(i, args.threads, args.repeats)
        if row is not None:
            rows.append(row)
            print(compare_table([row])[-1], flush=True)
    if args.json:
        args.json.write_text(
            json.dumps({"kind": args.command, "machine": machine(), "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
