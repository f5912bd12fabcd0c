"""The kernels of muladd: the processor's float32 product and sum where those are IEEE's, else the stages, compiled."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import Lane, ieee_add, quiet_nan
from mmaformal.encodings.muladd import Muladd
from mmaformal.formats import Format, fp32
from mmaformal.kernels.compiled import SOURCES, Sources, driver, vectorised
from mmaformal.kernels.ieee import BLOCK, check_processor
from mmaformal.kernels.kernel import Codes, Kernel, Plane, Planes, in_panels
from mmaformal.kernels.rows.given import CONVERSION, OWN, conversion, formats, numbers
from mmaformal.kernels.rows.muladd import rounded_product
from mmaformal.kernels.wfma import widened
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd


@driver
def run_floats(nan: Lane, a: Plane, b: Plane, d: Plane, start: int, stop: int) -> None:
    """d = d + a_k·b_k for k = start … stop - 1, on floats, two roundings each; NaNs become `nan`."""
    vectorised()
    m, n = d.shape
    width = b.shape[2]
    for p in range((n + width - 1) // width):
        w = min(width, n - p * width)
        for begin in range(start, stop, BLOCK):
            end = min(begin + BLOCK, stop)
            for i in range(m):
                row = d[i, p * width : p * width + w]
                k = begin
                while k + 4 <= end:
                    x0, x1, x2, x3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
                    for j in range(w):
                        y = row[j] + x0 * b[p, k, j]
                        y = y + x1 * b[p, k + 1, j]
                        y = y + x2 * b[p, k + 2, j]
                        row[j] = y + x3 * b[p, k + 3, j]
                    k += 4
                while k < end:
                    x0 = a[i, k]
                    for j in range(w):
                        row[j] = row[j] + x0 * b[p, k, j]
                    k += 1
                if end == stop:
                    for j in range(w):
                        row[j] = row[j] if row[j] == row[j] else nan


@driver
def run_stages(
    sources: Sources, given: Plane, nan: int, a: Plane, b: Plane, d: Plane, start: int, stop: int
) -> None:
    """The same on codes, by the stages of the executable, whose parameters are arguments."""
    of = formats(given)
    pi, rho = conversion(given, OWN, of.d_format), conversion(given, OWN + CONVERSION, of.d_format)
    m, n = d.shape
    width = b.shape[2]
    for i in range(m):
        for j in range(n):
            code = np.int64(d[i, j])
            for k in range(start, stop):
                x, y = np.int64(a[i, k]), np.int64(b[j // width, k, j % width])
                code = ieee_add(code, rounded_product(of, pi, x, y), rho, nan).result
            d[i, j] = code


class MuladdKernel(Kernel):
    """muladd."""

    algorithms = ("muladd",)
    bytes_per_element = 4

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        p = spec.parameters
        assert isinstance(p, Muladd)
        self.parameters = p
        self.floats = p.product == p.rho == IEEE_FP32
        self.description = (
            "muladd: the processor's float32 product and sum"
            if self.floats
            else "muladd: the stages of the executable encoding, compiled"
        )

    def _plane(self, codes: Codes, fmt: Format) -> Codes:
        return widened(codes, fmt) if self.floats else codes

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (self._plane(np.ascontiguousarray(codes), self.spec.a_format),)

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (self._plane(in_panels(codes), self.spec.b_format),)

    def run(self, a: Planes, b: Planes, d: Codes, start: int, stop: int) -> None:
        p, k = self.parameters, self.spec.k
        if self.floats:
            check_processor()
            nan = np.array(quiet_nan(fp32), fp32.word).view(np.float32)[()]
            run_floats(nan, a[0], b[0], d.view(np.float32), start * k, stop * k)
            return
        given = numbers(self.spec, p.product, p.rho)
        run_stages(SOURCES, given, quiet_nan(p.rho.format), a[0], b[0], d, start * k, stop * k)
