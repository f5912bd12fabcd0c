"""The kernel of a unit that takes its products in an order of its own: that of the same unit, given them so."""

from __future__ import annotations

import numpy as np

from mmaformal.kernels.kernel import CodeArray, Kernel, Planes
from mmaformal.spec import DotAdd


class ReorderedKernel(Kernel):
    """Operands in the order in which they are taken, then the kernel of `DotAdd.in_order`."""

    def __init__(self, spec: DotAdd, inner: Kernel) -> None:
        super().__init__(spec)
        self.inner, self.order = inner, np.array(spec.product_order)
        self.description = f"{inner.description}, products reordered"
        self.bytes_per_element, self.task = inner.bytes_per_element, inner.task

    def _reordered(self, codes: CodeArray, axis: int) -> CodeArray:
        places = (np.arange(0, codes.shape[axis], len(self.order))[:, None] + self.order).reshape(-1)
        taken: CodeArray = codes.take(places, axis)
        return taken

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self.inner.rows(self._reordered(codes, 1))

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self.inner.columns(self._reordered(codes, 0))

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        self.inner.run(a, b, d, start, stop)
