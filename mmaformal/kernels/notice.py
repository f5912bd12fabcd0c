"""A line on a terminal's stderr while a kernel is compiled: its first use takes seconds, which look like a hang."""

from __future__ import annotations

import sys

from numba.core import event

from mmaformal.kernels.compiled import Numba


class _Notice(event.Listener):  # type: ignore[misc]
    """Told by numba before and after each function that it does not find on disk."""

    def __init__(self) -> None:
        self._depth = 0  # a function may be compiled for another one

    def on_start(self, told: Numba) -> None:
        if self._depth == 0 and _ours(told) and sys.stderr.isatty():
            print("\rcompiling a kernel, once … ", end="", file=sys.stderr, flush=True)
        self._depth += 1

    def on_end(self, told: Numba) -> None:
        self._depth -= 1
        if self._depth == 0 and _ours(told) and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _ours(told: Numba) -> bool:
    """Whether it is a function of this package, and not one of the program that uses it."""
    return str(told.data["dispatcher"].py_func.__module__).startswith("mmaformal.")


def install() -> None:
    """Tell of what is compiled from now on."""
    event.register("numba:compile", _Notice())
