"""ffma, the flushed fused multiply-add in order: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.encodings.pfma import NAN_RULES, check_factors
from mmaformal.formats import fp32
from mmaformal.limits import significant
from mmaformal.rounding import IEEE_FP32, NanRule, Tininess
from mmaformal.spec import DotAdd, Flushing, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class Ffma(Parameters):
    """ffma, flushed fused multiply-add in order (semantics §10), of Intel's AVX512_BF16.

    `d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K−1, each as one of pfma: IEEE fp32, to nearest even, but a
    subnormal operand counts as zero of its sign, and so does a result that is tiny; fp16 is converted to fp32 first.
    Which product is taken first is the `product_order` of the `DotAdd`.
    """

    tiny: Tininess = Tininess.AFTER
    nan: NanRule = NanRule.FIRST

    meanings: ClassVar[Mapping[str, str]] = {
        "tiny": "when a result counts as tiny, which is flushed to zero",
        "nan": "which NaN comes out",
    }
    algorithm: ClassVar[str] = "ffma"
    loss: ClassVar[LossModel] = LossModel.OPERATIONS
    summary: ClassVar[str] = "flushed fma: K fma of fp32 in order, subnormals zero before and after each"
    step_products = 1
    last_rounding = IEEE_FP32

    def __post_init__(self) -> None:
        super().__post_init__()
        self.needs(self.nan in NAN_RULES, f"the first NaN, or some, not {self.nan.value}")

    def check(self, spec: DotAdd) -> None:
        check_factors(self, spec)

    def keeps(self, spec: DotAdd) -> str:
        return (
            f"rounds after every product: each fma is exact until it is rounded to {significant(fp32)}, and zero "
            f"where it is below the least normal number {self.tiny.name.lower()} that"
        )

    @property
    def flushing(self) -> Flushing:
        return Flushing(0, 1)

    @property
    def first_nan(self) -> str:
        return "a, b, c" if self.nan is NanRule.FIRST else ""
