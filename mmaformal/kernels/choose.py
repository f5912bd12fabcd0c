"""Which kernel computes a `DotAdd`: `KERNEL` of the file, or folder, `kernel` in the folder of its algorithm."""

from __future__ import annotations

from mmaformal.encodings import part
from mmaformal.kernels import notice
from mmaformal.kernels.kernel import Kernel
from mmaformal.kernels.plain import PlainKernel, RowsKernel
from mmaformal.kernels.reordered import ReorderedKernel
from mmaformal.kernels.signed import SignedKernel
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd

notice.announce()


def compiled(spec: DotAdd) -> type[Kernel] | None:
    """Return the kernel of the algorithm; None if there is none, or of what no kernel does: results that saturate, as
    those of P3109's formats, or overflow to the largest number, and stochastic roundings."""
    rho = getattr(spec.parameters, "rho", None)
    other = isinstance(rho, Conversion) and (rho.saturates_ieee or rho.rounding.is_stochastic)
    if other or spec.d_format.one_nan is not None:
        return None
    module = part(spec.parameters.algorithm, "kernel")
    return None if module is None else module.KERNEL


def choose_kernel(spec: DotAdd) -> Kernel:
    """The compiled kernel of `spec`; where there is none, or numbers are too wide for it, its rows, compiled or not."""
    if spec.product_order:
        return ReorderedKernel(spec, choose_kernel(spec.in_order))
    kernel = compiled(spec)
    if spec.is_signed:
        return SignedKernel(spec, kernel or RowsKernel)
    if kernel is None:
        return PlainKernel(spec)
    by_rows = RowsKernel(spec, kernel) if kernel.compiles_rows(spec) else PlainKernel(spec)
    return kernel.of(spec) or by_rows
