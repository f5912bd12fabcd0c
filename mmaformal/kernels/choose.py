"""Which kernel computes a `DotAdd`."""

from __future__ import annotations

from mmaformal.algorithms import DotAdd
from mmaformal.kernels import notice
from mmaformal.kernels.exact import EfdaKernel
from mmaformal.kernels.fused import FdaKernel, FdrdaKernel
from mmaformal.kernels.group import GdfsKernel
from mmaformal.kernels.ieee import GpsKernel, SfmaKernel, has_fma
from mmaformal.kernels.kernel import Kernel
from mmaformal.kernels.lowered import LoweredKernel
from mmaformal.kernels.plain import PlainKernel
from mmaformal.kernels.reordered import ReorderedKernel

notice.install()


def kernel_for(spec: DotAdd) -> Kernel:
    """The compiled kernel of `spec`, or the plain executable if its numbers are too wide for one."""
    if spec.product_order:
        return ReorderedKernel(spec, kernel_for(spec.in_order))
    found: Kernel | None = None
    match spec.parameters.algorithm:
        case "fda":
            found = FdaKernel.of(spec)
        case "fdrda" | "gfdrda":
            found = FdrdaKernel.of(spec)
        case "gdfs":
            found = GdfsKernel(spec)
        case "lowered":
            found = LoweredKernel.of(spec)
        case "efda":
            found = EfdaKernel.of(spec)
        case "gps":
            found = GpsKernel(spec)
        case "sfma" if has_fma():
            found = SfmaKernel.of(spec)
    return found or PlainKernel(spec)
