"""pfma, the paired fused multiply-add: its parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import ClassVar

from mmaformal.formats import Format, bf16, fp16, fp32, tf32
from mmaformal.limits import significant
from mmaformal.rounding import IEEE_FP32, NanRule, Tininess
from mmaformal.spec import DotAdd, Flushing, LossModel, Parameters
from mmaformal.summation import Node

#: NaNs of an fma: measured of bf16, and of other factors not known.
NAN_RULES = (NanRule.FIRST, NanRule.ANY)


def check_factors(parameters: Parameters, spec: DotAdd) -> None:
    """Raises ValueError unless a flushed fma takes these types, and no more is said of its NaNs than is known."""
    same = spec.a_format == spec.b_format and spec.a_format in (bf16, tf32, fp16)
    parameters.needs(same, f"a and b of bf16, both, or of tf32 or fp16, not {spec.types}")
    parameters.needs(spec.c_format == spec.d_format == fp32, "c and d of fp32")
    known = parameters["nan"] is NanRule.ANY or spec.a_format == bf16
    parameters.needs(known, f"a and b of bf16, or some NaN: of {spec.a_format} it is not known which")


def taken_as(fmt: Format) -> Format:
    """Returns the format that a and b of a format are taken in.

    fp16 is converted to fp32, where all its numbers are normal; they fill no more of a significand than those of tf32.
    """
    return tf32 if fmt == fp16 else fmt


def on_taken(spec: DotAdd) -> DotAdd:
    """Returns the same of factors that are converted already."""
    return replace(spec, a_format=taken_as(spec.a_format), b_format=taken_as(spec.b_format))


@dataclass(frozen=True, repr=False)
class Pfma(Parameters):
    """pfma, paired fused multiply-add (semantics §10), of Intel AMX.

    Two partial sums start at +0; even products are added to one, odd ones to the other, each by an fma; d is
    `c + (t_0 + t_1)`.  Every operation is IEEE fp32, to nearest even, but a subnormal operand counts as zero of its
    sign, and so does a result that is tiny.  A NaN operand is the result, made quiet, the first one of
    a, b, addend; of t_0 + t_1 and c + s it is the first one too.  0·∞ and ∞ − ∞ give 0xFFC00000.

    a and b of fp16 are converted to fp32 first, so that their subnormals are none there, and count.  With `NanRule.ANY`
    it is not known which NaN comes out.
    """

    L: int  #: products of one instruction; K > L is a chain of them
    tiny: Tininess = Tininess.AFTER
    nan: NanRule = NanRule.FIRST

    algorithm: ClassVar[str] = "pfma"
    loss: ClassVar[LossModel] = LossModel.OPERATIONS
    meanings: ClassVar[Mapping[str, str]] = {
        "tiny": "when a result counts as tiny, which is flushed to zero",
        "nan": "which NaN comes out",
    }
    summary: ClassVar[str] = (
        "paired fma: even and odd products in two chains of fp32 fma, their sum added to c"
    )
    last_rounding = IEEE_FP32

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.L >= 2 and self.L % 2 == 0, f"L even, a pair of products or several, not {self.L}")
        self.needs(self.nan in NAN_RULES, f"the first NaN, or some, not {self.nan.value}")

    def check(self, spec: DotAdd) -> None:
        check_factors(self, spec)

    def class_of(self, k: int) -> Hashable:
        """Each is added in a place of its own."""
        return k

    def keeps(self, spec: DotAdd) -> str:
        return f"has two parts, of even and odd products, rounded to {significant(fp32)} after every product"

    @property
    def flushing(self) -> Flushing:
        """Two chains, their sum, and that with c."""
        return Flushing(self.L // 2 + 1, self.L + 2)

    @property
    def first_nan(self) -> str:
        return "c, a, b" if self.nan is NanRule.FIRST else ""

    def sum_tree(self, spec: DotAdd, before: Node | int, places: list[int]) -> Node:
        halves: list[list[Node | int]] = [[*places[0::2]], [*places[1::2]]]
        even, odd = (reduce(lambda total, x: Node((total, x)), half[1:], half[0]) for half in halves)
        return Node((before, Node((even, odd))))
