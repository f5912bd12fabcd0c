"""residues, exact sums of integers by remainders (Ozaki's second scheme): its parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.encodings.sfma import Sfma
from mmaformal.formats import Specials, fp32, fp64
from mmaformal.limits import significant
from mmaformal.rounding import Conversion, Rounding
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node

#: A product of two remainders of a byte is at most 2^14, and so many of them a sum of int32.
PRODUCT_BITS, SUM_BITS = 14, 31
#: The bits of a sum that is put together again: three parts of 40 bits, without those for a sign and a carry.
WHOLE_BITS = 118


@dataclass(frozen=True, repr=False)
class Residues(Parameters):
    """residues, integers multiplied by their remainders (semantics §3; Ozaki, Uchino and Imamura, Ozaki Scheme II).

    All a of a step have an exponent in common, and all b: each is cut toward zero to an integer below 2^bits, its
    *word*.  Of each modulus, words are replaced by their remainders next to zero, which an int8 holds; a unit for int8
    multiplies and adds these, in int32.  The remainders of the sums give the one integer from −⌊P/2⌋ on that has them,
    P being the product of the moduli (Chinese remainder theorem).  It is scaled back, rounded with ρ, and added to c
    with ρ.
    """

    products: int  #: of one step
    moduli: tuple[int, ...]
    bits: int  #: of a word
    rho: Conversion

    algorithm: ClassVar[str] = "residues"
    loss: ClassVar[LossModel] = LossModel.PROGRAM
    summary: ClassVar[str] = "sums of integers by their remainders, of several moduli, in int8 and int32"
    meanings: ClassVar[Mapping[str, str]] = {
        "products": "products of one step, whose factors have an exponent in common",
        "moduli": "coprime numbers; of each the remainders are multiplied and added",
        "bits": "bits of a word, the integer that a factor is cut to",
        "rho": "how the sum is rounded, and its addition to c",
    }
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(
            0 < self.products << PRODUCT_BITS < 1 << SUM_BITS,
            f"1 to {((1 << SUM_BITS) - 1) >> PRODUCT_BITS} products, whose sums int32 holds, not {self.products}",
        )
        self.needs(
            all(2 <= p <= 256 for p in self.moduli), "moduli from 2 to 256, whose remainders int8 holds"
        )
        self.needs(len(self.moduli) > 0, "a modulus at least")
        self.needs(
            math.lcm(*self.moduli) == self.whole, f"moduli without a common divisor, not {self.moduli}"
        )
        self.needs(self.whole < 1 << WHOLE_BITS, f"moduli whose product is below 2^{WHOLE_BITS}")
        nearest = self.rho.rounding is Rounding.RNE and self.rho.signed_zero
        self.needs(
            nearest and self.rho.fraction_bits == self.rho.format.fraction_bits,
            f"a ρ to nearest that keeps all of its format and the sign of zero, not {self.rho}",
        )

    @property
    def step_products(self) -> int:
        return self.products

    @property
    def whole(self) -> int:
        """Returns P, the product of the moduli."""
        return math.prod(self.moduli)

    @property
    def offset(self) -> int:
        """Returns ⌊P/2⌋: sums from −⌊P/2⌋ to P − 1 − ⌊P/2⌋ are told from one another."""
        return self.whole // 2

    @property
    def most(self) -> int:
        """Returns the largest magnitude of a sum of words."""
        return int(self.products * ((1 << self.bits) - 1) ** 2)

    @property
    def addition(self) -> DotAdd:
        """Returns the fma of 1 and the sum, by which it is added to c."""
        fmt = self.rho.format
        return DotAdd(1, fmt, fmt, fmt, fmt, Sfma(self.rho))

    @property
    def suffices(self) -> bool:
        """Whether the moduli tell all sums of words from one another."""
        return self.most < self.whole - self.offset

    def check(self, spec: DotAdd) -> None:
        self.needs(
            spec.c_format == spec.d_format == self.rho.format and self.rho.format in (fp32, fp64),
            f"c and d of fp32, or of fp64, as ρ is, not {spec.types}",
        )
        for fmt in (spec.a_format, spec.b_format):
            self.needs(
                fmt.specials in (Specials.IEEE, Specials.NONE), f"a and b of IEEE 754's kind, not {fmt}"
            )
            self.needs(
                1 <= self.bits <= fmt.fraction_bits + 1,
                f"words of 1 to {fmt.fraction_bits + 1} bits, which {fmt} has, not {self.bits}",
            )

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"holds the exact sum of words of {self.bits} bits, the largest factors' leading ones, by "
            f"{len(self.moduli)} remainders, and rounds it once to {significant(spec.d_format)}"
        )

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        return Node((before, Node(tuple(places))))
