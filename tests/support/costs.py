"""A plugin of pytest that writes down how much processor time each test takes, its solvers' too (Linux).

PYTHONPATH=tests python -m pytest -n 2 -p support.costs --write-costs=FOLDER
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest

_TICK = os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-costs", metavar="FOLDER", help="write each test's processor time to files there"
    )


def seconds(process: int) -> float:
    """Return the processor time of a process and all that it started and are there, and of those that it waited for."""
    times: dict[int, float] = {}
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            times[int(entry.name)] = sum(map(int, fields[11:15])) / _TICK
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    total, todo = 0.0, [process]
    while todo:
        each = todo.pop()
        total += times.get(each, 0.0)
        todo += children.get(each, [])
    return total


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    folder = item.config.getoption("--write-costs")
    before = seconds(os.getpid()) if folder else 0.0
    found = yield
    if folder:
        with (Path(folder) / str(os.getpid())).open("a", encoding="utf-8") as file:
            file.write(f"{seconds(os.getpid()) - before:.2f} {item.nodeid}\n")
    return found
