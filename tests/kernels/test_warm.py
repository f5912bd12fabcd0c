"""`mmaformal warm-up`: what it compiles is there for the next process."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np

from mmaformal import hopper
from mmaformal.encodings.fda.kernel import FdaKernel
from mmaformal.kernels import kernel_for
from mmaformal.warming import _compile


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


def test_planes_of_both_widths_are_compiled() -> None:
    """A product of numbers near 1 has narrower planes than others; nobody has used this kernel."""
    i = hopper["HMMA.1688.F32.TF32"].replace(F=21)
    _compile([i])
    kernel = kernel_for(i.spec)
    assert isinstance(kernel, FdaKernel)
    assert {values for values, *_ in kernel._runs} == {np.dtype(np.float32).num, np.dtype(np.float64).num}
