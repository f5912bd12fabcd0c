"""The kernel of sfma on the processor's own floating point, which is IEEE 754 as its is.

fp32 and fp64 operations of the processor are correctly rounded, to nearest even, with subnormals; `check_processor`
makes sure at run time that nobody has switched that off in this thread (a library that flushes subnormals, say), and
`has_fma` that there is a fused multiply-add.  What differs from the executable is a NaN's payload and sign, which
never influence anything but another NaN's: they are made the model's one NaN at the end of a run.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mmaformal.encodings.executable.blocks import Lane, quiet_nan
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma.kernel.halves import HalvesKernel
from mmaformal.formats import Format, fp16, fp32, fp64
from mmaformal.kernels import staged
from mmaformal.kernels.batch import Batch
from mmaformal.kernels.compiled import driver, fma, vectorised
from mmaformal.kernels.float_rows import chain_of_fma, floats_of, run_in_floats
from mmaformal.kernels.kernel import BLOCK, CodeArray, Kernel, Plane, Planes, in_panels
from mmaformal.kernels.processor import check_processor, has_fma
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd


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

    stage_rows = staticmethod(staged.run_rows)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        if (kind := _float(spec)) is None:
            staged.run_rows(spec, rows)
        else:
            a, b = (floats_of(codes, kind) for codes in (rows.a, rows.b))
            run_in_floats(spec, rows, a, b, chain_of_fma)


@lru_cache(maxsize=256)
def _float(spec: DotAdd) -> type[np.floating] | None:
    """Return the type of the processor's numbers in which rows are made, if there is one."""
    kernel = SfmaKernel.of(spec)
    return kernel.float if isinstance(kernel, SfmaKernel) else None


KERNEL = SfmaKernel
