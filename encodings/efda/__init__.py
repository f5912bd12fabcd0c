"""efda, the exact fused dot-add: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.display import counted
from mmaformal.limits import factors, significant
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd, LossModel, Parameters

LIMB = 48  #: bits of a limb of a long sum
LONGEST = 768  #: bits of the longest sum


@dataclass(frozen=True, repr=False)
class Efda(Parameters):
    """efda, exact fused dot-add (semantics §3): per step, `d = ρ(c + Σ a_k·b_k)`, the exact sum rounded once.

    Subnormals are kept, specials as IEEE 754; a sum of exactly zero is +0, or, with `minus_zero`, −0 where all its
    terms are.
    """

    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    minus_zero: bool = False  #: whether a sum of zeros that are all −0 is −0
    nan: NanRule = NanRule.ANY
    flush_inputs: bool = False  #: whether a subnormal operand counts as zero of its sign

    algorithm: ClassVar[str] = "efda"
    loss: ClassVar[LossModel] = LossModel.NOTHING
    rounds_correctly: ClassVar[bool] = True
    gives_largest: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {
        "minus_zero": "whether a sum of zeros that are all −0 is −0",
        "nan": "which NaN a step gives",
        "flush_inputs": "whether a subnormal operand counts as zero",
    }
    summary: ClassVar[str] = "exact fused dot-add: the exact sum of L products and c, rounded once"
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        self.needs(self.nan in (NanRule.ANY, NanRule.DEFAULT), f"one NaN, not {self.nan.value}")

    def check(self, spec: DotAdd) -> None:
        c, rho = spec.c_format, self.rho
        self.needs(rho.saturation is None or rho.stays, f"a ρ of a format of IEEE 754's, not {rho}")
        narrow = max(c.fraction_bits, rho.fraction_bits) <= 23
        self.needs(narrow, f"c and ρ of at most 23 fraction bits, not {spec.types}")
        product_bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
        self.needs(product_bits <= 48, f"products of at most 48 bits, not {product_bits}")
        bits = LIMB * self.limbs(spec)
        self.needs(
            bits <= LONGEST and self.L <= 64,
            f"at most 64 products whose sum has at most {LONGEST} bits, not {bits}",
        )

    def is_long(self, spec: DotAdd) -> bool:
        """Whether the sum of products and c is held in a row of limbs: wide, of more than two products or long ones."""
        if spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2 > 24:
            return True
        return self.L > 2 and self._sum_bits(spec) > 112

    def last_place(self, spec: DotAdd) -> int:
        """The exponent of the last place that a product or c has."""
        a, b, c = spec.a_format, spec.b_format, spec.c_format
        product = a.min_exponent - a.fraction_bits + b.min_exponent - b.fraction_bits
        return min(product, c.min_exponent - c.fraction_bits)

    def limbs(self, spec: DotAdd) -> int:
        """How many limbs of `LIMB` bits hold the sum of products and c, from its last place."""
        products = spec.a_format.max_exponent + spec.b_format.max_exponent + 2
        top = max(products, spec.c_format.max_exponent + 1) + self.L.bit_length()
        return max(2, -(-(top - self.last_place(spec)) // LIMB))

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

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        if not self.minus_zero:
            return None
        own = {"k": self.L, **factors(spec), "c": spec.c_format, "rho": self.rho, "nan": self.nan.name}
        return "exact", own | {"flush_inputs": int(self.flush_inputs), "chain": spec.k // self.L}
