"""The interface of a kernel to the GEMM that drives it: operands decoded once into planes, outputs updated in place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mmaformal.display import clipped
from mmaformal.kernels.batch import Batch, on_lanes
from mmaformal.spec import DotAdd

CodeArray = NDArray[Any]  #: bit patterns
Plane = NDArray[Any]  #: of a type that the kernel chooses
Planes = tuple[Plane, ...]

#: Columns of one panel: what one row of a panel needs (256 outputs and their sums) stays in the first-level cache,
#: and so does a step of B, 256 columns of 16 products of five bytes.
WIDTH = 256
#: Products taken at a time, so that a panel of B (64 KiB in fp32) stays in the second-level cache.
BLOCK = 64


class Kernel(ABC):
    """A compiled `DotAdd` whose K is a chain of as many instructions as there are products to take.

    `rows` and `columns` decode operands: planes of A have its rows first, planes of B panels of `WIDTH` columns.
    `run` carries a block of accumulators through a range of instructions; it holds no state, and no lock of Python's,
    so that threads can run on different rows.
    """

    #: what the kernel is made of, for a person
    description: str

    def __init__(self, spec: DotAdd) -> None:
        self.spec = spec

    @classmethod
    def of(cls, spec: DotAdd) -> Kernel | None:
        """The kernel of `spec`; None where its numbers are too wide, or the processor lacks an operation."""
        return cls(spec)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        """Fill in the results of rows, each with an a, b and c of its own; parameters are arguments."""
        on_lanes(spec, rows)

    @classmethod
    def stage_rows(cls, spec: DotAdd, rows: Batch) -> None:
        """Do what `run_rows` does by the executable's stages, where that takes the processor's floats."""
        cls.run_rows(spec, rows)

    @classmethod
    def compiles_rows(cls, spec: DotAdd) -> bool:
        """Whether rows are compiled, which is not where their numbers are too wide."""
        return cls.run_rows is not Kernel.run_rows

    def __repr__(self) -> str:
        p = self.spec.parameters
        return f"<{type(self).__name__} of {clipped(f'{self.spec.types}, {p.algorithm} {p.describe()}')}>"

    @abstractmethod
    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        """Planes of A: (m, K) codes, (m, K/S) scales; K a multiple of the instruction's."""

    @abstractmethod
    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        """Planes of B: (K, n) codes, (K/S, n) scales; K a multiple of the instruction's."""

    @abstractmethod
    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        """Take `d` (m, n), codes of c, through the instructions `start` … `stop - 1`: it then holds codes of d.

        In place, in words of the wider of the two types; m the rows of `a`, and n at most the columns of `b`.
        """

    #: bytes that the planes of B take for each element
    bytes_per_element: int = 16
    #: how many products one call of `run` should be given: some tens of milliseconds, for Ctrl-C to be seen between
    task: int = 1 << 27


class OnlyRows(Kernel):
    """A kernel whose blocks are its rows (`plain.RowsKernel`)."""

    @classmethod
    def of(cls, spec: DotAdd) -> None:
        """None."""


def in_panels(array: NDArray[Any], width: int = WIDTH) -> NDArray[Any]:
    """(K, n) → (panels, K, width), contiguous, filled up with zeros."""
    k, n = array.shape
    panels = -(-n // width)
    out = np.zeros((panels, k, width), array.dtype)
    for p in range(panels):
        part = array[:, p * width : (p + 1) * width]
        out[p, :, : part.shape[1]] = part
    return out
