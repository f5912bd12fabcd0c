"""The pytest plugin, run by a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

#: Where the package is installed the plugin is there; in a checkout it is named.
PLUGIN = (
    []
    if any(each.name == "mmaformal" for each in entry_points(group="pytest11"))
    else ["-p", "mmaformal_pytest"]
)

TESTS = """
import numpy as np
from mmaformal import matmul
from mmaformal.testing import assert_matches, assert_within

A = np.ones((4, 32), np.float16)
B = np.ones((32, 4), np.float16)

def test_bits(mmaformal_unit):
    assert_matches(matmul(A, B, instruction=mmaformal_unit), A, B, instruction=mmaformal_unit)

def test_bound(mmaformal_unit):
    assert_within(matmul(A, B, instruction=mmaformal_unit), A, B, instruction=mmaformal_unit)

def test_wrong(mmaformal_unit):
    assert_matches(np.zeros((4, 4), np.float32), A, B, instruction=mmaformal_unit, explain=0)
"""
NONE = """
import sys

def test_nothing():
    assert not any(name == "mmaformal" or name.startswith("mmaformal.") for name in sys.modules)
"""


def run(folder: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        *PLUGIN,
        "-p",
        "no:cacheprovider",
        "-q",
        *options,
        "test_it.py",
    ]
    paths = os.pathsep.join(
        filter(None, [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH")])
    )
    return subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": paths},
    )


def test_a_unit_of_the_command_line_and_what_is_told(tmp_path: Path) -> None:
    done = run(tmp_path, TESTS, "--mmaformal-unit", "h100 HMMA.16816.F32")
    assert "1 failed, 2 passed" in done.stdout
    assert (
        "mmaformal: 1 product (16 elements) bit for bit; 1 within their bounds, at most 0 of one used"
        in done.stdout
    )
    assert "16 elements of 16 not as hopper HMMA.16816.F32 gives: every element" in done.stdout
    assert "GivenProduct.of" not in done.stdout  # our own lines are no part of the trace


def test_without_a_unit_tests_are_skipped(tmp_path: Path) -> None:
    assert "3 skipped" in run(tmp_path, TESTS).stdout
    done = run(tmp_path, TESTS, "--mmaformal-unit", "h100 HMMA")
    assert "--mmaformal-unit:" in done.stdout + done.stderr


def test_nothing_is_imported_where_nothing_is_used(tmp_path: Path) -> None:
    done = run(tmp_path, NONE)
    assert "1 passed" in done.stdout
    assert "mmaformal:" not in done.stdout
