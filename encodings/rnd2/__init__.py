"""rnd2, a pair of products rounded once, then added: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.formats import Specials
from mmaformal.limits import check_products, factors, significant
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd, LossModel, Parameters
from mmaformal.summation import Node


@dataclass(frozen=True, repr=False)
class Rnd2(Parameters):
    """rnd2, a pair of products rounded once, then added (semantics §11: POWER10's xvbf16ger2pp, SME's FMOPA).

    `d = c`, then `d = ρ(φ(a_k·b_k + a_{k+1}·b_{k+1}) + d)` for k = 0, 2 … K−2, φ being `pair`: the sum of two exact
    products is rounded once, and so is each sum.  Subnormals are kept; specials and the signs of zeros are those of
    IEEE 754, but for a φ or ρ without signed zeros.  With `negate_pair` the rounded pair's sign is changed before it is
    added, a zero's too, and no NaN's.

    A NaN is as the `NanRule` says, of three operations: product 1, whose NaN is the first of a_1 and b_1, or that of an
    invalid product; the fma of a_0 and b_0 onto it; and the sum of that and d, the pair's NaN first.
    """

    pair: Conversion  #: φ, of the sum of two products
    rho: Conversion
    nan: NanRule = NanRule.ANY
    negate_pair: bool = False

    algorithm: ClassVar[str] = "rnd2"
    loss: ClassVar[LossModel] = LossModel.PRODUCTS
    meanings: ClassVar[Mapping[str, str]] = {
        "pair": "how the exact sum of two products is rounded, before c is added",
        "nan": "which NaN an operation gives",
        "negate_pair": "whether the rounded sum of two products is subtracted",
    }
    summary: ClassVar[str] = "the exact sum of two products is rounded, then added to c and rounded again"
    step_products = 2

    @property
    def subtracts_products(self) -> bool:
        return self.negate_pair

    @property
    def factors_commute(self) -> bool:
        return not self.nan.order

    @property
    def first_nan(self) -> str:
        # Of one product's operands and c: c is added after the pair, whatever the rule.
        return "a, b, c" if self.nan.order else ""

    def zero_exponent(self, spec: DotAdd) -> int:
        """The exponent of a product that is zero: the least there is, so that it does not move the other one."""
        return spec.a_format.min_exponent + spec.b_format.min_exponent

    def frame(self, spec: DotAdd) -> int:
        """Fractional bits of the sum of a pair, the last one sticky, so that φ rounds it as the exact sum.

        The larger product may have one subnormal factor, whose leading zeros stay (were both subnormal, its exponent
        would be the least, and nothing would be cut off): `encodings.executable.blocks.add` says how many bits that
        asks for.  One more than those makes its lanes' ranges provable for fp16.
        """
        a, b = spec.a_format.fraction_bits, spec.b_format.fraction_bits
        zeros = max(a, b)
        return max(self.pair.fraction_bits + zeros + 4, zeros + 2 + a + b)

    def check(self, spec: DotAdd) -> None:
        one = spec.c_format == spec.d_format == self.rho.format == self.pair.format
        self.needs(one, f"c, d, pairs and ρ of one type, not {spec.types} and {self.pair.format}")
        self.needs(self.rho.format.storage_bits <= 32, f"sums of 16 or 32 bits, not {self.rho.format}")
        check_products(self, spec)
        ieee = spec.a_format == spec.b_format and spec.a_format.specials is Specials.IEEE
        self.needs(ieee or not self.nan.order, f"a and b of one IEEE format for its NaNs, not {spec.types}")
        whole = not (spec.a_format.ignored_low_bits and self.nan.order)
        self.needs(whole, f"a and b all of whose bits count for its NaNs, not {spec.a_format}")
        self.needs(self.nan is not NanRule.INDEFINITE, f"another NaN, not {self.nan.value}")
        self.needs(
            self.frame(spec) <= 58, f"sums of a pair of at most 58 fractional bits, not {self.frame(spec)}"
        )

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"rounds twice for every pair of products: their exact sum to {self.pair.fraction_bits} fractional bits, "
            f"then that and c to {significant(spec.d_format)}"
        )

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        return Node((before, Node(tuple(places))))

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        if self != type(self)(self.pair, self.rho):
            return None
        return "pair_add", {"k": spec.k, **factors(spec), "pair": self.pair, "rho": self.rho}
