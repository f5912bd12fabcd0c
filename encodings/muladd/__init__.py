"""muladd, multiplier and adder apart: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.limits import check_products, factors, significant
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class Muladd(Parameters):
    """muladd, multiplier and adder apart (semantics §3; TensorGauge §IV-B, "Adder/multiplier").

    `d = c`, then `d = ρ(d + φ(a_k·b_k))` for k = 0 … K−1, φ being `product`: each product is rounded, and each sum.
    Subnormals are kept, specials and the signs of zeros as IEEE 754, but for a φ or ρ without signed zeros.
    """

    product: Conversion  #: φ, of products
    rho: Conversion

    algorithm: ClassVar[str] = "muladd"
    is_design: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.PRODUCTS
    meanings: ClassVar[Mapping[str, str]] = {"product": "how each product is rounded, before it is added"}
    summary: ClassVar[str] = "multiply, then add: each product rounded, and each sum, in order"
    step_products = 1

    @property
    def product_rounding(self) -> Conversion:
        return self.product

    def check(self, spec: DotAdd) -> None:
        one = spec.c_format == spec.d_format == self.rho.format == self.product.format
        self.needs(one, f"c, d, products and ρ of one type, not {spec.types} and {self.product.format}")
        self.needs(self.rho.format.storage_bits <= 32, f"sums of 16 or 32 bits, not {self.rho.format}")
        check_products(self, spec)

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"rounds twice for every product: that to {self.product.fraction_bits} fractional bits, then their sum to "
            f"{significant(spec.d_format)}"
        )

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]]:
        return "mul_add", {"k": spec.k, **factors(spec), "product": self.product, "rho": self.rho}

    def ieee_name(self, spec: DotAdd) -> str:
        ieee = {self.product.name, self.rho.name} == {f"IEEE-{spec.d_format.name.upper()}"}
        return f"IEEE multiplication and addition in {spec.d_format}" if ieee else ""
