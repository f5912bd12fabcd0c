"""Functions of this room that numba compiles, and keeps where there is a place for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numba

F = TypeVar("F", bound=Callable[..., object])


def compiled_function(function: F) -> F:
    """Return a function compiled at its first call."""
    try:
        result: F = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # there is no folder to write to
        result = numba.njit(nogil=True)(function)
    return result
