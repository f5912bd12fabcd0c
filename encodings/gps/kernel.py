"""The kernel of gps on the processor's own floating point, as that of sfma, subnormals flushed after each operation."""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import Lane, decode, quiet_nan, where
from mmaformal.encodings.executable.ieee import ieee_add
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps.executable import NAN, RHO, flush_input, flush_result, product
from mmaformal.formats import Format, fp32
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import driver, power_of_two, stack, vectorised
from mmaformal.kernels.float_rows import WIDTH, run_in_floats
from mmaformal.kernels.floats import EXPONENT, flush, single_bits
from mmaformal.kernels.kernel import CodeArray, Kernel, Plane, Planes, in_panels
from mmaformal.kernels.processor import check_processor
from mmaformal.spec import DotAdd

MOST = 8  #: products of a group


@driver
def flushed_values(fmt: Format, codes: Plane, values: Plane) -> None:
    """Operands as fp32, those below the format's least normal number +0."""
    vectorised()
    layout = fmt.layout
    for i in range(codes.size):
        x = decode(np.int64(codes[i]), layout)
        significand = where(x.significand < 1 << fmt.fraction_bits, 0, x.significand)
        magnitude = np.float64(significand) * power_of_two(x.exponent - fmt.fraction_bits, np.float64(0))
        magnitude = where(x.infinite, np.inf, where(x.nan, np.nan, magnitude))
        values[i] = where((x.sign == 1) & (magnitude != 0), -magnitude, magnitude)


def flushed_floats(fmt: Format, codes: CodeArray) -> Plane:
    """Return codes of any shape as `flushed_values` has them."""
    values = np.empty(codes.shape, np.float32)
    flushed_values(fmt, np.ascontiguousarray(codes).reshape(-1), values.reshape(-1))
    return values


@driver
def run_gps(
    fmt: Format, nan: Lane, G: int, k: int, a: Plane, b: Plane, d: Plane, start: int, stop: int
) -> None:
    """The instructions start … stop - 1, of k products each; NaNs become `nan`."""
    vectorised()
    m, n = d.shape
    width = b.shape[2]
    for p in range((n + width - 1) // width):
        w = min(width, n - p * width)
        for step in range(start, stop):
            for i in range(m):
                row = d[i, p * width : p * width + w]
                for j in range(w):
                    row[j] = np.float32(0) if single_bits(row[j]) & EXPONENT == 0 else row[j]
                for g in range(step * k, (step + 1) * k, G):
                    x0, x1 = a[i, g], a[i, g + 1]
                    if G == 2:
                        for j in range(w):
                            s = flush(flush(x0 * b[p, g, j]) + flush(x1 * b[p, g + 1, j]))
                            row[j] = flush(row[j] + s)
                        continue
                    x2, x3 = a[i, g + 2], a[i, g + 3]
                    if G == 4:
                        for j in range(w):
                            s = flush(flush(x0 * b[p, g, j]) + flush(x1 * b[p, g + 1, j]))
                            t = flush(flush(x2 * b[p, g + 2, j]) + flush(x3 * b[p, g + 3, j]))
                            row[j] = flush(row[j] + flush(s + t))
                        continue
                    x4, x5, x6, x7 = a[i, g + 4], a[i, g + 5], a[i, g + 6], a[i, g + 7]
                    for j in range(w):
                        s = flush(flush(x0 * b[p, g, j]) + flush(x1 * b[p, g + 1, j]))
                        t = flush(flush(x2 * b[p, g + 2, j]) + flush(x3 * b[p, g + 3, j]))
                        u = flush(flush(x4 * b[p, g + 4, j]) + flush(x5 * b[p, g + 5, j]))
                        v = flush(flush(x6 * b[p, g + 6, j]) + flush(x7 * b[p, g + 7, j]))
                        row[j] = flush(row[j] + flush(flush(s + t) + flush(u + v)))
                for j in range(w):
                    row[j] = row[j] if row[j] == row[j] else nan


@driver
def run_gps_rows(nan: Lane, G: int, a: Plane, b: Plane, d: Plane) -> None:
    """d of numbers (K, rows), in groups of G products; NaNs become `nan`."""
    vectorised()
    level = stack(np.float32, MOST * WIDTH)
    for start in range(0, d.size, WIDTH):
        row = d[start : start + WIDTH]
        w = row.size
        for j in range(w):
            row[j] = np.float32(0) if single_bits(row[j]) & EXPONENT == 0 else row[j]
        for first in range(0, a.shape[0], G):
            for k in range(first, first + G):
                x, y, to = a[k, start : start + w], b[k, start : start + w], level[(k - first) * WIDTH :]
                for j in range(w):
                    to[j] = flush(x[j] * y[j])
            n = G
            while n > 1:
                n >>= 1
                for k in range(n):
                    to, x, y = level[k * WIDTH :], level[2 * k * WIDTH :], level[(2 * k + 1) * WIDTH :]
                    for j in range(w):
                        to[j] = flush(x[j] + y[j])
            for j in range(w):
                row[j] = flush(row[j] + level[j])
        for j in range(w):
            row[j] = row[j] if row[j] == row[j] else nan


@step_of("gps")
def step(algorithm: Algorithm, on: RowStep, scales: Scales, a: Plane, b: Plane, code: Lane) -> Lane:
    """All groups."""
    of, own, room = on.of, on.own, on.room
    G = own[0]
    level, code = room[0], flush_input(code)
    for first in range(0, a.size, G):
        for k in range(G):
            level[k] = product(of, np.int64(a[first + k]), np.int64(b[first + k])).result
        n = G
        while n > 1:
            n >>= 1
            for k in range(n):
                level[k] = flush_result(ieee_add(level[2 * k], level[2 * k + 1], RHO, NAN).result)
        code = flush_result(ieee_add(code, level[0], RHO, NAN).result)
    return code


class GpsKernel(Kernel):
    """gps; G is 2, 4 or 8 (`encodings.gps.Gps`)."""

    bytes_per_element = 4
    description = "gps: the processor's float32 multiplication and addition, subnormals flushed after each"

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (flushed_floats(self.spec.a_format, codes),)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (flushed_floats(self.spec.b_format, in_panels(codes)),)

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        check_processor()
        parameters = self.spec.parameters_as(Gps)
        nan = np.array(quiet_nan(fp32), fp32.word).view(np.float32)[()]
        run_gps(fp32, nan, parameters.G, self.spec.k, a[0], b[0], d.view(np.float32), start, stop)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        a, b = (np.ascontiguousarray(codes.T) for codes in (rows.a, rows.b))
        left, right = flushed_floats(spec.a_format, a), flushed_floats(spec.b_format, b)
        run_in_floats(spec, rows, left, right, run_gps_rows, spec.parameters_as(Gps).G)

    @staticmethod
    def stage_rows(spec: DotAdd, rows: Batch) -> None:
        chain("gps", spec, rows, None, spec.k, spec.parameters_as(Gps).G)


KERNEL = GpsKernel
