"""Which kernel computes a `DotAdd`: that of a module here whose `algorithms` have its name."""

from __future__ import annotations

import pkgutil
from functools import lru_cache
from importlib import import_module

from mmaformal.kernels import notice
from mmaformal.kernels.kernel import Kernel
from mmaformal.kernels.plain import PlainKernel, RowsKernel
from mmaformal.kernels.reordered import ReorderedKernel
from mmaformal.kernels.signed import SignedKernel
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd

notice.install()


@lru_cache(maxsize=1)
def found() -> dict[str, type[Kernel]]:
    """The kernel of every algorithm that has one, by name."""
    package = import_module("mmaformal.kernels")
    modules = [
        import_module(f"{package.__name__}.{each.name}") for each in pkgutil.iter_modules(package.__path__)
    ]
    classes = [each for module in modules for each in vars(module).values() if isinstance(each, type)]
    return {name: each for each in classes if issubclass(each, Kernel) for name in each.algorithms}


def compiled(spec: DotAdd) -> type[Kernel] | None:
    """Return the kernel of the algorithm; None if there is none, or of what no kernel does: results that saturate, as
    those of P3109's formats, or overflow to the largest number, and stochastic roundings."""
    rho = getattr(spec.parameters, "rho", None)
    other = isinstance(rho, Conversion) and (rho.saturates_ieee or rho.rounding.is_stochastic)
    if other or spec.d_format.one_nan is not None:
        return None
    return found().get(spec.parameters.algorithm)


def kernel_for(spec: DotAdd) -> Kernel:
    """The compiled kernel of `spec`; where there is none, or numbers are too wide for it, its rows, compiled or not."""
    if spec.product_order:
        return ReorderedKernel(spec, kernel_for(spec.in_order))
    kernel = compiled(spec)
    if spec.is_signed:
        return SignedKernel(spec, kernel or RowsKernel)
    if kernel is None:
        return PlainKernel(spec)
    by_rows = RowsKernel(spec, kernel) if kernel.compiles_rows(spec) else PlainKernel(spec)
    return kernel.of(spec) or by_rows
