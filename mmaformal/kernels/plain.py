"""Kernels whose outputs are rows: a row of A beside every column."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mmaformal.kernels.batch import batch
from mmaformal.kernels.kernel import CodeArray, Kernel, Planes
from mmaformal.spec import DotAdd

ROWS = 8192  #: dot product-adds at a time


class RowsKernel(Kernel):
    """The compiled rows of an algorithm."""

    bytes_per_element = 4
    task = 1 << 22

    def __init__(self, spec: DotAdd, of: type[Kernel]) -> None:
        super().__init__(spec)
        self.of_rows = of.run_rows
        algorithm = spec.parameters.algorithm
        self.description = f"{algorithm}: the stages of the executable encoding, compiled, output by output"

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (codes,) if scales is None else (codes, scales)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return tuple(np.ascontiguousarray(x.T) for x in self.rows(codes, scales))

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        n, each = d.shape[1], max(ROWS // d.shape[1], 1)
        for first, last in self.chains(start, stop):
            spec = self.spec.replace(k=(last - first) * self.spec.k)
            places = [slice(first * size, last * size) for size in (self.spec.k, self.spec.scales)]
            for row in range(0, len(d), each):
                c = d[row : row + each]
                sides_a = [x[row : row + each, own].repeat(n, 0) for x, own in zip(a, places, strict=False)]
                sides_b = [np.tile(x[:n, own], (len(c), 1)) for x, own in zip(b, places, strict=False)]
                scales = (sides_a[1], sides_b[1]) if len(a) > 1 else (None, None)
                done = batch(spec, sides_a[0], sides_b[0], c.reshape(-1), *scales)
                self.of_rows(spec, done)
                c[...] = done.d.reshape(c.shape)  # NumPy cuts a lane to the word with the same bits

    def chains(self, start: int, stop: int) -> Iterable[tuple[int, int]]:
        """The ranges of instructions that are run as one of a larger K."""
        return [(start, stop)] if stop > start else []


class PlainKernel(RowsKernel):
    """NumPy lanes, as `Instruction.dot_add` has them: some hundred times slower than a compiled kernel."""

    task = 1 << 17

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec, RowsKernel)
        self.description = "plain: the executable on NumPy lanes"

    def chains(self, start: int, stop: int) -> Iterable[tuple[int, int]]:
        return ((step, step + 1) for step in range(start, stop))
