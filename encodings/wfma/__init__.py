"""wfma, the fused multiply-add of widened factors: its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mmaformal.formats import fp32
from mmaformal.limits import factors, holds_narrower, significant
from mmaformal.rounding import Conversion
from mmaformal.spec import DotAdd, LossModel, Parameters


@dataclass(frozen=True, repr=False)
class Wfma(Parameters):
    """wfma, fused multiply-add of widened factors (semantics §10), of Apple AMX's fma16 onto fp32.

    As sfma, `d = c`, then `d = fma(a_k, b_k, d)` for k = 0 … K−1, but a and b are of a narrower format, and are
    converted to ρ's exactly.  A NaN is `NanRule.DEFAULT`.
    """

    rho: Conversion

    algorithm: ClassVar[str] = "wfma"
    has_flags: ClassVar[bool] = True
    loss: ClassVar[LossModel] = LossModel.NOTHING
    summary: ClassVar[str] = (
        "fma of widened factors: K correctly rounded fma, in order, a and b converted exactly"
    )
    nan_is_canonical = True
    factors_commute = True
    step_products = 1

    def check(self, spec: DotAdd) -> None:
        for x in (spec.a_format, spec.b_format):
            self.needs(x != fp32 and holds_narrower(fp32, x), f"a and b that fp32 holds, not {spec.types}")
        self.needs(spec.c_format == spec.d_format == self.rho.format == fp32, "c, d and ρ of fp32")

    def keeps(self, spec: DotAdd) -> str:
        return f"rounds after every product: each fma is exact until it is rounded to {significant(spec.d_format)}"

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        own = {"k": spec.k, **factors(spec), "rho": self.rho}
        return ("fma", own) if self == type(self)(self.rho) else None

    def ieee_name(self, spec: DotAdd) -> str:
        told = f"IEEE fma of {spec.a_format} × {spec.b_format} onto {spec.d_format}"
        return told if self.rho.name.startswith("IEEE-") else ""
