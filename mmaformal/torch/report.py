"""The record of one context: which products ran in the arithmetic, and which torch computed in its own."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from mmaformal.display import clipped, columns
from mmaformal.torch.tensors import Call


class LeftToTorch(UserWarning):
    """A function with products of matrices in it ran in torch's own arithmetic within an arithmetic."""


class Ran(NamedTuple):
    """Calls of one function with operands of one size."""

    function: str
    shapes: str
    times: int
    where: str  #: the instruction's label, or "torch"
    why: str  #: the reason where it was torch
    structure: str = ""  #: how the arithmetic divides K and scales operands

    def __repr__(self) -> str:
        return clipped(f"Ran({self.function}, {self.shapes}, {self.times} times, {self.where})")


class Report:
    """The products of one context, counted."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.watch: Call | None = (
            None  #: called with the operands of every product that runs, as quantised, and its shape
        )
        self._counts: dict[tuple[str, str, str, str, str], int] = {}
        self._warned: set[str] = set()

    def add(self, function: str, shapes: str, where: str, why: str = "", structure: str = "") -> None:
        key = function, shapes, where, why, structure
        self._counts[key] = self._counts.get(key, 0) + 1

    def leave(self, function: str, shapes: str, why: str) -> None:
        """Record what torch computes itself.

        Warns on the first call of each function.  Raises NotImplementedError in a strict context.
        """
        if self.strict:
            raise NotImplementedError(
                f"{function} ({why}) runs in torch's own arithmetic, which this context refuses (strict=True)"
            )
        self.add(function, shapes, "torch", why)
        if function not in self._warned:
            self._warned.add(function)
            told = f"{function} ({why}) ran in torch's own arithmetic; arithmetic(…, strict=True) refuses it"
            warnings.warn(told, LeftToTorch, stacklevel=3)

    @property
    def rows(self) -> list[Ran]:
        """One row for each function, size and place, in order of their first calls."""
        return [Ran(key[0], key[1], count, *key[2:]) for key, count in self._counts.items()]


def report_lines(rows: list[Ran]) -> str:
    """The rows as lines of text, which fit 120 columns."""
    if not rows:
        return "no product of matrices"
    head = ["function", "operands", "times", "computed in", "because"]
    cells = [
        [
            clipped(r.function, 32),
            clipped(r.shapes, 32),
            f"{r.times:,}",
            "torch's own" if r.where == "torch" else "arithmetic",
            clipped(r.why, 26),
        ]
        for r in rows
    ]
    units = sorted({(r.where, r.structure) for r in rows if r.where != "torch"})
    said = [
        line
        for label, structure in units
        for line in (f"arithmetic: {label}", *([f"  {structure}"] if structure else []))
    ]
    return "\n".join([*said, *columns([head, *cells], ruled=True)])


# ---- of this thread ----------------------------------------------------------------------------------------------


class _Here(threading.local):
    """The report of the innermost context, and the name under which the kernel records a product in it."""

    report: Report | None = None
    function: str = ""
    own: int = 0  #: within code of this package whose products by torch are meant to be torch's


here = _Here()


@contextmanager
def recorded_as(function: str) -> Iterator[None]:
    """Within this block products are recorded under this name."""
    before, here.function = here.function, function
    try:
        yield
    finally:
        here.function = before


@contextmanager
def torchs_own() -> Iterator[None]:
    """Within this block no mode looks at products: they are gradients that `backward="full"` leaves to torch."""
    here.own += 1
    try:
        yield
    finally:
        here.own -= 1
