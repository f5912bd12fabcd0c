"""acc_e9s12, the looped accumulator of E9S12 products: its parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from mmaformal.encodings.dpa_e9s12 import BIAS
from mmaformal.formats import bf16, fp16, fp32
from mmaformal.limits import own_bits
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node


@dataclass(frozen=True, repr=False)
class AccE9s12(Parameters):
    """acc_e9s12, the variant of dpa_e9s12 with a looped accumulator (semantics §3; Desrentes et al. §IV-D).

    c is cut in two E9S12 numbers, which the first pass adds as products with 1.  Each pass of N products shifts what
    is accumulated, too, to the largest exponent, rounded down; after the last one, ρ rounds what there is, once.
    """

    D: int  #: products in all
    N: int  #: products of a pass, of the given format
    #: bits of the accumulator, its sign and the carries of all passes included; L in digests, which records have
    accumulator_bits: int = field(metadata={"digest": "L"})
    rho: Conversion

    algorithm: ClassVar[str] = "acc_e9s12"
    loss: ClassVar[LossModel] = LossModel.PASSES
    summary: ClassVar[str] = "looped accumulator of E9S12 products: c is a product, rounded down as they are"
    meanings: ClassVar[Mapping[str, str]] = {
        "D": "products in all, before the accumulator is rounded",
        "N": "products of one pass; of fp32 each is four of E9S12",
        "accumulator_bits": "bits of the accumulator, its sign and carries included",
    }
    renamed: ClassVar[Mapping[str, str]] = {"L": "accumulator_bits"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.N >= 1 and self.D % self.N == 0, f"D a multiple of N ≥ 1, not {self.D} and {self.N}")
        self.needs(self.accumulator_bits <= 85, f"accumulator_bits ≤ 85, not {self.accumulator_bits}")

    @property
    def step_products(self) -> int:
        return self.D

    def class_of(self, k: int) -> Hashable:
        """The products of a pass."""
        return k // self.N

    def check(self, spec: DotAdd) -> None:
        one = spec.a_format == spec.b_format and spec.a_format in (fp16, bf16, fp32)
        self.needs(one, f"a and b of fp16, bf16 or fp32, not {spec.types}")
        self.needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
        least = 25 + self.carries(spec)
        self.needs(
            least <= self.accumulator_bits,
            f"accumulator_bits ≥ {least}, which hold the largest products, not {self.accumulator_bits}",
        )

    def carries(self, spec: DotAdd) -> int:
        """Bits of the accumulator above those that one product needs, c's two among them."""
        return ((4 * self.D if spec.a_format == fp32 else self.D) + 1).bit_length()

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"has {self.accumulator_bits} bits, {self.kept_places(spec)} fractional bits below a pass's largest "
            f"exponent, c's and its own among them, rounded down ({own_bits(spec.d_format)})"
        )

    def kept_places(self, spec: DotAdd) -> int:
        return self.accumulator_bits - 3 - self.carries(spec)

    def loses_no_product(self, spec: DotAdd) -> bool:
        low = spec.a_format.min_exponent - spec.a_format.fraction_bits
        return self.kept_places(spec) >= 2 * (spec.a_format.max_exponent - low)

    def zero_exponent(self, spec: DotAdd) -> int:
        return -2 * BIAS

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        """Return passes, c in the first, nothing rounded between them; one sum where nothing is lost."""
        if self.loses_no_product(spec):
            return Node((before, *places))
        for start in range(0, len(places), self.N):
            before = Node((before, *places[start : start + self.N]))
        assert isinstance(before, Node)
        return before
