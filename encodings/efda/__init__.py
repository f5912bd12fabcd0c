"""efda, the exact fused dot-add: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.display import counted
from mmaformal.formats import fp16, fp32
from mmaformal.limits import significant
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class Efda(Parameters):
    """efda, exact fused dot-add (semantics §3): per step, `d = ρ(c + Σ a_k·b_k)`, the exact sum rounded once.

    Subnormals are kept, specials as IEEE 754; a sum of exactly zero is +0, or, with `minus_zero`, −0 where all its
    terms are.
    """

    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    minus_zero: bool = False  #: whether a sum of zeros that are all −0 is −0

    algorithm: ClassVar[str] = "efda"
    loss: ClassVar[LossModel] = LossModel.NOTHING
    rounds_correctly: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {"minus_zero": "whether a sum of zeros that are all −0 is −0"}
    summary: ClassVar[str] = "exact fused dot-add: the exact sum of L products and c, rounded once"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")

    @property
    def factors_commute(self) -> bool:
        return True

    @property
    def step_products(self) -> int:
        return self.L

    def check(self, spec: DotAdd) -> None:
        one = spec.c_format == spec.d_format == self.rho.format and spec.d_format in (fp16, fp32)
        self.needs(one, f"c, d and ρ of fp32, or of fp16, not {spec.types} and {self.rho}")
        self.needs(
            self.L <= 2 or self._sum_bits(spec) <= 112,
            f"L ≤ 2, or a sum of products and c of at most 112 bits, not L = {self.L} and {self._sum_bits(spec)} bits",
        )
        product_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
        self.needs(product_bits <= 24, f"products of at most 24 bits, not {product_bits}")

    def _sum_bits(self, spec: DotAdd) -> int:
        """Bits of the fixed point that holds every sum of L products, the places of c's that still count below it, a
        carry and a sign."""
        a, b = spec.a_format, spec.b_format
        top = a.max_exponent + b.max_exponent + 2 + (self.L - 1).bit_length()
        low = a.min_exponent - a.fraction_bits + b.min_exponent - b.fraction_bits
        return top - low + max(spec.c_format.fraction_bits, self.rho.fraction_bits) + 5

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        return self._one_less(spec, self.L, L=self.L - 1) if self.L > 1 else None

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps every bit: the sum of {counted(self.L, 'product')} and c is exact until it is rounded, once, "
            f"to {significant(spec.d_format)}"
        )
