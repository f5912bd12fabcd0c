"""A step of wfma is an fma of sfma, of the converted factors; and those are the numbers that the factors are.

So what is known of sfma, of any three codes of ρ's format, is known of wfma.
"""

from __future__ import annotations

from dataclasses import replace

import z3

from mmaformal.cases.inputs import Inputs, symbolic_inputs
from mmaformal.cases.one_step import one_step
from mmaformal.encodings import smt
from mmaformal.encodings.sfma import Sfma
from mmaformal.encodings.smt import ieee
from mmaformal.encodings.wfma import Wfma
from mmaformal.facts import exact_steps
from mmaformal.facts.exact_terms import prove_conversion
from mmaformal.proof.composition import Composing
from mmaformal.rounding import NanRule
from mmaformal.spec import DotAdd


def widened(spec: DotAdd) -> DotAdd:
    """The same of factors of ρ's format."""
    assert isinstance(spec.parameters, Wfma)
    rho = spec.parameters.rho
    return spec.replace(
        a_format=rho.format, b_format=rho.format, parameters=Sfma(rho=rho, nan=NanRule.DEFAULT)
    )


def converted(spec: DotAdd, x: Inputs) -> Inputs:
    """The inputs of the widened model."""
    a, b = (
        tuple(ieee.convert(code, fmt, spec.c_format) for code in side)
        for side, fmt in ((x.a, spec.a_format), (x.b, spec.b_format))
    )
    return replace(x, a=a, b=b)


def prove_claims(proving: Composing, spec: DotAdd) -> z3.BoolRef:
    """Prove that a step is correctly rounded; returns that every converted input is a number.

    Raises NotProvedError.
    """
    one = one_step(spec)
    x, inner = symbolic_inputs(one), widened(one)
    wide = converted(one, x)
    own, alone = smt.dot_add(one, x.a, x.b, x.c).result, smt.dot_add(inner, wide.a, wide.b, wide.c).result
    proving.claim("fma", "a step is an fma of the converted factors", own == alone)
    for codes, fmt in ((x.a, spec.a_format), (x.b, spec.b_format)):
        prove_conversion(proving, codes[0], fmt, inner.a_format)
    return exact_steps.prove_claims(proving, inner, wide)
