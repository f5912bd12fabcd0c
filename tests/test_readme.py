"""What the README says is so: its table of differences and its contrast, by the executables."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from mmaformal import ARCHITECTURES

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def table_rows() -> list[tuple[str, list[list[str]], str, list[int]]]:
    """(instruction, the architectures of both sides, inputs, results) of the rows that have a witness."""
    rows, name = [], ""
    for line in README.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[4].startswith("`0x"):
            name = cells[0] or name
            sides = [side.split(", ") for side in cells[2].split(" / ")]
            results = [int(x.strip("`"), 16) for x in cells[4].split(" / ")]
            rows.append((name, sides, cells[3].strip("`"), results))
    return rows


def equal_groups() -> list[tuple[str, list[str]]]:
    rows = []
    for line in README.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0].startswith("HMMA"):
            rows += [(cells[0], group.split(" = ")) for group in cells[1].split("; ")]
    return rows


@pytest.mark.parametrize(("name", "sides", "inputs", "results"), table_rows())
def test_the_table_of_differences(name: str, sides: list[list[str]], inputs: str, results: list[int]) -> None:
    for side, result in zip(sides, results, strict=True):
        for architecture in side:
            i = ARCHITECTURES[architecture][name]
            a, b, c = [0] * i.k, [0] * i.k, 0
            for position, part in enumerate(inputs.split(" + ")):
                factors = [x.strip("()") for x in part.partition(" [k=")[0].split("·")]
                at = re.search(r"\[k=(\d+)\]", part)
                if len(factors) == 1:
                    c = i.c_format.code(factors[0])
                else:
                    k = int(at[1]) if at else position
                    a[k], b[k] = (f.code(x) for f, x in zip((i.a_format, i.b_format), factors, strict=True))
            assert int(i.dot_add(a, b, c)) == result, f"{i.label}: {inputs}"


@pytest.mark.parametrize(("name", "architectures"), equal_groups())
def test_the_equal_ones_are_one_dot_add(name: str, architectures: list[str]) -> None:
    assert len({ARCHITECTURES[architecture][name].spec for architecture in architectures}) == 1


def test_every_hmma_row_is_in_the_table() -> None:
    shared = {i.name for a in ARCHITECTURES.values() for i in a if i.name.startswith("HMMA.")}
    assert {name for name, _ in equal_groups()} == shared


def test_the_contrast_is_what_the_example_prints() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "contrast.py")], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() in README
