"""Times of the README's commands: with every cache empty, and asked again.

    python benchmarks/commands.py [--before CHECKOUT] [--only WORDS] [--markdown docs/performance.md]

Each command runs in an empty home of its own, then once more in it: those of the README's lists, and those of its
tables, on files that are made for them; in the checkout of another version, too, if one is given, and that knows the
command.  Seconds of the clock and of processors, of the command with all that it started; a machine that others share
makes the former longer.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from throughput import put_between

from mmaformal import hopper, matmul

ROOT = Path(__file__).resolve().parents[1]

#: Commands of every start, beside those of the README.
STARTING = ("mmaformal --version", "mmaformal --help")

#: Exit statuses of a command that gives an answer.
ANSWERS = (0, 1, 3)

#: A function of somebody's, for `signoff`.
PROGRAM = """import numpy as np

def dot(a, b, c):
    total = np.float32(c)
    for k in range(16):
        total = total + np.float32(a[k]) * np.float32(b[k])
    return total
"""


#: A model of somebody's, for `replay-model`.
MODEL = """import torch

def tiny():
    torch.manual_seed(0)
    layers = torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64), torch.nn.LayerNorm(64)
    return torch.nn.Sequential(*layers), torch.randn(8, 64)
"""


class Times(NamedTuple):
    """Exit status of a command, seconds of the clock and of processors."""

    status: int
    clock: float
    processors: float


def commands(readme: str) -> list[str]:
    """Return the commands of the README's lists and tables, without comments."""
    lines = re.findall(r"^(?:    |\$ )(mmaformal .*?)(?:  +#.*)?$", readme, re.MULTILINE)
    in_tables = re.findall(r"^\|.*`(mmaformal [^`…]*)`.*\|$", readme, re.MULTILINE)
    return list(dict.fromkeys([*STARTING, *lines, *in_tables]))


def make_files(folder: Path) -> None:
    """Write the files that the commands of the README's tables name."""
    rows = dict(np.load(ROOT / "examples" / "bfdot_qemu.npz"))
    rows["d"][7] ^= 1  # one is wrong
    np.savez(folder / "rows.npz", allow_pickle=False, **rows)
    rng = np.random.default_rng(0)
    A, B = (rng.standard_normal(shape).astype(np.float16) for shape in ((64, 512), (512, 48)))
    D = matmul(A, B, instruction=hopper["HMMA.16816.F32"])
    for batch in (1, 64):
        np.savez(folder / f"batch{batch}.npz", allow_pickle=False, A=A[:batch], B=B, D=D[:batch])
    np.savez(folder / "product.npz", allow_pickle=False, A=A, B=B, D=D)
    for name, each in (("A", A), ("B", B), ("D", D)):
        np.save(folder / f"{name}.npy", each)
    (folder / "emu.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "llama.py").write_text(MODEL, encoding="utf-8")
    shutil.copy(ROOT / "tests" / "hardware" / "fda.sv", folder / "unit.sv")


def timed(command: str, home: Path, checkout: Path) -> Times:
    """Return what a command of a checkout takes in that home."""
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "NUMBA_CACHE_DIR": str(home / "numba"),
        "PYTHONPATH": str(checkout),
    }
    words = [sys.executable, "-m", *command.split()]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    ran = subprocess.run(words, cwd=home, env=environment, capture_output=True)
    clock, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Times(ran.returncode, clock, used)


def cold_and_again(command: str, checkout: Path) -> tuple[Times, Times]:
    """Run a command in an empty home, and once more."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "examples").symlink_to(ROOT / "examples")
        make_files(home)  # what commands write stays in that home
        return timed(command, home, checkout), timed(command, home, checkout)


def row(command: str, before: Path | None) -> str:
    """Return a line of the table."""
    cold, again = cold_and_again(command, ROOT)
    old = cold_and_again(command, before) if before is not None else None
    then = ("", "")
    if old is not None and old[0].status in ANSWERS:
        then = tuple(f"{each.processors:.2f}" for each in old)
    failed = f" (exit status {cold.status})" if cold.status not in ANSWERS else ""
    used, clock = (f"{cold.processors:.2f}", f"{again.processors:.2f}"), (cold.clock, again.clock)
    return (
        f"| `{command}`{failed} | {then[0]} | {used[0]} | {then[1]} | {used[1]} | "
        f"{clock[0]:.2f} | {clock[1]:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Times of the README's commands.")
    parser.add_argument("--before", type=Path, help="a checkout of another version")
    parser.add_argument("--only", default="", help="commands with these words")
    parser.add_argument("--markdown", type=Path, help="the document whose table is written anew")
    args = parser.parse_args()
    lines = [
        "| command | cold, s of processors: before | now | again: before | now | by the clock, cold | again |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    print("\n".join(lines), flush=True)
    for command in commands((ROOT / "README.md").read_text(encoding="utf-8")):
        if args.only in command:
            lines.append(row(command, args.before))
            print(lines[-1], flush=True)
    if args.markdown is not None:
        put_between(args.markdown, "commands", lines)


if __name__ == "__main__":
    main()
