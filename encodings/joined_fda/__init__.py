"""joined_fda, the fused dot-add that joins what alignment lost to its sum: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.limits import check_exponent, check_products, factors, most_places, zero
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class JoinedFda(Parameters):
    """joined_fda, fused dot-add with one sticky bit for all terms, a datapath (semantics §3).

    As fda, L products and c are aligned to the largest exponent, cut to F fractional bits toward zero and added
    exactly.  Then a bit below the magnitude of the sum is set if anything was cut off of any term, and that is
    converted with ρ.
    """

    F: int  #: fractional bits kept at the alignment
    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    e_zero: int | None  #: exponent of a term that is exactly zero; None: that of its fields

    algorithm: ClassVar[str] = "joined_fda"
    is_design: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.TERMS
    meanings: ClassVar[Mapping[str, str]] = {}
    summary: ClassVar[str] = (
        "fused dot-add: align, cut and sum as fda, then join one bit for all that was cut off, convert once"
    )
    nan_is_canonical = True
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        most = most_places(self.L) - 1
        self.needs(1 <= self.F <= most, f"1 ≤ F ≤ {most} for L = {self.L}, not F = {self.F}")
        check_exponent(self, self.e_zero)

    def check(self, spec: DotAdd) -> None:
        check_products(self, spec)
        self.needs(self.rho.saturation is None, f"a ρ that overflows to infinity, not {self.rho}")

    def keeps(self, spec: DotAdd) -> str:
        kept = f"keeps {self.F} fractional bits below the largest term of a step, toward zero"
        return f"{kept}, and one bit for all that is cut off"

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        own = {
            "k": self.L,
            "frac_bits": self.F,
            "c": spec.c_format,
            "rho": self.rho,
            "chain": spec.k // self.L,
        }
        return "joined", {**own, **factors(spec), **zero(self.e_zero)}
