"""The plain executable behind a kernel's interface, for numbers that no compiled kernel holds."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings import executable
from mmaformal.kernels.kernel import Codes, Kernel, Planes

ROWS = 8192  #: dot product-adds at a time


class PlainKernel(Kernel):
    """NumPy lanes, as `Instruction.dot_add` has them: some hundred times slower than a compiled kernel."""

    description = "plain: the executable on NumPy lanes"
    task = 1 << 17

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (codes,) if scales is None else (codes, scales)

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (codes,) if scales is None else (codes, scales)

    def run(self, a: Planes, b: Planes, d: Codes, start: int, stop: int) -> None:
        n = d.shape[1]
        each = (
            self.spec.k,
            self.spec.scales,
        )  # columns of A and rows of B, then of the scales, of one instruction
        for step in range(start, stop):
            for first in range(0, len(d), max(ROWS // n, 1)):
                rows = slice(first, first + max(ROWS // n, 1))
                c = d[rows]
                lanes_a = [
                    [x[rows, q].astype(np.int64).repeat(n) for q in range(step * size, (step + 1) * size)]
                    for x, size in zip(a, each, strict=False)
                ]
                lanes_b = [
                    [
                        np.tile(x[q, :n].astype(np.int64), len(c))
                        for q in range(step * size, (step + 1) * size)
                    ]
                    for x, size in zip(b, each, strict=False)
                ]
                codes, scales = (
                    zip(lanes_a, lanes_b, strict=True) if len(a) > 1 else ((lanes_a[0], lanes_b[0]), ((), ()))
                )
                flat = c.reshape(-1).astype(np.int64)
                result = executable.dot_add(self.spec, *codes, flat, *scales).result
                d[rows] = result.reshape(c.shape).astype(d.dtype)
