"""A line on stderr while kernels are compiled: their first use takes seconds, which look like a hang.

A terminal shows it while it lasts, a notebook once; elsewhere nobody watches.
"""

from __future__ import annotations

import sys

from numba.core import event

from mmaformal.kernels.compiled import Numba


class _Notice(event.Listener):  # type: ignore[misc]
    """Told by numba before and after each function that it does not find on disk."""

    def __init__(self) -> None:
        self._depth = 0  # a function may be compiled for another one
        self._said = False

    def on_start(self, told: Numba) -> None:
        if self._depth == 0 and _ours(told):
            if sys.stderr.isatty():
                name = told.data["dispatcher"].py_func.__name__
                print(f"\r\033[Kcompiling kernels, once: {name} … ", end="", file=sys.stderr, flush=True)
            elif _in_a_notebook() and not self._said:
                self._said = True
                print("compiling kernels, once: the first use takes seconds", file=sys.stderr, flush=True)
        self._depth += 1

    def on_end(self, told: Numba) -> None:
        self._depth -= 1
        if self._depth == 0 and _ours(told) and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _in_a_notebook() -> bool:
    return "ipykernel" in sys.modules


def _ours(told: Numba) -> bool:
    """Whether it is a function of this package, and not one of the program that uses it."""
    return str(told.data["dispatcher"].py_func.__module__).startswith("mmaformal.")


def announce() -> None:
    """Tell of what is compiled from now on."""
    event.register("numba:compile", _Notice())
