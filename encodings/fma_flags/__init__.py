"""fma_flags, the exceptions that a fused multiply-add raises: its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mmaformal.encodings.fma import Fma
from mmaformal.formats import Format, integer_format
from mmaformal.limits import factors
from mmaformal.rounding import Conversion, NanRule, Tininess
from mmaformal.spec import DotAdd, LossModel, Parameters

#: The code of d: 16 invalid, 4 overflow, 2 underflow, 1 inexact, as RISC-V's fflags; 8, division by zero, is never set.
FLAGS: Format = integer_format(5, signed=False)
INVALID, OVERFLOW, UNDERFLOW, INEXACT = 16, 4, 2, 1


@dataclass(frozen=True, repr=False)
class FmaFlags(Parameters):
    """fma_flags, the exceptions of `a·b + c`, a datapath (semantics §3; IEEE 754-2019 §7).

    d is what `ρ(a·b + c)` raises, ρ being `rounds`: invalid, overflow, underflow (tiny and inexact), inexact.
    """

    rounds: Conversion  #: ρ of the fma
    tiny: Tininess  #: when a result counts as tiny
    hides: bool = False  #: whether a quiet NaN c hides ∞·0
    flush_inputs: bool = False  #: whether a subnormal operand counts as zero of its sign

    algorithm: ClassVar[str] = "fma_flags"
    loss: ClassVar[LossModel] = LossModel.NOTHING
    is_integer: ClassVar[bool] = True
    meanings: ClassVar[Mapping[str, str]] = {
        "rounds": "how the sum is rounded, whose exceptions these are",
        "tiny": "when a result counts as tiny",
        "hides": "whether 0·∞ + c raises nothing where c is a quiet NaN",
        "flush_inputs": "whether a subnormal operand counts as zero",
    }
    summary: ClassVar[str] = "the exceptions of a fused multiply-add: invalid, overflow, underflow, inexact"
    nan_is_canonical = True
    factors_commute = True
    step_products = 1

    @property
    def last_rounding(self) -> Conversion:
        return self.rounds

    @property
    def own(self) -> Fma:
        """Return the parameters of the fma."""
        return Fma(self.rounds, NanRule.DEFAULT, False, self.flush_inputs, self.tiny)

    def inner(self, spec: DotAdd) -> DotAdd:
        """Return the fma that raises them."""
        return DotAdd(1, spec.a_format, spec.b_format, spec.c_format, self.rounds.format, self.own)

    def check(self, spec: DotAdd) -> None:
        self.needs(spec.d_format == FLAGS, f"a d of {FLAGS}, not {spec.d_format}")
        self.needs(spec.k == 1, f"one product, not {spec.k}")
        self.inner(spec)  # raises where there is no such fma

    def keeps(self, spec: DotAdd) -> str:
        return f"says what the exact sum, rounded once to {self.rounds.format}, raises"

    def datapath(self, spec: DotAdd) -> tuple[str, dict[str, object]] | None:
        own = {**factors(spec), "c": spec.c_format, "rho": self.rounds, "tiny": self.tiny.name}
        return "flags", own | {"hides": int(self.hides), "flush_inputs": int(self.flush_inputs)}
