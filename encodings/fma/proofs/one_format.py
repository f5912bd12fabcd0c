"""A step of fma of one format is an fma of sfma, which keeps other places below the sum.

So what is known of sfma is known of it.  sfma is meant for fp16, fp32 and fp64; what is proved of it holds of every
format with infinities that uses all bits of its word.
"""

from __future__ import annotations

from dataclasses import dataclass

import z3

from mmaformal.cases.inputs import symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings import smt
from mmaformal.encodings.fma import Fma
from mmaformal.encodings.sfma import Sfma
from mmaformal.facts import exact_steps
from mmaformal.formats import Specials
from mmaformal.proof.composition import Composing
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


@dataclass(frozen=True, repr=False)
class SfmaOfAnyFormat(Sfma):
    """sfma of a format that it is not meant for, in proofs alone."""

    def check(self, spec: DotAdd) -> None:
        """Raises ValueError for several formats."""
        formats = {spec.a_format, spec.b_format, spec.c_format, spec.d_format}
        self.needs(formats == {self.rho.format}, f"one format, not {spec.types}")


def with_sfma(spec: DotAdd) -> DotAdd | None:
    """Return the model of sfma that computes the same; None where there is none."""
    p = spec.parameters
    assert isinstance(p, Fma)
    fmt = p.rho.format
    one = {spec.a_format, spec.b_format, spec.c_format, spec.d_format} == {fmt}
    usual = fmt.specials is Specials.IEEE and fmt.is_whole and fmt.signed and p.rho.saturation is None
    kept = not p.flush_inputs and p.tiny is None and not p.ones and p.nan is not NanRule.INDEFINITE
    if not (one and usual and kept):
        return None
    return spec.replace(parameters=SfmaOfAnyFormat(rho=p.rho, nan=p.nan))


def prove_claims(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that a step is correctly rounded; returns that every input is a number.  Raises NotProvedError."""
    one = one_step(spec)
    inner = with_sfma(one)
    assert inner is not None
    x = symbolic_inputs(one)
    own, alone = smt.dot_add(one, x.a, x.b, x.c).result, smt.dot_add(inner, x.a, x.b, x.c).result
    proving.claim("fma", "a step is an fma of sfma", own == alone)
    return exact_steps.prove_claims(proving, inner)
