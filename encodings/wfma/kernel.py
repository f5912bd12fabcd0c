"""The kernel of wfma on the processor's own fused multiply-add, the factors converted to float32."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mmaformal.encodings.executable.ieee import convert_exactly
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.sfma.kernel import SfmaKernel
from mmaformal.encodings.wfma import Wfma
from mmaformal.formats import Format, bf16, fp16, fp32
from mmaformal.kernels.batch import Batch, converted
from mmaformal.kernels.kernel import CodeArray, Planes, in_panels
from mmaformal.kernels.processor import has_fma
from mmaformal.rounding import Rounding
from mmaformal.spec import DotAdd


class WfmaKernel(SfmaKernel):
    """wfma, of formats that fp32 holds."""

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        self.description = "wfma: factors as float32, and the processor's float32 fused multiply-add"

    @classmethod
    def of(cls, spec: DotAdd) -> WfmaKernel | None:
        """None unless the processor has fma and rounds as ρ does."""
        parameters = spec.parameters_as(Wfma)
        rho = parameters.rho
        full = rho.fraction_bits == rho.format.fraction_bits and rho.signed_zero
        return cls(spec) if rho.rounding is Rounding.RNE and full and has_fma() else None

    def rows(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (widened(np.ascontiguousarray(codes), self.spec.a_format),)

    def columns(self, codes: CodeArray, scales: CodeArray | None = None) -> Planes:
        return (widened(in_panels(codes), self.spec.b_format),)

    @staticmethod
    def run_rows(spec: DotAdd, rows: Batch) -> None:
        SfmaKernel.run_rows(*as_sfma(spec, rows))

    @staticmethod
    def stage_rows(spec: DotAdd, rows: Batch) -> None:
        SfmaKernel.stage_rows(*as_sfma(spec, rows))


def as_sfma(spec: DotAdd, rows: Batch) -> tuple[DotAdd, Batch]:
    """Return sfma, and the rows with factors converted to its format by tables."""
    rho = spec.parameters_as(Wfma).rho
    own = spec.replace(a_format=rho.format, b_format=rho.format, parameters=Sfma(rho))
    return own, converted(rows, spec, rho.format, rho.format)


def widened(codes: CodeArray, fmt: Format) -> CodeArray:
    """Codes as float32."""
    if fmt == fp32:
        return codes.view(np.float32)
    if fmt == fp16:
        return codes.view(np.float16).astype(np.float32)
    if fmt == bf16:
        return (codes.astype(np.uint32) << 16).view(np.float32)
    if fmt.storage_bits <= 16:
        return _table(fmt).take(codes)
    lanes: NDArray[np.int64] = convert_exactly(codes.astype(np.int64), fmt, fp32)
    return lanes.astype(np.uint32).view(np.float32)


@lru_cache(maxsize=64)
def _table(fmt: Format) -> NDArray[np.float32]:
    codes: NDArray[np.int64] = convert_exactly(np.arange(fmt.codes, dtype=np.int64), fmt, fp32)
    return codes.astype(np.uint32).view(np.float32)


KERNEL = WfmaKernel
