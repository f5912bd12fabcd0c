"""gfdrda, the grouped fdrda: its parameters."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.encodings.fdrda import Fdrda
from mmaformal.limits import product_bound
from mmaformal.spec import DotAdd, LossModel
from mmaformal.summation import Node, groups


@dataclass(frozen=True, repr=False)
class Gfdrda(Fdrda):
    """gfdrda, grouped fdrda (semantics §3; MMA-Sim §IV-H): as fdrda, with two changes.

    Step 2 is done for the products of even index and for those of odd index, each group aligned to its own
    largest exponent; the two sums are aligned to the larger one, e_dot, with F fractional bits rounded with
    `cut`, and added.  In step 3, c becomes 0 if `e_c < e_max − c_reach`.
    """

    c_reach: int = 25

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 2, f"L ≥ 2 products per step, even and odd ones, not {self.L}")
        self.needs(abs(self.c_reach) <= 4096, f"−4096 ≤ c_reach ≤ 4096, not {self.c_reach}")

    algorithm: ClassVar[str] = "gfdrda"
    loss: ClassVar[LossModel] = LossModel.ROUND_DOWN
    summary: ClassVar[str] = "grouped fdrda: even and odd products aligned apart, a c far below dropped"
    _largest: ClassVar[str] = "largest product of its group"

    def class_of(self, k: int) -> Hashable:
        return k // self.L, k % 2

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        return self._one_less(spec, self.L, L=self.L - 1) if self.L > 2 else None

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        return [product_bound(spec, self.F)] * -(-self.L // 2)

    @property
    def groups(self) -> int:
        return 2

    @property
    def reach(self) -> int:
        return self.c_reach

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        return Node((before, Node(tuple(groups([places[0::2], places[1::2]])), rounded=False)))
