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


def kernel_for(spec: DotAdd) -> Kernel:
    """The compiled kernel of `spec`; where there is none, or numbers are too wide for it, its rows, compiled or not."""
    if spec.product_order:
        return ReorderedKernel(spec, kernel_for(spec.in_order))
    saturates = spec.d_format.one_nan is not None  # results of P3109, which no kernel has
    kernel = None if saturates else found().get(spec.parameters.algorithm)
    if spec.is_signed:
        return SignedKernel(spec, kernel or RowsKernel)
    if kernel is None:
        return PlainKernel(spec)
    by_rows = RowsKernel(spec, kernel) if kernel.compiles_rows(spec) else PlainKernel(spec)
    return kernel.of(spec) or by_rows
