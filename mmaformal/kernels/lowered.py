"""The kernel of lowered PTX: operands converted, fda from zero, c added last by an IEEE addition."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import canonical_nan, convert_exactly, ieee_add
from mmaformal.encodings.lowered import Lowered
from mmaformal.formats import Format
from mmaformal.kernels.compiled import driver
from mmaformal.kernels.fused import FdaKernel
from mmaformal.kernels.kernel import Codes, Kernel, Plane, Planes
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


@driver
def add_codes(rho: Conversion, nan: int, partial: Plane, d: Plane) -> None:
    """d = partial + d, code by code."""
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] = ieee_add(np.int64(partial[i, j]), np.int64(d[i, j]), rho, nan).result


class LoweredKernel(Kernel):
    """lowered."""

    algorithms = ("lowered",)

    def __init__(self, spec: DotAdd, inner: FdaKernel) -> None:
        super().__init__(spec)
        parameters = spec.parameters
        assert isinstance(parameters, Lowered)
        self.parameters = parameters
        self.inner = inner
        self.bytes_per_element = inner.bytes_per_element
        self.description = f"lowered: {inner.description}"
        self.order = np.array(parameters.order)
        self.issues = spec.k // len(parameters.order)

    @classmethod
    def of(cls, spec: DotAdd) -> LoweredKernel | None:
        parameters = spec.parameters
        assert isinstance(parameters, Lowered)
        inner = FdaKernel.of(parameters.inner_dot_add(spec))
        small = spec.a_format.storage_bits <= 16 and spec.b_format.storage_bits <= 16
        return cls(spec, inner) if inner is not None and small else None

    def _converted(self, fmt: Format, codes: Codes, axis: int) -> Codes:
        order = (np.arange(0, codes.shape[axis], len(self.order))[:, None] + self.order).reshape(-1)
        taken: Codes = codes.take(order, axis)
        to = self.parameters.taken_as(fmt)
        if to == fmt:
            return taken
        table = convert_exactly(np.arange(fmt.codes, dtype=np.int64), fmt, to)
        converted: Codes = table.astype(to.word)[taken]
        return converted

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return self.inner.rows(self._converted(self.spec.a_format, codes, 1))

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return self.inner.columns(self._converted(self.spec.b_format, codes, 0))

    def run(self, a: Planes, b: Planes, d: Codes, start: int, stop: int) -> None:
        addition = self.parameters.addition
        for issue in range(start * self.issues, stop * self.issues):
            partial = np.zeros_like(d)
            self.inner.run(a, b, partial, issue, issue + 1)
            add_codes(addition, canonical_nan(self.spec.d_format), partial, d)
