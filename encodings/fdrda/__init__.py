"""fdrda, fused dot and round-down add: its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mmaformal.formats import fp32
from mmaformal.limits import LANE, check_products, own_bits, product_bound
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node, groups


@dataclass(frozen=True, repr=False)
class Fdrda(Parameters):
    """fdrda, fused dot, round-down add (semantics §3; MMA-Sim §IV-F).

    1. Specials as fda, but a product of exponent ≥ 128 (the sum of its factors', plus one if its
       significand is ≥ 2) counts as an infinity: together with those of the inputs and c, or, if
       `inputs_first`, only where there are none of those.
    2. The products are aligned to their largest exponent e_dot, c excluded, and zero products too if
       `skip_zero_products`; cut to F fractional bits toward zero; summed exactly.
    3. `e_max = max(e_dot, e_c)`, e_c of the fields even for c = ±0.  The sum is cut to `dot_bits`
       fractional bits at e_max, c to F, both rounded with `cut`, and they are added.
    4. That is normalised (exponent ≥ −126) and cut with `cut` to `sum_bits` fractional bits (None: not
       cut), then converted with ρ.
    """

    F: int
    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    dot_bits: int = 32
    sum_bits: int | None = 31  #: None: the sum is not cut
    skip_zero_products: bool = True
    cut: Rounding = Rounding.RD
    inputs_first: bool = (
        False  #: an infinite input or c is the result before products can overflow (paper-v1)
    )

    algorithm: ClassVar[str] = "fdrda"
    loss: ClassVar[LossModel] = LossModel.ROUND_DOWN
    aligns: ClassVar[bool] = True
    summary: ClassVar[str] = (
        "fused dot, round-down add: products summed as in fda, then c added, rounding down"
    )
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        self.needs(
            23 <= self.F <= self.dot_bits <= 40, f"23 ≤ F = {self.F} ≤ dot_bits = {self.dot_bits} ≤ 40"
        )
        self.needs(
            self.sum_bits is None or 24 <= self.sum_bits <= 40, f"24 ≤ sum_bits ≤ 40, not {self.sum_bits}"
        )
        self.needs(self.cut in (Rounding.RD, Rounding.RZ), f"cut RD or RZ, not {self.cut.name}")
        most = (LANE - (4 << self.dot_bits)) // (4 << self.dot_bits)
        self.needs(
            most >= self.L, f"L ≤ {most}, where dot_bits = {self.dot_bits} (64-bit lanes), not {self.L}"
        )

    def check(self, spec: DotAdd) -> None:
        self.needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        check_products(self, spec)

    summed: ClassVar[str] = "the exact sum of the products"
    _largest: ClassVar[str] = "largest product"

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        return [product_bound(spec, self.F)] * self.L

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        return self._one_less(spec, self.L, L=self.L - 1) if self.L > 1 else None

    @property
    def sum_places(self) -> int:
        return self.dot_bits

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {self.F} fractional bits of each product below the {self._largest}, cut toward zero; then, to add "
            f"c, {self.dot_bits} of their sum and {self.F} of c below the larger of the two, cut {self.cut.value} "
            f"({own_bits(spec.d_format)})"
        )

    @property
    def groups(self) -> int:
        """Return how many groups the products of a step form, each aligned to the largest of its own."""
        return 1

    @property
    def reach(self) -> int | None:
        """Return how far below the largest exponent c may be, before it is dropped; None where it never is."""
        return None

    def members(self) -> list[range]:
        """Return the products of each group of a step."""
        return [range(group, self.L, self.groups) for group in range(self.groups)]

    def zero_exponent(self, spec: DotAdd) -> int:
        c = spec.c_format.min_exponent
        return (
            c if self.skip_zero_products else max(spec.a_format.min_exponent + spec.b_format.min_exponent, c)
        )

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        return Node((before, *groups([places])))
