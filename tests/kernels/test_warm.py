"""`mmaformal warm-up`: what it compiles is there for the next process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def warmed(cache: Path, *arguments: str) -> dict[str, float]:
    """Run the command with a cache of its own; returns what it says."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "mmaformal", "warm-up", *arguments, "--json"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    told: dict[str, float] = json.loads(ran.stdout)
    return told


def test_what_is_compiled_is_found_by_the_next_process(tmp_path: Path) -> None:
    first, again = (warmed(tmp_path, "armv8_6", "--jobs", "1") for _ in range(2))
    assert first["specifications"] == again["specifications"] > 0
    assert first["functions"] > 5
    assert again["functions"] == 0
