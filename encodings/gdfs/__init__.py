"""gdfs, group dot and fused sum: its parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.formats import e2m1
from mmaformal.limits import LANE, aligned, check_exponent, factors, own_bits, scale_arguments, widest, zero
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node, groups


@dataclass(frozen=True, repr=False)
class Gdfs(Parameters):
    """gdfs, group dot, fused sum (semantics §3; MMA-Sim §IV-E), on e2m1 with block scales.

    NaN if a scale or c is NaN, else c if c is ±∞.  Each G consecutive products are summed exactly, σ_g,
    and scaled, `σ_g·s_α·s_β · 2^(e_α+e_β)`, the exponent that of the scales' fields alone.  A group whose
    products are all zero, or that has a zero scale, takes the exponent e_zero; so does c = ±0, but not a
    group that only cancels.  The groups and c are aligned to F fractional bits (toward zero), summed
    exactly and converted with ρ.
    """

    F: int
    G: int  #: products per group
    L: int  #: products per step; K > L is a chain of steps
    rho: Conversion
    e_zero: int | None  #: None: the exponents of the fields (paper-v1)

    algorithm: ClassVar[str] = "gdfs"
    loss: ClassVar[LossModel] = LossModel.GROUPS
    meanings: ClassVar[Mapping[str, str]] = {"G": "products of one group; their exact sum is one term"}
    aligns: ClassVar[bool] = True
    summary: ClassVar[str] = "group dot, fused sum: exact sums of G scaled products, then as fda with c"
    nan_is_canonical = True  # MMA-Sim §IV-E step 1
    factors_commute = True
    takes_scales: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(
            1 <= self.G <= 64 and self.L >= 1 and self.L % self.G == 0,
            f"L = {self.L} a multiple of G = {self.G}, 1 to 64",
        )
        self.needs(8 <= self.F <= 40, f"8 ≤ F ≤ 40 (the executable's lanes have 64 bits), not {self.F}")
        check_exponent(self, self.e_zero)

    @property
    def group(self) -> int:
        return self.G

    def check(self, spec: DotAdd) -> None:
        self.needs(spec.a_format == spec.b_format == e2m1, f"e2m1 × e2m1, not {spec.types}")
        self.needs(spec.scale_format is not None, "block scales")
        self.needs(spec.scale_block % self.G == 0, f"scale blocks that are multiples of G = {self.G}")
        assert spec.scale_format is not None
        m = spec.scale_format.fraction_bits
        self.needs(
            2 + 2 * m <= self.F, f"F ≥ {2 + 2 * m}, so that nothing of a scaled group is below its places"
        )
        most = (LANE - (2 << self.F)) // (144 << self.F)  # 36·(2 − 2^-m)² < 144 for each product
        self.needs(most >= self.L, f"L ≤ {most}, where F = {self.F} (64-bit lanes), not {self.L}")

    def class_of(self, k: int) -> Hashable:
        """The products of an exact sum."""
        return k // self.G

    def sum_bounds(self, spec: DotAdd) -> list[int]:
        a, b, scale, c = spec.a_format, spec.b_format, spec.scale_format, spec.c_format
        assert scale is not None
        # A group is summed at one exponent: what counts are the largest numbers, not the largest significands.
        group = self.G * (widest(a) * widest(b) << a.max_exponent + b.max_exponent) * widest(scale) ** 2
        places = a.fraction_bits + b.fraction_bits + 2 * scale.fraction_bits
        groups = [aligned(group, places, self.F)] * (self.L // self.G)
        return [*groups, aligned(widest(c), c.fraction_bits, self.F)]

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        G = self.G - 1
        return self._one_less(spec, self.G, G=G, L=self.L // self.G * G) if G else None

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {self.F} fractional bits below the largest term; a term is the exact sum of {self.G} scaled "
            f"products, or c; lower bits are cut off, toward zero ({own_bits(spec.d_format)})"
        )

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        parts = [places[i : i + self.G] for i in range(0, len(places), self.G)]
        return Node((before, *(places if len(parts) == 1 else groups(parts))))

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        if spec.k != self.L or spec.c_format != spec.d_format:
            return None
        own = {"k": self.L, "group": self.G, "frac_bits": self.F, "rho": self.rho}
        return "gfda", {**own, **factors(spec), **zero(self.e_zero), **scale_arguments(spec)}
