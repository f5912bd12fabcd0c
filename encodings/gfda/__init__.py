"""gfda, the grouped fused dot-add: its parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.limits import (
    LANE,
    check_cut,
    check_exponent,
    check_products,
    cut_text,
    factors,
    own_bits,
    zero,
)
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node, groups


@dataclass(frozen=True, repr=False)
class Gfda(Parameters):
    """gfda, grouped fused dot-add (semantics §3; TensorGauge §IV-B, GFDA), of any formats, without block scales.

    Per step, each G consecutive products are aligned to the largest exponent of their group, cut to W fractional bits
    and added exactly; these sums, with the exponents of their groups, and c are aligned to the largest exponent, cut to
    F fractional bits, added exactly, and converted with ρ.  `cut` as in fda.  Where W loses nothing of a product
    (`exact`), groups are summed exactly.
    """

    F: int
    G: int  #: products per group
    L: int  #: products per step; K > L is a chain of steps
    W: int  #: fractional bits kept at the alignment of a group
    rho: Conversion
    e_zero: int | None
    cut: Rounding = Rounding.RZ

    algorithm: ClassVar[str] = "gfda"
    is_design: ClassVar[bool] = True
    saturates: ClassVar[bool] = True
    rounds_randomly: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.TERMS_AND_GROUPS
    aligns: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {
        "G": "products of one group; their sum is one term",
        "W": "fractional bits that a product keeps once aligned to the largest of its group",
        "cut": "how aligned magnitudes are cut to W and F bits",
    }
    summary: ClassVar[str] = (
        "grouped fused dot-add: groups of products summed with W bits, then as fda with c"
    )
    nan_is_canonical = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(
            1 <= self.G <= 64 and self.L >= 1 and self.L % self.G == 0,
            f"L = {self.L} a multiple of G = {self.G}, 1 to 64",
        )
        self.needs(1 <= self.F <= self.W <= 59, f"1 ≤ F = {self.F} ≤ W = {self.W} ≤ 59")
        check_cut(self, self.cut)
        check_exponent(self, self.e_zero)
        most = min(LANE // (4 << self.W), (LANE - (2 << self.F)) // (4 << self.F) // self.L * self.G)
        self.needs(most >= self.G, f"G ≤ {most}, where W = {self.W} (64-bit lanes), not {self.G}")

    def check(self, spec: DotAdd) -> None:
        check_products(self, spec)

    def class_of(self, k: int) -> Hashable:
        """The products of a group."""
        return k // self.G

    def exact(self, spec: DotAdd) -> bool:
        """Whether no product loses a bit in its group."""
        a, b = spec.a_format, spec.b_format
        spread = a.max_exponent + b.max_exponent - a.min_exponent - b.min_exponent
        return self.G == 1 or spread + a.fraction_bits + b.fraction_bits <= self.W

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {self.W} fractional bits below the largest product of a group, and {self.F} of the sums of groups "
            f"and of c below the largest of these, {cut_text(self.cut)} ({own_bits(spec.d_format)})"
        )

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        parts = [places[i : i + self.G] for i in range(0, len(places), self.G)]
        return Node((before, *(places if len(parts) == 1 else groups(parts))))

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        if spec.k != self.L or spec.c_format != spec.d_format:
            return None
        own = {
            "k": self.L,
            "group": self.G,
            "frac_bits": self.F,
            "rho": self.rho,
            "cut": self.cut.name,
            "group_bits": self.W,
        }
        return "gfda", {**own, **factors(spec), **zero(self.e_zero)}
