"""fda, the fused dot-add: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.limits import (
    aligned,
    check_cut,
    check_exponent,
    check_products,
    cut_text,
    factors,
    most_places,
    own_bits,
    product_bound,
    scale_arguments,
    widest,
    zero,
)
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class Fda(Parameters):
    """fda, the fused dot-add (semantics §3; MMA-Sim §IV-C, D).

    Per step, L products and c are aligned to the largest exponent, cut to F fractional bits toward zero,
    summed exactly, and converted with ρ.  With `cut` RO the last bit kept is sticky: set, if anything was cut off
    (TensorGauge, Fig. 2).  With block scales (ue8m0, one pair for each `scale_block`
    products) the exponents of the scales are added to the product's; a NaN scale makes the result NaN.
    """

    F: int  #: fractional bits kept at the alignment
    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    e_zero: int | None  #: exponent of a term that is exactly zero; None: that of its fields (paper-v1)
    cut: Rounding = Rounding.RZ  #: of the aligned magnitudes: RZ, or RO

    algorithm: ClassVar[str] = "fda"
    saturates: ClassVar[bool] = True
    rounds_randomly: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.TERMS
    aligns: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {"cut": "how aligned magnitudes are cut to F bits"}
    summary: ClassVar[str] = (
        "fused dot-add: align all terms to F fractional bits (toward zero), sum exactly, convert once"
    )
    nan_is_canonical = True  # MMA-Sim §IV-C step 1
    factors_commute = True
    takes_scales: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        check_cut(self, self.cut)
        most = most_places(self.L)
        self.needs(most >= 1, f"fewer products per step, in 64-bit lanes, than L = {self.L}")
        what = f"1 ≤ F ≤ {most} for L = {self.L} (a sum is one of the executable's 64-bit lanes)"
        self.needs(1 <= self.F <= most, f"{what}, not F = {self.F}")
        check_exponent(self, self.e_zero)

    def check(self, spec: DotAdd) -> None:
        check_products(self, spec)
        if spec.scale_format is not None:
            self.needs(
                not spec.scale_format.has_zero, f"scales that are powers of two, not {spec.scale_format}"
            )

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        c = spec.c_format
        products = [product_bound(spec, self.F, self.cut)] * self.L
        return [*products, aligned(widest(c), c.fraction_bits, self.F, self.cut)]

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        if self.L == 1 or (spec.scale_block and spec.scale_block % self.L):  # scale blocks are no whole steps
            return None
        return self._one_less(spec, self.L, L=self.L - 1)

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {self.F} fractional bits below the largest term of a step, {cut_text(self.cut)}: of all {self.L} "
            f"products and c, what is under 2^(e − {self.F}) is cut off, e being the largest exponent "
            f"({own_bits(spec.d_format)})"
        )

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]]:
        own = {
            "k": self.L,
            "frac_bits": self.F,
            "c": spec.c_format,
            "rho": self.rho,
            "cut": self.cut.name,
            "chain": spec.k // self.L,
        }
        return "fda", {**own, **factors(spec), **zero(self.e_zero), **scale_arguments(spec)}
