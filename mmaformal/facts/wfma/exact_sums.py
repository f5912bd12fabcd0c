"""An fma of widened bf16 factors gives d = ρ(c + a·b), as a theorem about the factors' own codes (`sfma.exact_sums`).

fp32 has bf16's exponents, so that a converted factor has the same exponent, and zeros below its significand.
"""

from __future__ import annotations

from dataclasses import dataclass

from mmaformal.algorithms import Conversion, Wfma
from mmaformal.encodings.smt import sfma, wfma
from mmaformal.facts.sfma.exact_sums import FmaSum


@dataclass(frozen=True)
class WideFmaSum(FmaSum):
    """One step of a model of wfma on bf16 factors."""

    @property
    def rho(self) -> Conversion:
        p = self.spec.parameters
        assert isinstance(p, Wfma)
        return p.rho

    @property
    def step(self) -> sfma.Step:
        x = self.inputs
        return wfma.step(self.spec, x.a[0], x.b[0], x.c).fma
