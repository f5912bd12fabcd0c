"""For the tests of kernels: products bit for bit, within proved bounds, tolerances that are theorems, inputs that tell.

    from mmaformal.testing import assert_matches, assert_within, tolerance

    def test_gemm():
        out = my_gemm(A, B)                                                  # NumPy, torch, or anything with DLPack
        assert_matches(out, A, B, instruction="h100 HMMA.16816.F32")         # bit for bit
        assert_within(out, A, B, instruction="h100 HMMA.16816.F32")          # within the proved bound of each element
        torch.testing.assert_close(out.double(), A.double() @ B.double(), **tolerance("h100 fp16", A=A, B=B))

`inputs` makes diverse inputs, `strategies.rows` draws them for Hypothesis.  docs/testing.md shows an hour with it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmaformal.testing import strategies
    from mmaformal.testing.drawn_rows import DrawnRows, inputs
    from mmaformal.testing.matches import assert_matches
    from mmaformal.testing.tolerances import Tolerance, tolerance
    from mmaformal.testing.within import Within, assert_within

__all__ = [
    "DrawnRows",
    "Tolerance",
    "Within",
    "assert_matches",
    "assert_within",
    "inputs",
    "strategies",
    "tolerance",
]

_LAZY = {
    "DrawnRows": "drawn_rows",
    "Tolerance": "tolerances",
    "Within": "within",
    "assert_matches": "matches",
    "assert_within": "within",
    "inputs": "drawn_rows",
    "tolerance": "tolerances",
}


def __getattr__(name: str) -> object:
    if name == "strategies":
        return import_module("mmaformal.testing.strategies")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"mmaformal.testing.{_LAZY[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
