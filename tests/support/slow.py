"""Which cases of a test are slow: those of more than some seconds, where quicker ones of the same kind remain."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow(cases: Iterable[Any], which: Collection[Any]) -> list[Any]:
    """The cases as parameters, and of them `which` marked slow.  Raises ValueError if one is not among them."""
    cases = list(cases)
    if missing := [each for each in which if each not in cases]:
        raise ValueError(f"no such case: {missing}")
    return [pytest.param(each, marks=pytest.mark.slow) if each in which else each for each in cases]
