"""Integers and truths that users write: NumPy's are fine, and what only looks like one is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

#: `progress=`: called with a line of text as the work goes on.
Progress: TypeAlias = Callable[[str], None]


def integer(value: object, name: str) -> int:
    """The value as an int.  Raises TypeError for anything but an integer: 23.5, 23.0, True, "23"."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    raise TypeError(f"{name} is an integer, not {value!r}")


def truth(value: object, name: str) -> bool:
    """The value as a bool.  Raises TypeError for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise TypeError(f"{name} is True or False, not {value!r}")


def some_text(value: object, name: str) -> str:
    """The value, a str that is not empty.  Raises TypeError, ValueError."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is a str, not {value!r}")
    if not value:
        raise ValueError(f"{name} is empty")
    return value


def caller(progress: object) -> None:
    """Raises TypeError for a progress that is neither a function nor None."""
    if progress is not None and not callable(progress):
        raise TypeError(f"progress is a function of a line of text, print for example, not {progress!r}")
