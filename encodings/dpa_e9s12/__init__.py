"""dpa_e9s12, the dot product-add of E9S12 halves: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from mmaformal.formats import bf16, fp16, fp32
from mmaformal.limits import own_bits
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node

#: of an E9S12 exponent
BIAS = 139


@dataclass(frozen=True, repr=False)
class DpaE9s12(Parameters):
    """dpa_e9s12, dot product-add of E9S12 halves (semantics §11), of Desrentes, Dupont de Dinechin and de Dinechin.

    Per step, `d = ρ(c + φ(Σ_N a_k·b_k))`.  fp16 and bf16 factors become one E9S12 number each, fp32 factors two, so
    that their product is four.  φ: the E9S12 products, in two's complement, are shifted right to the largest exponent,
    rounded down, and added in `accumulator_bits`, which include the sign and what carries need.  c is added to that sum
    exactly.  A sum of exactly zero is −0 (if ρ keeps its sign) where all products and c are.
    """

    N: int  #: products of a step, of the given format; K > N is a chain of steps
    #: bits of the accumulator, L of the paper and in digests, which records have
    accumulator_bits: int = field(metadata={"digest": "L"})
    rho: Conversion
    detects_zeros: bool = True  #: whether E9S12 products that are zero are left out of the largest exponent

    algorithm: ClassVar[str] = "dpa_e9s12"
    loss: ClassVar[LossModel] = LossModel.HALVES
    summary: ClassVar[str] = (
        "dot product-add of E9S12 halves: products aligned in the accumulator's bits (down), c added exactly"
    )
    meanings: ClassVar[Mapping[str, str]] = {
        "N": "products of one step; of fp32 each is four of E9S12",
        "accumulator_bits": "bits of the accumulator, its sign and carries included",
        "detects_zeros": "whether the exponents of zero products do not count",
    }
    renamed: ClassVar[Mapping[str, str]] = {"L": "accumulator_bits"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.N >= 1, f"N ≥ 1 products per step, not {self.N}")
        self.needs(
            self.accumulator_bits <= 85,
            f"accumulator_bits ≤ 85 (the executable's limbs hold 112 bits), not {self.accumulator_bits}",
        )

    @property
    def step_products(self) -> int:
        return self.N

    def check(self, spec: DotAdd) -> None:
        one = spec.a_format == spec.b_format and spec.a_format in (fp16, bf16, fp32)
        self.needs(one, f"a and b of fp16, bf16 or fp32, not {spec.types}")
        self.needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        least = 25 + self.carries(spec)
        self.needs(
            least <= self.accumulator_bits,
            f"accumulator_bits ≥ {least}, which hold the largest products, not {self.accumulator_bits}",
        )

    def summands(self, spec: DotAdd) -> int:
        """E9S12 products of a step."""
        return 4 * self.N if spec.a_format == fp32 else self.N

    def carries(self, spec: DotAdd) -> int:
        """Bits of the accumulator above those that one product needs."""
        return (self.summands(spec) - 1).bit_length()

    def shorter(self, spec: DotAdd) -> tuple[DotAdd, tuple[int, ...]] | None:
        if self.N == 1:
            return None
        less = replace(self, N=self.N - 1)
        bits = self.accumulator_bits - self.carries(spec) + less.carries(spec)
        return self._one_less(spec, self.N, N=less.N, accumulator_bits=bits)

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"has {self.accumulator_bits} bits: {self.kept_places(spec)} fractional bits below the largest exponent of "
            f"an E9S12 product, rounded down ({own_bits(spec.d_format)}); c is added to their sum exactly"
        )

    def kept_places(self, spec: DotAdd) -> int:
        return self.accumulator_bits - 3 - self.carries(spec)

    def loses_no_product(self, spec: DotAdd) -> bool:
        low = spec.a_format.min_exponent - spec.a_format.fraction_bits
        return self.kept_places(spec) >= 2 * (spec.a_format.max_exponent - low)

    def zero_exponent(self, spec: DotAdd) -> int:
        """Return that of a product 0·0: the least there is, if zeros are detected; c, added exactly, has none."""
        return -2 * BIAS if self.detects_zeros else spec.a_format.min_exponent + spec.b_format.min_exponent

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        """Return one sum where nothing is lost of the products before c meets them."""
        one = self.N == 1 or self.loses_no_product(spec)
        return Node((before, *places)) if one else Node((before, Node(tuple(places))))
