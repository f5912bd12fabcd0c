"""The kernel of muladd: the processor's float32 product and sum where those are IEEE's, else the stages, compiled."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import (
    Lane,
    classify_product,
    decode,
    multiply,
    quiet_nan,
    resolve_special,
)
from mmaformal.encodings.executable.ieee import ieee_add
from mmaformal.encodings.executable.stages import code_of_product
from mmaformal.encodings.muladd import Muladd
from mmaformal.encodings.wfma.kernel import widened
from mmaformal.formats import fp32
from mmaformal.kernels.batch import Batch, converted
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import driver, vectorised
from mmaformal.kernels.float_rows import chain_of_products, floats_of, run_in_floats
from mmaformal.kernels.given import conversion
from mmaformal.kernels.kernel import BLOCK, CodeArray, Kernel, Plane, Planes, in_panels
from mmaformal.kernels.processor import check_processor
from mmaformal.limits import holds_narrower
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


@step_of("muladd")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    of, rho, own = on.of, on.rho, on.own
    x, y = decode(np.int64(a[0]), of.a_format.layout), decode(np.int64(b[0]), of.b_format.layout)
    places = of.a_format.fraction_bits + of.b_format.fraction_bits
    special, nan, pi = resolve_special(classify_product(x, y)), own[0], conversion(own, 1, of.d_format)
    product = code_of_product(multiply(x, y), places, pi, special, nan).result
    return ieee_add(code, product, rho, nan).result


class MuladdKernel(Kernel):
    """muladd, of IEEE's float32 products and sums."""

    bytes_per_element = 4
    description = "muladd: the processor's float32 product and sum"

    @classmethod
    def of(cls, spec: DotAdd) -> MuladdKernel | None:
        """None where products or sums are rounded otherwise, or fp32 does not hold all factors."""
        p = spec.parameters_as(Muladd)
        held = all(holds_narrower(fp32, fmt) for fmt in (spec.a_format, spec.b_format))
        return cls(spec) if p.product == p.rho == IEEE_FP32 and held else None

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (widened(np.ascontiguousarray(codes), self.spec.a_format),)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (widened(in_panels(codes), self.spec.b_format),)

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        check_processor()
        nan, k = np.array(quiet_nan(fp32), fp32.word).view(np.float32)[()], self.spec.k
        run_floats(nan, a[0], b[0], d.view(np.float32), start * k, stop * k)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        if MuladdKernel.of(spec) is None:
            MuladdKernel.stage_rows(spec, rows)
        else:
            a, b = (floats_of(codes, np.float32) for codes in converted(rows, spec, fp32, fp32)[:2])
            run_in_floats(spec, rows, a, b, chain_of_products)

    @staticmethod
    def stage_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Muladd)
        chain("muladd", spec, rows, p.rho, 1, quiet_nan(p.rho.format), p.product)


KERNEL = MuladdKernel
