"""Times of the README's commands: with every cache empty, and asked again.

    python benchmarks/commands.py

Each command runs in an empty home of its own, then once more in it: those of the README's lists, and those of its
tables, on files that are made for them.  Seconds of the clock and of processors, of the command with all that it
started; a machine that others share makes the former longer.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from mmaformal import hopper, matmul

ROOT = Path(__file__).resolve().parents[1]

#: Commands of every start, beside those of the README.
STARTING = ("mmaformal --version", "mmaformal --help")

#: A function of somebody's, for `signoff`.
PROGRAM = """import numpy as np

def dot(a, b, c):
    total = np.float32(c)
    for k in range(16):
        total = total + np.float32(a[k]) * np.float32(b[k])
    return total
"""


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
    shutil.copy(ROOT / "tests" / "hardware" / "fda.sv", folder / "unit.sv")


def seconds(command: str, home: Path) -> tuple[float, float, int]:
    """Return the clock's seconds of a command, those of processors, and its exit status."""
    environment = {
        **os.environ,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    environment["NUMBA_CACHE_DIR"] = str(home / "numba")
    words = [sys.executable, "-m", *command.split()]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    if not (home / "examples").exists():  # what commands write stays in that home
        (home / "examples").symlink_to(ROOT / "examples")
        make_files(home)
    ran = subprocess.run(words, cwd=home, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - start, used, ran.returncode


if __name__ == "__main__":
    print("| command | cold, s | of processors | again, s | of processors |\n|---|---:|---:|---:|---:|")
    for command in commands((ROOT / "README.md").read_text(encoding="utf-8")):
        with tempfile.TemporaryDirectory() as folder:
            cold, warm = (seconds(command, Path(folder)) for _ in range(2))
        failed = f" (exit status {cold[2]})" if cold[2] else ""
        figures = " | ".join(f"{x:.2f}" for x in (*cold[:2], *warm[:2]))
        print(f"| `{command}`{failed} | {figures} |", flush=True)
