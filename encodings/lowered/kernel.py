"""The kernel of lowered PTX: operands converted, fda from zero, c added last by an IEEE addition."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mmaformal.encodings.executable.blocks import Lane, Special
from mmaformal.encodings.executable.ieee import convert_exactly, ieee_add
from mmaformal.encodings.fda.kernel import FdaKernel
from mmaformal.encodings.lowered import Lowered
from mmaformal.encodings.lowered.executable import nan_code
from mmaformal.formats import Format
from mmaformal.kernels.batch import Batch, converted
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import driver
from mmaformal.kernels.fused import fda_numbers, summed
from mmaformal.kernels.given import conversion
from mmaformal.kernels.kernel import CodeArray, Kernel, Plane, Planes
from mmaformal.kernels.products import multiply_all
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd


@driver
def add_codes(rho: Conversion, nan: int, partial: Plane, d: Plane) -> None:
    """d = partial + d, code by code."""
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] = ieee_add(np.int64(partial[i, j]), np.int64(d[i, j]), rho, nan).result


@lru_cache(maxsize=256)
def _inner(spec: DotAdd, p: Lowered) -> DotAdd:
    return p.inner_dot_add(spec)


@step_of("lowered")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own, room = on.of, on.rho, on.own, on.room
    F, e_zero, by_fields, nan, odd = own[0], own[1], own[2] != 0, own[3], own[4] != 0
    L, addition, partial = own[5], conversion(own, 6, of.d_format), np.int64(0)
    value, exponent, none = room[0, :L], room[1, :L], Special(False, False, False)
    for first in range(0, a.size, L):
        x, y = a[first : first + L], b[first : first + L]
        special = multiply_all(of.a_format, of.b_format, x, y, value, exponent)
        partial = summed(
            of, rho, F, e_zero, by_fields, nan, odd, special, none, value, exponent, x, y, partial
        )
    return ieee_add(partial, code, addition, nan).result


class LoweredKernel(Kernel):
    """lowered."""

    def __init__(self, spec: DotAdd, inner: FdaKernel) -> None:
        super().__init__(spec)
        parameters = spec.parameters_as(Lowered)
        self.parameters = parameters
        self.inner = inner
        self.bytes_per_element = inner.bytes_per_element
        self.description = f"lowered: {inner.description}"
        self.order = np.array(parameters.order)
        self.issues = spec.k // len(parameters.order)

    @classmethod
    def of(cls, spec: DotAdd) -> LoweredKernel | None:
        parameters = spec.parameters_as(Lowered)
        inner = FdaKernel.of(parameters.inner_dot_add(spec))
        small = spec.a_format.storage_bits <= 16 and spec.b_format.storage_bits <= 16
        return cls(spec, inner) if inner is not None and small else None

    def _converted(self, fmt: Format, codes: CodeArray, axis: int) -> CodeArray:
        order = (np.arange(0, codes.shape[axis], len(self.order))[:, None] + self.order).reshape(-1)
        taken: CodeArray = codes.take(order, axis)
        to = self.parameters.taken_as(fmt)
        if to == fmt:
            return taken
        table = convert_exactly(np.arange(fmt.codes, dtype=np.int64), fmt, to)
        converted: CodeArray = table.astype(to.word)[taken]
        return converted

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self.inner.rows(self._converted(self.spec.a_format, codes, 1))

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self.inner.columns(self._converted(self.spec.b_format, codes, 0))

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        addition, nan = self.parameters.addition, nan_code(self.spec, self.parameters)
        for issue in range(start * self.issues, stop * self.issues):
            partial = np.zeros_like(d)
            self.inner.run(a, b, partial, issue, issue + 1)
            add_codes(addition, nan, partial, d)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Lowered)
        inner, taken = _inner(spec, p), p.taken(spec.k)
        rows = converted(rows, spec, inner.a_format, inner.b_format)
        rows = rows._replace(a=rows.a.take(taken, 1), b=rows.b.take(taken, 1))
        F, e_zero, by_fields, _, odd = fda_numbers(spec, p)
        numbers = F, e_zero, by_fields, nan_code(spec, p), odd, p.L, p.addition
        chain("lowered", inner, rows, p.rho, len(p.order), *numbers)


KERNEL = LoweredKernel
