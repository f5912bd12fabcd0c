"""Kernels: the executable encoding compiled, a `DotAdd` over a whole block of outputs at a time.

`kernel_for(spec)` gives the kernel of a `DotAdd`: `kernel` in the folder of its algorithm, where it has one.  What they
have in common is here.  Importing this package compiles nothing and does not import numba; the first kernel does, and
keeps what it compiled on disk.
"""

from __future__ import annotations

from functools import lru_cache

from mmaformal.kernels.kernel import Kernel
from mmaformal.spec import DotAdd

__all__ = ["Kernel", "kernel_for"]


@lru_cache(maxsize=256)
def kernel_for(spec: DotAdd) -> Kernel:
    """The kernel that computes `spec`: a compiled one, or the plain executable where none can hold its numbers."""
    from mmaformal.kernels import choose

    return choose.choose_kernel(spec)
