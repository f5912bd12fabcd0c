"""A program that cannot be read as terms, though it runs: what it gives for rows is all that is known of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mmaformal.cases.inputs import Rows
from mmaformal.display import ShortRepr
from mmaformal.hardware.module import HardwareError


@dataclass(frozen=True, repr=False)
class UnreadProgram(ShortRepr):
    """A program as it runs."""

    name: str
    told: tuple[str, ...]  #: how it takes its operands
    how: str  #: what is run: `dot as it is run`
    run: Callable[[Rows], NDArray[np.uint64]]  #: its d, called for each row alone; raises HardwareError
    #: its d, called once for all rows; None where it cannot be called so.  That it is the same is not known.
    together: Callable[[Rows], NDArray[np.uint64] | None] | None = None
    started: bool = False  #: whether `run` starts a process, so that many rows take little longer than one


class WrongUseError(HardwareError):
    """A program that is no dot product-add of the model's types, however it is run."""


class UnreadProgramError(HardwareError):
    """A program that cannot be read as terms, though it runs; one line, with its file and line."""

    def __init__(self, why: str, program: UnreadProgram) -> None:
        super().__init__(why)
        self.program = program
