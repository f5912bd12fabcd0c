"""Kernels of sfma and gps on the processor's own floating point, which is IEEE 754 as theirs is.

fp32 and fp64 operations of the processor are correctly rounded, to nearest even, with subnormals; `check_processor`
makes sure at run time that nobody has switched that off in this thread (a library that flushes subnormals, say), and
`has_fma` that there is a fused multiply-add.  What differs from the executable is a NaN's payload and sign, which
never influence anything but another NaN's: they are made the model's one NaN at the end of a run.
"""

from __future__ import annotations

import numpy as np

from mmaformal.encodings.executable.blocks import Lane, decode, quiet_nan, where
from mmaformal.encodings.executable.ieee import ieee_add
from mmaformal.encodings.gps import Gps
from mmaformal.encodings.gps.executable import NAN, RHO, flush_input, flush_result, product
from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Format, fp16, fp32, fp64
from mmaformal.kernels import staged
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.chain import Algorithm, RowStep, Scales, chain, step_of
from mmaformal.kernels.compiled import driver, fma, inlined, power_of_two, vectorised
from mmaformal.kernels.floats import single_bits, single_of
from mmaformal.kernels.halves import HalvesKernel
from mmaformal.kernels.kernel import CodeArray, Kernel, Plane, Planes, in_panels
from mmaformal.kernels.processor import check_processor, has_fma
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd

BLOCK = 64  #: products taken at a time, so that a panel of B (64 KiB in fp32) stays in the second-level cache


# ---- sfma --------------------------------------------------------------------------------------------------


@driver
def run_sfma(fmt: Format, nan: Lane, a: Plane, b: Plane, d: Plane, start: int, stop: int) -> None:
    """d = fma(a_k, b_k, d) for k = start … stop - 1, on floats; NaNs become `nan`."""
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
                        y = fma(x0, b[p, k, j], row[j])
                        y = fma(x1, b[p, k + 1, j], y)
                        y = fma(x2, b[p, k + 2, j], y)
                        row[j] = fma(x3, b[p, k + 3, j], y)
                    k += 4
                while k < end:
                    x0 = a[i, k]
                    for j in range(w):
                        row[j] = fma(x0, b[p, k, j], row[j])
                    k += 1
                if end == stop:
                    for j in range(w):
                        row[j] = row[j] if row[j] == row[j] else nan


class SfmaKernel(Kernel):
    """sfma, in fp32 or fp64; in fp16 it is `halves`."""

    algorithms = ("sfma",)
    run_rows = staticmethod(staged.run_rows)

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        self.float = np.float64 if spec.d_format == fp64 else np.float32
        self.bytes_per_element = np.dtype(self.float).itemsize
        self.description = f"sfma: the processor's {np.dtype(self.float).name} fused multiply-add"

    @classmethod
    def of(cls, spec: DotAdd) -> Kernel | None:
        """None unless the processor has fma and rounds as ρ does (nearest even, in full, a zero with its sign), and
        all NaNs are one."""
        p = spec.parameters_as(Sfma)
        if spec.d_format == fp16:
            return HalvesKernel.of(spec)
        full = p.rho.fraction_bits == p.rho.format.fraction_bits and p.rho.signed_zero
        ieee = p.rho.rounding is Rounding.RNE and full and spec.d_format in (fp32, fp64)
        return cls(spec) if ieee and not p.nan.order and has_fma() else None

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (np.ascontiguousarray(codes).view(self.float),)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (in_panels(codes).view(self.float),)

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        check_processor()
        fmt, k = self.spec.d_format, self.spec.k
        nan = np.array(quiet_nan(fmt), fmt.word).view(self.float)[()]
        run_sfma(fmt, nan, a[0], b[0], d.view(self.float), start * k, stop * k)


# ---- gps ---------------------------------------------------------------------------------------------------


_EXPONENT, _SIGN = np.int32(0x7F800000), np.int32(-(1 << 31))


@inlined
def flush(x: Lane) -> Lane:
    """A subnormal becomes zero of the same sign."""
    bits = single_bits(x)
    return single_of(np.int32(bits & _SIGN) if bits & _EXPONENT == 0 else bits)


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
                    row[j] = np.float32(0) if single_bits(row[j]) & _EXPONENT == 0 else row[j]
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

    algorithms = ("gps",)
    bytes_per_element = 4
    description = "gps: the processor's float32 multiplication and addition, subnormals flushed after each"

    def _values(self, fmt: Format, codes: CodeArray) -> Planes:
        values = np.empty(codes.shape, np.float32)
        flushed_values(fmt, np.ascontiguousarray(codes).reshape(-1), values.reshape(-1))
        return (values,)

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self._values(self.spec.a_format, codes)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return self._values(self.spec.b_format, in_panels(codes))

    def run(self, a: Planes, b: Planes, d: CodeArray, start: int, stop: int) -> None:
        check_processor()
        parameters = self.spec.parameters_as(Gps)
        nan = np.array(quiet_nan(fp32), fp32.word).view(np.float32)[()]
        run_gps(fp32, nan, parameters.G, self.spec.k, a[0], b[0], d.view(np.float32), start, stop)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        p = spec.parameters_as(Gps)
        chain("gps", spec, rows, None, spec.k, p.G)
