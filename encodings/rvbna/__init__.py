"""rvbna, the pseudo-code of RISC-V's bulk-normalised dot product as it is printed: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from mmaformal.formats import Format, Specials, fp32
from mmaformal.limits import check_products, significant
from mmaformal.rounding import RO_FP32, Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node

#: The expressions of the printed text that are wrong, in its order, and what each is for.
EXPRESSIONS = {
    1: "jamMask: which bits of the normalised sum make its last bit odd",
    2: "denormalizedSig: how far a subnormal result is shifted",
    3: "discardedMask: which bits of a subnormal result make its last bit odd",
}


@dataclass(frozen=True, repr=False)
class Rvbna(Parameters):
    """rvbna, RISC-V's bulk-normalised dot product by its pseudo-code (semantics §11; RISC-V ISA, RVBNA, 260dd933).

    Per step, the n products are aligned to the largest reference exponent, to odd, and added; the sum is normalised and
    rounded as the text says it, and c is added, to odd.  `corrected` lists which of the text's `EXPRESSIONS` are read
    as they were meant; the others are as they are printed.  With `ieee` operands are of IEEE 754's encodings, as the
    text has them: e4m3's largest exponent field is that of infinities and NaNs.
    """

    n: int  #: products of one sum, a power of two
    corrected: tuple[int, ...] = ()
    ieee: bool = False  #: whether the codes of every format are read as IEEE 754's encoding has them

    algorithm: ClassVar[str] = "rvbna"
    loss: ClassVar[LossModel] = LossModel.INNER
    meanings: ClassVar[Mapping[str, str]] = {
        "n": "products of one sum",
        "corrected": "which wrong expressions of the text are read as they were meant",
        "ieee": "whether codes are read as IEEE 754's encoding has them",
    }
    summary: ClassVar[str] = (
        "RISC-V's pseudo-code: products aligned to odd, summed, rounded as printed, then c added"
    )
    nan_is_canonical = True
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(
            1 <= self.n <= 64 and self.n & (self.n - 1) == 0,
            f"n a power of two, 1 to 64, not {self.n}",
        )
        known = tuple(sorted(set(self.corrected))) == self.corrected and set(self.corrected) <= set(
            EXPRESSIONS
        )
        self.needs(known, f"numbers of {sorted(EXPRESSIONS)} in order, not {self.corrected}")

    @property
    def step_products(self) -> int:
        return self.n

    @property
    def guard_bits(self) -> int:
        """Returns g, and o, the overflow bits: log2 n both."""
        return self.n.bit_length() - 1

    @property
    def width(self) -> int:
        """Returns the bits of the sum's magnitude, g + q + 1 + o."""
        return 2 * self.guard_bits + fp32.fraction_bits + 2

    @property
    def last_rounding(self) -> Conversion:
        return RO_FP32

    def read(self, fmt: Format) -> Format:
        """Returns the format that codes of an operand are read as."""
        return replace(fmt, name=f"{fmt} by IEEE", specials=Specials.IEEE, dtype=None) if self.ieee else fmt

    def check(self, spec: DotAdd) -> None:
        self.needs(spec.c_format == spec.d_format == fp32, f"c and d of fp32, not {spec.types}")
        check_products(self, spec)
        bits = spec.a_format.fraction_bits + spec.b_format.fraction_bits + 2
        self.needs(
            bits <= fp32.fraction_bits + 2 + self.guard_bits, f"products of at most 25 bits, not {bits}"
        )

    def zero_exponent(self, spec: DotAdd) -> int:
        """Returns the exponent of a product with a zero factor: the text's reference exponent 0."""
        return -spec.a_format.bias - spec.b_format.bias

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"keeps {fp32.fraction_bits + self.guard_bits} fractional bits below the largest product, the last one "
            f"sticky, and cuts their sum to {significant(fp32)}; c is added in the end, to odd"
        )

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        return Node((before, Node(tuple(places))))
