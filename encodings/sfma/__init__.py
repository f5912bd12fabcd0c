"""sfma, the sequential fused multiply-add: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.formats import fp16, fp32, fp64
from mmaformal.limits import factors, significant
from mmaformal.rounding import Conversion, NanRule
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class Sfma(Parameters):
    """sfma, sequential fused multiply-add (semantics §3; MMA-Sim §IV-A).

    `d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K−1, each correctly rounded with ρ, subnormals kept,
    specials and the sign of zero as IEEE 754 (an exact zero is +0 unless product and addend are both −0, which a ρ
    without signed zeros makes +0 too).
    """

    rho: Conversion
    nan: NanRule = NanRule.ANY

    algorithm: ClassVar[str] = "sfma"
    has_flags: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.NOTHING
    rounds_correctly: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {"nan": "which NaN an fma gives"}
    summary: ClassVar[str] = "sequential fused multiply-add: K correctly rounded fma, in order"
    step_products = 1

    @property
    def factors_commute(self) -> bool:
        return not self.nan.order

    def check(self, spec: DotAdd) -> None:
        one = spec.a_format == spec.b_format == spec.c_format
        self.needs(one and spec.d_format == self.rho.format, f"one type throughout, not {spec.types}")
        self.needs(spec.a_format == self.rho.format, f"a, b, c of {self.rho.format}, the type of ρ")
        self.needs(self.rho.format in (fp16, fp32, fp64), "fp16, fp32 or fp64")
        self.needs(self.nan is not NanRule.INDEFINITE, f"another NaN, not {self.nan.value}")

    def keeps(self, spec: DotAdd) -> str:
        return f"rounds after every product: each fma is exact until it is rounded to {significant(spec.d_format)}"

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        own = {"k": spec.k, **factors(spec), "rho": self.rho}
        return ("fma", own) if self == type(self)(self.rho) else None

    def ieee_name(self, spec: DotAdd) -> str:
        return "IEEE fma" if self.rho.name.startswith("IEEE-") else ""

    @property
    def first_nan(self) -> str:
        return ", ".join(self.nan.order)
