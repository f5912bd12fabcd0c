"""integer_dot, the dot product of integers: its parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.display import counted
from mmaformal.formats import Format
from mmaformal.limits import factors
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class IntegerDot(Parameters):
    """integer_dot, dot product of integers, a datapath (semantics §3).

    Per step, `d = c + Σ a_k·b_k` of L products, exact; then, where d has no such number, the nearest one if it
    `clamps`, else what is the same modulo 2^bits.  With `inner`, each `group` products are added first, and clamped to
    so many bits in two's complement.
    """

    L: int  #: products per step; K > L is a chain of steps
    clamps: bool = False
    group: int = 0  #: products that are added and clamped before the others are; 0: none
    inner: int = 0  #: bits that they are clamped to

    algorithm: ClassVar[str] = "integer_dot"
    loss: ClassVar[LossModel] = LossModel.OVERFLOW
    is_integer: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {
        "clamps": "whether a sum beyond the largest number becomes that; else it wraps around",
        "group": "products that are added, and clamped, before the others are",
        "inner": "bits that these sums are clamped to",
    }
    summary: ClassVar[str] = "dot product of integers: exact, then clamped or wrapped around"
    nan_is_canonical = True
    factors_commute = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 1, f"L ≥ 1 products per step, not {self.L}")
        both = (self.group > 0) == (self.inner > 0)
        self.needs(both, "the bits of groups where there are groups, and groups where there are bits")
        whole = not self.group or (self.group > 0 and self.L % self.group == 0)
        self.needs(whole, f"whole groups in a step of {self.L}, not of {self.group}")

    def class_of(self, k: int) -> Hashable:
        """Those of a group, or of a step; where nothing is clamped, all."""
        if self.group:
            return k // self.group
        return k // self.L if self.clamps else 0

    @property
    def last_rounding(self) -> Conversion:
        raise ValueError(f"{self.algorithm} rounds nothing")

    def product_bits(self, spec: DotAdd) -> int:
        """Return the bits of a product in two's complement."""
        return sum(value_bits(fmt) for fmt in (spec.a_format, spec.b_format))

    def sum_bits(self, spec: DotAdd) -> int:
        """Return the bits of the sum of a step in two's complement."""
        return max(self.product_bits(spec), spec.c_format.storage_bits) + self.L.bit_length()

    def check(self, spec: DotAdd) -> None:
        formats = spec.a_format, spec.b_format, spec.c_format, spec.d_format
        self.needs(all(fmt.is_integer for fmt in formats), f"integers, not {spec.types}")
        self.needs(spec.d_format.signed, f"a signed d, not {spec.d_format}")
        self.needs(self.sum_bits(spec) <= 62, f"sums of at most 62 bits, not {self.sum_bits(spec)}")

    def keeps(self, spec: DotAdd) -> str:
        clamped = (
            f", the sums of {counted(self.group, 'product')} clamped to {self.inner} bits"
            if self.group
            else ""
        )
        end = "clamped" if self.clamps else "wrapped around"
        return f"keeps every bit of an integer{clamped}; d is {end}"

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        own = {"k": self.L, **factors(spec), "c": spec.c_format, "clamp": int(self.clamps)}
        if spec.c_format != spec.d_format:
            return None
        return "integer", own | {"group": self.group, "inner": self.inner, "chain": spec.k // self.L}


def value_bits(fmt: Format) -> int:
    """Return the bits of a format's integers in two's complement."""
    return fmt.storage_bits + (not fmt.signed)
