"""Tests that the quick suite leaves out: by name, those that took the most processor time (`tools/thorough.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from thorough import PATH


def names(path: Path = PATH) -> frozenset[str]:
    """Return the tests' names, as pytest has them; none if there is no list."""
    return frozenset(path.read_text(encoding="utf-8").splitlines()) if path.exists() else frozenset()


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests on the list, or with `--thorough` all others.

    A test that is asked for by name stays; all stay with `--every`, and where what they take, or prove, is written.
    """
    options = ("--every", "--write-costs", "--write-proved")
    if any("::" in each for each in config.args) or any(config.getoption(each, None) for each in options):
        return
    listed, wanted = names(), bool(config.getoption("--thorough"))
    left = [item for item in items if (item.nodeid in listed) != wanted]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if (item.nodeid in listed) == wanted]
