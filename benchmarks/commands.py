"""Times of the README's commands: with every cache empty, and asked again.

    python benchmarks/commands.py

Each command runs in an empty home of its own, then once more in it.  Seconds of the clock and of processors, of the
command with all that it started; a machine that others share makes the former longer.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: Commands of every start, beside those of the README.
STARTING = ("mmaformal --version", "mmaformal --help")


def commands(readme: str) -> list[str]:
    """Return the commands of the README's lists, without comments."""
    lines = re.findall(r"^    (mmaformal .*?)(?:  +#.*)?$", readme, re.MULTILINE)
    return [*STARTING, *lines]


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
    ran = subprocess.run(words, cwd=home, env=environment, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - start, used, ran.returncode


if __name__ == "__main__":
    print("| command | cold, s | of processors | again, s | of processors |\n|---|---:|---:|---:|---:|")
    for command in commands((ROOT / "README.md").read_text(encoding="utf-8")):
        with tempfile.TemporaryDirectory() as folder:
            cold, warm = (seconds(command, Path(folder)) for _ in range(2))
        failed = "" if cold[2] in (0, 1, 3) else f" (exit status {cold[2]})"
        figures = " | ".join(f"{x:.2f}" for x in (*cold[:2], *warm[:2]))
        print(f"| `{command}`{failed} | {figures} |", flush=True)
