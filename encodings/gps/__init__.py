"""gps, the group pairwise sum: its parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.formats import fp32
from mmaformal.limits import significant
from mmaformal.rounding import IEEE_FP32
from mmaformal.spec import DotAdd, Flushing, LossModel, Parameters
from mmaformal.summation import Node


@dataclass(frozen=True, repr=False)
class Gps(Parameters):
    """gps, group pairwise sum (semantics §3; MMA-Sim §IV-B).

    Each operation is IEEE fp32, to nearest even, its subnormal result flushed to zero of the same sign.
    1. A subnormal a, b or c, and −0, becomes +0.  2. Products.  3. Each G consecutive products are summed
    pairwise: `p0+p1` for G = 2, `(p0+p1)+(p2+p3)` for G = 4.  4. `d = c`, then `d = d + group`, in order.
    """

    G: int

    algorithm: ClassVar[str] = "gps"
    loss: ClassVar[LossModel] = LossModel.OPERATIONS
    meanings: ClassVar[Mapping[str, str]] = {
        "G": "products that are summed in pairs before the sum so far is added"
    }
    summary: ClassVar[str] = "group pairwise sum: fp32 products and sums, each rounded, subnormals flushed"
    factors_commute = True
    last_rounding = IEEE_FP32

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.G in (2, 4, 8), f"G of 2, 4 or 8, not {self.G}")

    @property
    def step_products(self) -> int:
        return self.G

    def check(self, spec: DotAdd) -> None:
        self.needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        for x in (spec.a_format, spec.b_format):
            holds = fp32.min_exponent <= x.min_exponent and x.max_exponent <= fp32.max_exponent
            self.needs(x.fraction_bits <= 10 and holds, f"a, b that fp32 holds, not {x}")

    def class_of(self, k: int) -> Hashable:
        """The two addends of one IEEE addition."""
        return k // 2

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"has no wide accumulator: every product and every sum is rounded to {significant(spec.d_format)}"
        )

    @property
    def flushing(self) -> Flushing:
        """Products, their sums in pairs, and that with c."""
        return Flushing(self.G.bit_length() - 1, 2 * self.G)

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        parts: list[Node | int] = list(places)
        while len(parts) > 1:
            parts = [Node((parts[i], parts[i + 1])) for i in range(0, len(parts), 2)]
        return Node((before, parts[0]))
