"""sorted_fda, three terms of which the two largest are added first: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.limits import check_products, factors
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class SortedFda(Parameters):
    """sorted_fda, fused dot-add of three sorted terms, a datapath (semantics §3).

    Two products and c, normalised and sorted by exponent.  The first two are added with F fractional bits, the
    last one sticky; that sum, normalised if `between`, and the third one with G, the last one sticky; and that is
    rounded once with ρ.  Subnormals are kept; specials and signs of zeros as IEEE 754.
    """

    F: int  #: fractional bits of the sum of the two largest terms
    G: int  #: fractional bits of the sum of all
    rho: Conversion
    between: bool = True  #: whether the first sum is normalised before the smallest term is added
    nan: NanRule = NanRule.ANY

    algorithm: ClassVar[str] = "sorted_fda"
    is_design: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.OPERATIONS
    meanings: ClassVar[Mapping[str, str]] = {
        "F": "fractional bits of the sum of the two largest terms, the last one sticky",
        "G": "fractional bits of the sum of all three, the last one sticky",
        "between": "whether the first sum is normalised before the smallest term is added",
        "nan": "which NaN a step gives",
    }
    summary: ClassVar[str] = (
        "three-term dot-add: the two largest terms first, then the smallest, convert once"
    )
    step_products = 2
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        least = self.F + self.between
        self.needs(least <= self.G <= 58, f"{least} ≤ G ≤ 58 where F = {self.F}, not {self.G}")
        self.needs(self.nan in (NanRule.ANY, NanRule.DEFAULT), f"one NaN, not {self.nan.value}")

    def places(self, spec: DotAdd) -> int:
        """Return the fractional bits of a normalised term, which hold every product and c."""
        return max(spec.a_format.fraction_bits + spec.b_format.fraction_bits + 1, spec.c_format.fraction_bits)

    def lowest(self, spec: DotAdd) -> int:
        """Return the exponent of a zero, which every other term is above."""
        a, b, c = spec.a_format, spec.b_format, spec.c_format
        product = a.min_exponent - a.fraction_bits + b.min_exponent - b.fraction_bits
        return min(product, c.min_exponent - c.fraction_bits) - 1

    def check(self, spec: DotAdd) -> None:
        check_products(self, spec)
        self.needs(self.rho.saturation is None, f"a ρ that overflows to infinity, not {self.rho}")
        least = self.places(spec)
        self.needs(least <= self.F, f"sums that hold a term, F ≥ {least}, not {self.F}")

    def keeps(self, spec: DotAdd) -> str:
        kept = f"keeps {self.F} fractional bits of the sum of its two largest terms, {self.G} of that with the smallest"
        return f"{kept}, each with a sticky last one"

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        own = {"frac_bits": self.F, "last_bits": self.G, **factors(spec), "c": spec.c_format}
        more = {"between": int(self.between), "nan": self.nan.name, "chain": spec.k // 2}
        return "two_largest", {**own, "rho": self.rho, **more}
