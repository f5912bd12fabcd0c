"""The kernel of wfma on the processor's own fused multiply-add, the factors converted to float32."""

from __future__ import annotations

import numpy as np

from mmaformal.algorithms import DotAdd, Rounding, Wfma
from mmaformal.formats import Format, fp16
from mmaformal.kernels.ieee import SfmaKernel, has_fma
from mmaformal.kernels.kernel import Codes, Planes, in_panels


class WfmaKernel(SfmaKernel):
    """wfma, of fp16 or bf16 onto fp32."""

    algorithms = ("wfma",)

    def __init__(self, spec: DotAdd) -> None:
        super().__init__(spec)
        self.description = "wfma: factors as float32, and the processor's float32 fused multiply-add"

    @classmethod
    def of(cls, spec: DotAdd) -> WfmaKernel | None:
        """None unless the processor has fma and rounds as ρ does."""
        parameters = spec.parameters
        assert isinstance(parameters, Wfma)
        rho = parameters.rho
        full = rho.fraction_bits == rho.format.fraction_bits and rho.signed_zero
        return cls(spec) if rho.rounding is Rounding.RNE and full and has_fma() else None

    def rows(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (_widened(np.ascontiguousarray(codes), self.spec.a_format),)

    def columns(self, codes: Codes, scales: Codes | None = None) -> Planes:
        return (_widened(in_panels(codes), self.spec.b_format),)


def _widened(codes: Codes, fmt: Format) -> Codes:
    """fp16 or bf16 codes as float32."""
    if fmt == fp16:
        return codes.view(np.float16).astype(np.float32)
    return (codes.astype(np.uint32) << 16).view(np.float32)
