"""oddsum, pairs rounded to odd: its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mmaformal.formats import bf16, fp32
from mmaformal.limits import significant
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd, Flushing, LossModel, Parameters
from mmaformal.summation import Node


@dataclass(frozen=True, repr=False)
class Oddsum(Parameters):
    """oddsum, pairs rounded to odd (semantics §10), of Arm's BFDOT and BFMMLA without extended bfloat16 arithmetic.

    Per step, `d = c ⊕ (a_0·b_0 ⊕ a_1·b_1)`; each product and each sum ⊕ is rounded with ρ.  A subnormal operand counts
    as zero of its sign, and so does a result that is tiny before rounding.  A NaN is 0x7FC00000.
    """

    rho: Conversion

    algorithm: ClassVar[str] = "oddsum"
    loss: ClassVar[LossModel] = LossModel.OPERATIONS
    summary: ClassVar[str] = "pairs rounded to odd: fp32 products, their sum, and c, subnormals flushed"
    nan_is_canonical = True  # Arm's manual: FPDefaultNaN
    factors_commute = True
    step_products = 2

    def check(self, spec: DotAdd) -> None:
        self.needs(spec.a_format == spec.b_format == bf16, f"a and b of bf16, not {spec.types}")
        self.needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        whole = self.rho.fraction_bits == fp32.fraction_bits and self.rho.signed_zero
        self.needs(whole, f"a ρ that keeps all of fp32, and the sign of zero, not {self.rho}")
        self.needs(
            self.rho.rounding in (Rounding.RO, Rounding.RZ),
            f"RO or RZ, which leave tiny what is tiny before rounding, not {self.rho}",
        )

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"has no wide accumulator: every product and every sum is cut to {significant(fp32)}, "
            f"{self.rho.rounding.value}"
        )

    @property
    def flushing(self) -> Flushing:
        return Flushing(1, 4)

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        return Node((before, Node(tuple(places))))
