"""Tests that the quick suite leaves out: by name, those that took the most processor time (`tools/thorough.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from thorough import PATH


def names(path: Path = PATH) -> frozenset[str]:
    """Return the tests' names, as pytest has them; none if there is no list."""
    return frozenset(path.read_text(encoding="utf-8").splitlines()) if path.exists() else frozenset()


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark those that are on the list as `thorough`."""
    listed = names()
    for item in items:
        if item.nodeid in listed:
            item.add_marker("thorough")
