"""The list of tests that the quick suite leaves out, and how it is made."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import thorough
from hypothesis import given
from hypothesis import strategies as st
from support.thorough import names

ROOT = Path(__file__).resolve().parents[2]


@given(
    st.dictionaries(st.text("abc", min_size=1), st.integers(0, 100).map(float)),
    st.integers(0, 200).map(float),
)
def test_the_costliest_are_left_out_and_no_more(costs: dict[str, float], seconds: float) -> None:
    found = thorough.costliest(costs, seconds)
    rest = [costs[name] for name in costs if name not in found]
    assert sum(rest) <= seconds
    assert max(rest, default=0) <= min((costs[name] for name in found), default=100)
    if found:
        assert sum(rest) + min(costs[name] for name in found) > seconds


def test_what_is_listed_is_a_test() -> None:
    """A test that was renamed would come back to the quick suite without a word."""
    for name in sorted({each.partition("[")[0] for each in names()}):
        path, *inside = name.split("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        for each in inside:
            assert re.search(rf"\b(def|class) {each}\b", text), name


def collected(*options: str) -> set[str]:
    """Return the names of the tests of one file that pytest would run."""
    some = sorted({each.partition("::")[0] for each in names()})[0]
    command = [sys.executable, "-m", "pytest", "--collect-only", some, *options]
    out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return {line for line in out.splitlines() if "::" in line}


def test_the_quick_suite_leaves_them_out_and_the_thorough_one_has_them(tmp_path: Path) -> None:
    quick, rest = collected(), collected("--thorough")
    assert quick | rest == collected("--every") == collected(f"--write-proved={tmp_path / 'proved'}")
    assert rest <= names()
    assert rest
    assert not quick & names()
    assert quick


def test_costs_are_written_down_and_read(tmp_path: Path) -> None:
    (tmp_path / "1").write_text("0.50 tests/a.py::test_a[x y]\n", encoding="utf-8")
    (tmp_path / "2").write_text("2.00 tests/b.py::test_b\n", encoding="utf-8")
    assert thorough.read(tmp_path) == {"tests/a.py::test_a[x y]": 0.5, "tests/b.py::test_b": 2.0}


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_a_test_s_cost_has_that_of_the_processes_it_starts(tmp_path: Path) -> None:
    test = tmp_path / "test_it.py"
    spin = "import time\\nwhile time.process_time() < 0.5: pass"
    test.write_text(
        f'import subprocess, sys\ndef test_it():\n    subprocess.run([sys.executable, "-c", "{spin}"], check=True)\n'
    )
    (folder := tmp_path / "costs").mkdir()
    command = [sys.executable, "-m", "pytest", "-p", "support.costs", f"--write-costs={folder}", str(test)]
    subprocess.run(
        [*command, f"--rootdir={tmp_path}"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT / "tests")}, check=True
    )
    (taken,) = thorough.read(folder).values()
    assert 0.4 < taken < 60  # it is counted in hundredths
