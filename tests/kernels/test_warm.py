"""`mmaformal warm-up`: what it compiles is there for the next process."""

from __future__ import annotations

import json
import os
import pickle
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


def test_a_list_of_kernels_that_another_version_wrote_is_no_defect(tmp_path: Path) -> None:
    """numba reads the whole list before its stamp; a class in it may be gone.  Another process compiles again."""
    source = "from mmaformal.kernels.compiled import driver\n\n\n@driver\ndef twice(x):\n    return 2 * x\n"
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    command = [sys.executable, "-c", "import module; print(module.twice(21))"]
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(tmp_path / "numba"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    for _ in range(2):
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert (ran.stdout, ran.returncode) == ("42\n", 0), ran.stderr
        (index,) = (tmp_path / "numba").rglob("*.nbi")
        with index.open("rb") as file:
            version = pickle.load(file)
        index.write_bytes(pickle.dumps(version) + b"cmmaformal.kernels.compiled\nGone\n.")
